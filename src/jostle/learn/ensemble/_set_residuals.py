"""What was measured of a set itself: the residual of the stack there, shrunken by what noise makes of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.learn.training._set_keys import keys_of
from jostle.learn.training._slowdown_rows import SlowdownRows, looked_up


@dataclass(frozen=True)
class SetResiduals:
    """key: (k,) ascending, of targets with their co-runners; residual: (k,) log slowdown to add."""

    key: np.ndarray
    residual: np.ndarray

    def of(self, rows: SlowdownRows) -> np.ndarray:
        """Look up the residuals (n,) to add; 0 for sets never measured."""
        return looked_up(self.key, self.residual, keys_of(rows))


def fit_set_residuals(rows: SlowdownRows, residual: np.ndarray, unseen: np.ndarray) -> SetResiduals:
    """Fit the residuals to add. residual: (n,) of the fitted stack; unseen: (n,) of out-of-fold answers, NaN
    if not tried.

    The mean residual of a target beside the same co-runners counts by v / (v + noise / runs of it), v being
    what the variance of unseen residuals is beyond the noise; the noise is that of repeated runs, and half of
    the variance where nothing was repeated.
    """
    key, at, count = np.unique(keys_of(rows), return_inverse=True, return_counts=True)
    mean = np.bincount(at, residual) / count
    tried = np.isfinite(unseen)
    spread = float(np.median(np.abs(unseen[tried] if tried.any() else residual)) * 1.4826) ** 2
    repeated = count[at] > 1
    if repeated.any():
        free = len(residual[repeated]) - int((count > 1).sum())
        noise = float(((residual - mean[at])[repeated] ** 2).sum() / free)
    else:
        noise = spread / 2
    beyond = max(spread - noise, 0.0)
    share = beyond / np.maximum(beyond + noise / count, 1e-300)
    return SetResiduals(key, share * mean)
