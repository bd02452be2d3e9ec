"""The paper's learners: a weighted sum of ranked counters.

Source: Saeed et al., MLCAD 2021, Sec. IV. A row is X = [i_j, f_j, i_k, f_k] (Algorithm 1, line 16), from
which the instructions of a period are learned. Of counters that go together one is kept, and of these the
prefix of the ranking by importance that errs least on workloads left out.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.learn.learners.counters import FASTEST, SLOWEST, AlignedRows, scale_of, select_counters

LEARNERS = ("ridge", "lasso", "elastic net", "linear SVR")
CUT = 0.4  # of the tree of counters
EVERY = 1_000  # counters: more than any machine has
MOST_ROWS = 6_000
FOLDS = 3  # in which the strength of a learner is chosen


@dataclass(frozen=True, eq=False)
class LinearModel:
    """scale: (d,) of the rates. weights: (2 d,), bias: of instructions per second over the first scale."""

    scale: np.ndarray
    weights: np.ndarray
    bias: float

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return (n,) solo speed over speed beside others, of aligned rates (n, d), instructions first."""
        x = np.concatenate([own / self.scale, others / self.scale], axis=1)
        done = (x @ self.weights + self.bias) * self.scale[0]
        return np.clip(own[:, 0] / np.maximum(done, 1e-30), FASTEST, SLOWEST)


def fit_linear(rows: AlignedRows, learner: str = "ridge") -> LinearModel:
    """Fit one of LEARNERS, its strength chosen by leaving out sets of workloads."""
    from sklearn.linear_model import ElasticNetCV, LassoCV, RidgeCV
    from sklearn.model_selection import GridSearchCV, GroupKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVR

    rows = rows.thinned(MOST_ROWS)
    scale = scale_of(rows.own)
    x = np.concatenate([rows.own / scale, rows.others / scale], axis=1)
    y = rows.count / rows.period_seconds / scale[0]
    number = min(FOLDS, len(np.unique(rows.group)))
    folds = list(GroupKFold(number).split(x, groups=rows.group)) if number > 1 else None
    svr = LinearSVR(epsilon=0.01, max_iter=300, random_state=0)
    penalties: Any = np.logspace(-6, -3, 4)
    kinds: dict[str, Any] = {
        "ridge": RidgeCV(np.logspace(-4, 2, 7) * len(x), cv=folds),
        "lasso": LassoCV(alphas=penalties, cv=folds, max_iter=300),
        "elastic net": ElasticNetCV(alphas=penalties, cv=folds, max_iter=300),
        "linear SVR": GridSearchCV(svr, {"C": np.logspace(1, 3, 3) / len(x)}, cv=folds),
    }
    standard: Any = StandardScaler()
    model = make_pipeline(standard, kinds[learner])
    with warnings.catch_warnings():
        # Reaching the step limit is part of choosing: a strength that converges badly predicts badly.
        warnings.simplefilter("ignore")
        model.fit(x, y)
    found: Any = model[-1]
    found = getattr(found, "best_estimator_", found)
    weights = np.ravel(found.coef_) / standard.scale_
    bias = float(np.ravel(found.intercept_)[0]) - float(standard.mean_ @ weights)
    return LinearModel(scale, weights, bias)


def per_sample_error(model: LinearModel, rows: AlignedRows) -> float:
    """Return the mean |predicted - true| instructions per period over the mean true ones (Fig. 2)."""
    predicted = rows.own[:, 0] * rows.period_seconds / model.slowdown(rows.own, rows.others)
    return float(np.abs(predicted - rows.count).sum() / rows.count.sum())


@dataclass(frozen=True)
class RankedCounters:
    """offered, heard: how many there were, and how many are not always zero. ranked: one of each cluster, the
    most important first. errors: per sample, of each prefix. chosen: the prefix that errs least."""

    offered: int
    heard: int
    ranked: tuple[str, ...]
    errors: tuple[float, ...]

    @property
    def chosen(self) -> tuple[str, ...]:
        return self.ranked[: int(np.argmin(self.errors)) + 1]


def rank_counters(rows: AlignedRows) -> RankedCounters:
    """Rank the counters, and try each prefix on the workload sets of the last quarter."""
    heard = (rows.own.max(axis=0) > 0) | (rows.others.max(axis=0) > 0)
    ranked = select_counters(rows, EVERY, CUT)
    groups = np.unique(rows.group)
    late = np.isin(rows.group, groups[-max(1, len(groups) // 4) :])
    if late.all():
        late = np.arange(len(rows)) >= 0.75 * len(rows)
    train, test = rows.take(~late), rows.take(late)
    errors = []
    for size in range(1, len(ranked) + 1):
        some = train.with_counters(ranked[:size])
        errors.append(per_sample_error(fit_linear(some), test.with_counters(ranked[:size])))
    return RankedCounters(len(rows.counters), int(heard.sum()), ranked, tuple(errors))
