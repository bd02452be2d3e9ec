"""Products of matrices in logarithms."""

from __future__ import annotations

import numpy as np

from jostle.bridge import log_sum_exp

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
