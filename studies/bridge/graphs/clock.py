"""The phase-aware forecast, of few snapshots and a clock: where runs are at a time, and what runs use there.

Runs of one program do the same things in the same order, but not at the same times. At one time they are
at different places, and what they use there depends on the place. A clock counts progress: *work*
(retired instructions, which rise at a rate that itself says what the program is doing) or *beats* (marks
that the program makes between its phases). The clock is known over the whole of every run, being one
counter; the states need be known at the snapshots only.

For each run that still runs at time tau its clock gives its progress p; what it uses is drawn from the
states that were seen at that progress, whatever the time at which they were seen. So the forecast is a
mixture of measured states with exact weights. Where whole traces exist it gains nothing: then the states at
tau are known.

*Beats*: donors are the states seen in the same phase, in the (at most two) snapshots next to tau that have
some; a phase that no snapshot caught gets those of the phases before and after it, by nearness. A run whose
sample has parts of two phases is the mean of a state of either, by the time that it spent there. *Work*:
donors are the states of the snapshots left and right of p, weighted by nearness in progress and by how
alike the clock's rate was: a program that retires instructions at the same rate at nearly the same place
is in the same phase. Where none of these is alike, states at other places count: programs come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from jostle.bridge import Cloud, Distribution, Forecast, Snapshots
from jostle.errors import NotEnoughRuns, UnknownName, UsageError

if TYPE_CHECKING:
    from jostle.traces import Trace, Traces, Windows

ClockKind = Literal["work", "beats"]
DRAWS = 4  # pairs of states for a run whose sample has parts of two phases
ELSEWHERE = 0.01  # what a state counts that was seen at another progress, beside one seen near
WIDE = 1.0  # of the spread of log rates within a snapshot: how unlike the rate of a donor may be
SLACK = 1e-7  # of a phase: sums of many parts of a mark fall short of it


@dataclass(frozen=True)
class ClockSettings:
    """Which counter is a clock, and how it is read.

    marks: what the counter has reached, since a run began, where its next phases begin: makes beats of a
    counter of work that is the same in every run. period: of beats, after how many phases the program begins
    anew. Raises UsageError.
    """

    counter: str
    kind: ClockKind = "work"
    marks: tuple[float, ...] = ()
    period: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("work", "beats"):
            raise UsageError(f"clock_kind {self.kind!r} is not known", fix="One of work, beats.")
        marks = np.asarray(self.marks, np.float64)
        if not (marks > 0).all() or (np.diff(marks) <= 0).any():
            raise UsageError("the marks of a clock must be above 0 and rise")
        if (self.marks or self.period is not None) and self.kind != "beats":
            raise UsageError("only a clock of kind 'beats' has marks or a period")
        if self.period is not None and self.period < 1:
            raise UsageError(f"a clock cannot have a period of {self.period} phases")


@dataclass(frozen=True, eq=False)
class Clock:
    """times[core][run], counts[core][run]: the run's cumulative count at the ends of its samples.

    kind: `work`, a count that rises all the time, or `beats`, phases passed, where a part of one says how far
    in it a run is, and a program that only counts marks gives whole numbers. period: of beats, after
    how many phases the program begins anew; a phase is then its number modulo it. None: never.
    """

    kind: ClockKind
    times: Mapping[int, Sequence[np.ndarray]]
    counts: Mapping[int, Sequence[np.ndarray]]
    period: int | None = None

    @classmethod
    def of(cls, traces: Sequence[Trace], row: Mapping[str, int], settings: ClockSettings) -> Clock:
        """From traces; row: the number of each run. Samples without the counter are bridged."""
        cores = sorted({trace.core for trace in traces})
        nothing = np.zeros(0)
        times = {core: [nothing] * len(row) for core in cores}
        counts = {core: [nothing] * len(row) for core in cores}
        for trace in traces:
            if settings.counter not in trace.counters:
                continue
            value = trace.counters[settings.counter]
            known = np.isfinite(value)
            if known.any():
                begin = float(trace.time_seconds[0] - trace.interval_seconds[0])
                # A sample that is missing went on at the mean rate of the others.
                rate = value[known].sum() / trace.interval_seconds[known].sum()
                only_counts_marks = settings.kind == "beats" and not settings.marks
                missing = 0.0 if only_counts_marks else rate * trace.interval_seconds
                count = np.append(0.0, np.cumsum(np.where(known, value, missing)))
                if settings.marks:
                    count = _in_phases(count, np.array(settings.marks, np.float64))
                run = row[trace.run_id]
                times[trace.core][run] = np.append(begin, trace.time_seconds)
                counts[trace.core][run] = count
        return cls(settings.kind, times, counts, settings.period)

    def at(self, core: int, time_seconds: float) -> tuple[np.ndarray, np.ndarray]:
        """(R,) progress and (R,) its rate per second at a time; NaN for runs not traced then.

        Beats are whole numbers: the phase that a run is in, NaN where its sample then has parts of two.
        """
        if self.kind == "beats":
            first, last, _ = self.phases(core, time_seconds)
            whole = np.where(first == last, last, np.nan)
            return self.kind_of_phase(whole), np.where(np.isnan(first), np.nan, last - first)
        n = len(self.times[core])
        progress, rate = np.full(n, np.nan), np.full(n, np.nan)
        for run, sample in self._samples(core, time_seconds):
            times, counts = self.times[core][run], self.counts[core][run]
            rate[run] = (counts[sample] - counts[sample - 1]) / (times[sample] - times[sample - 1])
            progress[run] = np.interp(time_seconds, times, counts)
        return progress, rate

    def phases(self, core: int, time_seconds: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(R,) the phase in which the sample at that time begins, (R,) that in which it ends, and (R,) the
        share of its time that belongs to the first; NaN for runs not traced then, and for a share that the
        clock does not tell (it counts marks only, or the phases beside are no longer than a sample)."""
        n = len(self.times[core])
        first, last, share = (np.full(n, np.nan) for _ in range(3))
        for run, sample in self._samples(core, time_seconds):
            times, counts = self.times[core][run], self.counts[core][run] + SLACK
            first[run], last[run] = np.floor(counts[sample - 1]), np.floor(counts[sample])
            if first[run] == last[run]:
                share[run] = 1.0
            elif 2 <= sample < len(times) - 1:
                # How fast it went through either phase, in the samples before and after.
                before = (counts[sample - 1] - counts[sample - 2]) / (
                    times[sample - 1] - times[sample - 2]
                )
                after = (counts[sample + 1] - counts[sample]) / (times[sample + 1] - times[sample])
                same = (
                    np.floor(counts[sample - 2]) == first[run],
                    np.floor(counts[sample + 1]) == last[run],
                )
                if all(same) and before > 0 and after > 0:
                    spent = (first[run] + 1 - counts[sample - 1]) / before
                    left = (counts[sample] - last[run]) / after
                    share[run] = spent / (spent + left) if spent + left > 0 else np.nan
        return first, last, share

    def kind_of_phase(self, phases: np.ndarray) -> np.ndarray:
        """The phases' numbers modulo the period."""
        return phases if self.period is None else phases % self.period

    def _samples(self, core: int, time_seconds: float) -> Iterator[tuple[int, int]]:
        """(run, number of the sample that covers the time) of every run traced then; 1 is the first."""
        for run, times in enumerate(self.times[core]):
            if len(times) < 2:
                continue
            # Of the run's own length: a clock may count from anywhere.
            slack = 1e-9 * (times[-1] - times[0]) + 2 * np.spacing(abs(times[-1]))
            if times[0] <= time_seconds <= times[-1] + slack:
                sample = int(np.searchsorted(times, time_seconds - slack))
                yield run, min(max(sample, 1), len(times) - 1)


def _in_phases(counts: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Counts of work as phases passed, with parts of one in proportion to the work between its marks."""
    last = marks[-1] + (marks[-1] - marks[-2] if len(marks) > 1 else marks[-1])
    known = np.concatenate([[0.0], marks, [last]])
    phases = np.interp(counts, known, np.arange(len(known)))
    return np.minimum(phases, len(marks) + 1 - 2 * SLACK)


@dataclass(frozen=True, eq=False)
class ClockedSnapshots(Snapshots):
    """clock: each run's progress over time, or None."""

    clock: Clock | None = None

    @classmethod
    def timed(
        cls,
        traces: Traces | Windows,
        components: Sequence[str] | None,
        times_seconds: Sequence[float] | np.ndarray | None = None,
        *,
        clock: ClockSettings | None = None,
    ) -> ClockedSnapshots:
        """As `Snapshots.from_traces`; the clock is no component. Raises UnknownName for a clock that no run
        has."""
        every = list(traces)
        if clock is not None and clock.counter not in traces.counters:
            raise UnknownName("counter", clock.counter, traces.counters)
        shots = Snapshots.from_traces(traces, components, times_seconds)
        if clock is not None and components is None and clock.counter in shots.components:
            rest = [name for name in shots.components if name != clock.counter]
            shots = Snapshots.from_traces(traces, rest, times_seconds)
        row = {run_id: i for i, run_id in enumerate(traces.run_ids)}
        return cls(**vars(shots), clock=None if clock is None else Clock.of(every, row, clock))


def clock_of(snapshots: Snapshots) -> Clock | None:
    """Their clock, where they have one."""
    return snapshots.clock if isinstance(snapshots, ClockedSnapshots) else None


class ClockForecast(Forecast):
    """A forecast that also answers by its snapshots' clock: `at(time_seconds, core, method="phase")`."""

    def at(
        self,
        time_seconds: float,
        core: int = 0,
        *,
        method: str | None = None,
        seed: int | None = None,
    ) -> Distribution:
        """Raises UsageError outside the data, and without a clock."""
        if method != "phase":
            return super().at(time_seconds, core, method=method, seed=seed)
        plain = super().at(time_seconds, core, method="mixture", seed=seed)
        if plain.method == "snapshot" or plain.idle_ratio == 1:
            return plain
        place = [
            self.method.seed if seed is None else seed,
            core % 2**32,
            round(time_seconds * 2**20),
        ]
        cloud, missed = phase(self.snapshots, core, time_seconds, place)
        law = Distribution.of(cloud, self.components, "phase", idle_ratio=plain.idle_ratio)
        told = f"{missed:.0%} of the runs are in phases that no snapshot caught"
        return replace(
            law,
            time_seconds=time_seconds,
            runs=plain.runs,
            prior=plain.prior,
            warnings=(*plain.warnings, *((told,) if missed > 0.005 else ())),
            details={"missed_ratio": missed},
        )


def phase(
    snapshots: Snapshots, core: int, time_seconds: float, seed: int | list[int] = 0
) -> tuple[Cloud, float]:
    """The law at a time in the snapshots' units, and the share of runs whose phase no snapshot caught.

    Raises UsageError without a clock, NotEnoughRuns where no run is known at the time.
    """
    clock = clock_of(snapshots)
    if clock is None:
        raise UsageError("the phase-aware forecast needs a clock")
    shots = snapshots.of(core)
    usable = [k for k, shot in enumerate(shots) if shot.idle_ratio < 1 and (shot.runs >= 0).any()]
    going = np.ones(len(clock.times[core]), bool)
    if snapshots.end_seconds is not None:
        going &= ~(snapshots.end_seconds[core] < time_seconds)
    places, rates = [], []
    for k in usable:
        p, v = clock.at(core, float(snapshots.times_seconds[k]))
        places.append(p[shots[k].runs])
        rates.append(v[shots[k].runs])
    atoms = [shots[k].cloud.atoms for k in usable]
    if clock.kind == "beats":
        first, last, share = clock.phases(core, time_seconds)
        known = going & np.isfinite(first)
        _require(known, usable, time_seconds)
        near = np.argsort(np.abs(snapshots.times_seconds[usable] - time_seconds), kind="stable")
        donors = _Donors(atoms, places, near)
        first, last = (clock.kind_of_phase(numbers[known]) for numbers in (first, last))
        return donors.law(first, last, share[known], np.random.default_rng(seed))
    progress, rate = clock.at(core, time_seconds)
    known = going & np.isfinite(progress)
    _require(known, usable, time_seconds)
    weights = _by_work(progress[known], rate[known], places, rates)
    return Cloud.of(np.concatenate(atoms), np.concatenate(weights)), 0.0


def _require(known: np.ndarray, usable: list[int], time_seconds: float) -> None:
    if not known.any() or not usable:
        raise NotEnoughRuns(f"no run's progress is known at {time_seconds:g} s")


class _Donors:
    """States by phase. atoms[k]: (n_k, d) of snapshot k, places[k]: (n_k,) their phases, NaN for states that
    are part one phase's and part another's; near: the snapshots by nearness in time."""

    def __init__(self, atoms: list[np.ndarray], places: list[np.ndarray], near: np.ndarray) -> None:
        self.places, self.near = places, near
        self.atoms = np.concatenate(atoms)
        self.starts = np.cumsum([0, *(len(part) for part in places)])
        caught = np.unique(np.concatenate(places))
        self.caught = caught[np.isfinite(caught)]
        if not len(self.caught):
            raise NotEnoughRuns("no snapshot has a run whose phase is known")

    def law(
        self,
        first: np.ndarray,
        last: np.ndarray,
        share: np.ndarray,
        random: np.random.Generator,
    ) -> tuple[Cloud, float]:
        """Of runs whose samples begin in one phase and end in another, or in the same."""
        weights = np.zeros(len(self.atoms))
        missed = 0
        for phase, runs in zip(*np.unique(last[first == last], return_counts=True), strict=True):
            sources = self._sources(float(phase))
            missed += int(runs) * (sources[0][0] != phase)
            for source, part in sources:
                rows = self._pool(source)
                weights[rows] += part * runs / len(rows)
        both = np.flatnonzero(first != last)
        drawn: list[np.ndarray] = []
        for run in both:
            ends = []
            for phase in (float(first[run]), float(last[run])):
                sources = self._sources(phase)
                missed += 0.5 * (sources[0][0] != phase)
                parts = [part for _, part in sources]
                source = sources[int(random.choice(len(sources), p=parts))][0]
                ends.append(self.atoms[random.choice(self._pool(source), DRAWS)])
            u = np.full((DRAWS, 1), share[run])
            if np.isnan(share[run]):  # a mark may fall anywhere in a sample
                u = ((np.arange(DRAWS) + random.random(DRAWS)) / DRAWS)[:, None]
            drawn.append(u * ends[0] + (1 - u) * ends[1])
        atoms = np.concatenate([self.atoms, *drawn])
        weights = np.concatenate([weights, np.full(DRAWS * len(drawn), 1 / DRAWS)])
        return Cloud.of(atoms, weights), missed / len(first)

    def _sources(self, phase: float) -> list[tuple[float, float]]:
        """[(caught phase, its share)]: the phase itself, or those before and after it by nearness."""
        caught = self.caught
        if phase in caught:
            return [(phase, 1.0)]
        before, after = caught[caught < phase], caught[caught > phase]
        if len(before) and len(after):
            lam = (phase - before[-1]) / (after[0] - before[-1])
            return [(float(before[-1]), float(1 - lam)), (float(after[0]), float(lam))]
        return [(float(before[-1] if len(before) else after[0]), 1.0)]

    def _pool(self, phase: float) -> np.ndarray:
        """Rows of the states seen in a phase, in the (at most two) snapshots nearest in time that have some.

        A handful of stragglers in a near snapshot is no pool: the next nearest one counts too.
        """
        having = [int(k) for k in self.near if (self.places[k] == phase).any()]
        rows = [self.starts[k] + np.flatnonzero(self.places[k] == phase) for k in having[:2]]
        return np.concatenate(rows)


def _by_work(
    progress: np.ndarray,
    rates: np.ndarray,
    places: list[np.ndarray],
    donor_rates: list[np.ndarray],
) -> list[np.ndarray]:
    """[k] (n_k,) weights of the states of the snapshots, for runs of such progress, (R,), and rates, (R,).

    places[k], donor_rates[k]: (n_k,) progress of the states of snapshot k and their clock's rates.
    """
    weights = [np.zeros(len(p)) for p in places]
    centres = np.array([np.nanmedian(p) if np.isfinite(p).any() else np.nan for p in places])
    order = np.argsort(centres)
    order = order[np.isfinite(centres[order])]
    if not len(order):
        raise NotEnoughRuns("no snapshot has a run whose progress is known")
    tiny = 1e-12 * max(float(np.nanmax(np.concatenate(donor_rates))), 1e-300)
    logs = [np.log(np.maximum(v, tiny)) for v in donor_rates]
    # Median absolute deviation, as a standard deviation: outliers do not widen it.
    wide = [1.4826 * float(np.nanmedian(np.abs(v - np.nanmedian(v)))) for v in logs]
    width = max(WIDE * float(np.nanmedian(wide)), 1e-3)
    log_rates = np.log(np.maximum(rates, tiny))
    right = np.searchsorted(centres[order], progress)
    for place in np.unique(right):
        mine = right == place
        pair = [int(order[i]) for i in (place - 1, place) if 0 <= i < len(order)]
        shares = {k: np.full(mine.sum(), ELSEWHERE / len(order)) for k in order}
        if len(pair) == 2:
            low, high = centres[pair[0]], centres[pair[1]]
            lam = np.clip((progress[mine] - low) / max(high - low, 1e-300), 0.0, 1.0)
            shares[pair[0]], shares[pair[1]] = np.maximum(1 - lam, 1e-12), np.maximum(lam, 1e-12)
        else:
            shares[pair[0]] = np.ones(mine.sum())
        likeness = []
        for k in order:
            far = (log_rates[mine][:, None] - logs[k]) / width
            log_like = -0.5 * far**2 + np.log(shares[k])[:, None] - np.log(len(logs[k]))
            likeness.append(np.where(np.isfinite(log_like), log_like, -np.inf))
        joint = np.concatenate(likeness, axis=1)
        joint = np.exp(joint - joint.max(axis=1, keepdims=True))
        joint /= joint.sum(axis=1, keepdims=True)
        start = 0
        for k, part in zip(order, likeness, strict=True):
            weights[k] += joint[:, start : start + part.shape[1]].sum(axis=0)
            start += part.shape[1]
    return weights
