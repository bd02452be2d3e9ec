"""Co-locations as numbers: which workload, how many of each beside it, where, in which session."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs

UNKNOWN_SESSION = -1


@dataclass(frozen=True, eq=False)
class CoRuns:
    """n co-locations of w workloads. target: (n,). beside: (n, w) how many of each are co-runners. platform:
    (n,). session: (n,) the campaign, UNKNOWN_SESSION where it is asked for. solo: (n,) s of the target alone.
    seconds: (n,) measured, NaN where it is asked for."""

    target: np.ndarray
    beside: np.ndarray
    platform: np.ndarray
    session: np.ndarray
    solo: np.ndarray
    seconds: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: np.ndarray) -> CoRuns:
        """rows: indices, or (n,) bool."""
        return CoRuns(*(getattr(self, each.name)[rows] for each in fields(self)))

    @property
    def degree(self) -> np.ndarray:
        """(n,) numbers of co-runners."""
        return self.beside.sum(axis=1).astype(np.int64)

    @property
    def share(self) -> np.ndarray:
        """(n, w) the share of each workload in the co-runners."""
        return self.beside / np.maximum(self.beside.sum(axis=1, keepdims=True), 1)

    @property
    def members(self) -> np.ndarray:
        """(n, w) how many of each take part, the target included."""
        every = self.beside.copy()
        every[np.arange(len(self)), self.target] += 1
        return every

    @property
    def together(self) -> np.ndarray:
        """(n,) int64, the same for the same workloads on the same platform, whichever is the target."""
        draw = np.random.default_rng(0).integers(1, 2**62, self.beside.shape[1] + 1)
        with np.errstate(over="ignore"):
            code = (self.members.astype(np.int64) * draw[:-1]).sum(axis=1)
            return code + (self.platform.astype(np.int64) + 1) * draw[-1]

    def cells(self) -> CoRuns:
        """Repeats of the same co-location in the same session as one, their median."""
        if not len(self):
            return self
        whole = np.column_stack([self.platform, self.session, self.target, self.beside])
        _, first, code = np.unique(whole, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(code.reshape(-1), kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(code.reshape(-1)))[:-1])
        medians = np.array([np.median(self.seconds[part]) for part in parts])
        return replace(self.take(first), seconds=medians)


def asked_coruns(
    asked: Colocations, names: tuple[tuple[str, ...], tuple[str, ...]], log_solo: np.ndarray
) -> CoRuns:
    """Co-locations of known names. log_solo: (platforms, workloads)."""
    workload, platform, corunner = (codes.astype(np.int64) for codes in asked.codes_in(*names))
    beside = np.zeros((len(asked), len(names[0])))
    np.add.at(beside, (np.repeat(np.arange(len(asked)), asked.number_of_corunners), corunner), 1)
    return CoRuns(
        workload,
        beside,
        platform,
        np.full(len(asked), UNKNOWN_SESSION),
        np.exp(log_solo[platform, workload]),
        np.full(len(asked), np.nan),
    )


def measured_coruns(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], log_solo: np.ndarray
) -> CoRuns:
    """The runs beside others, each cell of them once."""
    together = runs.take(np.flatnonzero(runs.colocations.number_of_corunners > 0))
    coruns = asked_coruns(together.colocations, names, log_solo)
    sessions = together.table.column("campaign").to_pylist()
    known = {name: code for code, name in enumerate(sorted({s or "" for s in sessions}))}
    session = np.array([known[s or ""] for s in sessions], np.int64)
    return replace(coruns, session=session, seconds=together.runtime_seconds).cells()
