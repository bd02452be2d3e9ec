"""One fit of a method on a part of a dataset, and what it is worth on the rest.

Source: Pitot (MLSys 2025), Sec. 4. Errors are |predicted - true| / true in seconds; margins and coverage as
in `bounds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jostle.evaluate._coverage import Covered, coverage_by_group
from jostle.evaluate._measures import metrics_of
from jostle.evaluate._splits import Split
from jostle.models import Model, fit

if TYPE_CHECKING:
    from jostle.methods import Learner
    from jostle.progress import Progress
    from jostle.runs import Runs

CONFIDENCES = (0.90, 0.95, 0.99)


@dataclass(frozen=True)
class Evaluation:
    """metrics: by documented name. coverage: of groups of test runs."""

    metrics: dict[str, float]
    coverage: list[Covered]


def fit_split(
    runs: Runs,
    method: Learner[Any],
    split: Split,
    *,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
    progress: Progress | None = None,
) -> tuple[Model, float]:
    """(the calibrated model, seconds that it took); nothing of the split's test is seen."""
    began = clock()
    model = fit(
        runs.take(split.train),
        method,
        seed=seed,
        validation=runs.take(split.validation),
        calibration=runs.take(split.calibration),
        calibrate_by=split.by,
        progress=progress,
    )
    return model, clock() - began


def evaluate_method(
    runs: Runs,
    method: Learner[Any],
    split: Split,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Evaluation:
    """Fit on the split's train part, calibrate, and measure on its test part."""
    model, seconds = fit_split(runs, method, split, seed=seed, progress=progress)
    test = runs.take(split.test)
    bounds = {c: model.bound(test.colocations, c).seconds for c in CONFIDENCES}
    metrics = metrics_of(test, model.predict(test.colocations), bounds)
    metrics |= {"train_seconds": seconds, "test_runs": float(len(test))}
    return Evaluation(metrics, coverage_by_group(test, bounds))
