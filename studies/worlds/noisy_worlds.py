"""Ten made laws that differ in kind, with errors of five kinds, and a quick method that knows none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.data import Colocations, Runs, all_names
from jostle.learn import FoldFit, FromCounts, Prepared, RunCounts
from studies.one_model.campaigns import read_campaign
from studies.worlds import slowdown_laws as laws
from studies.worlds.slowdown_laws import TRAITS, MadeNames

WORKLOADS, PLATFORMS = 24, 8
FOLDS = 5
WIDTH = 0.05  # of errors, in log seconds
ERRORS = ("normal", "heavy", "one-sided", "of own widths", "far ones")
LAWS = (
    *("adding", "strongest", "product", "saturating", "once"),
    *("helping", "free_signs", "threshold", "fair_slices", "signs_of_platforms"),
)


class NoisyWorld:
    """One law of LAWS, drawn with a seed; its errors are of one of ERRORS, in turn."""

    most = 3  # workloads together

    def __init__(self, law: str, seed: int) -> None:
        self.random = r = np.random.default_rng([seed, LAWS.index(law)])
        traits, machines = r.normal(size=(WORKLOADS, TRAITS)), r.normal(size=PLATFORMS)
        self.slowdown = getattr(laws, law)(MadeNames(r, traits, machines))
        self.log_solo = r.normal(size=WORKLOADS) + 0.3 * r.normal(size=(PLATFORMS, WORKLOADS))
        self.kind = ERRORS[LAWS.index(law) % len(ERRORS)]
        self.width = np.full(WORKLOADS, WIDTH)
        if self.kind == "of own widths":
            self.width = r.choice([0.02, 0.05, 0.12], WORKLOADS)

    @property
    def workload_names(self) -> list[str]:
        return [f"w{i}" for i in range(WORKLOADS)]

    @property
    def platform_names(self) -> list[str]:
        return [f"made:d{k}" for k in range(PLATFORMS)]

    def took(self, platform: str, workload: str, others: Sequence[str]) -> float:
        """One run, measured."""
        codes = [int(name[1:]) for name in (workload, *others)]
        return self.seconds(int(platform.partition(":d")[2]), codes[0], codes[1:])

    def seconds(self, platform: int, workload: int, others: Sequence[int]) -> float:
        slow = self.slowdown(platform, workload, np.array(others, int)) if len(others) else 1.0
        error = self.width[workload] * self._error()
        return float(np.exp(self.log_solo[platform, workload] + np.log(slow) + error))

    def _error(self) -> float:
        r = self.random
        if self.kind == "heavy":
            return float(r.standard_t(4))
        if self.kind == "one-sided":
            return float(r.exponential())
        if self.kind == "far ones" and r.random() < 0.05:
            return float(r.normal(6, 2))
        return float(r.normal())

    def runs(self, n: int) -> Runs:
        """So many at random, beside none, one or two others."""
        r = self.random
        p, w = r.integers(0, PLATFORMS, n).tolist(), r.integers(0, WORKLOADS, n).tolist()
        beside = [r.integers(0, WORKLOADS, k).tolist() for k in r.integers(0, 3, n)]
        return Runs.from_columns(
            workload=[f"w{i}" for i in w],
            platform=[f"made:d{k}" for k in p],
            corunners=[[f"w{i}" for i in mine] for mine in beside],
            runtime_seconds=[self.seconds(*row) for row in zip(p, w, beside, strict=True)],
        )


class MeasuredWorld:
    """A public campaign of pairs, each measured once; its runs come in a random order."""

    most, kind = 2, "measured once"

    def __init__(self, name: str, seed: int) -> None:
        self.all = read_campaign(name, seed).runs
        self.workload_names = list(self.all.colocations.workload_names)
        self.platform_names = list(self.all.colocations.platform_names)
        self.left = np.random.default_rng(seed).permutation(len(self.all))
        self.to_come: dict[tuple[str, str, tuple[str, ...]], float] = {}

    def runs(self, n: int) -> Runs:
        """The next so many at most; known as measured later are those that come after them."""
        now, later = self.left[:n], self.all.take(self.left[n:])
        if len(later):
            columns = ("platform", "workload", "corunners", "runtime_seconds")
            rows = zip(*(later.table.column(name).to_pylist() for name in columns), strict=True)
            self.left, self.to_come = self.left[n:], {(p, w, tuple(b)): s for p, w, b, s in rows}
        return self.all.take(now)

    def took(self, platform: str, workload: str, others: Sequence[str]) -> float:
        """NaN of what was learned, or never measured."""
        return self.to_come.get((platform, workload, tuple(others)), np.nan)


@dataclass(frozen=True)
class Additive:
    """The log runtime as a sum of effects: workload on platform, number of co-runners, each co-runner."""

    ridge: float = 1.0

    name: ClassVar[str] = "additive_for_studies"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    fits_again: ClassVar[bool] = True

    def prepare(self, data: Any) -> Prepared:
        return Prepared.of(data)

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> FittedAdditive:
        runs = prepared.runs
        return self._fitted(runs, all_names(runs))

    def fit_left_out(
        self, prepared: Prepared, *, seed: int = 0, progress: Any = None
    ) -> tuple[FittedAdditive, list[FoldFit]]:
        """Sets in FOLDS parts, as the default leaves them out."""
        runs = prepared.runs
        names, unit = all_names(runs), runs.units("together")
        sets, code = np.unique(unit, return_inverse=True)
        fold = np.random.default_rng(seed).permutation(np.arange(len(sets)) % FOLDS)[code]
        parts = [
            FoldFit(
                self._fitted(runs.take(fold != k), names),
                np.flatnonzero(fold == k),
                unit[fold == k],
            )
            for k in range(FOLDS)
        ]
        return self._fitted(runs, names), parts

    def _fitted(self, runs: Runs, names: Any) -> FittedAdditive:
        fitted = FittedAdditive(names, np.zeros(0), RunCounts.of(runs))
        x = fitted.design(runs.colocations)
        penalty = np.full(x.shape[1], self.ridge)
        penalty[0] = 1e-9
        y = x.T @ np.log(runs.runtime_seconds)
        fitted.effects = np.linalg.solve(x.T @ x + np.diag(penalty), y)
        return fitted


class FittedAdditive(FromCounts):
    """effects: one, workloads, platforms, workloads on platforms, company of a workload, co-runners."""

    notes = ()

    def __init__(self, names: Any, effects: np.ndarray, counts: RunCounts) -> None:
        self.workload_names, self.platform_names = names
        self.effects, self.counts = effects, counts

    def design(self, asked: Colocations) -> np.ndarray:
        workload, platform, corunner = asked.codes_in(self.workload_names, self.platform_names)
        w, p, rows = len(self.workload_names), len(self.platform_names), np.arange(len(asked))
        x = np.zeros((len(asked), 1 + w + p + w * p + w + w))
        x[:, 0], x[rows, 1 + workload], x[rows, 1 + w + platform] = 1.0, 1.0, 1.0
        x[rows, 1 + w + p + platform * w + workload] = 1.0
        x[rows, 1 + w + p + w * p + workload] = asked.number_of_corunners
        row = np.repeat(rows, asked.number_of_corunners)
        np.add.at(x, (row, 1 + w + p + w * p + w + corunner), 1.0)
        return x

    def predict(self, asked: Colocations) -> np.ndarray:
        return np.exp(self.design(asked) @ self.effects)
