"""Fitting a learner, and choosing how much ridge is regularised by workloads left out.

Source: Saeed et al., MLCAD 2021, Sec. IV-B. Beside the paper's ridge stand a small network of phases
(`_network`) and the mixture of stressors (`_mixture`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jostle.alignment.learning._folds import FEWEST_SETS, folds_of
from jostle.alignment.learning._linear import (
    BEYOND,
    FASTEST,
    SLOWEST,
    LinearModel,
    fit_linear,
    limits_of,
    run_errors,
)
from jostle.alignment.learning._mixture import ProbedMixture, fit_mixture
from jostle.alignment.learning._network import PhaseNetwork, train
from jostle.alignment.learning._rows import AlignedRows
from jostle.errors import NotEnoughRuns

Learner = LinearModel | PhaseNetwork | ProbedMixture
STRENGTHS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # of ridge, times the number of rows
MOST_ROWS = 24_000  # rows that are learned from; more are thinned out evenly
MOST_ROWS_TO_CHOOSE = 8_000
FEWEST_INSIDE = 200  # periods inside phases that are worth learning from


def fit_learner(
    rows: AlignedRows,
    learner: str,
    *,
    form: str = "interacting",
    strength: float | None = None,
    seed: int = 0,
    rounds: int = 1,
) -> Learner:
    """Fit `ridge`, `phases` or `mixture`. form, strength, rounds: of ridge, see `fit_linear`; a strength of
    None is chosen by leaving out workload sets.

    Raises NotEnoughRuns for no rows, MissingExtra without SciPy.
    """
    if len(rows) < 2:
        raise NotEnoughRuns(
            f"{len(rows)} periods are too few to learn from", fix="Trace more windows."
        )
    if learner == "phases":
        return _fit_inside(rows, seed)
    rows = rows.thinned(MOST_ROWS)
    if learner == "mixture":
        return fit_mixture(rows, limits_of(np.clip(rows.slowdown, FASTEST, SLOWEST)))
    if strength is None:
        strength, few = 1e-2, rows.thinned(MOST_ROWS_TO_CHOOSE)
        if len(np.unique(rows.group)) >= 2:
            errors = {
                s: left_out_error(few, seed, lambda some, s=s: fit_linear(some, form, s))
                for s in STRENGTHS
            }
            strength = min(errors, key=lambda s: errors[s])
    return fit_linear(rows, form, strength, rounds)


def _fit_inside(rows: AlignedRows, seed: int) -> PhaseNetwork:
    """From periods inside phases; where there are next to none, from all."""
    inside = rows.inside_phases()
    rows = (inside if len(inside) >= FEWEST_INSIDE else rows).thinned(MOST_ROWS)
    slow = np.clip(rows.slowdown, FASTEST, SLOWEST)
    low, high = limits_of(slow)
    # Inside phases the largest slowdowns are no noise: what the set with the largest but one reached for a
    # twentieth of its periods may be answered.
    reached = [np.quantile(slow[rows.group == one], 0.95) for one in np.unique(rows.group)]
    if len(reached) >= FEWEST_SETS:
        high = float(np.clip(np.sort(reached)[-2] * BEYOND, high, SLOWEST))
    weight = rows.solo_seconds / rows.solo_seconds.mean()
    return train((rows.own, rows.others), slow, (low, high), weight=weight, seed=seed)


def left_out_error(rows: AlignedRows, seed: int, fit: Callable[[AlignedRows], Learner]) -> float:
    """The error of the run times of workloads left out, added up over the folds: what is systematic in a
    run counts, what averages out over its samples does not."""
    return sum(
        float(run_errors(fit(rows.take(train)), rows.take(test)).mean())
        for train, test in folds_of(rows, seed)
    )


def per_sample_error(learned: Learner, rows: AlignedRows) -> float:
    """Mean |predicted - true| instructions per period over the mean true ones (the measure of Fig. 2)."""
    predicted = rows.own[:, 0] * rows.period_seconds / learned.slowdown(rows.own, rows.others)
    return float(np.abs(predicted - rows.count).sum() / rows.count.sum())
