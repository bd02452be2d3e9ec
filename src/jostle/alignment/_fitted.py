"""A fitted alignment, answered by NumPy alone: solo counters of workloads, and the learned slowdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._tensors import UNSAVED
from jostle.alignment._printed import roll_printed
from jostle.alignment._roll import Roll, roll
from jostle.alignment.learning._blend import Blend, Learned
from jostle.alignment.learning._known import KnownPrograms
from jostle.alignment.learning._network import Network
from jostle.alignment.learning._rows import AlignedRows, slot_columns
from jostle.alignment.solo._axis import with_instructions
from jostle.alignment.solo._counters import SoloCounters
from jostle.alignment.solo._index import SoloIndex
from jostle.alignment.solo._probed import EVERY_STRESSOR, with_probes
from jostle.bounds import Candidates
from jostle.errors import BadData, UnknownName, UsageError
from jostle.methods import FromCounts, RunCounts

if TYPE_CHECKING:
    from jostle.runs import Colocations
    from jostle.traces import Traces

# The least log slowdown that the size of an error is taken to be proportional to.
FLOOR = 0.01
SlotPair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class FittedAlignment(FromCounts):
    """Predicts the run time of workloads side by side from their counters alone.

    solos: of every workload that it can answer for. models: the learned slowdown by ordered pair of
    slots, or {None: one for all}. counts: of the runs learned from. slots: those that are features of a
    pooled model. selection: how the counters were chosen, a CounterSelection; None for a loaded model or
    counters that were given. programs: what those that ran beside others showed there. repeats: the number
    at which times are compared, None for all that there are.
    """

    solos: SoloIndex
    models: dict[SlotPair | None, Learned]
    counts: RunCounts
    slots: tuple[int, ...] = ()
    alignment: str = "section"
    corunners: str = "once"
    notes: tuple[str, ...] = ()
    selection: Any = field(default=None, metadata=UNSAVED)
    programs: KnownPrograms = field(default_factory=KnownPrograms)
    repeats: int | None = None
    stressors: tuple[str, ...] = EVERY_STRESSOR
    _known: dict[tuple, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    @property
    def workload_names(self) -> tuple[str, ...]:
        """Workloads whose counters alone it knows, sorted."""
        return tuple(sorted({solo.workload for solo in self.solos.all}))

    @property
    def platform_names(self) -> tuple[str, ...]:
        return tuple(sorted({solo.platform for solo in self.solos.all}))

    @property
    def counters(self) -> tuple[str, ...]:
        """That it needs of a trace, instructions first."""
        return self.solos.all[0].counters

    def with_solo(self, traces: Traces) -> FittedAlignment:
        """The same model that also knows the workloads traced alone in `traces`; those it knew stay.

        Raises UnknownName for a trace without a counter it needs, BadData for one of another kind.
        """
        traces = with_probes(with_instructions(traces), self.stressors)
        have = {(s.workload, s.platform, s.slot) for s in self.solos.all}
        period = self.solos.all[0].period_seconds
        new = SoloIndex.from_traces(traces, self.counters, period, repeats=self.repeats).all
        more = [s for s in new if (s.workload, s.platform, s.slot) not in have]
        return replace(self, solos=SoloIndex((*self.solos.all, *more)))

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds. Which slot a workload takes is not part of a co-location: where slots differ, the
        answer is the mean over the workload's taking each of them in turn.

        Raises UnknownName for a workload without a trace alone, or a platform without any.
        """
        out = np.empty(len(colocations))
        for i in range(len(colocations)):
            workload, platform, corunners = colocations.row(i)
            if platform not in self.platform_names:
                raise UnknownName("platform", platform, self.platform_names)
            out[i] = np.mean(self._placements(workload, platform, corunners))
        return out

    def candidates(self, colocations: Colocations) -> Candidates:
        """Ways to bound: errors of the same size everywhere, or proportional to the predicted slowdown."""
        seconds = self.predict(colocations)
        centre = np.log(seconds)
        alone = np.array([self._alone(*colocations.row(i)[:2]) for i in range(len(colocations))])
        slow = np.maximum(np.abs(centre - np.log(alone)), FLOOR)
        names = ("same everywhere", "sqrt slowdown", "slowdown")
        scales = np.stack([np.ones_like(slow), np.sqrt(slow), slow])
        return Candidates(names, np.stack([centre] * 3), scales, seconds=seconds)

    def window(
        self, workloads: Sequence[str], platform: str, *, loop: Sequence[bool] | None = None
    ) -> Roll:
        """Workloads on slots 0, 1, … from the same moment on."""
        solos = [self.solos.of(name, platform, slot) for slot, name in enumerate(workloads)]
        return self.roll(solos, loop=loop)

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
        for solo in solos:
            if solo.counters != self.counters:
                raise BadData(
                    f"the solo counters of {solo.workload!r} are not those of the model",
                    fix="Make them with solo_counters(trace, model.counters, period).",
                )
        marks = slot_columns(np.array(places), self.slots)
        model = self.models.get(None)
        shown = [self.programs.of(self._member(solos, i)) for i in range(len(solos))]
        network = _only_network(model)
        if network is not None and len(solos) == 2 and self.alignment == "section":
            weight, level = _weight_and_level(model)
            lines = [(share * weight, share * level + more) for share, more in shown]
            return _roll_pair(network, solos, marks, loop, lines)

        def slowdown(i: int, own: np.ndarray, others: np.ndarray) -> np.ndarray:
            if model is None:
                return self._of_slots(places, i).slowdown(own, others)
            beside = (others > 0).any(axis=1)
            if self.slots:
                n = len(own)
                own = np.concatenate([own, np.broadcast_to(marks[i], (n, len(self.slots)))], 1)
                others = np.concatenate([others, np.zeros((n, len(self.slots)))], 1)
            ratio = model.slowdown(own, others)
            share, more = shown[i]
            if (share, more) == (1.0, 0.0):
                return ratio
            return np.where(beside, np.exp(share * np.log(ratio) + more), ratio)

        if self.alignment == "printed" and len(solos) == 2 and not any(loop or ()):
            return roll_printed(solos, slowdown).as_roll(solos)
        return roll(solos, slowdown, loop=loop, alignment=self.alignment)

    def _member(self, solos: Sequence[SoloCounters], i: int) -> tuple[str, str, tuple[str, ...]]:
        others = tuple(solo.workload for k, solo in enumerate(solos) if k != i)
        return solos[i].platform, solos[i].workload, others

    def instructions(self, rows: AlignedRows) -> np.ndarray:
        """(n,) predicted instructions of measured periods: what was executed until then is known (Fig. 2)."""
        slow = np.full(len(rows), np.nan)
        for pair, learned in self.models.items():
            if pair is None:
                wider = rows.with_slots(self.slots)
                slow = learned.slowdown(wider.own, wider.others)
            else:
                at = (rows.slot == pair[0]) & (rows.other == pair[1])
                slow[at] = learned.slowdown(rows.own[at], rows.others[at])
        return rows.own[:, 0] * rows.period_seconds / slow

    def _of_slots(self, places: Sequence[int], i: int) -> Learned:
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
        """Run times of the workload, one per slot it can take where that makes a difference."""
        everyone = (workload, *corunners)
        alike = not self.slots and None in self.models
        alike &= not any(self.solos.slotted(name, platform) for name in everyone)
        seconds = []
        for slot in range(1 if alike else len(everyone)):
            members = list(corunners)
            members.insert(slot, workload)
            loop = None
            if self.corunners == "loop":
                loop = tuple(i != slot for i in range(len(members)))
            key = (platform, loop, *members)
            if key not in self._known:
                self._known[key] = self.window(members, platform, loop=loop).end_seconds
            seconds.append(float(self._known[key][slot]))
        return seconds

    def _alone(self, workload: str, platform: str) -> float:
        return self.solos.of(workload, platform, 0).duration_seconds


def _only_network(model: Learned | None) -> Network | None:
    """The network, where a model is nothing else but levels."""
    if isinstance(model, Blend) and len(model.parts) == 1:
        _, learner, at = model.parts[0]
        model = learner if at == tuple(range(len(at))) else None
    return model if isinstance(model, Network) else None


def _weight_and_level(model: Learned | None) -> tuple[float, float]:
    return (model.parts[0][0], model.level) if isinstance(model, Blend) else (1.0, 0.0)


def _roll_pair(
    network: Network,
    solos: Sequence[SoloCounters],
    marks: np.ndarray,
    loop: Sequence[bool] | None,
    lines: Sequence[tuple[float, float]],
) -> Roll:
    """A pair by what the first layer makes of each sample, computed once: layers are sums, so what it makes
    of a stretch of samples is the mean of them. lines: of each workload, what the network's log slowdown is
    multiplied by, and what is added to it."""
    own, tables = [], []
    for solo, mark in zip(solos, marks, strict=True):
        rates = np.diff(solo.cumulative, axis=0) / solo.period_seconds
        slots = np.broadcast_to(mark, (len(rates), len(mark)))
        n = len(rates)
        mine = network.own_part(np.concatenate([rates, slots], axis=1)).reshape(n, -1)
        theirs = network.others_part(np.concatenate([rates, 0 * slots], axis=1)).reshape(n, -1)
        # The last column says whether the other does anything at all.
        own.append(np.concatenate([mine, np.zeros((n, 1))], axis=1))
        busy = (rates > 0).any(axis=1, keepdims=True)
        steps = np.concatenate([theirs, busy], axis=1) * solo.period_seconds
        tables.append(np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps, axis=0)]))
    shape = (-1, *network.own_shape)

    def slowdown(i: int, mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        ratio = network.of_parts((mine + theirs)[:, :-1].reshape(shape))
        share, more = lines[i]
        if (share, more) != (1.0, 0.0):
            ratio = np.exp(share * np.log(ratio) + more)
        return np.where(theirs[:, -1] > 1e-9, ratio, 1.0)

    return roll(solos, slowdown, loop=loop, tables=tables, own=own)
