"""What was measured of a set itself: the residual of the stack there, shrunken by what noise makes of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.learn.training._set_keys import keys_of
from jostle.learn.training._slowdown_rows import SlowdownRows, looked_up


@dataclass(frozen=True)
class SetResiduals:
    """key: (k,) ascending, of targets with their co-runners; residual: (k,) log slowdown to add. beyond,
    noise: () variances of what sets differ by and of repeated runs."""

    key: np.ndarray
    residual: np.ndarray
    beyond: np.ndarray
    noise: np.ndarray

    def of(self, rows: SlowdownRows) -> np.ndarray:
        """Look up the residuals (n,) to add; 0 for sets never measured."""
        return looked_up(self.key, self.residual, keys_of(rows))

    def has(self, rows: SlowdownRows) -> np.ndarray:
        """Tell whether each row's set was measured, (n,) bool."""
        return looked_up(self.key, np.ones(len(self.key)), keys_of(rows)) > 0

    def learned_from(self, rows: SlowdownRows, residual: np.ndarray) -> SetResiduals:
        """Take means of other residuals (n,), shrunken by the same variances."""
        key, mean, count, _ = _means(rows, residual)
        return replace(self, key=key, residual=_share(self.beyond, self.noise, count) * mean)


def _means(
    rows: SlowdownRows, residual: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Average the residuals (n,) of each set. Returns ((k,) keys, means, counts; (n,) numbers of keys)."""
    key, at, count = np.unique(keys_of(rows), return_inverse=True, return_counts=True)
    return key, np.bincount(at, residual) / count, count, at


def _share(beyond: np.ndarray, noise: np.ndarray, count: np.ndarray) -> np.ndarray:
    return beyond / np.maximum(beyond + noise / count, 1e-300)


def fit_set_residuals(rows: SlowdownRows, residual: np.ndarray, unseen: np.ndarray) -> SetResiduals:
    """Fit the residuals to add. residual: (n,) of the fitted stack; unseen: (n,) of out-of-fold answers, NaN
    if not tried.

    The mean residual of a target beside the same co-runners counts by v / (v + noise / runs of it), v being
    what the variance of unseen residuals is beyond the noise; the noise is that of repeated runs, and half of
    the variance where nothing was repeated.
    """
    key, mean, count, at = _means(rows, residual)
    tried = np.isfinite(unseen)
    spread = float(np.median(np.abs(unseen[tried] if tried.any() else residual)) * 1.4826) ** 2
    repeated = count[at] > 1
    if repeated.any():
        free = len(residual[repeated]) - int((count > 1).sum())
        noise = float(((residual - mean[at])[repeated] ** 2).sum() / free)
    else:
        noise = spread / 2
    about = np.array(max(spread - noise, 0.0)), np.array(noise)
    return SetResiduals(key, _share(*about, count) * mean, *about)
