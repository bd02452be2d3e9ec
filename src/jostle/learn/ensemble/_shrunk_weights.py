"""Weights of what several answer, by how close their average comes to what was measured.

Greedy selection with replacement (Caruana et al., Ensemble Selection from Libraries of Models, ICML 2004),
averaged over bootstrap draws of what belongs together.
"""

from __future__ import annotations

import numpy as np

from jostle.learn.training._relative_error import relative_error, weights_by_error

PICKS, BOOTSTRAPS = 20, 20  # of the greedy selection
# Units left out, at which what they say decides half; else members count by their error:
# few units tell which member is far off, not how much of each is best.
HALF_TRUSTED = 24
FEWEST_TO_WEIGH = 2  # units
LEAST_WEIGHT = 0.02  # under which an answer is not asked for
# How far what other data say, such as profiles or runs beside stressors, is believed over answers from runs
# alone before any unit was left out: it was not learned from the few units that are known.
OF_OTHER_DATA = 5.0


def greedy_weights(
    answers: np.ndarray, log_slowdown: np.ndarray, sets: np.ndarray, seed: int
) -> np.ndarray:
    """Find (k,) weights of sum 1 for members' answers (k, n), by the mean relative error."""
    random = np.random.default_rng([seed, 3])
    _, sets = np.unique(sets, return_inverse=True)
    number = int(sets.max()) + 1
    away = answers - log_slowdown
    total = np.zeros(len(answers))
    for _ in range(BOOTSTRAPS):
        times = np.bincount(random.integers(0, number, number), minlength=number)[sets]
        if not times.any():
            times = np.ones(len(sets))
        rows = np.flatnonzero(times)
        mine, share = away[:, rows], times[rows] / times[rows].sum()
        running, counts = np.zeros(len(rows)), np.zeros(len(answers))
        best, best_error = counts, np.inf
        for pick in range(1, PICKS + 1):
            error = relative_error((running + mine) / pick) @ share
            chosen = int(np.argmin(error))
            running = running + mine[chosen]
            counts = counts.copy()
            counts[chosen] += 1
            if error[chosen] < best_error:
                best, best_error = counts / pick, float(error[chosen])
        total += best
    return total / BOOTSTRAPS


def shrinkage_weight(units: int) -> float:
    """Return the weight, from 0 to 1, of weights learned from so many units left out."""
    return units / (units + HALF_TRUSTED)


def stacking_weights(
    answers: np.ndarray,
    log_slowdown: np.ndarray,
    unit: np.ndarray,
    seed: int,
    prior: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Learn (k,) weights of answers (k, n) about rows left out. unit: (n,) codes, equal for rows left out
    together. prior: (k,) weight of each before any was."""
    greedy = greedy_weights(answers, log_slowdown, unit, seed)
    return shrunk_weights(greedy, answers, log_slowdown, len(np.unique(unit)), prior)


def prune_small_weights(weight: np.ndarray) -> np.ndarray:
    """Drop weights (..., k) under the least; the others sum to 1 again."""
    kept = np.where(weight < LEAST_WEIGHT, 0.0, weight)
    return kept / kept.sum(-1, keepdims=True)


def shrunk_weights(
    weight: np.ndarray,
    answers: np.ndarray,
    log_slowdown: np.ndarray,
    units: int,
    prior: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Shrink the (k,) weights that greedy_weights found for answers (k, n) towards those by members' own mean
    relative errors, the more the fewer units were left out."""
    error = np.maximum(relative_error(answers - log_slowdown).mean(1), 1e-9)
    trust = shrinkage_weight(units)
    weight = weight * prior ** (1 - trust)
    weight = weight / weight.sum()
    return trust * weight + (1 - trust) * weights_by_error(error, prior)
