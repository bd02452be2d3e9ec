"""Random effects whose variances are found by the evidence, robust against single rows.

Every effect is normal around 0 with a variance of its own kind, found by MacKay's fixed point (Bayesian
Interpolation, Neural Computation 4, 1992, Eq. 4.9 and 4.10) in turn with Huber's weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

STILL = 0.01  # standard deviations of the noise by which nothing moves any more
HUBER = 1.5  # standard deviations past which a residual counts linearly
MOST_EXACT = 1_200  # effects up to which the posterior's variances are exact
STIFF, LOOSE = 1e8, 1e-8  # most and least that an effect's precision is of the noise's

# Of each kind of effect: (row (m,), code (m,), how much of the effect (m,), number of codes).
Side = tuple[np.ndarray, np.ndarray, np.ndarray, int]


class EffectsByKind:
    """What is being learned: value (n,) = mean + effects. effect: (k,), of the codes that some row has;
    prior: (kinds,) variances; noise: a variance; robust: (n,) Huber's weights."""

    def __init__(self, value: np.ndarray, weight: np.ndarray, sides: Sequence[Side]) -> None:
        self.y, self.weight = value, weight
        self.columns, self.codes = _columns(len(value), sides)
        self.sizes = np.array([len(codes) for codes, _ in self.codes])
        self.mean = float(np.average(self.y, weights=self.weight))
        around = np.average((self.y - self.mean) ** 2, weights=self.weight)
        self.variance = max(float(around), 1e-12)
        self.noise = self.variance / 4
        self.prior = np.full(len(self.sizes), self.variance / len(self.sizes))
        self.effect, self.robust = np.zeros(self.columns.shape[1]), np.ones(len(value))
        self.rounds, self.answered = 0, np.zeros(len(value))

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

    def parts(self) -> list[np.ndarray]:
        """Of each kind the effect of every code, 0 for those that no row has."""
        parts, start = [], 0
        for codes, size in self.codes:
            whole = np.zeros(size)
            whole[codes] = self.effect[start : start + len(codes)]
            parts.append(whole)
            start += len(codes)
        return parts


def _columns(n: int, sides: Sequence[Side]) -> tuple[Any, list[tuple[np.ndarray, int]]]:
    """((n, k) sparse, for each kind of effect which of its codes have a column and how many it has)."""
    from scipy.sparse import csr_matrix, hstack

    blocks, codes = [], []
    for at, code, weight, size in sides:
        distinct, inside = np.unique(code), weight != 0
        column = np.searchsorted(distinct, code[inside])
        shape = (n, len(distinct))
        blocks.append(csr_matrix((weight[inside], (at[inside], column)), shape=shape))
        codes.append((distinct, size))
    return hstack(blocks, format="csr"), codes


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
