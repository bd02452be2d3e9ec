"""What a simulator of pairs leaves unexplained, as a Gaussian process over (target, partner).

The covariance of two measured targets is a sum of parts: that they are the same target, that they have the
same partner, that target or partner are alike by their features, and products of these, which are
interactions. How much each part, each feature and the noise counts is a maximum of the posterior
(Rasmussen and Williams, Gaussian Processes for Machine Learning, Sec. 5.4), found on the training pairs
alone. For an application never seen, the parts by name vanish and those by features remain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_PARTS, _FIXED, _NOISES = 9, 4, 2
_STRONG = _PARTS + _NOISES  # parameters that are strengths; the others are lengths
_STRENGTH, _NOISE = np.log(0.2), np.log(0.05)  # expected before anything is seen, in `unit` squared
_SPREADS = 2.0, 1.0  # standard deviations of the logs: of strengths, of lengths
_BOUNDS, _LENGTH_BOUNDS = (-12.0, 6.0), (-2.0, 5.0)
_STEPS = 40


@dataclass(frozen=True, eq=False)
class PairProcess:
    """target, other: (m,) of the training rows. weights: (m,) such that covariance @ weights is the mean.
    strengths: (9,). features: (n, f) in lengths. unit: s. missed: (m,) s that each training row is missed by
    when it and those of `together` with it are left out."""

    target: np.ndarray
    other: np.ndarray
    weights: np.ndarray
    strengths: np.ndarray
    features: np.ndarray
    unit: float
    missed: np.ndarray

    def predict(self, target: np.ndarray, other: np.ndarray) -> np.ndarray:
        """(k,) s."""
        parts = _parts(self.features, target, other, self.target, self.other)
        return self.unit * (np.tensordot(self.strengths, parts, 1) @ self.weights)


def _parts(
    z: np.ndarray, t: np.ndarray, o: np.ndarray, t2: np.ndarray, o2: np.ndarray
) -> np.ndarray:
    """(9, k, m) covariances of unit strength; the first _FIXED do not ask for features."""
    like_t, like_o = (
        np.exp(-0.5 * ((z[a][:, None] - z[b][None]) ** 2).sum(axis=2))
        for a, b in ((t, t2), (o, o2))
    )
    same_t, same_o = (a[:, None] == b[None] for a, b in ((t, t2), (o, o2)))
    mirrored = (t[:, None] == o2[None]) & (o[:, None] == t2[None])
    of_one_pair = (same_t & same_o) | mirrored
    parts = [
        *(np.ones(same_t.shape), same_t, same_o, of_one_pair),
        *(like_t, like_t * same_o),
        *(like_o, same_t * like_o),
        like_t * like_o,
    ]
    return np.stack(parts).astype(np.float64)


def fit_pair_process(
    target: np.ndarray,
    other: np.ndarray,
    left: np.ndarray,
    seconds: np.ndarray,
    features: np.ndarray,
    together: np.ndarray,
) -> PairProcess:
    """left: (m,) s that the simulator misses by. seconds: (m,) measured, to which a part of the noise is
    proportional. features: (n, f) of all applications. together: (m,) codes of rows that are left out as
    one. The same input gives the same process. Raises MissingExtra without SciPy."""
    from jostle.errors import MissingExtra

    try:
        from scipy.optimize import minimize
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "fit") from None
    spread = features.std(axis=0)
    z = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    unit = max(float(np.sqrt(np.mean(left**2))), 1e-9)
    y = left / unit
    noises = np.stack([np.ones(len(y)), (seconds / seconds.mean()) ** 2])
    posterior = _Posterior(target, other, y, noises, z)
    logs = minimize(
        *(posterior.cost, posterior.middle),
        jac=True,
        method="L-BFGS-B",
        bounds=[_BOUNDS] * _STRONG + [_LENGTH_BOUNDS] * z.shape[1],
        options={"maxiter": _STEPS},
    ).x
    strengths, noise = np.exp(logs[:_PARTS]), np.exp(logs[_PARTS:_STRONG])
    scaled = z * np.exp(-logs[_STRONG:])
    parts = _parts(scaled, target, other, target, other)
    inverse = np.linalg.inv(np.tensordot(strengths, parts, 1) + np.diag(noise @ noises + 1e-8))
    weights = inverse @ y
    missed = np.empty(len(y))
    # Leaving out in closed form (Rasmussen and Williams, Eq. 5.12).
    for code in np.unique(together):
        rows = np.flatnonzero(together == code)
        missed[rows] = unit * np.linalg.solve(inverse[np.ix_(rows, rows)], weights[rows])
    return PairProcess(target, other, weights, strengths, scaled, unit, missed)


class _Posterior:
    """Minus the log of the posterior of the logs of strengths, noises and lengths. y: (m,) in units of
    itself. noises: (2, m) variances of unit strength. z: (n, f) features, each of unit spread."""

    def __init__(
        self,
        target: np.ndarray,
        other: np.ndarray,
        y: np.ndarray,
        noises: np.ndarray,
        z: np.ndarray,
    ) -> None:
        self.y, self.noises = y, noises
        length = 0.5 + 0.5 * np.log(z.shape[1])
        self.middle = np.concatenate(
            [np.full(_PARTS, _STRENGTH), np.full(_NOISES, _NOISE), np.full(z.shape[1], length)]
        )
        self.spreads = np.where(np.arange(len(self.middle)) < _STRONG, *_SPREADS)
        self.same_t, self.same_o = (a[:, None] == a[None] for a in (target, other))
        self.apart_t, self.apart_o = (
            ((z[a][:, None] - z[a][None]) ** 2).reshape(len(y) ** 2, -1) for a in (target, other)
        )
        self.fixed = _parts(z, target, other, target, other)[:_FIXED].reshape(_FIXED, -1)

    def cost(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """(value, slope). As _parts says, with no more arrays of that size than there must be."""
        from scipy.linalg import cho_factor, cho_solve

        y = self.y
        diagonal = np.diag_indices(len(y))
        s, noise, lengths = np.split(np.exp(logs), (_PARTS, _STRONG))
        by_length = lengths**-2
        like_t, like_o = (
            np.exp(-0.5 * (apart @ by_length)).reshape(len(y), len(y))
            for apart in (self.apart_t, self.apart_o)
        )
        from_t, from_o = like_t * (s[4] + s[5] * self.same_o), like_o * (s[6] + s[7] * self.same_t)
        both = s[8] * like_t * like_o
        covariance = (s[:_FIXED] @ self.fixed).reshape(both.shape) + from_t + from_o + both
        covariance[diagonal] += noise @ self.noises + 1e-8
        factor = cho_factor(covariance, lower=True)
        weights = cho_solve(factor, y)
        inner = np.outer(weights, weights) - cho_solve(factor, np.eye(len(y)))
        told_t, told_o = inner * like_t, inner * like_o
        slope = np.concatenate(
            [
                s[:_FIXED] * (self.fixed @ inner.reshape(-1)),
                s[4:6] * [told_t.sum(), told_t[self.same_o].sum()],
                s[6:8] * [told_o.sum(), told_o[self.same_t].sum()],
                [np.vdot(inner, both)],
                noise * (self.noises @ inner[diagonal]),
                (inner * (from_t + both)).reshape(-1) @ self.apart_t * by_length
                + (inner * (from_o + both)).reshape(-1) @ self.apart_o * by_length,
            ]
        )
        away = (logs - self.middle) / self.spreads
        value = 0.5 * (y @ weights + away @ away) + np.log(factor[0][diagonal]).sum()
        return float(value), away / self.spreads - 0.5 * slope
