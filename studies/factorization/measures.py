"""What one fit is worth: errors, and bounds under every rule of choosing a candidate.

Source: Pitot (MLSys 2025), Sec. 5.1 (errors, margins at miscoverage .1, .09, … .01) and App. B.2 (rules).
Each rule calibrates what it bounds by on its own:

- ``default``: what the fitted model itself answers;
- ``selected``: for each confidence the quantile head with the least margin on the validation runs (the
  paper's method);
- ``naive``: the head whose quantile is nearest to the confidence;
- ``nonquantile``: the prediction itself with one offset;
- ``head 0.9``: always that head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.conformal import Calibration, Uncertainty, margin_of_errors
from jostle.operations import bound_measures, corun_groups, error_measures
from studies.splits import fit_split

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs
    from studies.splits import Split

CONFIDENCES = (0.90, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)


def measure_fit(
    runs: Runs, method: Any, split: Split, seed: int, clock: Callable[[], float]
) -> list[dict[str, Any]]:
    """Rows with `rule`, `group`, `metric`, `confidence`, `value`; rule, group and confidence are None
    where a metric has none. group: `solo`, `corun`, and `corun_2` … where numbers of co-runners differ."""
    model, seconds = fit_split(runs, method, split, seed=seed, clock=clock)
    parts = (split.train, split.validation, split.calibration, split.test)
    train, validation, calibration, test = (runs.take(index) for index in parts)
    rows = [
        _row(None, "train_seconds", seconds),
        _row(None, "train_runs", float(len(train))),
        _row(None, "test_runs", float(len(test))),
    ]
    answerable = _answerable(test, train, validation)
    asked = test.take(answerable)
    predicted = np.full(len(test), np.nan)
    predicted[answerable] = model.predict(asked.colocations)
    groups = corun_groups(test)
    for group, inside in groups.items():
        errors = error_measures(predicted[inside], test.runtime_seconds[inside])
        rows += [_row(group, f"{name}_ratio", value) for name, value in errors.items()]
    by_rule = {"default": {c: model.bound(asked.colocations, c).seconds for c in CONFIDENCES}}
    by_rule |= _bounds_by_rule(model.predictor, validation, calibration, asked, split.by)
    for rule, seconds_at in by_rule.items():
        for confidence, results in seconds_at.items():
            bound = np.full(len(test), np.inf)
            bound[answerable] = results
            for group, inside in groups.items():
                values = bound_measures(bound[inside], test.runtime_seconds[inside])
                rows += [
                    _row(group, f"{name}_ratio", value, rule, confidence)
                    for name, value in values.items()
                ]
    return rows


def _row(
    group: str | None,
    metric: str,
    value: float,
    rule: str | None = None,
    confidence: float | None = None,
) -> dict[str, Any]:
    return {
        "rule": rule,
        "group": group,
        "metric": metric,
        "confidence": confidence,
        "value": None if math.isnan(value) else value,
    }


def _answerable(test: Runs, train: Runs, validation: Runs) -> np.ndarray:
    """(n,) bool: all names occur in what was observed; a name never met has no answer."""
    parts = (train.colocations, validation.colocations)
    workloads = set().union(*(part.workload_names for part in parts))
    platforms = set().union(*(part.platform_names for part in parts))
    workloads |= set(train.features_of("workload")[0])
    platforms |= set(train.features_of("platform")[0])
    return test.colocations.known_in(sorted(workloads), sorted(platforms))


def _bounds_by_rule(
    predictor: Any, validation: Runs, calibration: Runs, test: Runs, by: str
) -> dict[str, dict[float, np.ndarray]]:
    """Bounds (n,) in seconds by rule and confidence; none without quantile heads."""
    quantiles = getattr(predictor, "quantiles", ())
    if not quantiles:
        return {}
    rules = {f"head {q:g}": _Head(predictor, place) for place, q in enumerate(quantiles)}
    none = validation.take([])
    out: dict[str, dict[float, np.ndarray]] = {}
    for rule, one in {"nonquantile": _Head(predictor, None), **rules}.items():
        results = Calibration.fit(one, none, calibration, by=by)
        out[rule] = {c: results.bound(one, test.colocations, c).seconds for c in CONFIDENCES}
    seen = validation.colocations
    error = {
        name: np.log(validation.runtime_seconds) - head.uncertainty(seen).log_runtime
        for name, head in rules.items()
    }
    out["selected"], out["naive"] = {}, {}
    for c in CONFIDENCES:
        width = {name: margin_of_errors(e, np.ones(len(e)), c) for name, e in error.items()}
        out["selected"][c] = out[min(width, key=lambda name: width[name])][c]
        out["naive"][c] = out[f"head {min(quantiles, key=lambda q: abs(q - c)):g}"][c]
    return out


class _Head:
    """A quantile head of a factorization, or its prediction (None), with the same offset everywhere."""

    def __init__(self, predictor: Any, place: int | None) -> None:
        self.predictor, self.place = predictor, place

    def uncertainty(self, asked: Colocations) -> Uncertainty:
        if self.place is None:
            return Uncertainty.unknown(self.predictor.predict(asked))
        log = self.predictor.log_quantile(self.predictor.codes(asked), self.place)
        return Uncertainty.unknown(np.exp(log))
