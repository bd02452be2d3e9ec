"""Samples and helpers for tests of over time, and for others that need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.data import Colocations, Runs
from jostle.learn import Data, FromCounts, Prepared, Restores, RunCounts

NAMES = [f"w{i}" for i in range(6)]


SOLO = np.array([10.0, 20.0, 40.0, 15.0, 30.0, 80.0])


DEMAND = np.array([0.2, 0.5, 0.9, 0.1, 0.7, 0.4])


def times(company: Colocations) -> np.ndarray:
    """A law that saturates, and adds up in no logarithm."""
    own = np.array([NAMES.index(name) if name in NAMES else 0 for name in company.workload_names])
    row = np.repeat(np.arange(len(company)), company.number_of_corunners)
    beside = np.bincount(row, DEMAND[own[company.corunner]], len(company))
    mine = own[company.workload]
    return SOLO[mine] * (1 + 1.5 * DEMAND[mine] * beside / (0.5 + beside))


@dataclass(frozen=True)
class Lookup(Restores):
    """Answers by the true law, whatever it is given: so errors are those of the runs alone."""

    name: ClassVar[str] = "lookup"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fitted: ClassVar[str] = "tests.packages.models.test_over_time:FittedLookup"

    def prepare(self, data: Data) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: object = None) -> FittedLookup:
        runs = prepared.together()
        seen.append(runs)
        names = tuple(NAMES), ("p",)
        return FittedLookup(*names, RunCounts.of(runs))


@dataclass(frozen=True, eq=False)
class FittedLookup(FromCounts):
    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    counts: RunCounts
    notes: tuple[str, ...] = ()

    def predict(self, asked: Colocations) -> np.ndarray:
        return times(asked)


seen: list[Runs] = []
