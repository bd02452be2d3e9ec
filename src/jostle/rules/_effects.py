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

ROUNDS = 14
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
    """place: (platforms, degrees + 1); target, slope: (cells,); corunner: (cells,); power: ()."""

    place: np.ndarray
    target: np.ndarray
    slope: np.ndarray
    corunner: np.ndarray
    power: np.ndarray

    def value(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        degree = np.clip(rows.degree, 1, self.place.shape[1] - 1)
        beside = degree**self.power * rows.mean(self.corunner[rows.corunner])
        own = self.target[rows.target] + self.slope[rows.target] * np.log(degree)
        return self.place[rows.target // ground.workloads, degree] + own + beside


def fit_effects(rows: SlowdownRows, ground: Ground) -> tuple[RandomEffects, np.ndarray]:
    """(effects, (n,) Huber's weights of the rows)."""
    degree = rows.degree
    several = len(np.unique(degree)) > 1
    found = [_fit(rows, ground, degree, power) for power in (POWERS if several else (0.0,))]
    return min(found, key=lambda each: each[2])[:2]


def _fit(
    rows: SlowdownRows, ground: Ground, degree: np.ndarray, power: float
) -> tuple[RandomEffects, np.ndarray, float]:
    from scipy.sparse import csr_matrix, hstack

    n, w, p = len(rows), ground.workloads, ground.platforms
    most = int(degree.max(initial=1))
    place, workload = rows.target // w, rows.target % w
    own = np.arange(n)
    share = degree[rows.row] ** (power - 1.0)
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
        kept = np.unique(code)
        if size == most + 1 and len(kept) == 1:
            kept = kept[:0]
        inside = np.isin(code, kept) & (weight != 0)
        column = np.searchsorted(kept, code[inside])
        shape = (n, len(kept))
        blocks.append(csr_matrix((weight[inside], (at[inside], column)), shape=shape))
        codes.append((kept, size))
    every: Any = hstack(blocks, format="csr")
    effect, mean, robust, cost = _evidence(
        every, np.array([len(kept) for kept, _ in codes]), rows.value, rows.weight
    )
    parts = []
    for (kept, size), mine in zip(
        codes, np.split(effect, np.cumsum([len(kept) for kept, _ in codes])[:-1]), strict=True
    ):
        whole = np.zeros(size)
        whole[kept] = mine
        parts.append(whole)
    by_place = mean + parts[0][:, None] + parts[1].reshape(p, most + 1) + parts[2][None]
    target = np.tile(parts[3], p) + parts[4]
    corunner = np.tile(parts[6], p) + parts[7]
    found = RandomEffects(by_place, target, np.tile(parts[5], p), corunner, np.array(power))
    return found, robust, cost


def _evidence(
    z: Any, sizes: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray, float]:
    """(effects, mean, Huber's weights, log of the noise): z: (n, k) sparse, sizes: how many columns each
    kind has; y: (n,); weight: (n,) prior weights of the rows."""
    from scipy.sparse.linalg import cg

    n, k = z.shape
    kind = np.repeat(np.arange(len(sizes)), sizes)
    mean = float(np.average(y, weights=weight))
    variance = max(float(np.average((y - mean) ** 2, weights=weight)), 1e-12)
    noise = variance / 4
    prior = np.full(len(sizes), variance / len(sizes))
    effect, robust = np.zeros(k), np.ones(n)
    for _ in range(ROUNDS):
        total = weight * robust
        gram = (z.T @ z.multiply(total[:, None])).tocsc()
        ridge = np.clip(noise / np.maximum(prior, 1e-300), LOOSE, STIFF)[kind]
        right = z.T @ (total * (y - mean))
        if k <= MOST_EXACT:
            effect, spread = _posterior(gram.toarray(), ridge, right)
        else:
            gram.setdiag(gram.diagonal() + ridge)
            effect = cg(gram, right, x0=effect, rtol=1e-6, maxiter=200)[0]
            spread = 1 / gram.diagonal()
        used = np.bincount(kind, 1 - ridge * spread, len(sizes))
        used = np.clip(used, 1e-9, None)
        square = np.bincount(kind, effect**2, len(sizes))
        prior = np.maximum(square / used, 1e-300)
        left = y - mean - z @ effect
        free = max(n - used.sum() - 1, 0.1 * n)
        noise = max(float((total * left**2).sum() / free), 1e-6 * variance, 1e-16)
        mean += float(np.average(left, weights=total))
        edge = HUBER * np.sqrt(noise / np.maximum(weight, 1e-12))
        robust = np.minimum(1.0, edge / np.maximum(np.abs(left), 1e-300))
    return effect, mean, robust, float(np.log(noise))


def _posterior(
    gram: np.ndarray, ridge: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(mean, variances over the noise's) of the effects. gram: (k, k)."""
    from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

    lower, failed = dpotrf(gram + np.diag(ridge), lower=1)
    if failed:  # not positive definite, by rounding
        inverse = np.linalg.pinv(gram + np.diag(ridge), hermitian=True)
        return inverse @ right, np.diag(inverse)
    effect, _ = dpotrs(lower, right, lower=1)
    return effect, np.diag(dpotri(lower, lower=1)[0])
