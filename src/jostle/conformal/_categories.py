"""Evidence classes: how much was measured of the names in a co-location, in a few grades.

Runs are exchangeable with a question only where as much was known about its names. A class has six grades:
runs of the workload, of the platform (each 0, 1, 2-4, 5-19, 20-99, 100 or more), and beside others of the
co-runner with the fewest (up to 20 or more), whether the workload and the platform were measured
beside others at all, and whether the workload ran on the platform: never, or, of a question alone, only
beside others. A class is weaker than another where no grade is higher, so a class can be bounded by runs of a
weaker one, never by those of a stronger one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np

FEWEST_RUNS = (1, 2, 5, 20, 100)  # at which the grade of a workload or platform rises by one
RUNS_TEXT = ("0 runs", "1 run", "2-4 runs", "5-19 runs", "20-99 runs", "100+ runs")
WORKLOAD, PLATFORM, BESIDE, PLATFORM_BESIDE, CORUNNER = range(5)
THERE = 5  # after these: whether the workload ran on the platform
HIGHEST = np.array([5, 5, 1, 1, 4, 2], np.int8)


@runtime_checkable
class CountsRuns(Protocol):
    """Anything that says how many runs it learned from tell of a co-location."""

    def evidence(self, asked: Any, /) -> Any:
        """Counts `workload`, `beside`, `platform`, `platform_beside`, `corunner`, `there` and `alone_there`,
        each (n,) integers."""
        ...


def grades_of(predictor: Any, asked: Any, own: np.ndarray | None = None) -> np.ndarray:
    """(n, 6) int8, the evidence class of each co-location; the highest for a predictor that does not count.

    Alone, whether a name was measured beside others does not matter and is graded as met. own: (n,) codes of
    units, for runs that it learned from: each is graded as if those of its unit were not known, as what is
    asked about is; of a run alone, that run itself."""
    degree = np.asarray(asked.number_of_corunners)
    grades = np.tile(HIGHEST, (len(degree), 1))
    if not isinstance(predictor, CountsRuns) or not len(degree):
        return grades
    evidence = predictor.evidence(asked)
    if own is not None:
        evidence = _without_own(evidence, asked, own)
    grades[:, WORKLOAD] = np.searchsorted(FEWEST_RUNS, evidence.workload, side="right")
    grades[:, PLATFORM] = np.searchsorted(FEWEST_RUNS, evidence.platform, side="right")
    alone = degree == 0
    grades[:, BESIDE] = np.where(alone, evidence.workload > 0, evidence.beside > 0)
    grades[:, PLATFORM_BESIDE] = np.where(
        alone, evidence.platform > 0, evidence.platform_beside > 0
    )
    corunner = np.searchsorted(FEWEST_RUNS[:4], evidence.corunner, side="right")
    grades[:, CORUNNER] = np.where(alone, HIGHEST[CORUNNER], corunner)
    # Below 0 where there were too many pairs to count.
    known = np.where(alone, evidence.alone_there, evidence.there) != 0
    grades[:, THERE] = np.where(known, HIGHEST[THERE], evidence.there > 0)
    return grades


def _without_own(evidence: Any, asked: Any, unit: np.ndarray) -> Any:
    beside = np.asarray(asked.number_of_corunners) > 0

    def less(count: np.ndarray, *code: np.ndarray) -> np.ndarray:
        key = np.stack([unit, *code])
        _, at, own = np.unique(key, axis=1, return_inverse=True, return_counts=True)
        rest = np.maximum(count - np.where(beside, own[at.reshape(-1)], 1), 0)
        return np.where(count < 0, count, rest)

    return replace(
        evidence,
        workload=less(evidence.workload, asked.workload),
        beside=less(evidence.beside, asked.workload),
        platform=less(evidence.platform, asked.platform),
        platform_beside=less(evidence.platform_beside, asked.platform),
        corunner=less(evidence.corunner),
        there=less(evidence.there, asked.workload, asked.platform),
        alone_there=np.where(beside, evidence.alone_there, less(evidence.alone_there)),
    )


def text_of(grades: np.ndarray) -> str:
    """One evidence class (6,) in words."""
    parts = [f"workload {RUNS_TEXT[grades[WORKLOAD]]}", f"platform {RUNS_TEXT[grades[PLATFORM]]}"]
    if grades[WORKLOAD] and grades[PLATFORM] and grades[THERE] < HIGHEST[THERE]:
        how = "only beside others" if grades[THERE] else "never"
        parts.append(f"the workload {how} on the platform")
    if grades[WORKLOAD] and not grades[BESIDE]:
        parts.append("workload measured alone only")
    if grades[PLATFORM] and not grades[PLATFORM_BESIDE]:
        parts.append("nothing measured beside others on the platform")
    if grades[CORUNNER] < HIGHEST[CORUNNER]:
        beside = "never measured" if not grades[CORUNNER] else RUNS_TEXT[grades[CORUNNER]]
        parts.append(f"a co-runner {beside} beside others")
    return ", ".join(parts)


def reason_without_runs(grades: np.ndarray) -> str:
    """The outcome where no calibration run has a class at or below this one: what was never measured."""
    if not grades[WORKLOAD] or not grades[PLATFORM]:
        return "new_name"
    if not grades[THERE]:
        return "new_on_platform"
    if not grades[BESIDE] or not grades[PLATFORM_BESIDE]:
        return "new_beside_others"
    return "little_evidence" if grades[CORUNNER] else "new_corunner"
