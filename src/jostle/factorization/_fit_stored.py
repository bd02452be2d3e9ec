"""Fitting runs that stay on disk: the same model, with batches drawn from mapped files.

Memory holds the parameters, the order in which runs are drawn (8 bytes a run), and, while the baseline is
fitted, three numbers a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.factorization._baseline import baseline_of
from jostle.factorization._codes import Codes
from jostle.factorization._fit import (
    drawn_of,
    features_of_names,
    fitted_of,
    score_on,
    with_spread_of,
)
from jostle.factorization._fitted import FittedFactorization
from jostle.factorization._settings import FactorizationSettings
from jostle.factorization.beside._fit_measured import LeftOutRuns, Seen, errors_of, with_measured
from jostle.factorization.training._members import (
    Parts,
    combine,
    schedule_of,
    shape_of,
    train_member,
)
from jostle.factorization.training._rows import Rows, TrainingData
from jostle.methods import Baseline, RunCounts
from jostle.progress import Progress, share_of
from jostle.runs import Runs, StoredPart, StoredRuns


@dataclass(frozen=True)
class StoredRows:
    """Training rows of a stored part, read as they are asked for."""

    part: StoredPart
    width: int
    baseline: Baseline

    def __len__(self) -> int:
        return len(self.part)

    def take(self, index: np.ndarray) -> Rows:
        workload, platform = self.part.workload[index], self.part.platform[index]
        base = self.baseline.workload[workload] + self.baseline.platform[platform]
        return Rows(
            workload,
            platform,
            self.part.padded(index, self.width),
            self.part.log_runtime[index] - base,
        )


def fit_stored(
    method: FactorizationSettings,
    runs: StoredRuns,
    validation: Runs,
    seed: int,
    progress: Progress | None,
) -> FittedFactorization:
    """See Factorization.fit. Members differ in their seeds alone, and validation runs tell how errors
    spread; quantile heads are not trained."""
    names = (runs.workload_names, runs.platform_names)
    features = features_of_names(method, runs, *names)
    baseline, notes = _baseline(runs, features)
    size = len(runs)
    counts = RunCounts.of(runs)
    shape = shape_of(method, size, len(names[0]) * len(names[1]))
    schedule = schedule_of(method, size, shape)

    def model_of(parts: Parts) -> FittedFactorization:
        return fitted_of(method, names, combine(parts, baseline, shape), counts, (), notes)

    data = TrainingData(
        StoredRows(runs.alone, 0, baseline),
        StoredRows(runs.beside, max(runs.beside.most_corunners, 1), baseline),
        *features,
        score_on(validation, model_of),
    )
    members = [
        train_member(
            data,
            shape,
            schedule,
            (),
            seed + 1000 * number,
            share_of(progress, number, method.members),
        )
        for number in range(method.members)
    ]
    fitted = model_of(members)
    parts = [_sample(part, seed) for part in (runs.alone, runs.beside)]
    training = [errors_of(fitted, part) for part in parts]
    if len(validation):
        parts.append(Seen.of(fitted, validation))
    known = Seen(
        Codes.concatenate([part.codes for part in parts]),
        np.concatenate([part.log_runtime for part in parts]),
    )
    folds = []
    if len(validation):
        folds.append(
            LeftOutRuns(np.arange(len(known.codes)) >= len(known.codes) - len(validation), fitted)
        )
    fitted, held_out = with_measured(fitted, known, folds, seed, len(runs.beside) > 0)
    return with_spread_of(fitted, held_out, training, (features[0].category, features[1].category))


def _sample(part: StoredPart, seed: int) -> Seen:
    """Of the runs trained on."""
    index = drawn_of(np.arange(len(part)), seed)
    corunner = part.padded(index, part.most_corunners)
    row, place = np.nonzero(corunner >= 0)
    codes = Codes(part.workload[index], part.platform[index], corunner[row, place], row)
    return Seen(codes, part.log_runtime[index].astype(np.float64))


def _baseline(runs: StoredRuns, features: Any) -> tuple[Baseline, tuple[str, ...]]:
    def both(name: str) -> np.ndarray:
        return np.concatenate([getattr(runs.alone, name), getattr(runs.beside, name)])

    alone = np.arange(len(runs)) < len(runs.alone)
    return baseline_of(both("workload"), both("platform"), alone, both("log_runtime"), *features)
