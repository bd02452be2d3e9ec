"""A weighted sum of features: fitted by scikit-learn, answered by NumPy.

Source: Saeed et al., MLCAD 2021, Sec. IV-B: ridge, lasso, elastic net and linear support vector regression.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.alignment.learning._features import ContentionFeatures, pressures
from jostle.alignment.learning._kinds import LearnerKind
from jostle.alignment.learning._rows import AlignedRows
from jostle.errors import MissingExtra

SLOWEST, FASTEST = 50.0, 0.5  # slowdowns beyond are never answered
LEARNED_QUANTILE, BEYOND = 0.002, 1.1  # what was learned from: all but so few, and a little more


@dataclass(frozen=True)
class LinearModel:
    """slowdown = f(rates), a weighted sum. form: of the features, target: what is learned, see `_kinds`.
    bias, weights: (f,) of standardised features. output: (mean, spread) of what is learned; mean, spread:
    (f,) of the features; scale: (d,) of the rates. limits: the least and the largest slowdown that is
    answered, for a sum goes on straight beyond what it was learned from."""

    form: str
    target: str
    strength: float
    bias: float
    output: tuple[float, float]
    limits: tuple[float, float]
    scale: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    weights: np.ndarray

    @property
    def features(self) -> ContentionFeatures:
        return ContentionFeatures(self.form, self.scale)

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) solo speed over speed beside others, of aligned rates (n, d), instructions first."""
        raw = self._raw(own, others) * self.output[1] + self.output[0]
        if self.target == "slowdown":
            ratio = 1.0 + raw
            if self.form == "interacting":
                # With nothing beside it a workload is as fast as alone, whatever the mean co-run effect.
                ratio = np.where((others > 0).any(axis=1), ratio, 1.0)
        elif self.target == "speed":
            ratio = 1.0 / np.maximum(raw, 1.0 / SLOWEST)
        else:
            ratio = own[:, 0] / np.maximum(raw * self.scale[0], 1e-30)
        return np.clip(ratio, *self.limits)

    def _raw(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        if self.form == "interacting":
            # The same sum without spelling out the products: own' (W pressure).
            own, others = own / self.scale, others / self.scale
            return ((pressures(own, others) @ self._folded) * own).sum(axis=1) + self._offset
        d = own.shape[1]
        return own @ self._plain[:d] + others @ self._plain[d:] + self._offset

    @cached_property
    def _offset(self) -> float:
        return float(self.bias - (self.mean / self.spread) @ self.weights)

    @cached_property
    def _folded(self) -> np.ndarray:
        d = len(self.scale)
        return np.ascontiguousarray((self.weights / self.spread).reshape(d, -1).T)

    @cached_property
    def _plain(self) -> np.ndarray:
        return self.weights / self.spread / np.concatenate([self.scale, self.scale])


def limits_of(slowdown: np.ndarray) -> tuple[float, float]:
    """The least and the largest slowdown that may be answered after learning from these."""
    low, high = np.quantile(slowdown, [LEARNED_QUANTILE, 1 - LEARNED_QUANTILE])
    return (
        float(np.clip(low / BEYOND, FASTEST, 1.0)),
        float(np.clip(high * BEYOND, BEYOND, SLOWEST)),
    )


def fit_linear(
    rows: AlignedRows,
    kind: LearnerKind,
    scale: np.ndarray,
    strength: float,
    seed: int,
    rounds: int = 1,
) -> LinearModel:
    """scale: (d,) of the rates. rounds: of fits again, in which runs are weighed by the errors of the fit
    before. Raises MissingExtra without scikit-learn."""
    x = ContentionFeatures(kind.form, scale).of(rows.own, rows.others)
    slowdown = np.clip(rows.slowdown, FASTEST, SLOWEST)
    # A run takes its stretches' times alone, each times its slowdown: so much does an error of one count.
    weight = rows.solo_seconds / rows.solo_seconds.mean()
    if kind.is_printed:
        weight, rounds = np.ones(len(rows)), 0
    if kind.target == "slowdown":
        y = slowdown - 1.0
    elif kind.target == "speed":
        y = 1.0 / slowdown
    else:
        y = rows.count / rows.period_seconds / scale[0]
    mean = np.average(x, axis=0, weights=weight)
    spread = np.sqrt(np.mean((x - mean) ** 2, axis=0))
    spread = np.where(spread > 1e-12, spread, 1.0)
    centre = float(np.average(y, weights=weight))
    size = float(np.sqrt(np.mean((y - centre) ** 2))) or 1.0
    x, y = (x - mean) / spread, (y - centre) / size
    estimator = _estimator(kind.learner, strength, len(x), seed)
    limits = limits_of(slowdown)
    run = rows.run_index

    def fitted(of_run: np.ndarray) -> LinearModel:
        with warnings.catch_warnings():
            # Reaching the step limit is part of choosing: a strength that converges badly predicts badly.
            warnings.simplefilter("ignore")
            estimator.fit(x, y, sample_weight=weight * of_run[run])
        weights = np.asarray(estimator.coef_, np.float64).reshape(-1)
        bias = float(np.asarray(estimator.intercept_).reshape(-1)[0])
        rest = ((centre, size), limits, scale, mean, spread, weights)
        return LinearModel(kind.form, kind.target, strength, bias, *rest)

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


def _estimator(learner: str, strength: float, n: int, seed: int) -> Any:
    try:
        from sklearn.linear_model import ElasticNet, Lasso, Ridge
        from sklearn.svm import LinearSVR
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "fit") from None
    if learner == "ridge":
        return Ridge(strength * n)
    if learner == "lasso":
        return Lasso(strength, max_iter=300)
    if learner == "elastic_net":
        return ElasticNet(strength, max_iter=300)
    return LinearSVR(C=1.0 / (strength * n), epsilon=0.01, max_iter=300, random_state=seed)
