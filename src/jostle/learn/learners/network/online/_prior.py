"""What is expected of a name before it has run: kernel ridge regression from its features.

Source of the closed-form leave-one-out residuals: Rasmussen and Williams, Gaussian Processes for Machine
Learning (2006), Eq. 5.12.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from jostle.learn.training._encoded_features import Features

DIRECTIONS = 40  # in which names differ, at most
WIDTHS = (0.5, 1.0, 2.0, 4.0)  # of the kernel, in median distances
STRENGTHS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # of its ridge, tried
MOST_KNOWN = 1_500  # names that a prior rests on; drawn at random of more


@dataclass(frozen=True)
class Prior:
    """Of all names of a kind. mean: (names, d) rows of embeddings, each without what the name has shown.
    basis: (q, d) directions in which names differ from that, each as long as they usually do."""

    mean: np.ndarray
    basis: np.ndarray


@dataclass(frozen=True)
class Side:
    """Workloads or platforms. prior: see Prior. runs: (names,) runs that tell of each. information: (q, q) of
    one of them, in the mean. told: (names,) whether it has features. usual: (names,) errors of runs of each
    in log seconds; of a name without a run `unknown`: how far names are from what their features say."""

    prior: Prior
    runs: np.ndarray
    information: np.ndarray
    told: np.ndarray
    usual: np.ndarray
    unknown: float


@dataclass(frozen=True)
class Groundwork:
    """sides: of both kinds."""

    sides: dict[str, Side]


def prior_of(
    rows: np.ndarray, features: Features, known: np.ndarray, metric: np.ndarray, seed: int
) -> Prior:
    """rows: (names, d) of embeddings, read where known, a mask (names,). features: of all names. metric:
    (d, d) what differences between rows are worth (mean outer product of slopes)."""
    at = np.flatnonzero(known)
    if len(at) > MOST_KNOWN:
        at = np.sort(np.random.default_rng([seed, 23]).choice(at, MOST_KNOWN, replace=False))
    centre = rows[at].mean(0) if len(at) else np.zeros(rows.shape[1])
    y = rows[at] - centre
    values, vectors = np.linalg.eigh(metric)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    projected = y @ root
    gain, own = _kernel_ridge(features, at, projected)
    mean = centre + gain @ y
    rest = y - own @ y if len(at) > 1 else y
    mean[at] = centre + own @ y if len(at) > 1 else centre
    # Directions by what they change, mapped back by the names themselves: no inverse is taken.
    left, size, _ = np.linalg.svd(rest @ root, full_matrices=False)
    directions = min(DIRECTIONS, int((size > 1e-9 * max(size.max(initial=0.0), 1e-300)).sum()))
    basis = left[:, :directions].T @ rest / np.sqrt(max(len(at), 1))
    return Prior(mean, basis)


def _kernel_ridge(
    features: Features, at: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Fit kernel ridge regression of embeddings on features. Returns (gain (names, known), own (known,
    known)): these times the rows of the known names are the answers at all names and, each without itself, at
    the known ones."""
    n = len(at)
    best: tuple[float, np.ndarray, np.ndarray] = (
        float((_without_self(np.zeros((n, n))) @ seen - seen).__pow__(2).sum()) if n > 1 else 0.0,
        np.zeros((len(features.numeric), n)),
        _without_self(np.zeros((n, n))),
    )
    if n < 4 or not (features.numeric.shape[1] or features.category.shape[1]):
        return best[1], best[2]
    for kernel in _kernels(features, at):
        values, vectors = np.linalg.eigh(kernel[at])
        turned = vectors.T @ seen
        for strength in STRENGTHS:
            inverse = 1.0 / (np.maximum(values, 0.0) + strength)
            diagonal = (vectors**2 @ inverse)[:, None]
            left_out = (vectors @ (inverse[:, None] * turned)) / diagonal
            cost = float((left_out**2).sum())
            if cost < best[0]:
                whole = (vectors * inverse) @ vectors.T
                best = (cost, kernel @ whole, np.eye(n) - whole / diagonal)
    return best[1], best[2]


def _without_self(weights: np.ndarray) -> np.ndarray:
    """Turn leave-one-out weights of centred rows into weights of rows: each answer gets the mean of the
    others. Returns (n, n)."""
    n = len(weights)
    return weights - (np.eye(n) / max(n - 1, 1))


def _kernels(features: Features, at: np.ndarray) -> list[np.ndarray]:
    """Build the kernels to try, (names, known) each: by numbers, by categories, and by both together."""
    x = features.numeric.astype(np.float64)
    kernels = []
    same = [
        (column[:, None] == column[at]) & (column[at] > 0)
        for column in features.category.T.astype(np.int64)
    ]
    alike = np.mean(same, axis=0) if same else None
    gap = (x**2).sum(1)[:, None] + (x[at] ** 2).sum(1) - 2 * x @ x[at].T
    gap = np.maximum(gap, 0.0)
    usual = float(np.median(gap[at])) if len(at) else 1.0
    if usual > 0:
        for width, with_alike in product(WIDTHS, (False, True)):
            kernel = np.exp(-gap / (2 * width**2 * usual))
            if with_alike and alike is None:
                continue
            kernels.append(kernel + alike if with_alike else kernel)
    if alike is not None:
        kernels.append(alike)
    return kernels
