"""Runs beside others as the simple rules see them: who, beside whom, how many times slower than alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.evaluate.rivals._rival import RivalAnswers
from jostle.runs import all_names, solo_medians

if TYPE_CHECKING:
    from jostle.methods import Prepared
    from jostle.runs import Colocations, Runs


@dataclass(frozen=True)
class CorunRows:
    """platform, target, degree: (n,) codes and numbers of co-runners. corunner: (m,) codes, row: (m,)
    whose they are."""

    platform: np.ndarray
    target: np.ndarray
    degree: np.ndarray
    corunner: np.ndarray
    row: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    @classmethod
    def of(cls, asked: Colocations, names: tuple[tuple[str, ...], tuple[str, ...]]) -> CorunRows:
        """Raises UnknownName."""
        workload, platform, corunner = (c.astype(np.int64) for c in asked.codes_in(*names))
        degree = asked.number_of_corunners
        return cls(platform, workload, degree, corunner, np.repeat(np.arange(len(asked)), degree))

    def take(self, keep: np.ndarray) -> CorunRows:
        """keep: (n,) bool."""
        inside = keep[self.row]
        number = np.cumsum(keep) - 1
        return CorunRows(
            self.platform[keep],
            self.target[keep],
            self.degree[keep],
            self.corunner[inside],
            number[self.row[inside]],
        )

    def mean(self, values: np.ndarray) -> np.ndarray:
        """(n,) means over the co-runners of values (m,)."""
        return np.bincount(self.row, values, len(self)) / np.maximum(self.degree, 1)


@dataclass(frozen=True)
class Beside:
    """Runs beside others whose solo runtime was measured: (n,) log slowdowns, of whom and beside whom."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    log_solo: np.ndarray
    rows: CorunRows
    log_slowdown: np.ndarray

    @classmethod
    def of(cls, prepared: Prepared) -> Beside:
        """Raises NotEnoughRuns without runs alone."""
        runs: Runs = prepared.together()
        names = all_names(runs)
        solo = solo_medians(runs, *names)
        if np.isnan(solo).all():
            raise NotEnoughRuns("no run is without co-runners", fix="Measure workloads alone too.")
        rows = CorunRows.of(runs.colocations, names)
        slow = np.log(runs.runtime_seconds) - solo[rows.platform, rows.target]
        keep = (rows.degree > 0) & np.isfinite(slow)
        return cls(names, solo, rows.take(keep), slow[keep])


@dataclass(frozen=True, eq=False)
class RuleAnswers(RivalAnswers):
    """A rule for the log slowdown beside others; alone, the median time alone."""

    names: tuple[tuple[str, ...], tuple[str, ...]]
    log_solo: np.ndarray
    rule: Callable[[CorunRows], np.ndarray]

    def predict(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds; NaN for what never ran alone there."""
        rows = CorunRows.of(asked, self.names)
        beside = rows.degree > 0
        slow = np.zeros(len(rows))
        if beside.any():
            slow[beside] = self.rule(rows.take(beside))
        return np.exp(self.log_solo[rows.platform, rows.target] + slow)
