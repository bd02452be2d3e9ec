"""What is learned from: periods of workloads beside others, each laid over the runs alone.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 8 to 17.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.learn.learners.counters.solo._quiet import quiet_weights

Member = tuple[str, str, tuple[str, ...]]  # platform, workload, co-runners
KEPT_SHARE = 1 / 3  # of the repeats of a stretch that is learned from


def member_of(workload: str, platform: str, corunners: Iterable[str]) -> Member:
    """Of a run, its co-runners sorted."""
    return platform, workload, tuple(sorted(corunners))


@dataclass(frozen=True)
class AlignedRows:
    """n periods of workloads beside others. own, others: (n, d) aligned counts per second of the run alone,
    those of all others added up. count: (n,) instructions executed in the period; period_seconds: (n,) its
    length. slot, other: (n,) where it ran and the first of the others. group: (n,) equal for all windows of
    the same workloads, whichever is predicted: its number in `sets`. run: (n,) number of the run.
    begin_seconds: (n,) where the period begins in the run alone. members: of each run by its number, the
    platform, the workload and its co-runners; empty where nobody asks. inside: (n,) whether it lies inside
    one phase of every member; None, all, where nobody asks."""

    counters: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    own: np.ndarray
    others: np.ndarray
    count: np.ndarray
    period_seconds: np.ndarray
    slot: np.ndarray
    other: np.ndarray
    group: np.ndarray
    run: np.ndarray
    begin_seconds: np.ndarray
    members: tuple[Member, ...] = ()
    inside: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.count)

    @property
    def slowdown(self) -> np.ndarray:
        """(n,) aligned instructions per second alone over those executed per second beside others."""
        return self.own[:, 0] * self.period_seconds / self.count

    @property
    def solo_seconds(self) -> np.ndarray:
        """(n,) how long the same stretch takes alone: what a slowdown is of, and so its weight."""
        return self.count / self.own[:, 0]

    def run_logs(self, log_slowdown: np.ndarray | None = None) -> np.ndarray:
        """(runs,) log slowdown of each run that occurs, over all of its rows; of what was measured, or
        of the (n,) predicted ones."""
        took = (
            self.period_seconds
            if log_slowdown is None
            else np.exp(log_slowdown) * self.solo_seconds
        )
        run = self.run_index
        return np.log(np.bincount(run, took) / np.bincount(run, self.solo_seconds))

    @property
    def run_index(self) -> np.ndarray:
        """(n,) the runs that occur, numbered from 0 on."""
        return np.unique(self.run, return_inverse=True)[1].reshape(-1)

    def take(self, index: np.ndarray) -> AlignedRows:
        """The rows at these places, or where a mask is true."""
        return replace(self, **{name: getattr(self, name)[index] for name in _by_row(self)})

    @property
    def inside_share(self) -> float:
        """Of the time alone, in periods inside one phase of every member."""
        if self.inside is None:
            return 1.0
        return float(self.solo_seconds[self.inside].sum() / self.solo_seconds.sum())

    def inside_phases(self) -> AlignedRows:
        """Only the periods that lie inside one phase of every member."""
        return self if self.inside is None else self.take(self.inside)

    def thinned(self, most: int) -> AlignedRows:
        """At most so many rows, evenly taken."""
        if len(self) <= most:
            return self
        return self.take(np.linspace(0, len(self) - 1, most).astype(np.int64))

    def with_counters(self, names: Sequence[str]) -> AlignedRows:
        """The same rows with only these counters, in this order."""
        at = [self.counters.index(name) for name in names]
        return replace(self, counters=tuple(names), own=self.own[:, at], others=self.others[:, at])

    @staticmethod
    def concatenate(parts: Sequence[AlignedRows]) -> AlignedRows:
        """One after the other; what is not by row is that of the first."""
        first = parts[0]
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _by_row(first)
        }
        return replace(first, **joined)


def _by_row(rows: AlignedRows) -> list[str]:
    rest = ("counters", "sets", "members")
    return [name for name, value in vars(rows).items() if name not in rest and value is not None]


def quiet_rows(
    rows: AlignedRows, same: np.ndarray, segment_seconds: float, compared: int | None = None
) -> AlignedRows:
    """Of repeats, each stretch only from those that passed it quickly, together one run; as it was where
    there are fewer than three.

    same: (runs,) equal for all runs of the same workload beside the same others, by the number of
    the run. compared: the number of repeats that times alone are of: stretches then take as long as their
    repeats say at that number (`quiet_weights`), and not as long as the quickest of them.
    """
    of = same[rows.run]
    segment = (rows.begin_seconds / segment_seconds).astype(np.int64)
    key = of * (segment.max(initial=0) + 1) + segment
    # One cell for each stretch of each repeat: how much longer than alone it took there.
    cells, cell = np.unique(np.stack([key, rows.run]), axis=1, return_inverse=True)
    cell = cell.reshape(-1)
    slow = np.bincount(cell, rows.period_seconds) / np.bincount(cell, rows.solo_seconds)
    order = np.lexsort((cells[1], slow, cells[0]))
    first = np.r_[True, np.diff(cells[0][order]) > 0]
    start = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - start
    repeats = np.bincount(cells[0])[cells[0]]
    is_quiet = (repeats < 3) | (rank < np.maximum(1, np.ceil(KEPT_SHARE * repeats)))
    if compared is not None:
        weight = np.concatenate(
            [quiet_weights(int(n), compared) for n in range(1, repeats.max() + 1)]
        )
        first_weight = repeats * (repeats - 1) // 2
        quiet = np.bincount(cells[0], weight[first_weight + rank] * slow)[cells[0]]
        longer = (quiet / slow)[cell]
        rows = replace(rows, period_seconds=rows.period_seconds * longer)
    return _as_one(rows.take(np.flatnonzero(is_quiet[cell])), same)


def _as_one(rows: AlignedRows, same: np.ndarray) -> AlignedRows:
    """What is left of three repeats or more is one run, that of the first of them: each alone has only some
    stretches, and how long these took says little of the whole."""
    numbers, first, count = np.unique(same, return_index=True, return_counts=True)
    at = np.searchsorted(numbers, same[rows.run])
    return replace(rows, run=np.where(count[at] >= 3, first[at], rows.run))
