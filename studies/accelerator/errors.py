"""What evaluations of the accelerator return, and the simple rules that stand beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._base.report import Table

HOLD = 1e-3  # ridge of the effects, of the rows' mean weight


@dataclass(frozen=True, eq=False)
class AcceleratorEvaluation:
    """metrics: names with units. table: for people. drawn: what pictures are made of."""

    metrics: dict[str, float]
    table: Table
    drawn: Any = None


@dataclass(frozen=True, eq=False)
class Pairs:
    """m measured targets. target, other: (m,) indices of names. solo, corun: (m,) s."""

    names: tuple[str, ...]
    target: np.ndarray
    other: np.ndarray
    solo: np.ndarray
    corun: np.ndarray


def errors_of(predicted: np.ndarray, measured: np.ndarray, prefix: str = "") -> dict[str, float]:
    """Mean, 95th percentile and largest of |predicted - measured| / measured."""
    off = np.abs(predicted - measured) / measured
    return {
        f"{prefix}error_mean_ratio": float(off.mean()),
        f"{prefix}error_p95_ratio": float(np.percentile(off, 95)),
        f"{prefix}error_max_ratio": float(off.max()),
    }


def baselines(fit: Pairs, test: Pairs) -> Mapping[str, np.ndarray]:
    """Solo time, solo time and a constant, additive in target and partner; (m,) s each."""
    constant = np.average(fit.corun - fit.solo, weights=1 / fit.corun**2)
    x = _effects(fit) / fit.corun[:, None]
    y = (fit.corun - fit.solo) / fit.corun
    penalty = np.eye(x.shape[1]) * HOLD * (1 / fit.corun**2).mean()
    weights = np.linalg.solve(x.T @ x + penalty, x.T @ y)
    return {
        "solo": test.solo,
        "constant": test.solo + constant,
        "additive": test.solo + _effects(test) @ weights,
    }


def _effects(pairs: Pairs) -> np.ndarray:
    """(m, 2n + 1): which target, which partner, one."""
    n = len(pairs.names)
    made = np.zeros((len(pairs.target), 2 * n + 1))
    rows = np.arange(len(made))
    made[rows, pairs.target] = 1
    made[rows, n + pairs.other] = 1
    made[:, -1] = 1
    return made
