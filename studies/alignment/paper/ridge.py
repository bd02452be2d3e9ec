"""A weighted sum of features, by ridge: what a period beside others takes.

Source: Saeed et al., MLCAD 2021, Sec. IV-B. `linear` is the paper's row X = [i_j, f_j, i_k, f_k] (Algorithm
1, line 16), from which the instructions of a period are learned, every row alike.

`interacting` holds what contention means whatever the machine: time is lost in proportion to what the
workload itself does per second (each of its rates), by a factor that depends on the others' rates and on how
the total of each rate exceeds the workload's own. The factor's shape is learned: a sum of hinges. With
nothing beside it every feature is 0, so that a workload beside an idle one is as fast as alone, without
being taught. What is learned is the slowdown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.learn.learners.counters import FASTEST, SLOWEST, AlignedRows, limits_of, scale_of
from studies.alignment.paper.row_folds import folds_of

STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # of ridge, times the number of rows
MOST_ROWS = 24_000  # rows that are learned from; more are thinned out evenly
MOST_ROWS_TO_CHOOSE = 8_000
KNOTS = (0.0, 0.15, 0.35, 0.7, 1.2)
Solve = Callable[[np.ndarray, np.ndarray, np.ndarray, float], tuple[np.ndarray, float]]


def features_of(form: str, own: np.ndarray, others: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """(n, f) of (n, d) rates. scale: (d,) what each rate is divided by."""
    own, others = own / scale, others / scale
    if form == "linear":
        return np.concatenate([own, others], axis=1)
    pressure = _pressures(own, others)
    n, d = own.shape
    return (own[:, :, None] * pressure[:, None, :]).reshape(n, d * pressure.shape[1])


def _pressures(own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(n, 2 d k) hinges of the others' scaled rates, and of what they add to those of the total."""
    total = own + others
    parts = [np.maximum(others - k, 0.0) for k in KNOTS]
    parts += [np.maximum(total - k, 0.0) - np.maximum(own - k, 0.0) for k in KNOTS[1:]]
    return np.concatenate(parts, axis=1)


@dataclass(frozen=True)
class LinearModel:
    """form: of the features. bias, weights: (f,) of standardised features. output: (mean, spread) of what is
    learned; mean, spread: (f,) of the features; scale: (d,) of the rates. limits: the least and the largest
    slowdown that is answered, for a sum goes on straight beyond what it was learned from."""

    form: str
    strength: float
    bias: float
    output: tuple[float, float]
    limits: tuple[float, float]
    scale: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    weights: np.ndarray

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) solo speed over speed beside others, of aligned rates (n, d), instructions first."""
        if self.form == "linear":
            x = features_of(self.form, own, others, self.scale)
            raw = x @ (self.weights / self.spread) + self._offset
            done = (raw * self.output[1] + self.output[0]) * self.scale[0]
            ratio = own[:, 0] / np.maximum(done, 1e-30)
        else:
            # The same sum without spelling out the products: own' (W pressure).
            mine, theirs = own / self.scale, others / self.scale
            raw = ((_pressures(mine, theirs) @ self._folded) * mine).sum(axis=1) + self._offset
            ratio = 1.0 + raw * self.output[1] + self.output[0]
            # With nothing beside it a workload is as fast as alone, whatever the mean co-run effect.
            ratio = np.where((others > 0).any(axis=1), ratio, 1.0)
        return np.clip(ratio, *self.limits)

    @cached_property
    def _offset(self) -> float:
        return float(self.bias - (self.mean / self.spread) @ self.weights)

    @cached_property
    def _folded(self) -> np.ndarray:
        d = len(self.scale)
        return np.ascontiguousarray((self.weights / self.spread).reshape(d, -1).T)


def ridge(
    x: np.ndarray, y: np.ndarray, weight: np.ndarray, strength: float
) -> tuple[np.ndarray, float]:
    """((f,) weights, bias) of least weighted squares, and strength for each row."""
    centre, level = weight @ x / weight.sum(), weight @ y / weight.sum()
    away = x - centre
    gram = away.T @ (away * weight[:, None]) + strength * len(x) * np.eye(x.shape[1])
    weights = np.linalg.solve(gram, away.T @ (weight * (y - level)))
    return weights, float(level - centre @ weights)


def fit_linear(
    rows: AlignedRows, form: str, strength: float, rounds: int = 1, solve: Solve = ridge
) -> LinearModel:
    """rounds: of fits again of the interacting form, in which runs are weighed by the errors of the fit
    before. solve: (features, what is learned, weights of rows, strength) to weights and bias."""
    scale = scale_of(rows.own)
    x = features_of(form, rows.own, rows.others, scale)
    slowdown = np.clip(rows.slowdown, FASTEST, SLOWEST)
    if form == "linear":
        weight, rounds = np.ones(len(rows)), 0
        y = rows.count / rows.period_seconds / scale[0]
    else:
        # A run takes its stretches' times alone, each times its slowdown: so much does an error of one count.
        weight = rows.solo_seconds / rows.solo_seconds.mean()
        y = slowdown - 1.0
    mean = np.average(x, axis=0, weights=weight)
    spread = np.sqrt(np.mean((x - mean) ** 2, axis=0))
    spread = np.where(spread > 1e-12, spread, 1.0)
    centre = float(np.average(y, weights=weight))
    size = float(np.sqrt(np.mean((y - centre) ** 2))) or 1.0
    x, y = (x - mean) / spread, (y - centre) / size
    limits, run = limits_of(slowdown), rows.run_index

    def fitted(of_run: np.ndarray) -> LinearModel:
        weights, bias = solve(x, y, weight * of_run[run], strength)
        rest = ((centre, size), limits, scale, mean, spread, weights)
        return LinearModel(form, strength, bias, *rest)

    model = fitted(np.ones(run.max() + 1))
    for _ in range(rounds):
        # So weighted, squares add up to what is asked for, the mean error of a run, and the few runs
        # that nothing explains do not draw all others with them.
        error = run_errors(model, rows)
        of_run = 1.0 / np.maximum(error, max(float(np.median(error)), 1e-3))
        model = fitted(of_run / of_run.mean())
    return model


def run_errors(model: Any, rows: AlignedRows) -> np.ndarray:
    """(runs,) |predicted - true| / true time of all rows of each run together."""
    predicted = model.slowdown(rows.own, rows.others) * rows.solo_seconds
    run = rows.run_index
    return np.abs(np.bincount(run, predicted) / np.bincount(run, rows.period_seconds) - 1.0)


def fit_ridge(
    rows: AlignedRows,
    form: str = "interacting",
    strength: float | None = None,
    *,
    seed: int = 0,
    rounds: int = 1,
) -> LinearModel:
    """strength: None is chosen by leaving out workload sets. Raises NotEnoughRuns for no rows."""
    if len(rows) < 2:
        raise NotEnoughRuns(
            f"{len(rows)} periods are too few to learn from", fix="Trace more windows."
        )
    rows = rows.thinned(MOST_ROWS)
    if strength is None:
        strength, few = 1e-2, rows.thinned(MOST_ROWS_TO_CHOOSE)
        if len(np.unique(rows.group)) >= 2:
            errors = {
                s: left_out_error(few, seed, lambda some, s=s: fit_linear(some, form, s))
                for s in STRENGTHS
            }
            strength = min(errors, key=lambda s: errors[s])
    return fit_linear(rows, form, strength, rounds)


def left_out_error(rows: AlignedRows, seed: int, fit: Callable[[AlignedRows], Any]) -> float:
    """The error of the run times of workloads left out, added up over the folds: what is systematic in a
    run counts, what averages out over its samples does not."""
    return sum(
        float(run_errors(fit(rows.take(train)), rows.take(test)).mean())
        for train, test in folds_of(rows, seed)
    )


def per_sample_error(learned: Any, rows: AlignedRows) -> float:
    """Mean |predicted - true| instructions per period over the mean true ones (the measure of Fig. 2)."""
    predicted = rows.own[:, 0] * rows.period_seconds / learned.slowdown(rows.own, rows.others)
    return float(np.abs(predicted - rows.count).sum() / rows.count.sum())
