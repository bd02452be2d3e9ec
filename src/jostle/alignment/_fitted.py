"""A fitted alignment, answered by NumPy alone: profiles of workloads alone, and the learned slowdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.alignment._roll import Roll, roll
from jostle.alignment.learning._learn import Learned, learned_from_arrays
from jostle.alignment.learning._network import Network
from jostle.alignment.learning._rows import Profiles, Rows
from jostle.alignment.solo._counters import Profile
from jostle.errors import BadData, UnknownName, UsageError

if TYPE_CHECKING:
    from jostle.alignment.learning._select import Selection
    from jostle.traces import Traces

# The least log slowdown that the size of an error is taken to be proportional to.
FLOOR = 0.01


def slot_columns(slot: np.ndarray, told: Sequence[int]) -> np.ndarray:
    """(n, len(told)) 1 where a row ran on that slot, else 0."""
    return (np.asarray(slot)[:, None] == np.array(told, np.int64)[None]).astype(np.float64)


class FittedAlignment:
    """Predicts the run time of workloads side by side from their profiles. Immutable.

    profiles: of every workload that it can answer for. models: the learned slowdown by ordered pair of
    slots, or {None: one for all}. slots: those that are features of a pooled model. selection: how the
    counters were chosen, None for a loaded model or counters that were given.
    """

    def __init__(
        self,
        profiles: Sequence[Profile],
        models: dict[tuple[int, int] | None, Learned | Network],
        slots: tuple[int, ...] = (),
        alignment: str = "section",
        corunners: str = "once",
        notes: tuple[str, ...] = (),
        selection: Selection | None = None,
    ) -> None:
        self.profiles = Profiles(profiles)
        self.models = models
        self.slots = slots
        self.alignment = alignment
        self.corunners = corunners
        self.notes = notes
        self.selection = selection
        self._known: dict[tuple, np.ndarray] = {}

    @property
    def workload_names(self) -> tuple[str, ...]:
        """Workloads it has a profile of, sorted."""
        return tuple(sorted({p.workload for p in self.profiles.all}))

    @property
    def platform_names(self) -> tuple[str, ...]:
        return tuple(sorted({p.platform for p in self.profiles.all}))

    @property
    def counters(self) -> tuple[str, ...]:
        """That it needs of a trace, instructions first."""
        return self.profiles.all[0].counters

    def with_solo(self, traces: Traces) -> FittedAlignment:
        """The same model that also knows the workloads traced alone in `traces`; those it knew stay.

        Raises UnknownName for a trace without a counter it needs, BadData for one of another kind.
        """
        have = {(p.workload, p.platform, p.slot) for p in self.profiles.all}
        new = _profiles(traces, self.counters, self.profiles.all[0].period_seconds)
        more = [p for p in new if (p.workload, p.platform, p.slot) not in have]
        return FittedAlignment(
            [*self.profiles.all, *more],
            self.models,
            self.slots,
            self.alignment,
            self.corunners,
            self.notes,
            self.selection,
        )

    def predict(self, colocations: Any) -> np.ndarray:
        """(n,) seconds. Which slot a workload takes is not part of a co-location: where slots differ, the
        answer is the mean over the target's taking each of them in turn.

        Raises UnknownName for a workload without a trace alone, or a platform without any.
        """
        out = np.empty(len(colocations))
        for i in range(len(colocations)):
            workload, platform, corunners = colocations.row(i)
            if platform not in self.platform_names:
                raise UnknownName("platform", platform, self.platform_names)
            out[i] = np.mean(self._placements(workload, platform, corunners))
        return out

    def candidates(self, colocations: Any) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        """Ways to bound: errors of the same size everywhere, or proportional to the predicted slowdown."""
        centre = np.log(self.predict(colocations))
        alone = np.array([self._alone(*colocations.row(i)[:2]) for i in range(len(colocations))])
        slow = np.maximum(np.abs(centre - np.log(alone)), FLOOR)
        names = ("same everywhere", "sqrt slowdown", "slowdown")
        scales = np.stack([np.ones_like(slow), np.sqrt(slow), slow])
        return names, np.stack([centre] * 3), scales

    def window(
        self, workloads: Sequence[str], platform: str, *, loop: Sequence[bool] | None = None
    ) -> tuple[Roll, list[Profile]]:
        """Workloads on slots 0, 1, … from the same moment on, and their profiles there."""
        found = [self.profiles.of(name, platform, slot) for slot, name in enumerate(workloads)]
        return self.roll(found, loop=loop), found

    def roll(
        self,
        profiles: Sequence[Profile],
        *,
        loop: Sequence[bool] | None = None,
        slots: Sequence[int] | None = None,
    ) -> Roll:
        """See `roll`; slots: of the profiles, by default 0, 1, …."""
        places = list(range(len(profiles))) if slots is None else list(slots)
        if slots is None and set(self.models) == {(0, 0)}:
            places = [0] * len(profiles)  # it was not told who ran where
        for p in profiles:
            if p.counters != self.counters:
                raise BadData(
                    f"the profile of {p.workload!r} has other counters than the model",
                    fix="Make it with profile_of(trace, model.counters, period).",
                )
        marks = slot_columns(np.array(places), self.slots)
        model = self.models.get(None)
        if isinstance(model, Network) and len(profiles) == 2 and self.alignment == "section":
            return _roll_pair(model, profiles, marks, loop)

        def slowdown(i: int, own: np.ndarray, others: np.ndarray) -> np.ndarray:
            if None in self.models:
                if self.slots:
                    n = len(own)
                    own = np.concatenate([own, np.broadcast_to(marks[i], (n, len(self.slots)))], 1)
                    others = np.concatenate([others, np.zeros((n, len(self.slots)))], 1)
                return self.models[None].slowdown(own, others)
            return self._of_slots(places, i).slowdown(own, others)

        return roll(profiles, slowdown, loop=loop, alignment=self.alignment)

    def instructions(self, rows: Rows) -> np.ndarray:
        """(n,) predicted instructions of measured periods: what was executed until then is known (Fig. 2)."""
        slow = np.full(len(rows), np.nan)
        if None in self.models:
            marks = slot_columns(rows.slot, self.slots)
            own = np.concatenate([rows.own, marks], axis=1)
            others = np.concatenate([rows.others, np.zeros_like(marks)], axis=1)
            slow = self.models[None].slowdown(own, others)
        else:
            for (slot, other), learned in ((p, m) for p, m in self.models.items() if p):
                at = (rows.slot == slot) & (rows.other == other)
                slow[at] = learned.slowdown(rows.own[at], rows.others[at])
        return rows.own[:, 0] * rows.period_seconds / slow

    def _of_slots(self, places: Sequence[int], i: int) -> Learned | Network:
        if len(places) != 2:
            raise UsageError(
                f"one model per pair of slots cannot answer for {len(places)} workloads",
                fix="Fit with slots='pooled'.",
            )
        pair = (places[i], places[1 - i])
        if pair not in self.models:
            known = ", ".join(map(str, self.models))
            raise UsageError(f"no window was traced on slots {pair}", fix=f"Known: {known}.")
        return self.models[pair]

    def _placements(self, workload: str, platform: str, corunners: Sequence[str]) -> list[float]:
        """Run times of the target, one per slot it can take where that makes a difference."""
        everyone = (workload, *corunners)
        alike = not self.slots and None in self.models
        alike &= not any(self.profiles.slotted(name, platform) for name in everyone)
        found = []
        for slot in range(1 if alike else len(everyone)):
            members = list(corunners)
            members.insert(slot, workload)
            target = slot if self.corunners == "loop" else None
            key = (platform, target, *members)
            if key not in self._known:
                loop = None if target is None else [i != target for i in range(len(members))]
                ends = self.window(members, platform, loop=loop)[0].end_seconds
                self._known[key] = ends
            found.append(float(self._known[key][slot]))
        return found

    def _alone(self, workload: str, platform: str) -> float:
        return self.profiles.of(workload, platform, 0).duration_seconds

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays: dict[str, np.ndarray] = {}
        profiles, models = [], []
        for number, p in enumerate(self.profiles.all):
            arrays[f"profile_{number}"] = np.ascontiguousarray(p.cumulative)
            profiles.append([p.workload, p.platform, p.slot, p.period_seconds, p.duration_seconds])
        for number, (pair, learned) in enumerate(self.models.items()):
            own, said = learned.to_arrays()
            arrays |= {f"model_{number}.{name}": value for name, value in own.items()}
            models.append({"slots": pair, **said})
        return arrays, {
            "counters": list(self.counters),
            "profiles": profiles,
            "models": models,
            "slots": list(self.slots),
            "alignment": self.alignment,
            "corunners": self.corunners,
            "notes": list(self.notes),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], said: dict[str, Any]) -> FittedAlignment:
        counters = tuple(said["counters"])
        profiles = [
            Profile(
                name, place, int(slot), float(tau), float(seconds), counters, arrays[f"profile_{i}"]
            )
            for i, (name, place, slot, tau, seconds) in enumerate(said["profiles"])
        ]
        models: dict[tuple[int, int] | None, Learned | Network] = {}
        for number, entry in enumerate(said["models"]):
            prefix = f"model_{number}."
            mine = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            pair = (
                None if entry["slots"] is None else (int(entry["slots"][0]), int(entry["slots"][1]))
            )
            models[pair] = learned_from_arrays(mine, entry)
        return cls(
            profiles,
            models,
            tuple(int(s) for s in said["slots"]),
            said["alignment"],
            said["corunners"],
            tuple(said["notes"]),
        )


def _roll_pair(
    network: Network, profiles: Sequence[Profile], marks: np.ndarray, loop: Sequence[bool] | None
) -> Roll:
    """A pair by what the first layer makes of each sample, computed once: layers are sums, so what it makes
    of a stretch of samples is the mean of them."""
    own, tables = [], []
    for p, mark in zip(profiles, marks, strict=True):
        rates = np.diff(p.cumulative, axis=0) / p.period_seconds
        told = np.broadcast_to(mark, (len(rates), len(mark)))
        mine = network.own_part(np.concatenate([rates, told], axis=1))
        theirs = network.others_part(np.concatenate([rates, 0 * told], axis=1))
        own.append(mine.reshape(len(rates), -1))
        steps = theirs.reshape(len(rates), -1) * p.period_seconds
        tables.append(np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)]))
    shape = (-1, *network.own_shape)

    def slowdown(i: int, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        return network.of_parts((mine + theirs).reshape(shape))

    return roll(profiles, slowdown, loop=loop, tables=tables, own=own)


def _profiles(
    traces: Traces, counters: tuple[str, ...], period_seconds: float
) -> tuple[Profile, ...]:
    from jostle.alignment._fit import solo_profiles

    return solo_profiles(traces, counters, period_seconds).all
