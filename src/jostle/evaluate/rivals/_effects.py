"""Additive effects of target and co-runners on the log slowdown, and a low-rank rest on top.

The rest is a matrix of targets and co-runners on each platform, completed by alternating least squares, as
in Paragon (Delimitrou and Kozyrakis, ASPLOS 2013) and Quasar (ASPLOS 2014).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from jostle.evaluate.rivals._beside import Beside, CorunRows, RuleAnswers
from jostle.evaluate.rivals._rival import Rival

if TYPE_CHECKING:
    from jostle.methods import Prepared
    from jostle.progress import Progress

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
        sizes = (len(data.names[1]), len(data.names[0]))
        effects = _Effects.of(data.rows, data.log_slowdown, sizes)
        if not self.rank or not len(data.rows):
            return RuleAnswers(data.names, data.log_solo, effects.of_rows)
        rest = data.log_slowdown - effects.of_rows(data.rows)
        fold = np.random.default_rng(seed).integers(0, FOLDS, len(rest))

        def error(penalty: float) -> float:
            out = np.zeros(len(rest))
            for part in range(FOLDS):
                kept = fold != part
                found = _Rest.of(data.rows.take(kept), rest[kept], sizes, self.rank, penalty, seed)
                out[~kept] = found.of_rows(data.rows.take(~kept))
            return float(np.abs(rest - out).mean())

        best = min(PENALTIES, key=error)
        low = _Rest.of(data.rows, rest, sizes, self.rank, best, seed)
        return RuleAnswers(
            data.names, data.log_solo, lambda rows: effects.of_rows(rows) + low.of_rows(rows)
        )


@dataclass(frozen=True)
class _Effects:
    """degree: (platforms, most + 1). target, corunner: (platforms, workloads), both parts summed."""

    degree: np.ndarray
    target: np.ndarray
    corunner: np.ndarray

    @classmethod
    def of(cls, rows: CorunRows, y: np.ndarray, sizes: tuple[int, int]) -> _Effects:
        p, w = sizes
        most = int(rows.degree.max(initial=1))
        level, overall = np.zeros((p, most + 1)), float(y.mean()) if len(y) else 0.0
        level += overall
        at, other = rows.platform * w + rows.target, rows.platform[rows.row] * w + rows.corunner
        place = rows.platform * (most + 1) + rows.degree
        share = 1 / rows.degree[rows.row]
        parts = [np.zeros(w), np.zeros(p * w), np.zeros(w), np.zeros(p * w)]
        codes = [rows.target, at, rows.corunner, other]
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
        target = np.tile(parts[0], (p, 1)) + parts[1].reshape(p, w)
        return cls(level, target, np.tile(parts[2], (p, 1)) + parts[3].reshape(p, w))

    def of_rows(self, rows: CorunRows) -> np.ndarray:
        degree = np.minimum(rows.degree, self.degree.shape[1] - 1)
        beside = rows.mean(self.corunner[rows.platform[rows.row], rows.corunner])
        return self.degree[rows.platform, degree] + self.target[rows.platform, rows.target] + beside


def _summed(parts: list[np.ndarray], codes: list[np.ndarray], rows: CorunRows) -> np.ndarray:
    """(n,) targets' effects plus the mean of the co-runners'."""
    beside = rows.mean(parts[2][codes[2]] + parts[3][codes[3]])
    return parts[0][codes[0]] + parts[1][codes[1]] + beside


@dataclass(frozen=True)
class _Rest:
    """target, corunner: (platforms * workloads, rank) factors."""

    target: np.ndarray
    corunner: np.ndarray
    workloads: int

    @classmethod
    def of(
        cls,
        rows: CorunRows,
        y: np.ndarray,
        sizes: tuple[int, int],
        rank: int,
        penalty: float,
        seed: int,
    ) -> _Rest:
        p, w = sizes
        random = np.random.default_rng([seed, rank])
        spread = np.sqrt(max(float(y.std()), 1e-9))
        target, corunner = spread * random.normal(size=(2, p * w, rank))
        ridge = penalty * max(float(y.std()), 1e-9)
        for _ in range(SWEEPS // 2):
            one = cls(target, corunner, w)
            beside = one._beside(rows)
            target = _solved(rows.platform * w + rows.target, beside, y, p * w, ridge)
            one = cls(target, corunner, w)
            # A co-runner's part in a row of several is its share of the mean.
            at = rows.platform[rows.row] * w + rows.corunner
            hit = one._hit(rows)[rows.row] / rows.degree[rows.row][:, None]
            left = (y - (one._hit(rows) * one._beside(rows)).sum(1))[rows.row]
            left = left + (hit * corunner[at]).sum(1)
            corunner = _solved(at, hit, left, p * w, ridge)
        return cls(target, corunner, w)

    def _hit(self, rows: CorunRows) -> np.ndarray:
        return self.target[rows.platform * self.workloads + rows.target]

    def _beside(self, rows: CorunRows) -> np.ndarray:
        each = self.corunner[rows.platform[rows.row] * self.workloads + rows.corunner]
        return np.stack([rows.mean(column) for column in each.T], 1)

    def of_rows(self, rows: CorunRows) -> np.ndarray:
        return (self._hit(rows) * self._beside(rows)).sum(1)


def _solved(code: np.ndarray, x: np.ndarray, y: np.ndarray, size: int, ridge: float) -> np.ndarray:
    """(size, rank) ridge regressions of y on x, one for each code."""
    rank = x.shape[1]
    gram = np.zeros((size, rank, rank)) + ridge * np.eye(rank)
    right = np.zeros((size, rank))
    np.add.at(gram, code, x[:, :, None] * x[:, None, :])
    np.add.at(right, code, x * y[:, None])
    return np.linalg.solve(gram, right[:, :, None])[:, :, 0]
