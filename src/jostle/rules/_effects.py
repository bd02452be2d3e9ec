"""Additive random effects of target and co-runners, robust, their variances by the evidence.

    value = m + platform + platform and degree + target + target on the platform
            + d^power mean_j (co-runner + co-runner on the platform) + target * log d

Every effect is normal around 0 with a variance of its own kind, found by MacKay's fixed point (Bayesian
Interpolation, Neural Computation 4, 1992, Eq. 4.9 and 4.10) in turn with Huber's weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.rules._rows import Ground, SlowdownRows

ROUNDS, ROUNDS_TO_CHOOSE = 14, 4  # at most; with each power, of which the best goes on
STILL = 0.01  # standard deviations of the noise by which nothing moves any more
HUBER = 1.5  # standard deviations past which a residual counts linearly
MOST_EXACT = 1_200  # effects up to which the posterior's variances are exact
POWERS = (
    0.0,
    0.5,
    1.0,
)  # how co-runners' effects grow with their number, tried where several are seen
STIFF, LOOSE = 1e8, 1e-8  # most and least that an effect's precision is of the noise's


@dataclass(frozen=True)
class RandomEffects:
    """place: (platforms, degrees + 1); growth: (platforms,) of it past the most co-runners known, over
    d^power (over log d for power 0); target, slope: (cells,); corunner: (cells,); power: ()."""

    place: np.ndarray
    growth: np.ndarray
    target: np.ndarray
    slope: np.ndarray
    corunner: np.ndarray
    power: np.ndarray

    def value(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        place, most = rows.target // ground.workloads, self.place.shape[1] - 1
        degree = np.maximum(rows.degree, 1)
        beside = degree**self.power * rows.mean(self.corunner[rows.corunner])
        own = self.target[rows.target] + self.slope[rows.target] * np.log(degree)
        past = grown(np.maximum(degree, most), self.power) - grown(np.array(most), self.power)
        level = self.place[place, np.minimum(degree, most)] + self.growth[place] * past
        return level + own + beside


def grown(degree: np.ndarray, power: np.ndarray | float) -> np.ndarray:
    """What grows with the number of co-runners."""
    return degree**power if power > 0 else np.log(degree)


def no_effects(platforms: int, cells: int) -> RandomEffects:
    """Nothing, whoever runs beside whom."""
    nothing = np.zeros(cells)
    level = np.zeros((platforms, 2)), np.zeros(platforms)
    return RandomEffects(*level, nothing, nothing, nothing, np.array(0.0))


def fit_effects(rows: SlowdownRows, ground: Ground) -> tuple[RandomEffects, np.ndarray]:
    """(effects, (n,) Huber's weights of the rows)."""
    degree = rows.degree
    # Where one number of co-runners is known, times are taken to add up, factors are not.
    powers = POWERS if len(np.unique(degree)) > 1 else POWERS[-1:] if rows.timed else POWERS[:1]
    fits = [_RandomEffects(rows, ground, degree, power) for power in powers]
    if len(fits) > 1:
        for each in fits:
            each.learn(ROUNDS_TO_CHOOSE)
    best = min(fits, key=lambda each: each.noise)
    best.learn(ROUNDS)
    return best.effects(), best.robust


class _RandomEffects:
    """What is being learned. effect: (k,); prior: (kinds,) variances; noise: a variance; robust: (n,)."""

    def __init__(
        self, rows: SlowdownRows, ground: Ground, degree: np.ndarray, power: float
    ) -> None:
        self.rows, self.power, self.most = rows, power, int(degree.max(initial=1))
        self.size = (ground.platforms, ground.workloads)
        self.y, self.weight = rows.value, rows.weight
        self.columns, self.codes = self._columns(degree)
        self.sizes = np.array([len(codes) for codes, _ in self.codes])
        self.mean = float(np.average(self.y, weights=self.weight))
        around = np.average((self.y - self.mean) ** 2, weights=self.weight)
        self.variance = max(float(around), 1e-12)
        self.noise = self.variance / 4
        self.prior = np.full(len(self.sizes), self.variance / len(self.sizes))
        self.effect, self.robust = np.zeros(self.columns.shape[1]), np.ones(len(rows))
        self.rounds, self.answered = 0, np.zeros(len(rows))

    def _columns(self, degree: np.ndarray) -> tuple[Any, list[tuple[np.ndarray, int]]]:
        """((n, k) sparse, for each kind of effect which of its numbers have a column and how many it has)."""
        from scipy.sparse import csr_matrix, hstack

        rows, n, (p, w), most = self.rows, len(self.rows), self.size, self.most
        place, workload = rows.target // w, rows.target % w
        own = np.arange(n)
        share = degree[rows.row] ** (self.power - 1.0)
        sides: list[tuple[np.ndarray, np.ndarray, np.ndarray, int]] = [
            (own, place, np.ones(n), p),
            (own, place * (most + 1) + degree, np.ones(n), p * (most + 1)),
            (own, degree, np.ones(n), most + 1),
            (own, workload, np.ones(n), w),
            (own, rows.target, np.ones(n), p * w),
            (own, workload, np.log(degree), w),
            (rows.row, rows.corunner % w, share, w),
            (rows.row, rows.corunner, share, p * w),
        ]
        blocks, codes = [], []
        for at, code, weight, size in sides:
            distinct = np.unique(code)
            if size == most + 1 and len(distinct) == 1:
                distinct = distinct[:0]
            inside = np.isin(code, distinct) & (weight != 0)
            column = np.searchsorted(distinct, code[inside])
            shape = (n, len(distinct))
            blocks.append(csr_matrix((weight[inside], (at[inside], column)), shape=shape))
            codes.append((distinct, size))
        return hstack(blocks, format="csr"), codes

    def learn(self, rounds: int) -> None:
        """Up to so many rounds in all, or until nothing moves."""
        while self.rounds < rounds:
            before = self.answered
            self._round()
            moved = float(((self.answered - before) ** 2).mean())
            if moved < STILL**2 * self.noise:
                return

    def _round(self) -> None:
        """One turn of the effects, their variances, the noise and Huber's weights."""
        from scipy.sparse.linalg import cg

        z, kind = self.columns, np.repeat(np.arange(len(self.sizes)), self.sizes)
        total = self.weight * self.robust
        gram = (z.T @ z.multiply(total[:, None])).tocsc()
        ridge = np.clip(self.noise / np.maximum(self.prior, 1e-300), LOOSE, STIFF)[kind]
        right = z.T @ (total * (self.y - self.mean))
        if z.shape[1] <= MOST_EXACT:
            self.effect, spread = _posterior(gram.toarray(), ridge, right)
        else:
            gram.setdiag(gram.diagonal() + ridge)
            self.effect = cg(gram, right, x0=self.effect, rtol=1e-6, maxiter=200)[0]
            spread = 1 / gram.diagonal()
        used = np.bincount(kind, 1 - ridge * spread, len(self.sizes))
        used = np.clip(used, 1e-9, None)
        square = np.bincount(kind, self.effect**2, len(self.sizes))
        self.prior = np.maximum(square / used, 1e-300)
        answered = z @ self.effect
        left = self.y - self.mean - answered
        free = max(len(left) - used.sum() - 1, 0.1 * len(left))
        noise = float((total * left**2).sum() / free)
        self.noise = max(noise, 1e-6 * self.variance, 1e-16)
        more = float(np.average(left, weights=total))
        self.mean += more
        left -= more
        edge = HUBER * np.sqrt(self.noise / np.maximum(self.weight, 1e-12))
        self.robust = np.minimum(1.0, edge / np.maximum(np.abs(left), 1e-300))
        self.answered, self.rounds = answered + self.mean, self.rounds + 1

    def effects(self) -> RandomEffects:
        """With zeros where there is no column."""
        p = self.size[0]
        parts, start = [], 0
        for codes, size in self.codes:
            whole = np.zeros(size)
            whole[codes] = self.effect[start : start + len(codes)]
            parts.append(whole)
            start += len(codes)
        by_place = self.mean + parts[0][:, None] + parts[1].reshape(p, -1) + parts[2][None]
        target = np.tile(parts[3], p) + parts[4]
        corunner = np.tile(parts[6], p) + parts[7]
        slope = np.tile(parts[5], p)
        growth = self._growth(by_place)
        return RandomEffects(by_place, growth, target, slope, corunner, np.array(self.power))

    def _growth(self, by_place: np.ndarray) -> np.ndarray:
        """(platforms,) by least squares over the numbers of co-runners known; where that is one, in
        proportion or not at all."""
        count = np.bincount(self.rows.degree, self.weight)
        known = np.flatnonzero(count)
        if len(known) < 2:
            return self.power * by_place[:, -1] / self.most
        x = grown(np.maximum(known, 1), self.power)
        x = x - np.average(x, weights=count[known])
        return by_place[:, known] @ (count[known] * x) / (count[known] * x**2).sum()


def _posterior(
    gram: np.ndarray, ridge: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(mean, variances over the noise's) of the effects. gram: (k, k)."""
    from scipy.linalg import get_lapack_funcs

    dpotrf, dpotrs, dpotri = get_lapack_funcs(("potrf", "potrs", "potri"), (gram,))
    lower, failed = dpotrf(gram + np.diag(ridge), lower=1)
    if failed:  # not positive definite, by rounding
        inverse = np.linalg.pinv(gram + np.diag(ridge), hermitian=True)
        return inverse @ right, np.diag(inverse)
    effect, _ = dpotrs(lower, right, lower=1)
    return effect, np.diag(dpotri(lower, lower=1)[0])
