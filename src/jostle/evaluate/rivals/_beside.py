"""Runs beside others as the simple rules see them, and what a rule answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.evaluate.rivals._rival import RivalAnswers
from jostle.methods import Prepared
from jostle.rules import SlowdownRows
from jostle.runs import Colocations, all_names, solo_medians

Names = tuple[tuple[str, ...], tuple[str, ...]]


def rows_of(
    colocations: Colocations, names: Names, log_slowdown: np.ndarray | None = None
) -> SlowdownRows:
    """log_slowdown: (n,) where it is known. Raises UnknownName."""
    known = np.zeros(len(colocations)) if log_slowdown is None else log_slowdown
    counts = colocations.number_of_corunners
    return SlowdownRows.coded(
        colocations.codes_in(*names), counts, len(names[0]), known, np.ones(len(known))
    )


@dataclass(frozen=True)
class Beside:
    """Runs beside others whose solo runtime was measured. log_solo: (platforms, workloads)."""

    names: Names
    log_solo: np.ndarray
    rows: SlowdownRows

    @property
    def sizes(self) -> tuple[int, int]:
        """(platforms, workloads)."""
        return len(self.names[1]), len(self.names[0])

    @classmethod
    def of(cls, prepared: Prepared) -> Beside:
        """Raises NotEnoughRuns without runs alone."""
        runs = prepared.together()
        names = all_names(runs)
        solo = solo_medians(runs, *names)
        if np.isnan(solo).all():
            raise NotEnoughRuns("no run is without co-runners", fix="Measure workloads alone too.")
        workload, platform, _ = runs.colocations.codes_in(*names)
        slow = np.log(runs.runtime_seconds) - solo[platform, workload]
        rows = rows_of(runs.colocations, names, slow)
        return cls(names, solo, rows.take((rows.degree > 0) & np.isfinite(slow)))


@dataclass(frozen=True, eq=False)
class RuleAnswers(RivalAnswers):
    """A rule for the log slowdown beside others; alone, the median time alone."""

    names: Names
    log_solo: np.ndarray
    rule: Callable[[SlowdownRows], np.ndarray]

    def predict(self, query: Colocations) -> np.ndarray:
        """(n,) seconds; NaN for what never ran alone there."""
        rows = rows_of(query, self.names)
        beside = rows.degree > 0
        slow = np.zeros(len(rows))
        if beside.any():
            slow[beside] = self.rule(rows.take(beside))
        return np.exp(self.log_solo.ravel()[rows.target] + slow)
