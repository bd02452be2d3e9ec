"""What targets and co-runners do to each other beyond their effects, of free sign and low rank.

    rest = sum_t S_it mean_{j in K} G_jt

S and G are linear in the campaign's design, as in the slowdown form; the ridge is in units of the rest's
own variance, so that data in percent and data in factors are treated alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

STEPS = 80  # of the search, at most
START = 0.3  # spread of the starting numbers
EDGE = 1.5  # standard deviations of the rest at which the loss turns linear


@dataclass(frozen=True)
class Bilinear:
    """hit, press: (cells, rank)."""

    hit: np.ndarray
    press: np.ndarray

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        each = self.press[rows.corunner]
        beside = np.stack([rows.mean(column) for column in each.T], 1)
        return (self.hit[rows.target] * beside).sum(1)


@dataclass(frozen=True)
class Strength:
    """rank; penalty: of the ridge, in units of the rest's variance."""

    rank: int
    penalty: float


def fit_bilinear(
    rows: SlowdownRows, rest: np.ndarray, design: Any, strength: Strength, seed: int
) -> Bilinear:
    """rest: (n,) what is to be explained, of the rows' values. design: (cells, d)."""
    from scipy.optimize import minimize

    rank = strength.rank
    weight = rows.weight
    spread = max(float(np.sqrt(np.average(rest**2, weights=weight))), 1e-9)
    y = rest / spread
    d = design.shape[1]
    share = 1 / rows.degree[rows.row]

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        loss, slope = _loss_and_slope(x, rank, design, (rows, y, weight, share))
        loss += strength.penalty * float(x @ x) / len(rows)
        return loss, slope + 2 * strength.penalty * x / len(rows)

    start = START * np.random.default_rng([seed, rank]).normal(size=2 * d * rank)
    solution = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x
    s, g = solution.reshape(2, d, rank)
    return Bilinear(design @ s * spread, design @ g)


def _loss_and_slope(
    x: np.ndarray,
    rank: int,
    design: Any,
    data: tuple[SlowdownRows, np.ndarray, np.ndarray, np.ndarray],
) -> tuple[float, np.ndarray]:
    """Mean pseudo-Huber loss and its gradient. data: rows, (n,) rest over its spread, (n,) weights, (m,)
    what share each co-runner has in its row's mean."""
    rows, y, weight, share = data
    n, cells = len(rows), design.shape[0]
    s, g = x.reshape(2, design.shape[1], rank)
    hit, press = (design @ s)[rows.target], (design @ g)[rows.corunner] * share[:, None]
    if len(press) == n:
        beside = press
    else:
        beside = np.stack([np.bincount(rows.row, column, n) for column in press.T], 1)
    error = (hit * beside).sum(1) - y
    bend = np.sqrt(1 + (error / EDGE) ** 2)
    loss = float((weight * EDGE**2 * (bend - 1)).mean())
    down = weight * error / bend / n
    to_hit = down[:, None] * beside
    to_press = (down[:, None] * hit)[rows.row] * share[:, None]
    slope = np.stack(
        [
            design.T @ np.stack([np.bincount(at, column, cells) for column in each.T], 1)
            for at, each in ((rows.target, to_hit), (rows.corunner, to_press))
        ]
    )
    return loss, slope.ravel()
