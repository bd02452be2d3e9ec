"""Which runs make a forecast and which test it: of recorded or made traces, and of published snapshots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.data import Traces, Windows
from jostle.errors import NotEnoughRuns, UsageError
from jostle.usage import Bridge, Cloud, Distribution, Forecast, Snapshot, Snapshots
from studies.bridge.data import (
    COUNTERS,
    CYCLES,
    PAPER_SCALE,
    Folder,
    fingerprint,
    read_published,
)
from studies.bridge.families import FAMILIES, made_family
from studies.bridge.scores import ForecastSplit, HeldOutTime

STEADY = 1.0  # cycles: the first one is the start-up
FEWEST_RUNS = 8


def trace_splits(
    traces: Traces | Windows,
    snapshots: int,
    *,
    method: Bridge | None = None,
    splits: int = 3,
    times: int = 24,
    ended: float = 0.0,
    seed: int = 0,
) -> list[ForecastSplit]:
    """Splits of recorded or made traces: half of the runs each, `snapshots` evenly spread times, and
    `times` random ones in between, on every core.

    ended: the share of the cores' runs that have ended by the last snapshot; 0: while all go on. Raises
    NotEnoughRuns, UsageError.
    """
    method = replace(method or Bridge(), snapshots=None)
    if len(traces) < FEWEST_RUNS:
        raise NotEnoughRuns(
            f"{len(traces)} runs are too few to split", fix="Trace the workload more often."
        )
    every = list(traces)
    step = float(np.median(np.concatenate([trace.interval_seconds for trace in every])))
    first = max(float(trace.time_seconds[0]) for trace in every)
    last = float(np.quantile([trace.time_seconds[-1] for trace in every], ended, method="lower"))
    if snapshots < 2 or last - first < 2 * snapshots * step:
        raise UsageError(
            f"{snapshots} snapshots in {last - first:g} s of traces", fix="At least two, and apart."
        )
    grid = np.linspace(first, last, snapshots)
    made = []
    for number in range(splits):
        random = np.random.default_rng([seed, number])
        ids = [traces.run_ids[i] for i in random.permutation(len(traces))]
        between = np.sort(random.uniform(first, last, times))
        between = between[np.abs(between[:, None] - grid).min(axis=1) > step]
        half = len(ids) // 2
        halves = traces.select(ids[:half]), traces.select(ids[half:])
        made.append(_trace_split(halves, method, grid, between))
    return made


def _trace_split(
    halves: tuple[Traces | Windows, Traces | Windows],
    method: Bridge,
    grid: np.ndarray,
    between: np.ndarray,
) -> ForecastSplit:
    """Snapshots of the first half on the grid, tested at the times in between."""
    times = np.union1d(grid, between)
    a, b = (Snapshots.from_traces(half, method.components, times) for half in halves)
    train = a.select(np.searchsorted(times, grid))
    held_out = []
    for core in sorted(a.cores):
        prints = {fingerprint(shot.cloud.atoms) for shot in train.of(core)}
        for time in between:
            k = int(np.searchsorted(times, time))
            truth, oracle = b.of(core)[k], a.of(core)[k]
            leaks = fingerprint(oracle.cloud.atoms) in prints
            clouds = _with_idle(truth), _with_idle(oracle)
            held_out.append(HeldOutTime(float(time), core, *clouds, leaks))
    return ForecastSplit(Forecast(train, method), held_out)


def _with_idle(shot: Snapshot) -> Cloud:
    names = [str(i) for i in range(shot.cloud.atoms.shape[1])]
    return Distribution.of(shot.cloud, names, "", idle_ratio=shot.idle_ratio).cloud


def published_splits(
    folder: Folder, between: int, *, splits: int = 3, seed: int = 0
) -> list[ForecastSplit]:
    """Splits of the published snapshots: `between` per cycle to train on, tested at k/6 of a cycle, without
    the start-up."""
    train_times, train_clouds, prints = read_published(folder, between)
    test_times, test_clouds, test_prints = read_published(folder, 5)
    made = []
    for number in range(splits):
        random = np.random.default_rng([seed, number])
        order = random.permutation(len(train_clouds[0]))
        half = len(order) // 2
        kept = [k for k, time in enumerate(train_times) if time >= STEADY]
        train = Snapshots.from_arrays(
            train_times[kept], [train_clouds[k][order[:half]] for k in kept], COUNTERS
        )
        held_out = []
        for k in _inside_cycles(test_times):
            if test_times[k] < STEADY:
                continue
            oracle, truth = (
                Cloud.of(test_clouds[k][rows]) for rows in (order[:half], order[half:])
            )
            leaks = test_prints[k] in prints
            held_out.append(HeldOutTime(float(test_times[k]), 0, truth, oracle, leaks))
        paper = Forecast(train, Bridge.paper(PAPER_SCALE)), "bridge"
        made.append(ForecastSplit(Forecast(train, Bridge()), held_out, 1.0, {"paper": paper}))
    return made


def _inside_cycles(times: np.ndarray) -> list[int]:
    """The numbers of the times at which no cycle begins or ends."""
    return [k for k in range(len(times)) if k % (len(times) // CYCLES)]


def made_splits(
    name: str,
    *,
    runs: int = 400,
    seed: int = 0,
    splits: int = 3,
    ended: float = 0.0,
) -> list[ForecastSplit]:
    """Split a family of `studies.bridge.families`, named with its snapshots. Raises UsageError."""
    kind, _, snapshots = name.partition("-")
    if kind not in FAMILIES or not snapshots.isdigit():
        raise UsageError(
            f"unknown data {name!r}",
            fix="nmpc-4 (4 snapshots inside each cycle), or a family with its snapshots, like heavy-7: "
            f"{', '.join(FAMILIES)}.",
        )
    traces, method = made_family(kind, runs, seed=seed), Bridge(components=COUNTERS)
    how = {"splits": splits, "ended": ended, "seed": seed}
    return trace_splits(traces, int(snapshots), method=method, **how)
