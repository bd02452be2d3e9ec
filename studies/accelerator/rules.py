"""Simple rules for pairs that finish, learned from other pairs, to stand beside what a method says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from studies.accelerator.bubble import fit_bubble

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
