"""The likelihood of a Gaussian process against SciPy's normal law, its slope against differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from jostle.learn import greatest_posterior, likelihood


def covariance(log_width: float, x: np.ndarray) -> np.ndarray:
    apart = (x[:, None] - x[None]) ** 2
    return np.exp(-0.5 * apart * np.exp(-2 * log_width)) + 0.1 * np.eye(len(x))


def test_the_likelihood_is_that_of_a_normal_law() -> None:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(2, 12))
    fits = likelihood(covariance(0.3, x), y)
    assert fits is not None
    law = multivariate_normal(np.zeros(12), covariance(0.3, x))  # type: ignore[arg-type]  # SciPy takes a matrix
    assert fits.value == pytest.approx(-law.logpdf(y) - 6 * np.log(2 * np.pi), rel=1e-9)
    near, step = covariance(0.3, x), 1e-5
    slope = (covariance(0.3 + step, x) - covariance(0.3 - step, x)) / (2 * step)
    sides = [likelihood(covariance(0.3 + s, x), y) for s in (step, -step)]
    assert sides[0] is not None
    assert sides[1] is not None
    by_differences = (sides[0].value - sides[1].value) / (2 * step)
    assert -0.5 * np.vdot(fits.inner, slope) == pytest.approx(by_differences, rel=1e-5)
    assert likelihood(near - 2 * np.eye(12), y) is None


def test_the_greatest_posterior_weighs_data_and_prior() -> None:
    """A normal likelihood at 3 of spread 1 and a prior at 0 of spread 2 meet at 2.4; what has no likelihood
    is never chosen."""
    reached: list[float] = []

    def cost(x: np.ndarray) -> tuple[float, np.ndarray] | None:
        reached.append(float(x[0]))
        return None if x[0] > 2.8 else (0.5 * float((x[0] - 3) ** 2), x - 3)

    best, value = greatest_posterior(cost, np.zeros(1), 2.0, [(-5.0, 5.0)], 50)
    assert best[0] == pytest.approx(2.4, abs=1e-4)
    assert value == pytest.approx(0.5 * 0.36 + 0.5 * 1.44, abs=1e-6)
