"""What of a profile ran beside what else: tasks in lanes, and which waited for which.

A profile says when tasks ran, not why then. What ran at the same time was free to; what began after tasks of
other lanes had ended is taken to have waited for the last of them, so that a lane which falls behind holds up
what came after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jostle.gpu.applications._application_tasks import KERNEL, NO_TASK

MOST_LANES = 8  # of kernels, past which all are in one
OVERLAP = (
    0.1  # of a graph's kernel, that it may overlap the one before in its branch (early launches)
)
CROWDED = 0.01  # of the time on the device, in which kernels of several streams may ask for more than it has


class InLanes(NamedTuple):
    """lane: (n,). counted: (n,) bool, whether a task adds to the end of its lane at all. cut: (n,) bool,
    whether only a part of it does. For the k that are counted: seconds, gap: (k,), after: (k,) rows of
    these k, NO_TASK for none."""

    lane: np.ndarray
    counted: np.ndarray
    cut: np.ndarray
    seconds: np.ndarray
    gap: np.ndarray
    after: np.ndarray


def in_lanes(
    start: np.ndarray,
    duration: np.ndarray,
    kind: np.ndarray,
    stream: np.ndarray,
    share: np.ndarray,
) -> InLanes:
    """Tasks in the order of start. kind: (n,) codes. stream: (n,), equal for one stream. share: (n,) of the
    device that a kernel takes."""
    stop = start + duration
    lane = _lanes(start, stop, kind, stream, share)
    begin = np.maximum(start, _before(start, stop, lane))
    seconds = stop - begin
    counted = (seconds > 0) | (duration <= 0)
    places = np.flatnonzero(counted)
    gap, after = _waits(begin[places], np.maximum(stop, begin)[places], lane[places])
    cut = (start < begin)[places]
    return InLanes(lane[places], counted, cut, np.maximum(seconds, 0.0)[places], gap, after)


def branches(
    start: np.ndarray, duration: np.ndarray, stream: np.ndarray, of_graph: np.ndarray
) -> np.ndarray:
    """Return (n,) streams, where a graph's kernels that ran beside each other are in streams of their own:
    a graph is launched into one stream, and its branches run side by side all the same."""
    lanes = stream.astype(np.int64)
    free = int(lanes.max(initial=0)) + 1
    ends: dict[int, list[tuple[float, int]]] = {}  # of each stream: (when it is free, its number)
    for row in np.flatnonzero(of_graph).tolist():
        known = ends.setdefault(int(stream[row]), [(-np.inf, int(stream[row]))])
        least = float(start[row]) + OVERLAP * float(duration[row])
        place = next((n for n, (end, _) in enumerate(known) if end <= least), None)
        if place is None:
            place, free = len(known), free + 1
            known.append((-np.inf, free - 1))
        lanes[row] = known[place][1]
        known[place] = (float(start[row] + duration[row]), known[place][1])
    return lanes


def _before(start: np.ndarray, stop: np.ndarray, lane: np.ndarray) -> np.ndarray:
    """Return (n,) the end of what came before in the lane; the start of the first for the first."""
    latest = np.empty(len(start))
    # A task so short that its end is its start leaves no mark on the clock.
    ends = np.where(stop > start, stop, np.where(stop == start, start, -np.inf))
    for number in np.unique(lane):
        mine = np.flatnonzero(lane == number)
        latest[mine] = np.maximum.accumulate(np.concatenate([start[mine[:1]], ends[mine[:-1]]]))
    return latest


def _lanes(
    start: np.ndarray, stop: np.ndarray, kind: np.ndarray, stream: np.ndarray, share: np.ndarray
) -> np.ndarray:
    """Return (n,) a lane for kernels, or one for each stream with kernels, and one for copies in each
    direction; a single one where nothing overlaps."""
    if not (start[1:] < np.maximum.accumulate(stop)[:-1]).any():
        return np.zeros(len(start), np.int64)
    lane = kind.astype(np.int64)  # copies by direction, kernels 0
    is_kernel = kind == KERNEL
    streams, code = np.unique(stream[is_kernel], return_inverse=True)
    if 1 < len(streams) <= MOST_LANES:
        at, load = _load(start[is_kernel], stop[is_kernel], share[is_kernel])
        busy = np.diff(at)[load[:-1] > 0].sum()
        if np.diff(at)[load[:-1] > 1 + 1e-9].sum() <= CROWDED * busy:
            code = code.reshape(-1)
            lane[is_kernel] = np.where(code == 0, 0, code + int(kind.max()))
    return lane


def _load(start: np.ndarray, stop: np.ndarray, share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (times, the sum of what is asked for from each of them on)."""
    at = np.concatenate([start, stop])
    change = np.concatenate([share, -share])
    order = np.argsort(at, kind="stable")
    return at[order], np.cumsum(change[order])


def _waits(begin: np.ndarray, stop: np.ndarray, lane: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ((k,) s between the end of what a task waits for and its begin, (k,) the task of another lane
    that it waits for)."""
    after = np.full(len(begin), NO_TASK)
    if (lane == lane[0]).all():
        before = np.concatenate([begin[:1], np.maximum.accumulate(stop)[:-1]])
        return np.maximum(begin - before, 0.0), after
    since, ended = np.empty(len(begin)), 0
    order = np.argsort(stop, kind="stable").tolist()
    last: dict[int, int] = {}  # of each lane, the last task that has ended
    own: dict[int, float] = {}
    stops, first = stop.tolist(), float(begin[0])
    for row, (now, mine) in enumerate(zip(begin.tolist(), lane.tolist(), strict=True)):
        while ended < len(order) and stops[order[ended]] <= now:
            last[int(lane[order[ended]])] = order[ended]
            ended += 1
        others = [task for which, task in last.items() if which != mine and task < row]
        since[row] = own.get(mine, first)
        if others:
            after[row] = max(others, key=lambda task: stops[task])
            since[row] = max(since[row], stops[int(after[row])])
        own[mine] = max(own.get(mine, first), stops[row])
    return np.maximum(begin - since, 0.0), after
