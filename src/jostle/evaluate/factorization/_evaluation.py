"""The Pitot protocol: fit on an observed part, test on the rest.

Source: Pitot (MLSys 2025), Sec. 4. Of the observed runs 80% are trained on and 20% held for validation
and calibration. Errors are |predicted - true| / true in seconds; margins and coverage as in `bounds`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import coverage, margin
from jostle.errors import BadData, NotEnoughRuns, UnreadableFile, UsageError
from jostle.evaluate.study._coverage import Covered, coverage_by_group
from jostle.models import Model, fit

if TYPE_CHECKING:
    from jostle.factorization import Factorization
    from jostle.runs import Runs

CONFIDENCES = (0.90, 0.95, 0.99)


@dataclass(frozen=True)
class Split:
    """Indices into the runs: to fit, to validate, to calibrate, to test; by: how they were drawn."""

    train: np.ndarray
    validation: np.ndarray
    calibration: np.ndarray
    test: np.ndarray
    by: str


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
    method: Factorization,
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


def metrics_of(
    test: Runs, predicted: np.ndarray, bounds: dict[float, np.ndarray]
) -> dict[str, float]:
    """mape_*, coverage_* and margin_* ratios, alone (`solo`) and with co-runners (`corun`), and for
    each number of co-runners where there are several."""
    actual = test.runtime_seconds
    degree = test.colocations.number_of_corunners
    groups = {"solo": degree == 0, "corun": degree > 0}
    several = np.unique(degree[degree > 0])
    if len(several) > 1:
        groups |= {f"corun_{d}": degree == d for d in several}
    metrics = {}
    for name, inside in groups.items():
        answered = inside & np.isfinite(predicted)
        if not answered.any():
            continue
        error = np.abs(predicted[answered] - actual[answered]) / actual[answered]
        metrics[f"mape_{name}_ratio"] = float(error.mean())
        metrics[f"median_error_{name}_ratio"] = float(np.median(error))
        metrics[f"unanswered_{name}_ratio"] = float(1 - answered.sum() / inside.sum())
        for confidence, seconds in bounds.items():
            at = f"{round(100 * confidence)}_{name}_ratio"
            metrics[f"coverage_{at}"] = coverage(seconds[inside], actual[inside])
            valid = inside & np.isfinite(seconds)
            metrics[f"margin_{at}"] = margin(seconds[valid], actual[valid])
            metrics[f"no_bound_{at}"] = float(1 - valid.sum() / inside.sum())
    return metrics


def observed_split(runs: Runs, observed: float, seed: int, by: str = "window") -> Split:
    """The paper's split: `observed` of the runs, 80% of them to train on; the rest is the test."""
    from jostle.runs import split_rows

    if not 0 < observed < 1:
        raise UsageError(f"observed {observed} is not between 0 and 1")
    shares = (0.8 * observed, 0.12 * observed, 0.08 * observed, 1 - observed)
    parts = split_rows(runs, shares, seed, by=by)
    return _checked(Split(*parts, by=by), runs)


def file_split(runs: Runs, path: str | os.PathLike[str], seed: int) -> Split:
    """A split from an .npz file: row numbers `mf_train`, `mf_val`, `mf_test` among the runs alone and
    `if2_…` (`if3_…`) among those with one (two) co-runners, in the order of the published files.

    The validation rows are divided, with the seed, into a part that picks checkpoint and candidate and a
    part that calibrates. Raises UnreadableFile and BadData.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            given = {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise UnreadableFile(f"not a readable .npz file: {error}", where=str(path)) from None
    degree = runs.colocations.number_of_corunners
    order = _published_order(runs)
    parts: dict[str, list[np.ndarray]] = {"train": [], "val": [], "calibrate": [], "test": []}
    random = np.random.default_rng(seed)
    for prefix, corunners in (("mf", 0), *((f"if{k + 1}", k) for k in range(1, 16))):
        if f"{prefix}_train" not in given:
            continue
        inside = order[degree[order] == corunners]
        for part in ("train", "val", "test"):
            name = f"{prefix}_{part}"
            if name not in given:
                raise BadData(f"there is no {name!r}", where=str(path))
            rows = given[name]
            if len(rows) and (rows.min() < 0 or rows.max() >= len(inside)):
                raise BadData(
                    f"{name} names row {int(rows.max())}, but the dataset has {len(inside)} runs "
                    f"with {corunners} co-runners",
                    where=str(path),
                )
            index = inside[rows]
            if part == "val":
                index = random.permutation(index)
                cut = round(0.6 * len(index))
                parts["calibrate"].append(np.sort(index[cut:]))
                index = np.sort(index[:cut])
            parts[part].append(index)
    if not parts["train"]:
        raise BadData("there is no 'mf_train'", where=str(path), fix="See the documentation.")
    merged = {k: np.sort(np.concatenate(v)) for k, v in parts.items()}
    split = Split(merged["train"], merged["val"], merged["calibrate"], merged["test"], by="row")
    return _checked(split, runs)


def _published_order(runs: Runs) -> np.ndarray:
    """Row order of the published files: the dataset's own, or by `source_row` where it is kept."""
    if "source_row" not in runs.table.column_names:
        return np.arange(len(runs))
    rows = np.asarray(runs.table.column("source_row").to_numpy(), np.float64)
    files = np.asarray(runs.table.column("source_file").to_pylist(), object).astype(str)
    return np.lexsort([rows, files])


def _checked(split: Split, runs: Runs) -> Split:
    ok = runs.is_ok
    kept = {
        name: index[ok[index]]
        for name, index in vars(split).items()
        if isinstance(index, np.ndarray)
    }
    empty = [name for name, index in kept.items() if len(index) == 0]
    if empty:
        raise NotEnoughRuns(
            f"the {' and '.join(empty)} part of the split is empty ({len(runs)} runs in all)",
            fix="Observe a larger share, or measure more runs.",
        )
    return Split(**kept, by=split.by)
