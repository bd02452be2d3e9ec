"""What stressors do to a program and it to them, as counters of its run alone.

A program that was traced beside a stressor (see `jostle.learn.learners.stressors`) shows there, stretch by
stretch of its instructions, how much longer than alone it takes, and how much of its time the stressor
loses. Both are seconds that add up along the program's run, so they are counters like any other, in each
phase its own: how it suffers and how it presses, which what it counts alone does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import BadData, UnknownName
from jostle.learn.learners.counters.solo._phases import change_points
from jostle.learn.learners.counters.solo._tracks import INSTRUCTIONS, track_of
from jostle.learn.learners.stressors._stressor_tables import fits

if TYPE_CHECKING:
    from jostle.data import Trace, Traces

EVERY_STRESSOR = ("probe-*",)
LOST, TAKEN = "seconds_lost_beside_", "seconds_taken_from_"
STRETCH_SAMPLES = 10  # that a loss is measured over at most; it is spread evenly inside


def is_stressor(name: str, wanted: Sequence[str] = EVERY_STRESSOR) -> bool:
    """Tell whether a workload is one of the stressors that come with Jostle, or called like them, or as one
    of these names or patterns."""
    return fits(name, (*EVERY_STRESSOR, *wanted))


def only_stressors(traces: Traces, wanted: Sequence[str] = EVERY_STRESSOR) -> Traces:
    """Drop the stressors that no name or pattern fits, and windows with them; nothing if no stressor was
    traced. Raises UnknownName for a name or pattern that fits no workload traced."""
    names = {trace.workload for trace in traces}
    stressors = sorted(name for name in names if is_stressor(name, wanted))
    if not stressors:
        return traces
    for one in wanted:
        if not any(fits(name, (one,)) for name in stressors):
            raise UnknownName("stressor", one, tuple(stressors))
    other = {name for name in stressors if not fits(name, wanted)}
    if not other:
        return traces
    return type(traces).from_traces(
        [trace for trace in traces if not other.intersection((trace.workload, *trace.corunners))]
    )


def with_probes(traces: Traces, wanted: Sequence[str] = EVERY_STRESSOR) -> Traces:
    """Add to traces of programs alone what windows beside one stressor say; drop traces of stressors, and
    windows with them. Nothing changes if there are none. wanted: names or patterns of the stressors that
    count; windows with others are left out. Raises BadData, UnknownName."""
    every = list(only_stressors(traces, wanted))
    if not any(is_stressor(trace.workload, wanted) for trace in every):
        return traces

    def stresses(name: str) -> bool:
        return is_stressor(name, wanted)

    alone = _by_name([t for t in every if t.solo and stresses(t.workload)])
    beside: dict[tuple[str, str], dict[str, list[tuple[Trace, Trace]]]] = {}
    for mine, other in _pairs(every):
        if stresses(other.workload) and not stresses(mine.workload):
            home = beside.setdefault((mine.platform, mine.workload), {})
            home.setdefault(other.workload, []).append((mine, other))
    probed = []
    for trace in every:
        if stresses(trace.workload) or any(map(stresses, trace.corunners)):
            continue
        if trace.solo:
            trace = _with_losses(trace, beside.get((trace.platform, trace.workload), {}), alone)
        probed.append(trace)
    if not probed:
        raise BadData(
            "only stressors were traced", where="the traces", fix="Trace programs beside them."
        )
    return type(traces).from_traces(probed)


def _pairs(traces: Sequence[Trace]) -> Iterator[tuple[Trace, Trace]]:
    """Yield (member, the other) for both members of each window of two."""
    windows: dict[str, list[Trace]] = {}
    for trace in traces:
        if trace.window_id is not None and len(trace.corunners) == 1:
            windows.setdefault(trace.window_id, []).append(trace)
    for first, second in (members for members in windows.values() if len(members) == 2):
        yield first, second
        yield second, first


def _by_name(traces: Sequence[Trace]) -> dict[tuple[str, str], float]:
    """Return {(platform, workload): instructions per second alone}, the median of repeats: windows beside
    them are disturbed as often."""
    by_name: dict[tuple[str, str], list[float]] = {}
    for trace in traces:
        rate = float(np.nansum(trace[INSTRUCTIONS])) / float(trace.time_seconds[-1])
        by_name.setdefault((trace.platform, trace.workload), []).append(rate)
    return {key: float(np.median(rates)) for key, rates in by_name.items()}


def _with_losses(
    trace: Trace,
    beside: Mapping[str, Sequence[tuple[Trace, Trace]]],
    alone: Mapping[tuple[str, str], float],
) -> Trace:
    """Add two counters for each stressor to the trace alone, means over the windows beside it."""
    if not beside:
        return trace
    _, counted = track_of(trace, (INSTRUCTIONS,))
    n = len(trace)
    executed = np.interp(np.arange(n + 1), np.linspace(0, n, len(counted)), counted[:, 0])
    edges = _stretches(trace)
    length = np.add.reduceat(trace.interval_seconds, edges[:-1])
    more: dict[str, np.ndarray] = {}
    for stressor, windows in beside.items():
        rate = alone.get((trace.platform, stressor))
        lost, taken = [], []
        for mine, other in windows:
            took, counts = _times(mine, executed[edges])
            extra = np.where(counts, took[1:] - took[:-1] - length, np.nan)
            lost.append(extra / length)
            if rate:
                done = np.interp(took, *_running(other))
                gone = np.diff(took) - np.diff(done) / rate
                taken.append(np.where(counts, gone / np.maximum(np.diff(took), 1e-12), np.nan))
        for name, each in ((LOST, lost), (TAKEN, taken)):
            if each:
                ratio = np.repeat(np.maximum(_mean(each), 0.0), np.diff(edges))
                more[name + stressor] = ratio * trace.interval_seconds
    return replace(trace, counters={**trace.counters, **more})


def _stretches(trace: Trace) -> np.ndarray:
    """Find the (k + 1,) samples at which stretches begin: phases, the long ones in parts."""
    counted = [np.asarray(trace[name], np.float64) for name in sorted(trace.counters)]
    known = [values for values in counted if np.isfinite(values).all()]
    starts = change_points(np.stack(known, axis=1) / trace.interval_seconds[:, None])
    parts = [np.arange(a, b, STRETCH_SAMPLES) for a, b in pairwise(starts.tolist())]
    return np.append(np.concatenate(parts), len(trace))


def _running(trace: Trace) -> tuple[np.ndarray, np.ndarray]:
    """Return (times, instructions executed by then)."""
    count = np.nan_to_num(np.asarray(trace[INSTRUCTIONS], np.float64))
    return np.append(0.0, trace.time_seconds), np.append(0.0, np.cumsum(count))


def _times(trace: Trace, executed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ((m + 1,) times when so much had been executed, (m,) whether the trace goes so far)."""
    times, counted = _running(trace)
    whole = counted[-1] >= executed[-1] * 0.98
    wanted = executed * (min(1.0, counted[-1] / executed[-1]) if whole else 1.0)
    rising = np.append(True, np.diff(counted) > 0)
    seconds = np.interp(wanted, counted[rising], times[rising])
    return seconds, wanted[1:] <= counted[-1] * (1 + 1e-9)


def _mean(each: Sequence[np.ndarray]) -> np.ndarray:
    """Average (m,) over windows that have a value; without any it is as the others on the mean."""
    table = np.stack(each)
    known = np.isfinite(table)
    count = known.sum(axis=0)
    total = np.where(known, table, 0.0).sum(axis=0)
    mean = total / np.maximum(count, 1)
    return np.where(count > 0, mean, mean[count > 0].mean() if (count > 0).any() else 0.0)
