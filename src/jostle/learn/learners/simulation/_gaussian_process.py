"""The likelihood of a Gaussian process by its settings, its slope, and its greatest posterior.

Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, Sec. 5.4.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

_IMPOSSIBLE = 1e10  # the cost of settings whose covariance is not positive definite


@dataclass(frozen=True, eq=False)
class Likelihood:
    """Value and derivatives of the likelihood of a Gaussian process. value: minus the log of the density,
    without n / 2 log(2 pi). inner: (n, n), such that the slope of the value by a setting is minus half the
    sum of inner times the covariance's slope by it."""

    value: float
    inner: np.ndarray


def likelihood(covariance: np.ndarray, y: np.ndarray) -> Likelihood | None:
    """Compute the likelihood of y under a Gaussian process, with what its gradient needs.

    covariance: (n, n) with the noise. y: (n,) of mean 0. None where it is not positive definite.
    """
    from scipy.linalg import get_lapack_funcs

    # LAPACK itself: checks of what was just made, and a solve for every column, would take half the time.
    dpotrf, dpotri, dpotrs = get_lapack_funcs(("potrf", "potri", "potrs"), dtype=np.float64)
    factor, failed = dpotrf(covariance, lower=1, clean=1)
    if failed:
        return None
    lower = np.tril(dpotri(factor, lower=1)[0])
    weights = dpotrs(factor, y, lower=1)[0]
    inner = np.outer(weights, weights) - (lower + np.tril(lower, -1).T)
    return Likelihood(float(0.5 * (y @ weights) + np.log(np.diag(factor)).sum()), inner)


def greatest_posterior(
    cost: Callable[[np.ndarray], tuple[float, np.ndarray] | None],
    middle: np.ndarray,
    spread: np.ndarray | float,
    bounds: list[tuple[float, float]],
    steps: int,
) -> tuple[np.ndarray, float]:
    """Return (settings (k,), minus the log of their posterior without its constants).

    cost: minus the log likelihood at settings and its slope (k,), None where there is none. middle, spread:
    (k,) of the normal prior; the search begins at its middle.
    """
    from scipy.optimize import minimize

    def whole(x: np.ndarray) -> tuple[float, np.ndarray]:
        if (of_data := cost(x)) is None:
            return _IMPOSSIBLE, np.zeros_like(x)
        away = (x - middle) / spread
        return of_data[0] + 0.5 * float(away @ away), of_data[1] + away / spread

    options = {"maxiter": steps}
    best = minimize(whole, middle, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.asarray(best.x), float(best.fun)
