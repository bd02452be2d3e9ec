"""Coverage where it may hide: by pool, by platform, and by tenths of the workloads.

A bound that holds on average may hold too often here and too seldom there. What is guaranteed is the
pool (docs/bounds.md); the rest is reported, so that nobody has to believe that it is even.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.report import Table, percent
from jostle.conformal import CATEGORIES
from jostle.operations import bound_measures

if TYPE_CHECKING:
    from jostle.data import Runs

COVERAGE_KINDS = ("pool", "platform", "workload_decile")
WORST_PLATFORMS = 10
WHAT = ("coverage", "margin")


@dataclass(frozen=True)
class Covered:
    """One group of test runs. coverage, margin: by confidence; standard_error: of the coverage that the
    confidence promises, if runs were independent."""

    kind: str
    name: str
    runs: int
    coverage: dict[float, float]
    margin: dict[float, float]

    def standard_error(self, confidence: float) -> float:
        return float(np.sqrt(confidence * (1 - confidence) / self.runs))

    def falls_short(self, confidence: float) -> bool:
        """Whether coverage is more than two standard errors under the confidence."""
        short = confidence - self.coverage[confidence]
        return short > 2 * self.standard_error(confidence)

    def to_row(self) -> dict[str, Any]:
        row: dict[str, Any] = {"kind": self.kind, "name": self.name, "runs": self.runs}
        for level, value in self.coverage.items():
            row[f"coverage_{round(100 * level)}_ratio"] = value
            row[f"margin_{round(100 * level)}_ratio"] = self.margin[level]
        return row


def coverage_by_group(test: Runs, bounds: dict[float, np.ndarray]) -> list[Covered]:
    """Every group of COVERAGE_KINDS that has test runs; bounds: confidence to (n,) seconds.

    Tenths of the workloads: ordered by their median runtime in the test, shortest first; with fewer than
    ten workloads, one group each.
    """
    results = []
    for kind, name, inside in _groups(test):
        actual = test.runtime_seconds[inside]
        at = {c: bound_measures(seconds[inside], actual) for c, seconds in bounds.items()}
        covered, margins = ({c: one[what] for c, one in at.items()} for what in WHAT)
        results.append(Covered(kind, name, len(actual), covered, margins))
    return results


def _groups(test: Runs) -> list[tuple[str, str, np.ndarray]]:
    c = test.colocations
    degree = c.number_of_corunners
    results = [("pool", CATEGORIES[min(int(d), 3)], degree == d) for d in np.unique(degree)]
    results += [("platform", c.platform_names[p], c.platform == p) for p in np.unique(c.platform)]
    workloads = np.unique(c.workload)
    median = np.array([np.median(test.runtime_seconds[c.workload == w]) for w in workloads])
    ordered = workloads[np.argsort(median, kind="stable")]
    tenths = np.array_split(ordered, min(10, len(ordered)))
    return results + [
        ("workload_decile", str(number), np.isin(c.workload, tenth))
        for number, tenth in enumerate(tenths, start=1)
    ]


def coverage_tables(covered: list[Covered]) -> list[Table | str]:
    """All pools and tenths of the workloads, the platforms that fall short the most, and how many do."""
    levels = list(covered[0].coverage)
    kinds = {kind: [one for one in covered if one.kind == kind] for kind in COVERAGE_KINDS}
    first = min(levels)
    worst = sorted(
        kinds["platform"], key=lambda o: (o.coverage[first] - first) / o.standard_error(first)
    )
    named = [(one.name, one) for one in kinds["pool"]]
    named += [(f"workloads, tenth {one.name}", one) for one in kinds["workload_decile"]]
    named += [(one.name, one) for one in worst[:WORST_PLATFORMS]]
    rows = []
    for name, one in named:
        rows.append([name, str(one.runs)])
        for level in levels:
            rows[-1] += [percent(one.coverage[level]), percent(one.margin[level])]
    titles = [f"{what} {100 * level:.0f}" for level in levels for what in ("coverage", "margin")]
    short = {level: sum(one.falls_short(level) for one in kinds["platform"]) for level in levels}
    return [
        Table(["", "runs", *titles], rows),
        *(
            f"at {level:.0%}, {count} of {len(kinds['platform'])} platforms are more than two standard "
            "errors short"
            for level, count in short.items()
        ),
    ]
