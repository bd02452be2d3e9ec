"""What a model of pairs leaves unexplained, as a Gaussian process over (target, partner).

The covariance of two measured targets is a sum of parts: that they are the same target, that they have the
same partner, that target or partner are alike by their features, and products of these, which are
interactions. The strength of each part and of the noise is a maximum of the posterior (Rasmussen and
Williams, Gaussian Processes for Machine Learning, Sec. 5.4), found on the training pairs alone. For an
application never seen, the parts by name vanish and those by features remain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SCALES = (0.5, 1.0, 2.0)  # of the distance between features, in its median
_SPREAD = 2.0  # standard deviation of the logs of the strengths before anything is seen
_STEPS = 60


@dataclass(frozen=True, eq=False)
class PairProcess:
    """target, other: (m,) of the training rows. weights: (m,) such that covariance @ weights is the mean.
    strengths: (parts,). alike: (n, n) likeness of processes by features. unit: s, of what is explained."""

    target: np.ndarray
    other: np.ndarray
    weights: np.ndarray
    strengths: np.ndarray
    alike: np.ndarray
    unit: float

    def predict(self, target: np.ndarray, other: np.ndarray) -> np.ndarray:
        """(k,) s."""
        parts = _parts(target, other, self.target, self.other, self.alike)
        covariance = np.tensordot(self.strengths, parts, 1)
        return self.unit * (covariance @ self.weights)


def _parts(
    t: np.ndarray, o: np.ndarray, t2: np.ndarray, o2: np.ndarray, alike: np.ndarray
) -> np.ndarray:
    """(parts, k, m) covariances of unit strength."""
    same_t, same_o = (a[:, None] == b[None] for a, b in ((t, t2), (o, o2)))
    like_t, like_o = alike[np.ix_(t, t2)], alike[np.ix_(o, o2)]
    crossed = alike[np.ix_(t, o2)] * alike[np.ix_(o, t2)]
    mirrored = (t[:, None] == o2[None]) & (o[:, None] == t2[None])
    both = (same_t & same_o) | mirrored  # of one pair, whichever is the target
    return np.stack(
        [
            np.ones(same_t.shape),
            same_t.astype(float),
            same_o.astype(float),
            like_t,
            like_o,
            like_t * like_o,
            like_t * like_o + crossed,
            same_t * like_o,
            like_t * same_o,
            both.astype(float),
        ]
    )


def likeness(features: np.ndarray, scale: float) -> np.ndarray:
    """(n, n) exp(-d^2 / 2 scale^2), d in medians of the distance between two. features: (n, f)."""
    spread = features.std(axis=0)
    z = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    distance = np.sqrt(((z[:, None] - z[None]) ** 2).sum(axis=2))
    middle = np.median(distance[~np.eye(len(z), dtype=bool)]) if len(z) > 1 else 1.0
    return np.exp(-0.5 * (distance / (scale * max(float(middle), 1e-12))) ** 2)


def fit_pair_process(
    target: np.ndarray,
    other: np.ndarray,
    left: np.ndarray,
    seconds: np.ndarray,
    features: np.ndarray,
) -> PairProcess:
    """left: (m,) s that the model misses by. seconds: (m,) measured, to which part of the noise is
    proportional. features: (n, f) of the processes. The same input gives the same process."""
    unit = max(float(np.sqrt(np.mean(left**2))), 1e-9)
    y = left / unit
    noises = np.stack([np.ones(len(y)), (seconds / seconds.mean()) ** 2])
    best: tuple[float, PairProcess] | None = None
    for scale in SCALES:
        alike = likeness(features, scale)
        parts = _parts(target, other, target, other, alike)
        logs, value = _strongest(parts, noises, y)
        strengths = np.exp(logs)
        covariance = np.tensordot(strengths[: len(parts)], parts, 1)
        covariance[np.diag_indices(len(y))] += strengths[len(parts) :] @ noises
        weights = np.linalg.solve(covariance, y)
        if best is None or value < best[0]:
            found = PairProcess(target, other, weights, strengths[: len(parts)], alike, unit)
            best = value, found
    assert best is not None
    return best[1]


def _strongest(parts: np.ndarray, noises: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """(logs of the strengths of parts and noises, what they cost)."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.optimize import minimize

    p = len(parts)
    middle = np.concatenate([np.full(p, np.log(0.2)), np.full(len(noises), np.log(0.05))])
    flat = parts.reshape(p, -1)

    def cost(logs: np.ndarray) -> tuple[float, np.ndarray]:
        strengths = np.exp(logs)
        covariance = (strengths[:p] @ flat).reshape(len(y), len(y))
        covariance[np.diag_indices(len(y))] += strengths[p:] @ noises + 1e-8
        factor = cho_factor(covariance, lower=True)
        weights = cho_solve(factor, y)
        inverse = cho_solve(factor, np.eye(len(y)))
        inner = np.outer(weights, weights) - inverse
        slope = np.concatenate([flat @ inner.reshape(-1), noises @ np.diag(inner)]) * strengths
        log_determinant = 2 * np.log(np.diag(factor[0])).sum()
        away = (logs - middle) / _SPREAD
        value = 0.5 * (y @ weights + log_determinant) + 0.5 * away @ away
        return float(value), -0.5 * slope + away / _SPREAD

    found = minimize(cost, middle, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return found.x, float(found.fun)
