"""Sums and products in logarithms, exactly; sweeps until they are good; how far couplings are off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jostle.usage import Cloud, Convergence, Stopping

LOST = 1e-280  # sums below this may have lost terms to underflow


def log_matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """log(exp(a) @ exp(b)) for a: (n, k), b: (k, m), by one product of matrices.

    The inner index is balanced between the factors; sums that underflow all the same are taken again
    one by one, exactly.
    """
    share = 0.5 * (b.max(axis=1) - a.max(axis=0))
    share = np.where(np.isfinite(share), share, 0.0)
    left, right = a + share, b - share[:, None]
    rows, columns = left.max(axis=1), right.max(axis=0)
    rows = np.where(np.isfinite(rows), rows, 0.0)
    columns = np.where(np.isfinite(columns), columns, 0.0)
    sums = np.exp(left - rows[:, None]) @ np.exp(right - columns)
    lost = ~(sums > LOST)
    with np.errstate(divide="ignore"):
        answer = np.log(sums) + rows[:, None] + columns
    if lost.any():
        i, j = np.nonzero(lost)
        step = max(1, 2_000_000 // a.shape[1])
        for start in range(0, len(i), step):
            part = slice(start, start + step)
            answer[i[part], j[part]] = log_sum_exp(a[i[part]] + b[:, j[part]].T, axis=1)
    return answer


def log_sum_exp(values: np.ndarray, axis: int) -> np.ndarray:
    """log sum exp along an axis; -inf where all are."""
    top = values.max(axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis)


class LogKernel:
    """The reference: exact, and an exponential per entry and answer."""

    def __init__(self, log_kernel: np.ndarray) -> None:
        self.log_kernel = log_kernel

    def forward(self, x: np.ndarray) -> np.ndarray:
        return log_sum_exp(self.log_kernel + x[:, None], axis=0)

    def backward(self, y: np.ndarray) -> np.ndarray:
        return log_sum_exp(self.log_kernel + y[None, :], axis=1)


def marginal_error(log_couplings: Sequence[np.ndarray], clouds: Sequence[Cloud]) -> float:
    """The largest L1 distance of the couplings' marginals from the clouds' weights."""
    errors = [0.0]
    for k, coupling in enumerate(log_couplings):
        mass = np.exp(np.minimum(coupling, 700))
        errors.append(float(np.abs(mass.sum(axis=1) - clouds[k].weights).sum()))
        errors.append(float(np.abs(mass.sum(axis=0) - clouds[k + 1].weights).sum()))
    return max(errors)


def repeat(stopping: Stopping, sweep: Callable[[], tuple[float, float]]) -> Convergence:
    """Do sweeps, each of which returns its Hilbert residual and L1 error, until one of them is good."""
    residuals: list[float] = []
    status, residual, error = "max_sweeps", np.inf, np.inf
    while status == "max_sweeps" and len(residuals) < stopping.sweeps:
        residual, error = sweep()
        residuals.append(residual)
        if stopping.reached(residual, error):
            status = "converged"
    return Convergence(status, residual, error, len(residuals), tuple(residuals))
