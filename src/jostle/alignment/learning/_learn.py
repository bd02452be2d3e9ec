"""Fitting a learner, and choosing among learners by workloads left out.

Source: Saeed et al., MLCAD 2021, Sec. IV-B. A small network stands beside the paper's learners (see
`_network`) for what no weighted sum of features can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jostle.alignment.learning._features import scale_of
from jostle.alignment.learning._kinds import LearnerKind
from jostle.alignment.learning._linear import (
    FASTEST,
    SLOWEST,
    LinearModel,
    fit_linear,
    limits_of,
    run_errors,
)
from jostle.alignment.learning._network import Network, TrainingOptions, train
from jostle.alignment.learning._rows import AlignedRows
from jostle.errors import NotEnoughRuns

Learned = LinearModel | Network
# Regularisation that is tried, times the number of rows where the learner's own scale does that.
STRENGTHS = {
    "ridge": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "lasso": (1e-6, 1e-5, 1e-4, 1e-3),
    "elastic_net": (1e-6, 1e-5, 1e-4, 1e-3),
    "linear_svr": (1e-3, 1e-2, 1e-1),
    "network": (1e-1,),
}
MOST_ROWS = 24_000  # rows that are learned from; more are thinned out evenly
MOST_ROWS_OF_NETWORK = 40_000
MOST_ROWS_TO_CHOOSE = 8_000
FOLDS = 4
ROUNDS = 1  # of fits that weigh runs by the errors of the one before


def learned_from_arrays(arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> Learned:
    """The inverse of either's to_arrays."""
    kind = Network if metadata["form"] == "network" else LinearModel
    return kind.from_arrays(arrays, metadata)


def fit_learner(
    rows: AlignedRows,
    kind: LearnerKind,
    *,
    strength: float | None = None,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Learned:
    """Fit one learner. strength: of the regularisation; None chooses it by leaving out workload sets.
    rounds: of fits again, in which runs are weighed by the errors of the fit before.

    Raises NotEnoughRuns for no rows, MissingExtra without scikit-learn.
    """
    if len(rows) < 2:
        raise NotEnoughRuns(
            f"{len(rows)} periods are too few to learn from", fix="Trace more windows."
        )
    choices = STRENGTHS[kind.learner] if strength is None else (strength,)
    best = choices[len(choices) // 2]
    if kind.is_network:
        return _fit_network(rows.thinned(MOST_ROWS_OF_NETWORK), best, seed)
    rows = rows.thinned(MOST_ROWS)
    scale = scale_of(rows.own)
    if len(choices) > 1 and len(np.unique(rows.group)) >= 2:
        few = rows.thinned(MOST_ROWS_TO_CHOOSE)
        errors = [
            left_out_error(few, seed, lambda some, s=s: fit_linear(some, kind, scale, s, seed))
            for s in choices
        ]
        best = choices[int(np.argmin(errors))]
    return fit_linear(rows, kind, scale, best, seed, rounds)


def _fit_network(rows: AlignedRows, decay: float, seed: int) -> Network:
    slow, scale = np.clip(rows.slowdown, FASTEST, SLOWEST), scale_of(rows.own)
    weight = rows.solo_seconds / rows.solo_seconds.mean()
    options = TrainingOptions(decay=decay)
    return train(
        rows.own,
        rows.others,
        slow,
        scale,
        limits_of(slow),
        weight=weight,
        options=options,
        seed=seed,
    )


def choose(
    rows: AlignedRows, offers: Sequence[tuple[LearnerKind, tuple[str, ...]]], seed: int = 0
) -> tuple[LearnerKind, tuple[str, ...]]:
    """The offer, of (kind, its counters), that errs least on the run times of workloads that it did not
    learn from."""
    if len(offers) == 1 or len(np.unique(rows.group)) < 2:
        return offers[0]
    errors = []
    for kind, counters in offers:
        most = MOST_ROWS if kind.is_network else MOST_ROWS_TO_CHOOSE
        strengths = STRENGTHS[kind.learner]
        middle = strengths[len(strengths) // 2]
        errors.append(
            left_out_error(
                rows.thinned(most).with_counters(counters),
                seed,
                lambda some, kind=kind, s=middle: fit_learner(some, kind, strength=s, seed=seed),
            )
        )
    return offers[int(np.argmin(errors))]


def left_out_error(rows: AlignedRows, seed: int, fit: Callable[[AlignedRows], Learned]) -> float:
    """The error of the run times of workloads left out, added up over the folds: what is systematic in a
    run counts, what averages out over its samples does not."""
    return sum(
        float(run_errors(fit(rows.take(train)), rows.take(test)).mean())
        for train, test in folds_of(rows, seed)
    )


def folds_of(rows: AlignedRows, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Masks of rows to learn from and to test on: of windows without some workloads, and with them. Where
    there are too few workloads for that, whole sets are left out instead."""
    names = sorted({name for group in np.unique(rows.group) for name in rows.sets[group]})
    random = np.random.default_rng(seed)
    found = []
    for held in np.array_split(random.permutation(names), min(FOLDS, len(names))):
        touched = np.array([any(name in held for name in group) for group in rows.sets], bool)
        test = touched[rows.group]
        found.append((~test, test))
    # A fold that leaves too little to learn from would choose for the wrong reason.
    if all(train.sum() >= 0.2 * len(rows) and test.any() for train, test in found):
        return found
    groups = np.unique(rows.group)
    if len(groups) < 2:  # nothing to tell apart by: later periods from earlier ones
        late = np.arange(len(rows)) >= 0.75 * len(rows)
        return [(~late, late)]
    held_out = np.array_split(random.permutation(groups), min(FOLDS, len(groups)))
    tests = [np.isin(rows.group, held) for held in held_out]
    return [(~test, test) for test in tests]


def per_sample_error(learned: Learned, rows: AlignedRows) -> float:
    """Mean |predicted - true| instructions per period over the mean true ones (the measure of Fig. 2)."""
    predicted = rows.own[:, 0] * rows.period_seconds / learned.slowdown(rows.own, rows.others)
    return float(np.abs(predicted - rows.count).sum() / rows.count.sum())
