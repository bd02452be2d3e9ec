"""What one fit is worth: errors, and bounds under every rule of choosing a candidate.

Source: Pitot (MLSys 2025), Sec. 5.1 (errors, margins at miscoverage .1, .09, … .01) and App. B.2 (rules).
The fit is asked once; each rule then calibrates a part of its candidates on its own:

- ``default``: what the fitted model itself answers;
- ``selected``: the quantile head with the least margin on the validation runs (the paper's method);
- ``naive``: the head whose quantile is nearest to the confidence;
- ``nonquantile``: the prediction itself with one offset;
- ``head 0.9``: always that head.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.conformal import Calibration, Candidates, candidates_of
from jostle.operations import bound_measures, corun_groups, error_measures
from studies.splits import fit_split

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs
    from studies.splits import Split

CONFIDENCES = (0.90, 0.91, 0.92, 0.93, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99)
HEAD = "quantile "
PLAIN = "same everywhere"


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
    queries = tuple(part.colocations for part in (validation, calibration, asked))
    kept = _Kept(model.predictor, queries)
    by_rule = {
        "default": {
            c: model.calibration.bound(kept, asked.colocations, c).seconds for c in CONFIDENCES
        }
    }
    by_rule |= _bounds_by_rule(kept, validation, calibration, asked, split.by)
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
    kept: _Kept, validation: Runs, calibration: Runs, test: Runs, by: str
) -> dict[str, dict[float, np.ndarray]]:
    """Bounds (n,) in seconds by rule and confidence; none without quantile heads."""
    heads = {
        float(name.removeprefix(HEAD)): place
        for place, name in enumerate(kept.names)
        if name.startswith(HEAD)
    }
    if not heads:
        return {}
    chosen = {
        "selected": list(heads.values()),
        "nonquantile": [kept.names.index(PLAIN) if PLAIN in kept.names else 0],
    }
    chosen |= {f"head {quantile:g}": [place] for quantile, place in heads.items()}
    out: dict[str, dict[float, np.ndarray]] = {}
    for rule, places in chosen.items():
        some = kept.only(places)
        results = Calibration.fit(some, validation, calibration, by=by)
        out[rule] = {c: results.bound(some, test.colocations, c).seconds for c in CONFIDENCES}
    out["naive"] = {
        c: out[f"head {min(heads, key=lambda q: abs(q - c)):g}"][c] for c in CONFIDENCES
    }
    return out


class _Kept:
    """A predictor's candidates for a few sets of co-locations, asked once and kept."""

    def __init__(self, predictor: Any, queries: tuple[Colocations, ...]) -> None:
        self.found = [(query, candidates_of(predictor, query)) for query in queries]

    @property
    def names(self) -> tuple[str, ...]:
        return self.found[0][1].names

    def only(self, places: list[int]) -> _Kept:
        """Those of the candidates, each one way to bound."""
        some = _Kept(None, ())
        for query, every in self.found:
            names = tuple(every.names[at] for at in places)
            chosen = Candidates(names, every.centre[places], every.scale[places])
            some.found.append((query, chosen))
        return some

    def candidates(self, asked: Colocations) -> Candidates:
        return next(candidates for query, candidates in self.found if query is asked)
