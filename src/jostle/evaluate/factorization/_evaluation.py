"""The Pitot protocol: fit on an observed part, test on the rest.

Source: Pitot (MLSys 2025), Sec. 4. Errors are |predicted - true| / true in seconds; margins and coverage as
in `bounds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.evaluate.factorization._splits import Split
from jostle.evaluate.study._coverage import Covered, coverage_by_group
from jostle.evaluate.study._measures import metrics_of
from jostle.models import Model, fit

if TYPE_CHECKING:
    from jostle.methods import Learner
    from jostle.runs import Runs

CONFIDENCES = (0.90, 0.95, 0.99)


@dataclass(frozen=True)
class Evaluation:
    """metrics: by documented name. predicted, bounds: for the test runs, aligned with split.test.
    coverage: of groups of them."""

    metrics: dict[str, float]
    coverage: list[Covered]
    split: Split
    predicted: np.ndarray
    bounds: dict[float, np.ndarray]
    model: Model


def evaluate_factorization(
    runs: Runs,
    method: Learner[Any],
    split: Split,
    *,
    seed: int = 0,
    clock: Callable[[], float] = time.perf_counter,
    progress: Any = None,
) -> Evaluation:
    """Fit on the split's train part, calibrate, and measure on its test part.

    Only train, validation and calibration runs are seen before the test.
    """
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
    seconds = clock() - began
    test = runs.take(split.test)
    predicted = model.predict(test.colocations)
    bounds = {c: model.bound(test.colocations, c).seconds for c in CONFIDENCES}
    metrics = metrics_of(test, predicted, bounds)
    metrics |= {"train_seconds": seconds, "test_runs": float(len(test))}
    covered = coverage_by_group(test, bounds)
    return Evaluation(metrics, covered, split, predicted, bounds, model)
