"""The paper's linear learners by scikit-learn, on its features and target (Sec. IV-B)."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from jostle.learn.learners.counters import AlignedRows
    from studies.alignment.paper.ridge import LinearModel

# Regularisation that is tried, times the number of rows where the learner's own scale does that.
LEARNERS = {
    "ridge": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "lasso": (1e-6, 1e-5, 1e-4, 1e-3),
    "elastic_net": (1e-6, 1e-5, 1e-4, 1e-3),
    "linear_svr": (1e-3, 1e-2, 1e-1),
}


def fit_paper(rows: AlignedRows, learner: str, seed: int) -> LinearModel:
    """With the strength that errs least on workloads left out."""
    from studies.alignment.paper.ridge import fit_linear, left_out_error

    def solve(
        x: np.ndarray, y: np.ndarray, weight: np.ndarray, strength: float
    ) -> tuple[np.ndarray, float]:
        estimator = _estimator(learner, strength, len(x), seed)
        with warnings.catch_warnings():
            # Reaching the step limit is part of choosing: a strength that converges badly predicts badly.
            warnings.simplefilter("ignore")
            estimator.fit(x, y, sample_weight=weight)
        weights = np.asarray(estimator.coef_, np.float64).reshape(-1)
        return weights, float(np.asarray(estimator.intercept_).reshape(-1)[0])

    def fitted(some: AlignedRows, strength: float) -> LinearModel:
        return fit_linear(some, "linear", strength, solve=solve)

    choices = LEARNERS[learner]
    errors = [left_out_error(rows, seed, lambda some, s=s: fitted(some, s)) for s in choices]
    return fitted(rows, choices[int(np.argmin(errors))])


def _estimator(learner: str, strength: float, n: int, seed: int) -> Any:
    from sklearn.linear_model import ElasticNet, Lasso, Ridge
    from sklearn.svm import LinearSVR

    if learner == "ridge":
        return Ridge(strength * n)
    if learner == "lasso":
        return Lasso(strength, max_iter=300)
    if learner == "elastic_net":
        return ElasticNet(strength, max_iter=300)
    return LinearSVR(C=1.0 / (strength * n), epsilon=0.01, max_iter=300, random_state=seed)
