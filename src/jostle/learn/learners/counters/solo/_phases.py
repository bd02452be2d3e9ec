"""Where a program's phases begin: change points of what it counts alone.

Binary segmentation (Scott and Knott, Biometrics 30, 1974): a stretch is cut where the means of the logarithms
of all rates on both sides differ most, as long as they differ by more than noise does. What noise is, is read
from the differences of neighbouring samples, most of which are in one phase.
"""

from __future__ import annotations

import numpy as np

LEAST_STEP = 0.03  # of a logarithm: what is less is no other phase
LEAST_RATE = 1e-3  # of a counter's largest: what is less is as good as none
FEWEST_SAMPLES = 2  # of a phase
LEAST_NOISE = 5e-3  # of a logarithm: neighbours that differ by less are alike
LARGEST_STEP = 12.0  # variances that one counter counts at most


def change_points(rates: np.ndarray, fewest: int = FEWEST_SAMPLES) -> np.ndarray:
    """Find the samples at which phases begin. Returns (k + 1,), 0 first and n last.

    rates: (n, d) per second. fewest: samples that a phase has at least.
    """
    n = len(rates)
    largest = np.abs(rates).max(axis=0, initial=0.0)
    scaled = rates[:, largest > 0] / largest[largest > 0]
    if n < 2 * fewest or not scaled.shape[1]:
        return np.array([0, n])
    logs = np.log(np.maximum(scaled, LEAST_RATE))
    steps = np.abs(np.diff(logs, axis=0))
    noise = np.maximum(np.median(steps, axis=0) / 0.954, LEAST_STEP)
    logs = logs / noise
    d, much = logs.shape[1], 2 * np.log(n)
    threshold = d + 2 * np.sqrt(d * much) + 2 * much  # a chi-squared so large is no chance, nowhere
    total = np.concatenate([np.zeros((1, d)), np.cumsum(logs, axis=0)])
    edges, left = [0, n], [(0, n)]
    while left:
        begin, end = left.pop()
        if end - begin < 2 * fewest:
            continue
        at = np.arange(begin + fewest, end - fewest + 1)
        size, before = end - begin, at - begin
        mean = (total[end] - total[begin]) / size
        away = total[at] - total[begin] - before[:, None] * mean
        gain = (away**2).sum(axis=1) * size / (before * (size - before))
        best = int(np.argmax(gain))
        if gain[best] > threshold:
            cut = int(at[best])
            edges.append(cut)
            left += [(begin, cut), (cut, end)]
    return np.array(sorted(edges))


def same_phase(rates: np.ndarray) -> np.ndarray:
    """Tell whether neighbouring samples differ by no more than noise, (n - 1,), so that no phase begins
    between them. rates: (n, d) per second. If nearly all neighbours differ there are no phases, and all are
    alike."""
    largest = np.abs(rates).max(axis=0, initial=0.0)
    scaled = rates[:, largest > 0] / largest[largest > 0]
    if len(rates) < 2 or not scaled.shape[1]:
        return np.ones(max(len(rates) - 1, 0), bool)
    steps = np.abs(np.diff(np.log(np.maximum(scaled, LEAST_RATE)), axis=0))
    noise = np.maximum(np.median(steps, axis=0) / 0.954, LEAST_NOISE)
    # One counter alone that jumps (a page fault) is no phase.
    size = np.minimum((steps / noise) ** 2 / 2, LARGEST_STEP).mean(axis=1)
    return size <= 1 + 3 * np.sqrt(2 / scaled.shape[1])
