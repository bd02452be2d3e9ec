"""Sums and products of exponentials, in logarithms: the only arithmetic the solvers need.

:class:`AbsorbedKernel` keeps exp(L + x0 + y0) for potentials (x0, y0) near those it is asked about, so that
an answer is one product with a matrix (absorption: Schmitzer, SIAM J. Sci. Comput. 41(3), 2019); it rebuilds
itself where they have moved too far for double precision.
"""

from __future__ import annotations

import numpy as np

FAR = 100.0  # potentials may differ from the absorbed ones by a range of this, in logarithms
LOST = 1e-280  # sums below this may have lost terms to underflow


class AbsorbedKernel:
    """A matrix exp(L), L: (n, m), asked about in logarithms: exp(L + x0 + y0), rebuilt by an exact step where
    x0 or y0 is far from what is asked."""

    def __init__(self, log_kernel: np.ndarray) -> None:
        self.log_kernel = log_kernel
        self._kernel: np.ndarray | None = None

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Return (m,) log sum_i exp(x_i + L_ij)."""
        if self._kernel is not None:
            answer = _product(x - self._x, self._kernel.T)
            if answer is not None:
                return answer - self._y
        kernel, answer = _normalized(self.log_kernel + x[:, None], axis=0)
        self._kernel, self._x, self._y = kernel, x.copy(), -answer
        return answer

    def backward(self, y: np.ndarray) -> np.ndarray:
        """Return (n,) log sum_j exp(L_ij + y_j)."""
        if self._kernel is not None:
            answer = _product(y - self._y, self._kernel)
            if answer is not None:
                return answer - self._x
        kernel, answer = _normalized(self.log_kernel + y, axis=1)
        self._kernel, self._x, self._y = kernel, -answer, y.copy()
        return answer


def _product(moved: np.ndarray, kernel: np.ndarray) -> np.ndarray | None:
    """log(kernel @ exp(moved)), None where double precision does not reach."""
    top = moved.max()
    if not top - moved.min() < FAR:  # also where something is not finite
        return None
    sums = kernel @ np.exp(moved - top)
    return np.log(sums) + top if sums.min() > LOST else None


def _normalized(kernel: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """exp(kernel) with sums 1 along the axis, in the same memory, and the logarithms of the sums before."""
    top = kernel.max(axis=axis, keepdims=True)
    np.subtract(kernel, top, out=kernel)
    np.exp(kernel, out=kernel)
    sums = kernel.sum(axis=axis, keepdims=True)
    kernel /= sums
    return kernel, (np.log(sums) + top).ravel()
