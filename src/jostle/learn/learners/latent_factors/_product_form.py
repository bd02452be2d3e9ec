"""The product form as a base learner: fits from several starts, averaged by how low each one ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.learn.learners.latent_factors._product_equation import (
    SHIFT,
    FormLoss,
    Sizes,
    positive,
    softplus,
)
from jostle.learn.training._relative_error import weights_by_error
from jostle.learn.training._slowdown_rows import CellTable, SlowdownRows

START = 0.1  # spread of the starting numbers
ENOUGH = 1e-7  # share of the loss, under which a step gains nothing that other rows would know of


@dataclass(frozen=True)
class SlowdownForm:
    """m starts, t types. susceptibility, pressure: (m, cells, t) above 0, the platform's gain inside the
    pressure. constant: (m, platforms) at least 0. exponent: (m, workloads). weight: (m,) of sum 1."""

    susceptibility: np.ndarray
    pressure: np.ndarray
    constant: np.ndarray
    exponent: np.ndarray
    weight: np.ndarray

    def log_slowdown(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        total, n = np.zeros(len(rows)), len(rows)
        place, workload = rows.target // cell_table.workloads, rows.target % cell_table.workloads
        for m in range(len(self.exponent)):
            there = self.pressure[m][rows.corunner]
            pressed = np.stack([np.bincount(rows.row, column, n) for column in there.T], 1)
            reached = (self.susceptibility[m][rows.target] * pressed).sum(1)
            value = np.log1p(rows.scale * (self.constant[m][place] + reached))
            total += self.weight[m] * self.exponent[m][workload] * value
        return total

    def value(self, rows: SlowdownRows, cell_table: CellTable) -> np.ndarray:
        log = self.log_slowdown(rows, cell_table)
        return np.expm1(log) / rows.scale if rows.timed else log


def fit_forms(
    rows: SlowdownRows,
    sizes: Sizes,
    penalties: Sequence[float],
    seed: int,
    starts: int,
    steps: int,
) -> list[SlowdownForm]:
    """Fit one form for each ridge penalty, from weak to strong, in units of the variance of the rows' log
    slowdown. The strongest starts at random, each weaker one where the one before has ended: it ends sooner
    and higher up than from chance."""
    spread = spread_of(rows) if len(rows) else 1.0
    found: list[list[tuple[np.ndarray, float]]] = [[] for _ in penalties]
    for number in range(starts):
        x = _random_start(sizes, seed + 1000 * number)
        for at in reversed(range(len(penalties))):
            x, loss = _fitted(rows, sizes, penalties[at] * spread, x, steps)
            found[at].append((x, loss))
    return [_form_of(sizes, fits) for fits in found]


def _form_of(sizes: Sizes, fits: list[tuple[np.ndarray, float]]) -> SlowdownForm:
    fields: defaultdict[str, list[np.ndarray]] = defaultdict(list)
    p, w = sizes.platforms, sizes.workloads
    # A search may end in a poor hollow.
    weight = weights_by_error(np.array([loss for _, loss in fits]))
    for x, _ in fits:
        part = sizes.unpack(x)
        hit, press = np.split(softplus(sizes.mixed(part) - SHIFT), 2, axis=1)
        fields["susceptibility"].append(hit)
        fields["pressure"].append(press * np.repeat(positive(part["gain"]), w)[:, None])
        fields["constant"].append(softplus(part["constant"]) if sizes.constants else np.zeros(p))
        fields["exponent"].append(positive(part["exponent"]) if sizes.exponents else np.ones(w))
    stacked = {name: np.stack(values) for name, values in fields.items()}
    return SlowdownForm(**stacked, weight=weight)


def spread_of(rows: SlowdownRows) -> float:
    """Variance of the log slowdown, of which no tenth of the rows can make more than its share."""
    y = rows.log_slowdown
    low, high = np.quantile(y, [0.02, 0.98])
    return max(float(np.clip(y, low, high).var()), 1e-8)


def _random_start(sizes: Sizes, seed: int) -> np.ndarray:
    x = np.zeros(sizes.size)
    size = sizes.random_size
    x[:size] = START * np.random.default_rng(seed).normal(size=size)
    return x


def _fitted(
    rows: SlowdownRows, sizes: Sizes, strength: float, start: np.ndarray, steps: int
) -> tuple[np.ndarray, float]:
    """Return (the numbers of one fit, its loss)."""
    from scipy.optimize import minimize
    from scipy.sparse import issparse

    if len(rows) == 0:
        return start, 1.0
    design: Any = sizes.design
    few, at = sizes, np.arange(len(start))
    if issparse(design):  # a step costs what all of them are, and of most no row tells
        columns = np.unique(design[np.union1d(rows.target, rows.corunner)].indices)
        few = replace(sizes, design=design[:, columns])
        known = sizes.unpack(at)
        used = [known[name][columns].ravel() for name in ("types", "both") if known[name].size]
        at = np.concatenate([*used, at[sizes.random_size :]])
    solution = minimize(
        FormLoss(few, rows, strength),
        start[at],
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "ftol": ENOUGH},
    )
    x = np.zeros(len(start))  # what no row tells of
    x[at] = solution.x
    return x, float(solution.fun)
