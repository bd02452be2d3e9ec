"""From who was on which node from when to when, to who was beside whom: stretches of company.

Stays are sorted by node and start. A slice of them is worked out at a time, with all others that were on the
same nodes at the same time, so that memory is bounded whatever the log's length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

SLICE = 50_000  # stays at a time
MOST_ENTRIES = 10_000_000  # co-runners in all stretches of a slice, above which it is halved
MOST_OF_ONE = 100_000  # and of one stay, above which its company is not worked out


@dataclass(frozen=True)
class Stays:
    """Stays of n jobs on nodes. node, workload: (n,) int codes; start, end: (n,) int64 microseconds, end
    after start; is_run: (n,) bool, whose company is wanted: the others are company alone."""

    node: np.ndarray
    workload: np.ndarray
    start: np.ndarray
    end: np.ndarray
    is_run: np.ndarray


@dataclass(frozen=True)
class Company:
    """Co-runners over time of k stays. stay: (k,) which ones. counts: (k,) stretches of each. offset: (m,)
    int64 microseconds from the stay's start to that of each stretch. sizes: (m,) co-runners in each.
    workload: their codes, sorted in each stretch."""

    stay: np.ndarray
    counts: np.ndarray
    offset: np.ndarray
    sizes: np.ndarray
    workload: np.ndarray


def companies(stays: Stays, *, entries: int = MOST_ENTRIES) -> Iterator[Company]:
    """Yield the company of every stay that is a run, a slice at a time; none of one that has too much of
    it."""
    if not len(stays.node):
        return
    order = np.lexsort((stays.start, stays.node))
    node = stays.node[order].astype(np.int64)
    first = int(stays.start.min())
    span = int(stays.end.max()) - first + 1
    node *= span
    node -= first
    to_key = node + stays.end[order]
    node += stays.start[order]
    latest, workload = np.maximum.accumulate(to_key), stays.workload[order]
    swept = _Sorted(node, to_key, latest, workload, stays.is_run[order], span)
    slices = [(p, min(p + SLICE, len(order))) for p in range(0, len(order), SLICE)][::-1]
    while slices:
        first, last = slices.pop()
        one = _slice(swept, first, last, entries)
        if one is None:
            middle = (first + last) // 2
            slices += [(middle, last), (first, middle)]
        elif len(one.stay):
            yield Company(order[one.stay], one.counts, one.offset, one.sizes, one.workload)


@dataclass(frozen=True)
class _Sorted:
    """By node and start. from_key, to_key: node * span + time; latest: running maximum of to_key."""

    from_key: np.ndarray
    to_key: np.ndarray
    latest: np.ndarray
    workload: np.ndarray
    is_run: np.ndarray
    span: int

    def start(self, stay: np.ndarray) -> np.ndarray:
        """Return the starts since the first one."""
        return self.from_key[stay] % self.span

    def end(self, stay: np.ndarray) -> np.ndarray:
        return self.to_key[stay] % self.span


def _slice(swept: _Sorted, first: int, last: int, entries: int) -> Company | None:
    """Return None where there is too much of it at once."""
    a, b = _pairs(swept, first, last)
    start, end = swept.start, swept.end
    end_a = end(a)
    low, high = np.maximum(start(a), start(b)), np.minimum(end_a, end(b))
    mine = np.arange(first, last)[swept.is_run[first:last]]
    width = int((end(mine) - start(mine)).max(initial=0)) + 1

    def key(stay: np.ndarray, time: np.ndarray) -> np.ndarray:
        return (stay - first) * width + (time - start(stay))

    inside = high < end_a
    keys = np.unique(
        np.concatenate([key(mine, start(mine)), key(a, low), key(a[inside], high[inside])])
    )
    at = np.searchsorted(keys, key(a, low))
    until = np.where(
        inside, np.searchsorted(keys, key(a, high)), np.searchsorted(keys, (a - first + 1) * width)
    )
    much = np.bincount(a - first, until - at, last - first)
    if much.sum() > entries and last - first > 1:
        return None
    kept = much[a - first] <= MOST_OF_ONE
    mine = mine[much[mine - first] <= MOST_OF_ONE]
    a, b, at, until = (one[kept] for one in (a, b, at, until))
    stay = keys // width + first
    stretch = np.repeat(at, until - at) + _counted(until - at)
    base = int(swept.workload.max()) + 1
    entry = np.sort(stretch * base + np.repeat(swept.workload[b].astype(np.int64), until - at))
    sizes, workload = np.bincount(entry // base, minlength=len(keys)), entry % base
    same = _same_as_before(stay, sizes, workload)
    wanted = ~same & np.isin(stay, mine)
    return Company(
        mine,
        np.bincount(stay[wanted] - first, minlength=last - first)[mine - first],
        (keys % width)[wanted],
        sizes[wanted],
        workload[np.repeat(wanted, sizes)],
    )


def _pairs(swept: _Sorted, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (a, b): a in the slice and a run, b on its node at the same time."""
    before = np.arange(np.searchsorted(swept.latest, swept.from_key[first], "right"), first)
    before = before[swept.to_key[before] > swept.from_key[first]]
    after = np.searchsorted(swept.from_key, swept.latest[last - 1], "left")
    local = np.concatenate([before, np.arange(first, max(last, int(after)))])
    # Whoever starts before another one ends, and after it has started, is there at the same time.
    here = np.arange(len(before) + last - first)
    stop = np.searchsorted(swept.from_key[local], swept.to_key[local[here]], "left")
    number = np.maximum(stop - here - 1, 0)
    earlier = np.repeat(here, number)
    later = earlier + 1 + _counted(number)
    one, other = local[earlier], local[later]
    a, b = np.concatenate([one, other]), np.concatenate([other, one])
    wanted = (a >= first) & (a < last) & swept.is_run[a]
    return a[wanted], b[wanted]


def _counted(number: np.ndarray) -> np.ndarray:
    """Return 0, 1, ... number - 1 for each of them, one after the other."""
    ends = np.cumsum(number)
    return np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - number, number)


def _same_as_before(stay: np.ndarray, sizes: np.ndarray, workload: np.ndarray) -> np.ndarray:
    """Return (m,) bool: a stretch with the company of the one before it, of which one has left as its like
    came."""
    ends = np.cumsum(sizes)
    possible = (np.diff(stay, prepend=-1) == 0) & (np.diff(sizes, prepend=-1) == 0)
    at = np.flatnonzero(possible)
    differ = np.zeros(len(sizes), np.int64)
    here = np.repeat(at, sizes[at])
    place = np.repeat(ends[at] - sizes[at], sizes[at]) + _counted(sizes[at])
    np.add.at(differ, here, workload[place] != workload[place - sizes[here]])
    return possible & (differ == 0)
