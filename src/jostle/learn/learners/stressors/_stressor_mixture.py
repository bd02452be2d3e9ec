"""Each workload as a mixture of stressors, by what the stressors lose beside it.

    press[B, r]  log slowdown of stressor r beside B
    SS[r, k]     log slowdown of stressor r beside stressor k
    w[B] >= 0, sum w[B] <= 1, least |SS w - press[B]|    (what is left to 1 is idle)
    log slowdown of A beside B = sum_k w[B, k] * log slowdown of A beside stressor k

With one stressor that is A's slowdown beside it, times B's pressure over the stressor's own, which is the
idea of Mars et al., "Bubble-Up", MICRO 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from jostle.learn.learners.stressors._stressor_tables import ProbeTables

RIDGE = 1e-3  # of the mean square of SS: so that stressors that are alike share
COUPLING_RIDGE = 0.01  # of the mean square of a product
ROBUST_ROUNDS = 2  # of fits again, in which rows are weighed by the errors of the one before
MOST_SENSITIVE = 4.0  # times what is typical of a stressor, that is filled in at most


@dataclass(frozen=True)
class Mixtures:
    """sensitivity: (platforms, workloads, k) log slowdown beside each stressor, filled in where it was not
    measured. weights: (platforms, workloads, k) of the mixture that each presses like. pressure: (platforms,
    workloads, k) log slowdown of each stressor beside each, filled in alike. guessed: how many workloads on
    platforms ran beside no stressor."""

    sensitivity: np.ndarray
    weights: np.ndarray
    pressure: np.ndarray
    guessed: int


def mixture_weights(beside: np.ndarray, pressed: np.ndarray) -> np.ndarray:
    """Find (k,) weights, at least 0 and of sum 1 at most, of the stressors that press as a workload does.

    beside: (r, k) log slowdown of reporting stressor r beside stressor k. pressed: (r,) of them beside the
    workload; those with NaN are left out.
    """
    from scipy.optimize import nnls

    known = np.isfinite(pressed)
    k = beside.shape[1]
    if not known.any() or k == 0:
        return np.zeros(k)
    size = float(np.sqrt(np.mean(beside**2))) or 1.0
    # One more column is idle: it presses on nobody, and fills the sum to 1.
    rows = [np.column_stack([beside[known] / size, np.zeros(known.sum())])]
    rows.append(np.sqrt(RIDGE) * np.eye(k, k + 1))
    rows.append(1e3 * np.ones((1, k + 1)))
    wanted = np.concatenate([pressed[known] / size, np.zeros(k), [1e3]])
    weights = nnls(np.concatenate(rows), wanted)[0][:k]
    return weights / max(1.0, float(weights.sum()))


def mixtures_of(tables: ProbeTables) -> Mixtures:
    """Fit the mixtures of all workloads on all platforms."""
    sensitivity, weights = np.zeros_like(tables.suffered), np.zeros_like(tables.pressed)
    pressure = np.zeros_like(tables.pressed)
    guessed = 0
    for p, (suffered, pressed) in enumerate(zip(tables.suffered, tables.pressed, strict=True)):
        sensitivity[p], pressure[p] = _filled(suffered), _filled(pressed)
        # What no workload here ran beside is in no mixture.
        here = np.isfinite(suffered).any(axis=0)
        between = _between(sensitivity[p][tables.stressor], suffered[tables.stressor])[:, here]
        reported = np.isfinite(pressed).any(axis=1)
        for w in np.flatnonzero(reported).tolist():
            weights[p, w, here] = mixture_weights(between, pressed[w])
        programs = reported.copy()
        programs[tables.stressor] = False
        typical = weights[p, programs if programs.any() else reported]
        if len(typical):
            weights[p, ~reported] = typical.mean(axis=0)
        ran = np.isfinite(tables.log_solo[p])
        ran[tables.stressor] = False
        guessed += int((ran & ~reported & ~np.isfinite(suffered).any(axis=1)).sum())
    suffers = np.isfinite(tables.suffered)
    _from_elsewhere(sensitivity, np.asarray(suffers.any(axis=2)))
    measured = np.asarray(np.isfinite(tables.pressed).any(axis=2))
    measured[:, tables.stressor] = False
    _from_elsewhere(weights, measured)
    _from_elsewhere(pressure, measured)
    # A stressor presses like itself, wherever somebody ran beside it.
    weights[:, tables.stressor] = np.diag(np.asarray(suffers.any(axis=(0, 1)), np.float64))
    return Mixtures(sensitivity, weights, pressure, guessed)


def coupling_of(
    sensitivity: np.ndarray,
    pressure: np.ndarray,
    log_slowdown: np.ndarray,
    share: np.ndarray | None = None,
    errors_of: Callable[[np.ndarray], np.ndarray] | None = None,
    ridge: float = COUPLING_RIDGE,
) -> np.ndarray:
    """Learn (k, l) weights, none below 0, with which products of what one loses beside stressors (n, k) and
    what stressors lose beside the others (n, l) are nearest to log slowdowns (n,).

    share: (n,) what each row counts, by default all alike. errors_of: from (n,) answers to the (n,) errors by
    which rows are weighed again; by default the distance to the log slowdowns. ridge: of the mean square of a
    product.
    """
    from scipy.optimize import nnls

    if not sensitivity.shape[1]:
        return np.zeros((0, 0))
    x = (sensitivity[:, :, None] * pressure[:, None, :]).reshape(len(log_slowdown), -1)
    size = np.sqrt(np.mean(x**2, axis=0))
    size = np.where(size > 0, size, 1.0)
    share = np.ones(len(x)) if share is None else share
    x, weight = x / size, share
    weights = np.zeros(x.shape[1])
    for _ in range(1 + ROBUST_ROUNDS):
        root = np.sqrt(weight)[:, None]
        gram = (x * root).T @ (x * root) + ridge * len(x) * np.eye(x.shape[1])
        # The normal equations by their root: as many rows as there are weights.
        half = np.linalg.cholesky(gram).T
        weights = nnls(half, np.linalg.solve(half.T, x.T @ (weight * log_slowdown)))[0]
        found = x @ weights
        error = np.abs(found - log_slowdown) if errors_of is None else errors_of(found)
        weight = 1 / np.maximum(error, max(float(np.median(error)), 1e-3))
        weight /= weight.mean()
        weight = weight * share
    return (weights / size).reshape(sensitivity.shape[1], pressure.shape[1])


def _from_elsewhere(values: np.ndarray, measured: np.ndarray) -> None:
    """Fill (platforms, workloads, k) in place where (platforms, workloads) were not measured: with the mean
    over the platforms where the workload was, and on a platform where nobody was, with what is typical of
    the others."""
    count = measured.sum(axis=0)
    mean = np.where(measured[:, :, None], values, 0.0).sum(axis=0) / np.maximum(count, 1)[:, None]
    known = count > 0
    nobody = ~measured.any(axis=1)
    if known.any():
        values[nobody] = mean[known].mean(axis=0)
    values[:] = np.where((~measured & known)[:, :, None], mean, values)


def _filled(suffered: np.ndarray) -> np.ndarray:
    """Fill unmeasured cells (workloads, k) with what is typical of the stressor, scaled by how much the
    workload suffers beside the others."""
    known = np.isfinite(suffered)
    typical = np.array(
        [
            np.median(column[at]) if at.any() else 0.0
            for column, at in zip(suffered.T, known.T, strict=True)
        ]
    )
    mine = np.where(known, suffered, 0.0).sum(axis=1)
    usual = np.where(known, typical, 0.0).sum(axis=1)
    measure = np.where(usual > 1e-6, mine / np.where(usual > 1e-6, usual, 1.0), 1.0)
    measure = np.where(known.any(axis=1), np.clip(measure, 0.0, MOST_SENSITIVE), 1.0)
    return np.where(known, suffered, measure[:, None] * typical)


def _between(filled: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return log slowdowns (k, k) of stressors beside each other; unmeasured beside itself, a stressor loses
    what it loses most."""
    out = filled.copy()
    itself = np.isnan(np.diag(measured))
    rest = np.where(np.isfinite(measured), measured, -np.inf)
    largest = rest.max(axis=1, initial=-np.inf)
    largest = np.where(np.isfinite(largest), largest, filled.max(axis=1, initial=0.0))
    diagonal = np.where(itself, largest, np.diag(filled))
    np.fill_diagonal(out, diagonal)
    return out
