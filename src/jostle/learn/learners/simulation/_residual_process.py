"""What is left of co-runs when something is taken away from them, as a Gaussian process.

How much each part of the covariance, each feature of the traces and the noise counts is a maximum of the
posterior (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, Sec. 5.4), found on the
co-runs learned from. Rows far off what the others say of them count less. Leaving out is in closed form
(the same, Sec. 5.4.2), for any rows that belong together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from jostle._base.tensors import UNSAVED
from jostle.learn.learners.simulation._covariance import (
    LIKE,
    CoRunPlaces,
    covariance_of,
    named_part,
    parts_in,
)
from jostle.learn.learners.simulation._gaussian_process import greatest_posterior, likelihood

_STRENGTH, _NOISE = np.log(0.2), np.log(0.05)  # expected before anything is seen, in `unit` squared
# Standard deviations of the logs of strengths and of lengths, expected before anything is seen: as a rule,
# and where some parts may count for nearly nothing.
SPREADS, WIDE_SPREADS = (2.0, 1.0), (3.0, 2.0)
_BOUNDS, _LENGTH_BOUNDS = (-12.0, 6.0), (-2.0, 5.0)  # of logs of strengths, and of lengths
_STEPS = 40  # of the search, at most
_FAR = 2.5  # standard deviations of what is left out past which a row's noise is raised
NOISES = 2  # see noises_of
MOST_TUNED = 160  # rows that strengths are found on
ADDITIVE = ("constant", "platform", "degree", "target", "co-runners")
SIMPLE = ("constant", "platform", "degree")


@dataclass(frozen=True, eq=False)
class CoRunProcess:
    """places: of the n rows learned from. weights: (n,) such that covariance @ weights is the mean. names,
    strengths: of the parts, those by traces last where features is not None: (w, f) over their lengths.
    unit: of what is learned. evidence: log density of what was learned from, with its strengths. inverse:
    (n, n) of the covariance, None where it was read from disk."""

    places: CoRunPlaces
    weights: np.ndarray
    names: tuple[str, ...]
    strengths: np.ndarray
    features: np.ndarray | None
    unit: float
    evidence: float = field(default=float("nan"), metadata=UNSAVED)
    inverse: np.ndarray | None = field(default=None, metadata=UNSAVED)

    def predict(self, asked: CoRunPlaces) -> np.ndarray:
        """Predict (k,) values in the unit of what was learned."""
        every = self.names, self.strengths, self.features
        return self.unit * (covariance_of(asked, self.places, *every) @ self.weights)

    def without(self, rows: np.ndarray) -> CoRunProcess:
        """Refit without these rows, at the same strengths; they stay, of no weight."""
        assert self.inverse is not None
        weights = self.weights - self.inverse[:, rows] @ (self.missed_without(rows) / self.unit)
        weights[rows] = 0.0
        return replace(self, weights=weights)

    def missed_without(self, rows: np.ndarray) -> np.ndarray:
        """Compute the errors (k,) on these rows when they are left out."""
        assert self.inverse is not None
        return self.unit * np.linalg.solve(self.inverse[np.ix_(rows, rows)], self.weights[rows])


def fit_corun_process(
    places: CoRunPlaces,
    left: np.ndarray,
    noises: np.ndarray,
    features: np.ndarray | None,
    names: tuple[str, ...] | None = None,
    seed: int = 0,
    spreads: tuple[float, float] = SPREADS,
) -> CoRunProcess:
    """left: (n,) what is to be learned. noises: (2, n) variances of unit strength. features: (w, f) of all
    workloads, None for names alone. names: of the parts, those that can tell by default. seed: of the sets
    that strengths are found on, where there are more than MOST_TUNED rows. spreads: of their logs. The same
    input gives the same process."""
    possible = parts_in(places)
    names = possible if names is None else tuple(name for name in names if name in possible)
    z = None
    if features is not None:
        spread = features.std(axis=0)
        z = ((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0))[:, spread > 0]
        z = z if z.shape[1] else None
    unit = max(float(np.sqrt(np.mean(left**2))), 1e-9)
    drawn = drawn_sets(places.together, MOST_TUNED, seed)
    sample = left[drawn] / unit, noises[:, drawn]
    posterior = _CoRunPosterior(places.take(drawn), *sample, z, names, spreads)
    prior = posterior.middle, posterior.spreads, posterior.bounds
    logs, cost = greatest_posterior(posterior.cost, *prior, _STEPS)
    strengths, noise, lengths = posterior.split(logs)
    evidence = -cost - len(drawn) * (np.log(unit) + 0.5 * np.log(2 * np.pi))
    scaled = None if z is None else np.ascontiguousarray(z / lengths)
    covariance = covariance_of(places, places, names, strengths, scaled)
    diagonal = noise @ noises + 1e-8

    def solved(diagonal: np.ndarray) -> CoRunProcess:
        inverse = np.linalg.inv(covariance + np.diag(diagonal))
        weights = inverse @ (left / unit)
        return CoRunProcess(places, weights, names, strengths, scaled, unit, evidence, inverse)

    process = solved(diagonal)
    assert process.inverse is not None
    apart = np.abs(process.weights) / np.sqrt(np.diag(process.inverse))
    return solved(diagonal * np.maximum(1.0, apart / _FAR) ** 2)


def drawn_sets(together: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Draw (k,) rows of whole sets, about so many."""
    if len(together) <= most:
        return np.arange(len(together))
    codes, place = np.unique(together, return_inverse=True)
    turn = np.random.default_rng([seed, 11]).permutation(len(codes))[place.reshape(-1)]
    order = np.argsort(turn, kind="stable")
    return np.sort(order[:most])


class _CoRunPosterior:
    """The likelihood and prior of the logs of strengths, noises and lengths. y: (n,), standardised. z: (w, f)
    features, each of unit spread, or None."""

    def __init__(
        self,
        places: CoRunPlaces,
        y: np.ndarray,
        noises: np.ndarray,
        z: np.ndarray | None,
        names: tuple[str, ...],
        spreads: tuple[float, float],
    ) -> None:
        self.y, self.noises, self.z = y, noises, z
        self.flat = np.stack([named_part(name, places, places).reshape(-1) for name in names])
        self.fixed = len(names)
        self.parts = self.fixed + (0 if z is None else LIKE)
        f = 0 if z is None else z.shape[1]
        length = 0.5 + 0.5 * np.log(max(f, 1))
        self.middle = np.concatenate(
            [np.full(self.parts, _STRENGTH), np.full(NOISES, _NOISE), np.full(f, length)]
        )
        strong = np.arange(len(self.middle)) < self.parts + NOISES
        self.spreads = np.where(strong, *spreads)
        self.bounds = [_BOUNDS] * (self.parts + NOISES) + [_LENGTH_BOUNDS] * f
        if z is None:
            return
        self.apart = (z[:, None] - z[None]) ** 2
        self.one_hot = np.zeros((len(y), len(z)))
        self.one_hot[np.arange(len(y)), places.target] = 1
        self.share = places.share
        self.same_t, self.same_o = self.one_hot @ self.one_hot.T, self.share @ self.share.T

    def split(self, logs: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Split the parameters into (strengths, noises, lengths)."""
        strengths, noise, lengths = np.split(np.exp(logs), (self.parts, self.parts + NOISES))
        return strengths, noise, lengths

    def cost(self, logs: np.ndarray) -> tuple[float, np.ndarray] | None:
        """Compute (minus the log likelihood, its slope); None if there is none."""
        s, noise, lengths = self.split(logs)
        covariance = (s[: self.fixed] @ self.flat).reshape(len(self.y), len(self.y))
        by_traces = None if self.z is None else _Likeness(self, s[-LIKE:], lengths)
        if by_traces is not None:
            covariance = covariance + by_traces.covariance
        covariance[np.diag_indices_from(covariance)] += noise @ self.noises + 1e-8
        if (fits := likelihood(covariance, self.y)) is None:
            return None
        of_noise = noise * (self.noises @ np.diag(fits.inner))
        slopes = [s[: self.fixed] * (self.flat @ fits.inner.reshape(-1)), of_noise]
        if by_traces is not None:
            strengths, of_lengths = by_traces.slopes(fits.inner)
            slopes = [slopes[0], strengths, of_noise, of_lengths]
        return fits.value, -0.5 * np.concatenate(slopes)


class _Likeness:
    """The parts by traces at some strengths (LIKE,) and lengths (f,), as covariance_of has them."""

    def __init__(self, of: _CoRunPosterior, s: np.ndarray, lengths: np.ndarray) -> None:
        self.of, self.s, self.by_length = of, s, lengths**-2
        self.like = np.exp(-0.5 * (of.apart @ self.by_length))
        self.like_t = of.one_hot @ self.like @ of.one_hot.T
        self.like_o = of.share @ self.like @ of.share.T
        self.by_t, self.by_o = s[0] + s[1] * of.same_o, s[2] + s[3] * of.same_t
        self.covariance = self.like_t * self.by_t + self.like_o * self.by_o
        self.covariance += s[4] * self.like_t * self.like_o

    def slopes(self, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Compute slopes by logs of (the strengths (LIKE,), the lengths (f,)), times minus 2."""
        of, s = self.of, self.s
        told_t, told_o = inner * self.like_t, inner * self.like_o
        by_part = [
            told_t.sum(),
            np.vdot(told_t, of.same_o),
            told_o.sum(),
            np.vdot(told_o, of.same_t),
            np.vdot(told_t, self.like_o),
        ]
        to_t = inner * (self.by_t + s[4] * self.like_o)
        to_o = inner * (self.by_o + s[4] * self.like_t)
        of_like = of.one_hot.T @ to_t @ of.one_hot + of.share.T @ to_o @ of.share
        return s * by_part, np.tensordot(of_like * self.like, of.apart, 2) * self.by_length
