"""Which runs a fit may see and which test it, and one fit on a split with what it is worth.

Source: Pitot (MLSys 2025), Sec. 4. Of the observed runs 80% are trained on and 20% held for validation
and calibration. Errors are |predicted - true| / true in seconds; margins and coverage as in `bounds`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._base.progress import Progress
from jostle.data import Runs, split_rows
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn import Method
from jostle.models import Model, fit
from jostle.operations import metrics_of

CONFIDENCES = (0.90, 0.95, 0.99)


@dataclass(frozen=True)
class Split:
    """Indices into the runs: to fit, to validate, to calibrate, to test; by: how they were drawn."""

    train: np.ndarray
    validation: np.ndarray
    calibration: np.ndarray
    test: np.ndarray
    by: str


def observed_split(runs: Runs, observed: float, seed: int, by: str = "window") -> Split:
    """The paper's split: `observed` of the runs, 80% of them to train on; the rest is the test."""
    if not 0 < observed < 1:
        raise UsageError(f"observed {observed} is not between 0 and 1")
    shares = (0.8 * observed, 0.12 * observed, 0.08 * observed, 1 - observed)
    parts = split_rows(runs, shares, seed, unit=by)
    return checked_split(Split(*parts, by=by), runs)


def checked_split(split: Split, runs: Runs) -> Split:
    """Without runs that are not ok. Raises NotEnoughRuns where a part is empty."""
    ok = runs.is_ok
    rows = {
        name: index[ok[index]]
        for name, index in vars(split).items()
        if isinstance(index, np.ndarray)
    }
    empty = [name for name, index in rows.items() if len(index) == 0]
    if empty:
        raise NotEnoughRuns(
            f"the {' and '.join(empty)} part of the split is empty ({len(runs)} runs in all)",
            fix="Observe a larger share, or measure more runs.",
        )
    return Split(**rows, by=split.by)


def fit_split(
    runs: Runs,
    method: Method[Any],
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
    method: Method[Any],
    split: Split,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[dict[str, float], dict[float, np.ndarray]]:
    """Fit on the split's train part, calibrate, and measure on its test part: (metrics by documented name,
    bounds (n,) in seconds by confidence)."""
    model, seconds = fit_split(runs, method, split, seed=seed, progress=progress)
    test = runs.take(split.test)
    bounds = {c: model.bound(test.colocations, c).seconds for c in CONFIDENCES}
    metrics = metrics_of(test, model.predict(test.colocations), bounds)
    return metrics | {"train_seconds": seconds, "test_runs": float(len(test))}, bounds
