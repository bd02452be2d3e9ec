"""When jobs come and how long they stay: drawn with a seed, or from a table.

Of a cluster's trace only the times are taken: none names workloads that were measured, so measured ones are
drawn onto them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle._tables import read_rows
from jostle.errors import BadData

SPREAD = (
    1.2  # of the logarithm of how long drawn jobs stay: a few stay very long, as in public traces
)
COLUMNS = ("arrival_seconds", "stay_seconds")


@dataclass(frozen=True)
class Arrivals:
    """n jobs, ascending in time. seconds: (n,) since the first. stay_seconds: (n,) above 0. dropped: rows
    that say no such times, as of jobs that never ran."""

    seconds: np.ndarray
    stay_seconds: np.ndarray
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.seconds)

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float] | None], where: str) -> Arrivals:
        """pairs: (arrival, stay), None where a row has none. Raises BadData where nothing is left."""
        rows = list(pairs)
        good = np.array(
            [
                pair
                for pair in rows
                if pair is not None and all(np.isfinite(pair)) and pair[0] >= 0 and pair[1] > 0
            ]
        ).reshape(-1, 2)
        if not len(good):
            raise BadData("no row says when a job came and how long it stayed", where=where)
        good = good[np.argsort(good[:, 0], kind="stable")]
        return cls(good[:, 0] - good[0, 0], good[:, 1], len(rows) - len(good))

    def take(self, jobs: int) -> Arrivals:
        """The first ones."""
        return Arrivals(self.seconds[:jobs], self.stay_seconds[:jobs], self.dropped)

    def at_load(self, nodes: float) -> Arrivals:
        """With times between arrivals stretched so that the jobs, alone, keep so many nodes busy."""
        span = float(self.seconds[-1]) if len(self) > 1 else 0.0
        if span <= 0:
            return self
        wanted = float(self.stay_seconds.sum()) / nodes
        return Arrivals(self.seconds * (wanted / span), self.stay_seconds, self.dropped)


def drawn_arrivals(jobs: int, seed: int, stay_seconds: float = 3600.0) -> Arrivals:
    """A Poisson process of jobs whose stays are log-normal around the median `stay_seconds`."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(1.0, jobs)
    return Arrivals(np.cumsum(gaps) - gaps[0], stay_seconds * random.lognormal(0.0, SPREAD, jobs))


def read_arrivals(path: Path) -> Arrivals:
    """From a table with the columns arrival_seconds and stay_seconds. Raises UnreadableFile, BadData."""
    table = read_rows(path, COLUMNS, {name: name for name in COLUMNS})
    return Arrivals.of((_pair(row) for row in table.rows), str(path))


def _pair(row: dict[str, Any]) -> tuple[float, float] | None:
    try:
        return float(row[COLUMNS[0]]), float(row[COLUMNS[1]])
    except (KeyError, TypeError, ValueError):
        return None
