"""Simple rules for pairs that finish, learned from other pairs, to stand beside what a method says.

The bubble baseline: how sensitive a target is to pressure, times how hard its co-runners press.

After Bubble-Up (Mars et al., MICRO 2011), which measures a sensitivity curve with a bubble of adjustable
pressure and scores each application by the bubble that does the same harm. Where only co-runs were
measured, both are fitted to those:

    slowdown_i - 1 = level_i + sensitivity_i * (sum of the co-runners' pressures)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

_ROUNDS = 30
_HOLD = 1.0  # runs that the mean over all counts for beside an application's own
HOLD = 1e-3  # ridge of the effects, of the rows' mean weight


@dataclass(frozen=True, eq=False)
class Pairs:
    """m measured targets. target, other: (m,) indices of workloads. solo, corun: (m,) s."""

    names: tuple[str, ...]
    target: np.ndarray
    other: np.ndarray
    solo: np.ndarray
    corun: np.ndarray

    def __len__(self) -> int:
        return len(self.target)

    def take(self, rows: np.ndarray) -> Pairs:
        return Pairs(
            self.names, self.target[rows], self.other[rows], self.solo[rows], self.corun[rows]
        )

    @property
    def pair(self) -> np.ndarray:
        """(m,) the same for both sides of a pair."""
        n = len(self.names)
        return np.minimum(self.target, self.other) * n + np.maximum(self.target, self.other)


def _effects(pairs: Pairs, n: int) -> np.ndarray:
    """(m, 2n + 1): which target, which partner, one."""
    rows = np.arange(len(pairs.target))
    made = np.zeros((len(rows), 2 * n + 1))
    made[rows, pairs.target] = 1
    made[rows, n + pairs.other] = 1
    made[:, -1] = 1
    return made


def baselines(fit: Pairs, test: Pairs) -> Mapping[str, np.ndarray]:
    """Solo time, solo time and a constant, additive in target and partner, sensitivity times pressure; (m,) s
    each."""
    n = len(fit.names)
    constant = np.average(fit.corun - fit.solo, weights=1 / fit.corun**2)
    x = _effects(fit, n) / fit.corun[:, None]
    y = (fit.corun - fit.solo) / fit.corun
    penalty = np.eye(x.shape[1]) * HOLD * (1 / fit.corun**2).mean()
    weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    bubble = fit_bubble(fit.target, np.eye(n)[fit.other], fit.corun / fit.solo)
    return {
        "solo": test.solo,
        "constant": test.solo + constant,
        "additive": test.solo + _effects(test, n) @ weights,
        "bubble": test.solo * bubble.slowdown(test.target, np.eye(n)[test.other]),
    }


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
