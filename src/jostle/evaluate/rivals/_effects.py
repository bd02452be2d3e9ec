"""Additive effects of target and co-runners on the log slowdown, and a low-rank rest on top.

The rest is a matrix of targets and co-runners on each platform, completed by alternating least squares, as
in Paragon (Delimitrou and Kozyrakis, ASPLOS 2013) and Quasar (ASPLOS 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from jostle.evaluate.rivals._beside import Beside, RuleAnswers
from jostle.evaluate.rivals._rival import Rival
from jostle.methods import Prepared
from jostle.progress import Progress
from jostle.rules import SlowdownRows

SHRINKAGE = 1.0  # runs that no effect weighs beside a name's own
SWEEPS = 40
PENALTIES = (0.1, 0.3, 1.0, 3.0)  # of the factors, over the residual's spread
FOLDS = 4


@dataclass(frozen=True)
class AdditiveEffects(Rival):
    """log slowdown = platform and degree + target + co-runner, the last two everywhere and on the platform;
    of several co-runners the mean. rank: of what is fitted to the rest, 0 for nothing."""

    rank: int = 0

    name: ClassVar[str] = "additive_effects"

    def fit(
        self, prepared: Prepared, *, seed: int = 0, progress: Progress | None = None
    ) -> RuleAnswers:
        """Raises NotEnoughRuns without runs alone."""
        data = Beside.of(prepared)
        effects = _Effects.of(data.rows, data.sizes)
        if not self.rank or not len(data.rows):
            return RuleAnswers(data.names, data.log_solo, effects.of_rows)
        rest = data.rows.log_slowdown - effects.of_rows(data.rows)
        fold = np.random.default_rng(seed).integers(0, FOLDS, len(rest))

        def error(penalty: float) -> float:
            out = np.zeros(len(rest))
            for part in range(FOLDS):
                train = fold != part
                rest_of = _Rest.of(
                    data.rows.take(train), rest[train], data.sizes, self.rank, penalty, seed
                )
                out[~train] = rest_of.of_rows(data.rows.take(~train))
            return float(np.abs(rest - out).mean())

        best = min(PENALTIES, key=error)
        low = _Rest.of(data.rows, rest, data.sizes, self.rank, best, seed)
        return RuleAnswers(
            data.names, data.log_solo, lambda rows: effects.of_rows(rows) + low.of_rows(rows)
        )


@dataclass(frozen=True)
class _Effects:
    """degree: (platforms, most + 1). target, corunner: (cells,), both parts summed."""

    degree: np.ndarray
    target: np.ndarray
    corunner: np.ndarray

    @classmethod
    def of(cls, rows: SlowdownRows, sizes: tuple[int, int]) -> _Effects:
        (p, w), y = sizes, rows.log_slowdown
        most = int(rows.degree.max(initial=1))
        level, overall = np.zeros((p, most + 1)), float(y.mean()) if len(y) else 0.0
        level += overall
        place = rows.target // w * (most + 1) + rows.degree
        share = 1 / rows.degree[rows.row]
        parts = [np.zeros(w), np.zeros(p * w), np.zeros(w), np.zeros(p * w)]
        codes = [rows.target % w, rows.target, rows.corunner % w, rows.corunner]
        for _ in range(SWEEPS):
            left = y - _summed(parts, codes, rows)
            count = np.bincount(place, minlength=level.size)
            total = np.bincount(place, left - overall, level.size)
            level = overall + (total / (count + SHRINKAGE)).reshape(level.shape)
            for number, code in enumerate(codes):
                left = y - level.ravel()[place] - _summed(parts, codes, rows)
                own = number < 2
                weight = np.ones(len(y)) if own else share
                residual = left if own else left[rows.row]
                size = len(parts[number])
                count = np.bincount(code, weight**2, size) + SHRINKAGE
                step = np.bincount(code, weight * residual, size) - SHRINKAGE * parts[number]
                parts[number] = parts[number] + step / count
        return cls(level, np.tile(parts[0], p) + parts[1], np.tile(parts[2], p) + parts[3])

    def of_rows(self, rows: SlowdownRows) -> np.ndarray:
        degree = np.minimum(rows.degree, self.degree.shape[1] - 1)
        place = rows.target * len(self.degree) // len(self.target)
        beside = rows.mean(self.corunner[rows.corunner])
        return self.degree[place, degree] + self.target[rows.target] + beside


def _summed(parts: list[np.ndarray], codes: list[np.ndarray], rows: SlowdownRows) -> np.ndarray:
    """(n,) targets' effects plus the mean of the co-runners'."""
    beside = rows.mean(parts[2][codes[2]] + parts[3][codes[3]])
    return parts[0][codes[0]] + parts[1][codes[1]] + beside


@dataclass(frozen=True)
class _Rest:
    """target, corunner: (cells, rank) factors."""

    target: np.ndarray
    corunner: np.ndarray

    @classmethod
    def of(
        cls,
        rows: SlowdownRows,
        y: np.ndarray,
        sizes: tuple[int, int],
        rank: int,
        penalty: float,
        seed: int,
    ) -> _Rest:
        cells = sizes[0] * sizes[1]
        random = np.random.default_rng([seed, rank])
        spread = np.sqrt(max(float(y.std()), 1e-9))
        target, corunner = spread * random.normal(size=(2, cells, rank))
        ridge = penalty * max(float(y.std()), 1e-9)
        for _ in range(SWEEPS // 2):
            target = _solved(rows.target, cls(target, corunner)._beside(rows), y, cells, ridge)
            one = cls(target, corunner)
            # A co-runner's part in a row of several is its share of the mean.
            hit = one._hit(rows)[rows.row] / rows.degree[rows.row][:, None]
            left = (y - (one._hit(rows) * one._beside(rows)).sum(1))[rows.row]
            left = left + (hit * corunner[rows.corunner]).sum(1)
            corunner = _solved(rows.corunner, hit, left, cells, ridge)
        return cls(target, corunner)

    def _hit(self, rows: SlowdownRows) -> np.ndarray:
        return self.target[rows.target]

    def _beside(self, rows: SlowdownRows) -> np.ndarray:
        return np.stack([rows.mean(column) for column in self.corunner[rows.corunner].T], 1)

    def of_rows(self, rows: SlowdownRows) -> np.ndarray:
        return (self._hit(rows) * self._beside(rows)).sum(1)


def _solved(code: np.ndarray, x: np.ndarray, y: np.ndarray, size: int, ridge: float) -> np.ndarray:
    """(size, rank) ridge regressions of y on x, one for each code."""
    rank = x.shape[1]
    gram = np.zeros((size, rank, rank)) + ridge * np.eye(rank)
    right = np.zeros((size, rank))
    np.add.at(gram, code, x[:, :, None] * x[:, None, :])
    np.add.at(right, code, x * y[:, None])
    return np.linalg.solve(gram, right[:, :, None])[:, :, 0]
