"""A Gaussian process on the log slowdown, averaged with the slowdown form where it was seen to help.

    log slowdown ~ m_d + GP(0, a k(i, i') + b k(K, K') + c k(i, i') k(K, K')) + noise

k is squared exponential in what the form's S and G are linear in (`design_of`): two workloads are near when
their features, solo runtimes and platforms are. Of several co-runners k(K, K') is the mean over all pairs;
m_d is the mean for d co-runners. Rasmussen and Williams, Gaussian Processes for Machine Learning, Ch. 2 and
5. The process knows no monotony and nothing of numbers of co-runners never seen: there the form answers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.slowdown._equation import SlowdownRows

MOST_ROWS = 3_000  # a fit takes the cube of the rows in time
MOST_TO_TUNE = 400  # rows by whose likelihood the widths and weights are found
STEPS = 25
SPREAD = 3.0  # of the prior on the logarithms of widths and weights
SHARES = np.linspace(0.0, 1.0, 11)
CHUNK = 2_000_000  # numbers of a kernel made at a time


@dataclass(frozen=True)
class Process:
    """design: (cells, d) over the median distance. settings: (6,) logs of a, b, c, the two widths, the noise.
    target: (n,) cells and corunner (m,), row (m,) of the rows learned from; weight: (n,). mean: (degrees +
    1,) by number of co-runners, NaN where none was seen. share: () of the process in the average."""

    design: np.ndarray
    settings: np.ndarray
    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    share: np.ndarray

    def predict(self, target: np.ndarray, corunner: np.ndarray, row: np.ndarray) -> np.ndarray:
        """(n,) log slowdown; NaN for a number of co-runners never seen."""
        n = len(target)
        degree = np.bincount(row, minlength=n)
        mean = np.full(n, np.nan)
        inside = degree < len(self.mean)
        mean[inside] = self.mean[degree[inside]]
        learned = _Sets(self.target, self.corunner, self.row)
        out = np.empty(n)
        step = max(1, CHUNK // max(1, len(self.corunner) + len(self.target)))
        order = np.argsort(row, kind="stable")
        corunner, row = corunner[order], row[order]
        for start in range(0, n, step):
            stop = min(start + step, n)
            own = slice(*np.searchsorted(row, [start, stop]))
            asked = _Sets(target[start:stop], corunner[own], row[own] - start)
            out[start:stop] = _kernel(self.design, self.settings, asked, learned) @ self.weight
        return mean + out

    def averaged(
        self, form: np.ndarray, target: np.ndarray, corunner: np.ndarray, row: np.ndarray
    ) -> np.ndarray:
        """(n,) the average with the form's answers; those where the process has none."""
        own = self.predict(target, corunner, row)
        return np.where(np.isnan(own), form, (1 - self.share) * form + self.share * own)


@dataclass(frozen=True)
class _Sets:
    """Targets (n,) and their co-runners (m,) as cells, row: (m,) whose they are."""

    target: np.ndarray
    corunner: np.ndarray
    row: np.ndarray


def _kernel(design: np.ndarray, settings: np.ndarray, one: _Sets, other: _Sets) -> np.ndarray:
    """(n, n') without the noise."""
    own, beside, both, width, width_beside = np.exp(settings[:5])
    by_target = _near(design[one.target], design[other.target], width)
    by_corunner = _near(design[one.corunner], design[other.corunner], width_beside)
    pooled = _pooled(by_corunner, one.row, len(one.target))
    pooled = _pooled(pooled.T, other.row, len(other.target)).T
    return own * by_target + beside * pooled + both * by_target * pooled


def _near(x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    squared = (x**2).sum(1)[:, None] + (y**2).sum(1)[None] - 2 * x @ y.T
    return np.exp(-np.maximum(squared, 0.0) / (2 * width**2))


def _pooled(values: np.ndarray, row: np.ndarray, rows: int) -> np.ndarray:
    """(rows, k) means over the entries of each row."""
    if len(row) == rows and (row == np.arange(rows)).all():
        return values
    total = np.zeros((rows, values.shape[1]))
    np.add.at(total, row, values)
    return total / np.maximum(np.bincount(row, minlength=rows), 1)[:, None]


def fit_process(
    rows: SlowdownRows, design: np.ndarray, fold: np.ndarray, form: np.ndarray, seed: int
) -> Process | None:
    """fold: (n,) parts of the rows; form: (n,) what the form says of each part, learned from the others. The
    share in the average is what makes the mean relative error of such answers least; None where that is
    nothing, or where there are too many rows."""
    if len(rows) > MOST_ROWS:
        return None
    squared = (design**2).sum(1)
    apart = squared[:, None] + squared[None] - 2 * design @ design.T
    apart = apart[apart > 1e-12]
    design = design / np.sqrt(np.median(apart)) if len(apart) else design
    settings = _tuned(design, rows, seed)
    left_out = np.empty(len(rows))
    for part in np.unique(fold):
        process = _learned(design, settings, rows.take(fold != part))
        held = rows.take(fold == part)
        left_out[fold == part] = process.averaged(
            form[fold == part], held.target, held.corunner, held.row
        )
    mixed = form + SHARES[:, None] * (left_out - form)
    error = np.abs(np.expm1(mixed - rows.log_slowdown)).mean(1)
    share = float(SHARES[int(np.argmin(error))])
    return replace(_learned(design, settings, rows), share=np.array(share)) if share > 0 else None


def _tuned(design: np.ndarray, rows: SlowdownRows, seed: int) -> np.ndarray:
    """(6,) settings of the greatest likelihood of some rows, under a wide prior."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve
    from scipy.optimize import minimize

    n = len(rows)
    keep = np.zeros(n, bool)
    keep[np.random.default_rng(seed).permutation(n)[:MOST_TO_TUNE]] = True
    some = rows.take(keep)
    y = some.log_slowdown - _means(some)[_degree(some)]
    sets = _Sets(some.target, some.corunner, some.row)
    spread = max(float(y.var()), 1e-8)
    start = np.log([spread / 2, spread / 2, spread / 2, 1.0, 1.0, spread / 50])

    def cost(settings: np.ndarray) -> float:
        whole = _noisy(_kernel(design, settings, sets, sets), settings)
        try:
            factor = cho_factor(whole, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return 1e10
        fit = 0.5 * y @ cho_solve(factor, y, check_finite=False)
        prior = 0.5 * (((settings - start) / SPREAD) ** 2).sum()
        return float(fit + np.log(np.diag(factor[0])).sum() + prior)

    options: dict[str, Any] = {"maxiter": STEPS}
    bounds = [(value - 8, value + 8) for value in start]
    return np.asarray(minimize(cost, start, method="L-BFGS-B", bounds=bounds, options=options).x)


def _learned(design: np.ndarray, settings: np.ndarray, rows: SlowdownRows) -> Process:
    from scipy.linalg import cho_factor, cho_solve

    sets = _Sets(rows.target, rows.corunner, rows.row)
    mean = _means(rows)
    whole = _noisy(_kernel(design, settings, sets, sets), settings)
    weight = cho_solve(cho_factor(whole, lower=True), rows.log_slowdown - mean[_degree(rows)])
    return Process(
        design, settings, rows.target, rows.corunner, rows.row, weight, mean, np.array(1.0)
    )


def _noisy(whole: np.ndarray, settings: np.ndarray) -> np.ndarray:
    """With the noise on the diagonal, and as much as rounding needs for the matrix to stay definite."""
    at = np.diag_indices_from(whole)
    whole[at] += np.exp(settings[5]) + 1e-8 * whole[at].mean()
    return whole


def _degree(rows: SlowdownRows) -> np.ndarray:
    return np.bincount(rows.row, minlength=len(rows))


def _means(rows: SlowdownRows) -> np.ndarray:
    """(most co-runners + 1,) mean log slowdown, NaN where no row has so many."""
    degree = _degree(rows)
    with np.errstate(invalid="ignore"):
        return np.bincount(degree, rows.log_slowdown) / np.bincount(degree)
