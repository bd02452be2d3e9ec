"""Snapshots: what all runs of one workload did at the same times, core by core, out of their traces.

A state is a rate: the count of a sample divided by that sample's own length, for samplers keep their
interval badly; levels, like resident memory, are taken as they are. A run that has ended is idle: it
counts, with a mass of its own, and is not an atom at 0 that gets displaced. A run whose trace has a gap, or
stops before the run did, is left out at that time; where only some counters are missing, they come from
runs that are alike (`jostle.usage.snapshots._filling`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.data import MARKS, Trace, Traces, Windows, is_level
from jostle.errors import BadData, NotEnoughRuns, UsageError, require_known
from jostle.usage.snapshots._clouds import Cloud
from jostle.usage.snapshots._filling import filled

FEWEST_RUNS = 2
EARLY = 4  # the first snapshot is where this part of the runs, a quarter, are there


@dataclass(frozen=True, eq=False)
class Snapshot:
    """One time on one core. cloud: rates (n, d) of the runs that still run; a single atom at 0 where none
    does (idle_ratio 1). runs: (n,) which runs the atoms are, -1 where that is not known. filled: (d,) the
    share of each component's values that were missing and come from runs alike; None for none."""

    cloud: Cloud
    runs: np.ndarray
    idle_ratio: float = 0.0
    filled: np.ndarray | None = None

    @property
    def counted(self) -> float:
        """Number of runs, those that have ended included; infinite if all have ended and nobody knows how
        many they were."""
        if self.idle_ratio == 1:
            return float("inf")
        return len(self.cloud.atoms) / (1 - self.idle_ratio)


@dataclass(frozen=True, eq=False)
class Snapshots:
    """Snapshots of resource use at rising times.

    times_seconds: (s,) rising. cores: {core: s snapshots}. components: the d names.

    end_seconds: {core: (R,)} when each run ended there, NaN where that is not known; None without runs'
    identities. windows: (R,) what each run shared with those traced beside it, None for a run without; None
    in all where that is not known.
    """

    times_seconds: np.ndarray
    cores: Mapping[int, tuple[Snapshot, ...]]
    components: tuple[str, ...]
    end_seconds: Mapping[int, np.ndarray] | None = None
    windows: tuple[str | None, ...] | None = None

    @classmethod
    def from_arrays(
        cls,
        times_seconds: Sequence[float] | np.ndarray,
        clouds: Sequence[np.ndarray] | Mapping[int, Sequence[np.ndarray]],
        components: Sequence[str],
        *,
        paired: bool = True,
    ) -> Snapshots:
        """Make snapshots of point clouds (n_k, d), one per time, for core 0 or {core: clouds}.

        paired: row i is the same run in all clouds of a core that have as many rows as its first.
        """
        cores = clouds if isinstance(clouds, Mapping) else {0: clouds}
        times = _checked_times(times_seconds)
        by_core: dict[int, tuple[Snapshot, ...]] = {}
        for core, arrays in cores.items():
            if len(arrays) != len(times):
                raise BadData(f"{len(arrays)} clouds for {len(times)} times", where=f"core {core}")
            shots: list[Snapshot] = []
            for k, atoms in enumerate(arrays):
                cloud = Cloud.of(atoms, where=f"core {core}, snapshot {k}")
                if cloud.atoms.shape[1] != len(components):
                    raise BadData(
                        f"{cloud.atoms.shape[1]} components, not {len(components)}",
                        where=f"core {core}, snapshot {k}",
                    )
                same = paired and len(cloud) == len(shots[0].cloud if k else cloud)
                runs = np.arange(len(cloud)) if same else np.full(len(cloud), -1)
                shots.append(Snapshot(cloud, runs))
            by_core[core] = tuple(shots)
        if not by_core:
            raise BadData("no core has any snapshot")
        return cls(times, by_core, tuple(components))

    @classmethod
    def from_traces(
        cls,
        traces: Traces | Windows,
        components: Sequence[str] | None = None,
        times_seconds: Sequence[float] | np.ndarray | None = None,
        *,
        count: int | None = None,
    ) -> Snapshots:
        """Repeated runs of one workload, or windows of the same members, at the same times since they began.

        components: counters, None for all that this host had, but marks. times_seconds: None
        for every sample's length (the median) as long as two runs go on, or with `count` so many of these,
        evenly spread. Of windows each core is a member.
        Raises BadData for runs of different workloads, NotEnoughRuns for fewer than two runs.
        """
        if len(traces) < FEWEST_RUNS:
            raise NotEnoughRuns(
                f"{len(traces)} run is not enough for a distribution",
                fix="Trace the workload again, many times.",
            )
        require_one_workload(traces)
        every = list(traces)
        if components is None:
            had = {n for t in every for n, v in t.counters.items() if np.isfinite(v).any()}
            shares = {name for name in had if name.endswith("_running_ratio")}  # of perf's turns
            components = sorted(had - set(MARKS) - shares)
        require_known("counter", components, traces.counters)
        if not components:
            raise BadData("the traces have no counter with values")
        ends = _ends(traces, every)
        times = _times(every, ends, times_seconds, count)
        # A run still runs at its own last sample, though a multiple of its length may be rounded past it.
        hair = _rounding(np.concatenate([trace.interval_seconds for trace in every]), times)
        ends = {core: end + hair for core, end in ends.items()}
        row = {run_id: i for i, run_id in enumerate(traces.run_ids)}
        numbers = sorted({trace.core for trace in every})
        states = np.full((len(numbers), len(row), len(times), len(components)), np.nan)
        for trace in every:
            states[numbers.index(trace.core), row[trace.run_id]] = rates_at(
                trace, components, times
            )
        if times_seconds is None and count is None:
            known = _known_runs(states, times, [ends[core] for core in numbers])
            times, states = times[known], states[:, :, known]
        cores = {
            core: _snapshots_of(states[i], times, ends[core], f"core {core}", components)
            for i, core in enumerate(numbers)
        }
        windows = traces.run_ids  # of windows, theirs
        if isinstance(traces, Traces):
            windows = tuple(traces.traced.column("window_id").to_pylist())
        return cls(times, cores, tuple(components), ends, windows)

    def __len__(self) -> int:
        return len(self.times_seconds)

    def core_of(self, core: int) -> int:
        """See `core_among`. Raises BadData for a core without snapshots."""
        core = core_among(self.cores, core)
        self.of(core)
        return core

    def of(self, core: int) -> tuple[Snapshot, ...]:
        """Return the snapshots of one core. Raises BadData naming those there are."""
        if core not in self.cores:
            known = ", ".join(map(str, sorted(self.cores)))
            raise BadData(f"core {core} has no snapshots; known: {known}")
        return self.cores[core]

    def select(self, numbers: Sequence[int] | np.ndarray) -> Snapshots:
        """Keep only these snapshots."""
        numbers = [int(number) for number in numbers]
        cores = {core: tuple(shots[k] for k in numbers) for core, shots in self.cores.items()}
        return replace(self, times_seconds=self.times_seconds[numbers], cores=cores)

    def idle_at(self, core: int, time_seconds: float, k: int, lam: float) -> float:
        """Return the share of ended runs at a time in interval k: from the runs' ends where they are
        known."""
        shots = self.of(core)
        last = shots[min(k + 1, len(shots) - 1)]
        between = (1 - lam) * shots[k].idle_ratio + lam * last.idle_ratio
        ends = np.zeros(0) if self.end_seconds is None else self.end_seconds[core]
        ends = ends[np.isfinite(ends)]
        if not len(ends):
            return between
        # Between two snapshots the runs' ends say when the share steps up.
        ended = np.mean(ends < time_seconds)
        low, high = sorted((shots[k].idle_ratio, last.idle_ratio))
        return float(np.clip(ended, low, high))


def core_among(cores: Collection[int], core: int) -> int:
    """0, which nobody needs to say, is the only core where there is one alone."""
    return next(iter(cores)) if not core and len(cores) == 1 else core


def evenly(total: int, count: int) -> np.ndarray:
    """Return the numbers of `count` out of `total`, evenly spread, the first and the last among them."""
    return np.unique(np.linspace(0, total - 1, min(count, total)).round().astype(int))


def _checked_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    seconds = np.asarray(times, np.float64)
    if seconds.ndim != 1 or not len(seconds) or not np.isfinite(seconds).all():
        raise UsageError("the times of snapshots must be finite numbers, at least one")
    if (np.diff(seconds) <= 0).any():
        raise UsageError("the times of snapshots must rise", fix="Sort them, each once.")
    return seconds


def require_one_workload(traces: Traces | Windows) -> None:
    if not isinstance(traces, Traces):
        return  # windows all have the same members
    for name in ("workload", "platform", "corunners"):
        kinds = {str(value) for value in traces.traced.column(name).to_pylist()}
        if len(kinds) > 1:
            few = ", ".join(sorted(kinds)[:3])
            raise BadData(
                f"the runs differ in {name}: {few}{', …' if len(kinds) > 3 else ''}",
                fix="A forecast or limit is of one workload on one platform: name it (-w, -p, -b).",
            )


def _ends(traces: Traces | Windows, every: Sequence[Trace]) -> dict[int, np.ndarray]:
    """Return {core: (R,)} when each run ended there, NaN where it had not ended when its trace did."""
    whole = {trace.run_id: trace.runtime_seconds for trace in every}
    own = {(trace.run_id, trace.core): trace.runtime_seconds for trace in every}
    return {
        core: np.array(
            [own.get((run_id, core), whole.get(run_id, np.nan)) for run_id in traces.run_ids]
        )
        for core in sorted({trace.core for trace in every})
    }


def _times(
    every: Sequence[Trace],
    ends: Mapping[int, np.ndarray],
    times: Sequence[float] | np.ndarray | None,
    count: int | None,
) -> np.ndarray:
    if times is not None:
        if count is not None:
            raise UsageError("the times of the snapshots and their number cannot both be given")
        return _checked_times(times)
    step = float(np.median(np.concatenate([trace.interval_seconds for trace in every])))
    begun: dict[str, float] = {}
    reach: dict[str, float] = {}
    for trace in every:
        begin = float(trace.time_seconds[0])
        begun[trace.run_id] = max(begin, begun.get(trace.run_id, begin))
        reach[trace.run_id] = max(float(trace.time_seconds[-1]), reach.get(trace.run_id, 0.0))
    # As long as two runs go on; a few that were recorded late, or with a gap there, hide no time.
    first = sorted(begun.values())[max(FEWEST_RUNS, len(begun) // EARLY) - 1]
    last = sorted(reach.values())[-FEWEST_RUNS]
    ended = np.concatenate(list(ends.values()))
    ended = ended[np.isfinite(ended)]
    last = max(last, float(ended.max()) if len(ended) else 0.0)
    # Whole samples; not from 0 on, for runs may begin at any reading of a clock.
    start = max(int(min(first, last) / step - 1e-6), 1)
    grid = np.arange(start, max(int(last / step + 1e-6), start) + 1) * step
    grid = grid[grid >= min(first, last) - 1e-6 * step]
    if count is None:
        return _checked_times(grid)
    if count < 1:
        raise UsageError(f"there cannot be {count} snapshots")
    return _checked_times(grid[evenly(len(grid), count)])


def _rounding(interval_seconds: np.ndarray, times: np.ndarray) -> float:
    """Bound the rounding error between the end of a sample and a multiple of its length, in seconds."""
    return float(1e-6 * np.median(interval_seconds) + 2 * np.spacing(np.abs(times).max()))


def rates_at(trace: Trace, components: Sequence[str], times: np.ndarray) -> np.ndarray:
    """Return (T, d) the rates of the samples that cover the times, NaN where none does."""
    rates = np.full((len(times), len(components)), np.nan)
    slack = _rounding(trace.interval_seconds, times)
    sample = np.searchsorted(trace.time_seconds, times - slack)
    inside = sample < len(trace)
    sample = np.minimum(sample, len(trace) - 1)
    begin = trace.time_seconds - trace.interval_seconds
    inside &= times > begin[sample] - slack
    for column, name in enumerate(components):
        if name in trace.counters:
            length = 1.0 if is_level(name) else trace.interval_seconds
            rate = trace.counters[name] / length
            rates[inside, column] = rate[sample[inside]]
    return rates


def _known_runs(
    states: np.ndarray, times: np.ndarray, ends: Sequence[np.ndarray]
) -> np.ndarray | slice:
    """Return (s,) which times enough runs are known at, on every core; all of them where there is none
    such."""
    known = np.isfinite(states).any(axis=3).sum(axis=1)
    ended = np.array([(end[:, None] < times).sum(axis=0) for end in ends])
    enough = (known + ended >= FEWEST_RUNS).all(axis=0)
    return enough if enough.any() else slice(None)


def _snapshots_of(
    states: np.ndarray,
    times: np.ndarray,
    ends: np.ndarray,
    where: str,
    components: Sequence[str],
) -> tuple[Snapshot, ...]:
    """states: (R, s, d), NaN where a run is not known at a time."""
    shots = []
    running = np.where((ends[:, None] < times)[:, :, None], np.nan, states)
    states, shares = filled(running)
    for k, time in enumerate(times):
        ended = ends < time
        known = np.isfinite(states[:, k]).all(axis=1)
        counted = int(ended.sum() + known.sum())
        if counted < FEWEST_RUNS:
            null = [name for c, name in enumerate(components) if np.isnan(states[:, :, c]).all()]
            fix = "Ask for snapshots at times that more traces cover."
            if null:
                fix = f"{', '.join(null)}: null in every run; leave it out of the components."
            raise NotEnoughRuns(
                f"only {counted} runs are known at {time:g} s", where=where, fix=fix
            )
        runs = np.flatnonzero(known)
        if len(runs):
            cloud = Cloud.of(states[runs, k])
        else:
            cloud, runs = Cloud.of(np.zeros((1, states.shape[2]))), np.array([-1])
        share = shares[k] if shares[k].any() else None
        shots.append(Snapshot(cloud, runs, float(ended.sum() / counted), share))
    return tuple(shots)
