"""Co-locations as numbers: which workload, how many of each beside it, and where."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from jostle.learn.training._slowdown_rows import SlowdownRows


@dataclass(frozen=True, eq=False)
class CoRuns:
    """n co-locations of w workloads. target: (n,). beside: (n, w) how many of each are co-runners. platform:
    (n,). solo: (n,) s of the target alone.
    seconds: (n,) measured, NaN where it is asked for."""

    target: np.ndarray
    beside: np.ndarray
    platform: np.ndarray
    solo: np.ndarray
    seconds: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: np.ndarray) -> CoRuns:
        """rows: indices, or (n,) bool."""
        return CoRuns(*(getattr(self, each.name)[rows] for each in fields(self)))

    @property
    def degree(self) -> np.ndarray:
        """Number of co-runners, (n,)."""
        return self.beside.sum(axis=1).astype(np.int64)

    @property
    def share(self) -> np.ndarray:
        """Share of each workload in the co-runners, (n, w)."""
        return self.beside / np.maximum(self.beside.sum(axis=1, keepdims=True), 1)

    @property
    def members(self) -> np.ndarray:
        """Number of each workload in the set, the target included, (n, w)."""
        every = self.beside.copy()
        every[np.arange(len(self)), self.target] += 1
        return every

    @property
    def together(self) -> np.ndarray:
        """Codes that are equal for the same workloads on the same platform, whichever is the target, (n,)
        int64."""
        draw = np.random.default_rng(0).integers(1, 2**62, self.beside.shape[1] + 1)
        with np.errstate(over="ignore"):
            code = (self.members.astype(np.int64) * draw[:-1]).sum(axis=1)
            return code + (self.platform.astype(np.int64) + 1) * draw[-1]

    def cells(self, places: np.ndarray) -> tuple[CoRuns, np.ndarray]:
        """Merge repeats of a co-location. Returns (one row for each, its median; the place of the first)."""
        if not len(self):
            return self, places
        whole = np.column_stack([self.platform, self.target, self.beside])
        _, first, code = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(code.reshape(-1), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(code.reshape(-1)))[:-1])
        medians = np.array([np.median(self.seconds[part]) for part in parts])
        return replace(self.take(first), seconds=medians), places[first]

    def smaller(self, most: int) -> tuple[CoRuns, np.ndarray]:
        """Return (rows beside every set of so many of their co-runners, in a circle by name; whose)."""
        degree = self.degree
        of = np.repeat(np.arange(len(self)), degree)
        others = np.repeat(
            np.indices(self.beside.shape)[1].ravel(), self.beside.ravel().astype(int)
        )
        start = np.cumsum(degree) - degree
        beside = np.zeros((len(of), self.beside.shape[1]))
        for step in range(most):
            at = start[of] + (np.arange(len(of)) - start[of] + step) % degree[of]
            np.add.at(beside, (np.arange(len(of)), others[at]), 1)
        return replace(self.take(of), beside=beside), of

    @classmethod
    def coded(cls, rows: SlowdownRows, code: np.ndarray, log_solo: np.ndarray) -> CoRuns:
        """Code rows of the campaign that are asked about. code: (workloads,) the place of each here.
        log_solo: (cells,) log seconds."""
        n, workloads = len(rows), len(code)
        beside = np.zeros((n, int(code.max(initial=-1)) + 1))
        np.add.at(beside, (rows.row, code[rows.corunner % workloads]), 1)
        return cls(
            code[rows.target % workloads],
            beside,
            rows.target // workloads,
            np.exp(log_solo[rows.target]),
            np.full(n, np.nan),
        )
