"""Medians by code, and what is left of values when those of rows and columns are taken away."""

from __future__ import annotations

import numpy as np


def medians(codes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(distinct codes, median of the values of each)."""
    if not len(codes):
        return np.zeros(0, np.int64), np.zeros(0)
    order = np.lexsort((values, codes))
    distinct, start, count = np.unique(codes[order], return_index=True, return_counts=True)
    ordered = values[order]
    low, high = start + (count - 1) // 2, start + count // 2
    return distinct, (ordered[low] + ordered[high]) / 2


def polished(row: np.ndarray, column: np.ndarray, values: np.ndarray) -> np.ndarray:
    """What is left of the values when medians by row and column are taken away in turn (Tukey's
    median polish), which a few wild values do not move."""
    left = values.copy()
    for _ in range(4):
        for codes in (row, column):
            distinct, median = medians(codes, left)
            left -= median[np.searchsorted(distinct, codes)]
    return left
