"""Rows to learn from, and what every member of the stack may know of the names in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

OWN, HERE, SOLO = 0.3, 0.6, 0.3  # weights of the parts of a design of names
LEAST = -0.9  # of the extra time over the time alone, under which nothing is answered


@dataclass(frozen=True)
class SlowdownRows:
    """Rows with co-runners. target: (n,) cell (platform * workloads + workload) of the target;
    corunner: (m,) cells, row: (m,) which row they belong to; log_slowdown: (n,); scale: (n,) what one
    unit of the sum adds to the runtime in solo runtimes. timed: whether members learn extra time, in such
    units, and not the log slowdown."""

    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    log_slowdown: np.ndarray
    scale: np.ndarray
    timed: bool = False

    @classmethod
    def coded(
        cls,
        codes: tuple[np.ndarray, ...],
        counts: np.ndarray,
        workloads: int,
        log_slowdown: np.ndarray,
        scale: np.ndarray,
        timed: bool = False,
    ) -> SlowdownRows:
        """codes: (workloads (n,), platforms (n,), co-runners (m,)), as co-locations have them; counts: (n,)
        of co-runners. workloads: how many there are in all."""
        workload, platform, corunner = (each.astype(np.int64) for each in codes)
        row = np.repeat(np.arange(len(workload)), counts)
        place = platform * workloads
        return cls(place + workload, place[row] + corunner, row, log_slowdown, scale, timed)

    def __len__(self) -> int:
        return len(self.target)

    @property
    def degree(self) -> np.ndarray:
        """(n,) numbers of co-runners."""
        return np.bincount(self.row, minlength=len(self))

    @property
    def value(self) -> np.ndarray:
        """(n,) what members learn."""
        return np.expm1(self.log_slowdown) / self.scale if self.timed else self.log_slowdown

    @property
    def weight(self) -> np.ndarray:
        """(n,) how much a squared error of the value counts: as its relative error of the runtime."""
        if not self.timed:
            return np.ones(len(self))
        weight = (self.scale * np.exp(-self.log_slowdown)) ** 2
        return weight / weight.mean() if len(self) else weight

    def as_log(self, value: np.ndarray) -> np.ndarray:
        """(n,) log slowdown from values."""
        return np.log1p(np.maximum(self.scale * value, LEAST)) if self.timed else value

    def mean(self, each: np.ndarray) -> np.ndarray:
        """(n,) means over the co-runners of what is given for each of them (m,)."""
        return np.bincount(self.row, each, len(self)) / np.maximum(self.degree, 1)

    def take(self, keep: np.ndarray) -> SlowdownRows:
        """keep: (n,) bool."""
        number = np.cumsum(keep) - 1
        kept = keep[self.row]
        return SlowdownRows(
            self.target[keep],
            self.corunner[kept],
            number[self.row[kept]],
            self.log_slowdown[keep],
            self.scale[keep],
            self.timed,
        )

    def sets(self) -> np.ndarray:
        """(n,) codes, equal for rows of the same workloads on the same platform, whichever is the target."""
        members: list[list[int]] = [[int(cell)] for cell in self.target]
        for row, cell in zip(self.row.tolist(), self.corunner.tolist(), strict=True):
            members[row].append(cell)
        known: dict[tuple[int, ...], int] = {}
        return np.array([known.setdefault(tuple(sorted(m)), len(known)) for m in members], np.int64)


@dataclass(frozen=True)
class Ground:
    """What is known without rows. design: (cells, d) what tells workloads on platforms apart, over the
    median distance. level: (cells,) log runtime alone, over its spread on the platform."""

    platforms: int
    workloads: int
    design: np.ndarray
    level: np.ndarray

    @property
    def cells(self) -> int:
        return self.platforms * self.workloads


def design_of_names(
    workloads: int, platforms: int, log_solo: np.ndarray, here: float = HERE
) -> Any:
    """(cells, d) sparse, what tells cells apart by names and times alone. log_solo: (platforms, workloads),
    NaN where unknown. here: weight of what a workload has on one platform only."""
    from scipy.sparse import csr_matrix, hstack, identity, kron

    w, p = workloads, platforms
    level = np.nan_to_num(log_solo - np.nanmean(log_solo, axis=1, keepdims=True))
    level = (level / max(float(level.std()), 1e-9)).reshape(-1, 1)
    blocks = [
        OWN * kron(np.ones((p, 1)), identity(w)),
        here * identity(p * w),
        csr_matrix(SOLO * level),
        csr_matrix(np.ones((p * w, 1))),
        kron(identity(p), np.ones((w, 1))),
    ]
    return hstack(blocks, format="csr")
