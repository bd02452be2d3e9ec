"""What is learned from: periods of workloads beside others, each laid over the runs alone.

Source: Saeed et al., MLCAD 2021, Algorithm 1, lines 8 to 17.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

Member = tuple[str, str, tuple[str, ...]]  # platform, workload, co-runners


def member_of(workload: str, platform: str, corunners: Iterable[str]) -> Member:
    """Make the member of a run, its co-runners sorted."""
    return platform, workload, tuple(sorted(corunners))


@dataclass(frozen=True)
class AlignedRows:
    """Periods of workloads beside others. own, others: (n, d) aligned counts per second of the run alone,
    those of all others added up. count: (n,) instructions executed in the period; period_seconds: (n,) its
    length. group: (n,) equal for all windows of the same workloads, whichever is predicted: its number in
    `sets`. run: (n,) number of the run. begin_seconds: (n,) where the period begins in the run alone.
    members: of each run by its number, the platform, the workload and its co-runners; empty where nobody
    asks. inside: (n,) whether it lies inside one phase of every member; None, all, where nobody asks."""

    counters: tuple[str, ...]
    sets: tuple[tuple[str, ...], ...]
    own: np.ndarray
    others: np.ndarray
    count: np.ndarray
    period_seconds: np.ndarray
    group: np.ndarray
    run: np.ndarray
    begin_seconds: np.ndarray
    members: tuple[Member, ...] = ()
    inside: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.count)

    @property
    def slowdown(self) -> np.ndarray:
        """Aligned instructions per second alone over those executed per second beside others, (n,)."""
        return self.own[:, 0] * self.period_seconds / self.count

    @property
    def solo_seconds(self) -> np.ndarray:
        """Seconds that the same stretch takes alone, (n,): what a slowdown divides by, and its weight."""
        return self.count / self.own[:, 0]

    def run_logs(self, log_slowdown: np.ndarray | None = None) -> np.ndarray:
        """Compute the log slowdown of each whole run, (runs,), over all of its rows. log_slowdown: (n,)
        predicted per row; None: the measured one."""
        took = (
            self.period_seconds
            if log_slowdown is None
            else np.exp(log_slowdown) * self.solo_seconds
        )
        run = self.run_index
        return np.log(np.bincount(run, took) / np.bincount(run, self.solo_seconds))

    @property
    def run_index(self) -> np.ndarray:
        """Number of each row's run, from 0 on, of the runs that occur, (n,)."""
        return np.unique(self.run, return_inverse=True)[1].reshape(-1)

    def take(self, index: np.ndarray) -> AlignedRows:
        """Take the rows at these places, or where a mask is true."""
        return replace(self, **{name: getattr(self, name)[index] for name in _by_row(self)})

    @property
    def inside_share(self) -> float:
        """Share of the time alone in periods inside one phase of every member."""
        if self.inside is None:
            return 1.0
        return float(self.solo_seconds[self.inside].sum() / self.solo_seconds.sum())

    def inside_phases(self) -> AlignedRows:
        """Keep the periods that lie inside one phase of every member."""
        return self if self.inside is None else self.take(self.inside)

    def thinned(self, most: int) -> AlignedRows:
        """Keep at most `most` rows, evenly taken."""
        if len(self) <= most:
            return self
        return self.take(np.linspace(0, len(self) - 1, most).astype(np.int64))

    def with_counters(self, names: Sequence[str]) -> AlignedRows:
        """Keep only these counters, in this order."""
        at = [self.counters.index(name) for name in names]
        return replace(self, counters=tuple(names), own=self.own[:, at], others=self.others[:, at])

    @staticmethod
    def concatenate(parts: Sequence[AlignedRows]) -> AlignedRows:
        """Concatenate; what is not by row is that of the first."""
        first = parts[0]
        joined = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in _by_row(first)
        }
        return replace(first, **joined)


def _by_row(rows: AlignedRows) -> list[str]:
    rest = ("counters", "sets", "members")
    return [name for name, value in vars(rows).items() if name not in rest and value is not None]
