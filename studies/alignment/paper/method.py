"""Ridge on counters, as the paper has it and mended: for the study, which compares alignments by it.

Source: Saeed et al., MLCAD 2021, Sec. III and IV. What `jostle.Alignment` answers with learns otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from jostle.errors import UsageError
from jostle.learn import RunCounts
from jostle.learn.learners.counters import (
    AlignedRows,
    Alignment,
    FittedAlignment,
    Roll,
    SoloCounters,
    SoloIndex,
    aligned_rows,
    ground_of,
    roll,
    traced_windows,
    traces_of,
)
from studies.alignment.paper.printed import printed_rows, roll_printed
from studies.alignment.paper.ridge import LinearModel, fit_ridge
from studies.alignment.paper.selection import CUTS, CounterSelection, select_counters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostle._base.progress import Progress
    from jostle.learn import Prepared

EVERY = 1_000  # counters: more than any machine has
SlotPair = tuple[int, int]


def laid(kind: str) -> dict[str, Any]:
    """For `aligned_rows`: how samples alone are laid over a period beside others."""
    return {"lay": printed_rows} if kind == "printed" else {}


@dataclass(frozen=True)
class RidgeAlignment(Alignment):
    """form: of the features, own rates times others' pressure, or linear as in the paper, where the
    instructions of a period are learned. alignment: `section`, or as the paper prints. slots: one model, or
    one per ordered pair of slots. strength: by default chosen by leaving out sets. cut: of the tree of
    counters; by default several are tried."""

    form: Literal["interacting", "linear"] = "interacting"
    alignment: Literal["section", "printed"] = "section"
    slots: Literal["pooled", "pair"] = "pooled"
    strength: float | None = None
    cut: float | None = None

    @classmethod
    def paper(cls, **changes: Any) -> RidgeAlignment:
        """The method as printed: its features, target, slot pairs, choice of counters (cut at 0.4, the
        prefix of the least error however long) and the printed alignment."""
        options: dict[str, Any] = {
            "form": "linear",
            "slots": "pair",
            "alignment": "printed",
            "corunners": "once",
            "cut": CUTS[0],
            "most_counters": EVERY,
        }
        return cls(**(options | changes))

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedRidge:
        """Validation chooses the counters. Raises what Alignment raises."""
        traces = traces_of(self, prepared.data)
        runs, kind = prepared.runs, laid(self.alignment)
        ground = ground_of(self, traces, runs, **kind)
        rows, selection, chosen = ground.rows, None, ground.offered
        if self.counters is None:
            ids = prepared.validation.table.column("run_id").to_pylist()
            watched = traced_windows(traces, set(traces.run_ids).intersection(ids))
            held_out = {name: watched[name] for name in watched if name not in ground.windows}
            how: dict[str, Any] = {"loop": ground.loop, "repeats": ground.repeats, **kind}
            validation = aligned_rows(held_out, ground.solos, **how) if held_out else None
            tried = [
                select_counters(
                    rows, validation, cut=cut, most=self.most_counters, form=self.form, seed=seed
                )
                for cut in (CUTS if self.cut is None else (self.cut,))
            ]
            selection = min(tried, key=lambda one: float(np.nanmin(one.errors)))
            chosen = selection.chosen
        rows = rows.with_counters(chosen)

        def one(some: AlignedRows) -> LinearModel:
            return fit_ridge(some, self.form, self.strength, seed=seed)

        pairs = np.unique(np.stack([rows.slot, rows.other], axis=1), axis=0).tolist()
        models: dict[SlotPair | None, LinearModel] = (
            {None: one(rows)}
            if self.slots == "pooled"
            else {(a, b): one(rows.take((rows.slot == a) & (rows.other == b))) for a, b in pairs}
        )
        return FittedRidge(
            SoloIndex(tuple(solo.narrowed(chosen) for solo in ground.solos.all)),
            next(iter(models.values())),  # type: ignore[arg-type]
            RunCounts.of(runs),
            ground.loop,
            ground.most,
            ground.notes,
            ground.repeats,
            self.stressors,
            models,
            self.alignment,
            selection,
        )


@dataclass(frozen=True, eq=False)
class FittedRidge(FittedAlignment):
    """models: the learned slowdown by ordered pair of slots, or {None: one for all}. selection: how the
    counters were chosen; None for those that were given."""

    models: Mapping[SlotPair | None, LinearModel] = field(default_factory=dict)
    alignment: str = "section"
    selection: CounterSelection | None = None

    def roll(
        self,
        solos: Sequence[SoloCounters],
        *,
        loop: Sequence[bool] | None = None,
        slots: Sequence[int] | None = None,
    ) -> Roll:
        """See `roll`; slots: of the workloads, by default 0, 1, …."""
        places = list(range(len(solos))) if slots is None else list(slots)
        if slots is None and set(self.models) == {(0, 0)}:
            places = [0] * len(solos)  # who ran where was unknown
        slowdowns = [
            self.beside((places[i], *(slot for k, slot in enumerate(places) if k != i)))
            for i in range(len(solos))
        ]
        if self.alignment == "printed" and len(solos) > 1:
            if len(solos) > 2 or any(loop or ()):
                raise UsageError("the algorithm as printed is for two workloads that run once")
            return roll_printed(solos, lambda i, *rates: slowdowns[i](*rates)).as_roll(solos)
        return roll(solos, lambda i, *rates: slowdowns[i](*rates), loop=loop)

    def instructions(self, rows: AlignedRows) -> np.ndarray:
        """(n,) predicted instructions of measured periods: what was executed until then is known (Fig. 2)."""
        slow = np.full(len(rows), np.nan)
        for slot, other in np.unique(np.stack([rows.slot, rows.other], axis=1), axis=0).tolist():
            if None in self.models or (slot, other) in self.models:
                at = (rows.slot == slot) & (rows.other == other)
                slow[at] = self.beside((slot, other))(rows.own[at], rows.others[at])
        return rows.own[:, 0] * rows.period_seconds / slow

    def beside(self, slots: Sequence[int]) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """What tells the slowdown from (n, d) rates; slots: of a workload, and of its co-runners."""
        model = self.models.get(None)
        if len(slots) < 2:
            return lambda own, others: np.ones(len(own))
        if model is None and len(slots) != 2:
            raise UsageError(
                f"one model per pair of slots cannot answer for {len(slots)} workloads",
                fix="Fit with slots='pooled'.",
            )
        if model is None:
            model = self.models.get((slots[0], slots[1]))
        if model is None:
            known = ", ".join(map(str, self.models))
            raise UsageError(
                f"no window was traced on slots {tuple(slots)}", fix=f"Known: {known}."
            )
        return model.slowdown
