"""Where training starts: what a ridge regression in closed form says of the runs alone.

The kernel of two runs is the product of one over their workloads and one over their platforms (a Gaussian
of the encoded features, and what is a name's own), so that a product with the kernel matrix is two small
matrix products over the grid of names (Stock et al. 2018, A comparative study of pairwise learning methods
based on kernel ridge regression); conjugate gradients solve it within a fraction of a second. The best
approximation of low rank gives every name the first numbers of its embedding. How strong the penalty is,
and how far the answer is believed, is told by cells held out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.learners.network.training._training_rows import Rows, arrays_of
from jostle.learn.training._encoded_features import Features

PENALTIES = (0.003, 0.03, 0.3)  # of the ridge, tried
# Variance of what is a name's own, and of what all names share, over the features'.
OWN, COMMON = 0.5, 0.1
RANK = 32  # numbers of an embedding that start so, at most
ITERATIONS, TRIAL_ITERATIONS = 60, 30  # of conjugate gradients, for the start and for a trial
HELD_OUT = 8  # one cell in so many
WORTH = 0.9  # of the squared error of no start, which held-out cells must be below
FEWEST_CELLS = 500  # measured alone, under which embeddings start at random
MOST_WORK = 1e9  # multiplications for one product with the kernel matrix, some 30 ms
MOST_ROWS = 1_000_000  # that it is found from


@dataclass(frozen=True)
class Start:
    """workload: (workloads, k), platform: (platforms, k): their products are the log runtime alone minus
    the baseline."""

    workload: np.ndarray
    platform: np.ndarray


def start_of(
    solo: Rows, workload: Features, platform: Features, rank: int, seed: int
) -> Start | None:
    """Start from rows without co-runners, at most MOST_ROWS; None if they are too few, the names too many, or
    held-out cells better off without."""
    shape = (len(workload.numeric), len(platform.numeric))
    if len(solo) < FEWEST_CELLS or shape[0] * shape[1] * sum(shape) > MOST_WORK:
        return None
    random = np.random.default_rng([seed, 4])
    if len(solo) > MOST_ROWS:
        solo = solo.take(np.sort(random.choice(len(solo), MOST_ROWS, replace=False)))
    w, p, _, target = arrays_of(solo, pad=False)
    count, total = np.zeros(shape), np.zeros(shape)
    np.add.at(count, (w, p), 1.0)
    np.add.at(total, (w, p), target)
    cells = np.argwhere(count > 0)
    if len(cells) < FEWEST_CELLS:
        return None
    mean = total / np.maximum(count, 1.0)
    kernels = _kernel(workload), _kernel(platform)
    held = tuple(cells[random.permutation(len(cells))[: len(cells) // HELD_OUT]].T)
    fewer = count.copy()
    fewer[held] = 0.0
    best, penalty, believed = WORTH * float(np.square(mean[held]).mean()), None, 0.0
    for tried in PENALTIES:
        answer = _ridge(kernels, fewer, mean, tried, TRIAL_ITERATIONS)[held]
        slope = float(np.clip(answer @ mean[held] / max(answer @ answer, 1e-12), 0.0, 1.0))
        error = float(np.square(mean[held] - slope * answer).mean())
        if error < best:
            best, penalty, believed = error, tried, slope
    if penalty is None:
        return None
    start = believed * _ridge(kernels, count, mean, penalty, ITERATIONS)
    left, strength, right = np.linalg.svd(start, full_matrices=False)
    k = min(rank, RANK, len(strength))
    root = np.sqrt(strength[:k])
    return Start((left[:, :k] * root).astype(np.float32), (right[:k].T * root).astype(np.float32))


def _kernel(features: Features) -> np.ndarray:
    """Compute the kernel (names, names)."""
    codes = [
        np.eye(size)[features.category[:, column]]
        for column, size in enumerate(features.category_sizes)
    ]
    x = np.concatenate([features.numeric.astype(np.float64), *codes], axis=1)
    square = np.square(x).sum(1)
    apart = np.maximum(square[:, None] + square - 2 * x @ x.T, 0.0)
    usual = np.median(apart[apart > 1e-9]) if (apart > 1e-9).any() else 1.0
    return np.exp(-apart / usual) + OWN * np.eye(len(x)) + COMMON


def _ridge(
    kernels: tuple[np.ndarray, np.ndarray],
    count: np.ndarray,
    mean: np.ndarray,
    penalty: float,
    iterations: int,
) -> np.ndarray:
    """Complete the table of means by kernel ridge regression, solved by conjugate gradients that stop early.

    count: (workloads, platforms) how many runs each cell has, 0 for none. mean: the mean of each cell.
    Returns (workloads, platforms), with an answer in every cell.
    """
    there = count > 0
    noise = penalty / np.maximum(count, 1.0)
    weight = np.zeros_like(mean)
    rest = mean * there
    ahead, size = rest.copy(), float(np.square(rest).sum())
    least = 1e-10 * size
    for _ in range(iterations):
        if size <= least:
            break
        moved = (kernels[0] @ ahead @ kernels[1] + noise * ahead) * there
        step = size / float((ahead * moved).sum())
        weight += step * ahead
        rest -= step * moved
        before, size = size, float(np.square(rest).sum())
        ahead = rest + size / before * ahead
    return np.asarray(kernels[0] @ weight @ kernels[1])
