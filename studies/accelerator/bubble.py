"""The bubble baseline: how sensitive a target is to pressure, times how hard its co-runners press.

After Bubble-Up (Mars et al., MICRO 2011), which measures a sensitivity curve with a bubble of adjustable
pressure and scores each application by the bubble that does the same harm. Where only co-runs were
measured, both are fitted to those:

    slowdown_i - 1 = level_i + sensitivity_i * (sum of the co-runners' pressures)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_ROUNDS = 30
_HOLD = 1.0  # runs that the mean over all counts for beside an application's own


@dataclass(frozen=True, eq=False)
class Bubble:
    """level, sensitivity, pressure: (n,) by application."""

    level: np.ndarray
    sensitivity: np.ndarray
    pressure: np.ndarray

    def slowdown(self, target: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """(m,) runtime over solo runtime. target: (m,). beside: (m, n) how many of each are co-runners."""
        return 1 + self.level[target] + self.sensitivity[target] * (beside @ self.pressure)


def fit_bubble(target: np.ndarray, beside: np.ndarray, slowdown: np.ndarray) -> Bubble:
    """Alternating least squares on relative error. target: (m,). beside: (m, n). slowdown: (m,).

    Applications without a run get what the others have in the mean.
    """
    n = beside.shape[1]
    weight = 1 / slowdown
    harm = slowdown - 1
    level, sensitivity = np.zeros(n), np.full(n, float(np.average(harm, weights=weight**2)))
    pressure = np.ones(n)
    for _ in range(_ROUNDS):
        # Pressures, shrunk to 1.
        rows = beside * (sensitivity[target] * weight)[:, None]
        hold = _HOLD * float(np.mean(np.sum(rows**2, axis=1)))
        left = (harm - level[target]) * weight - rows.sum(axis=1)
        pressure = 1 + _solved(rows.T @ rows + hold * np.eye(n), rows.T @ left)
        pressure = np.maximum(pressure, 0.0)
        # A straight sensitivity curve for each target, shrunk to that of all.
        press = beside @ pressure
        rows = np.column_stack([weight, press * weight])
        common = np.linalg.lstsq(rows, harm * weight, rcond=None)[0]
        hold_curve = _HOLD * np.diag(np.mean(rows**2, axis=0))
        for application in range(n):
            mine = rows[target == application]
            off = (harm * weight)[target == application] - mine @ common
            own = common + _solved(mine.T @ mine + hold_curve, mine.T @ off)
            level[application], sensitivity[application] = own[0], max(own[1], 0.0)
    return Bubble(level, sensitivity, pressure)


def _solved(square: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of least norm where nobody is sensitive, or nobody presses."""
    return np.linalg.lstsq(square, right, rcond=None)[0]
