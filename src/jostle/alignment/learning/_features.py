"""What a weighted sum sees of a period: the paper's plain features, or how they act on each other.

`linear` is the paper's row X = [i_j, f_j, i_k, f_k] (Algorithm 1, line 16).

`interacting` holds what contention means whatever the machine: time is lost in proportion to what the
workload itself does per second (each of its rates), by a factor that depends on the others' rates and on how
the total of each rate exceeds the workload's own. The factor's shape is learned: a sum of hinges. With
nothing beside it every feature is 0, so that a workload beside an idle one is as fast as alone, without
being taught.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

KNOTS = (0.0, 0.15, 0.35, 0.7, 1.2)


@dataclass(frozen=True)
class ContentionFeatures:
    """form: linear or interacting. scale: (d,) what each rate is divided by."""

    form: str
    scale: np.ndarray

    def of(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n, f) features of (n, d) rates."""
        own, others = own / self.scale, others / self.scale
        if self.form == "linear":
            return np.concatenate([own, others], axis=1)
        pressure = pressures(own, others)
        n, d = own.shape
        return (own[:, :, None] * pressure[:, None, :]).reshape(n, d * pressure.shape[1])


def pressures(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(n, 2 d k) hinges of the others' scaled rates, and of what they add to those of the total."""
    total = own + others
    parts = [np.maximum(others - k, 0.0) for k in KNOTS]
    parts += [np.maximum(total - k, 0.0) - np.maximum(own - k, 0.0) for k in KNOTS[1:]]
    return np.concatenate(parts, axis=1)


def scale_of(own: np.ndarray) -> np.ndarray:
    """(d,) a high value of each rate that is not an outlier; 1 for one that is always 0."""
    size = np.abs(own)
    high = np.quantile(size, 0.99, axis=0) if len(own) else np.zeros(own.shape[1])
    largest = size.max(axis=0, initial=0)
    return np.where(high > 0, high, np.where(largest > 0, largest, 1.0))
