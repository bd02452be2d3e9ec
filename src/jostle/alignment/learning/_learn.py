"""Fitting a learner, and choosing how much it is regularised by workloads left out.

Source: Saeed et al., MLCAD 2021, Sec. IV-B. A small network stands beside the paper's learners (see
`_network`) for what no weighted sum of features can be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jostle.alignment.learning._features import scale_of
from jostle.alignment.learning._folds import FEWEST_SETS, folds_of
from jostle.alignment.learning._forest import BoostedTrees, fit_trees
from jostle.alignment.learning._kinds import MIXTURE, PHASES, LearnerKind
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
from jostle.alignment.learning._network import (
    INSIDE,
    Network,
    NetworkT,
    PhaseNetwork,
    TrainingOptions,
    train,
)
from jostle.alignment.learning._rows import AlignedRows
from jostle.errors import NotEnoughRuns

Learner = LinearModel | Network | PhaseNetwork | BoostedTrees | ProbedMixture
# Regularisation that is tried, times the number of rows where the learner's own scale does that.
STRENGTHS = {
    "ridge": (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0),
    "lasso": (1e-6, 1e-5, 1e-4, 1e-3),
    "elastic_net": (1e-6, 1e-5, 1e-4, 1e-3),
    "linear_svr": (1e-3, 1e-2, 1e-1),
    "network": (1e-1,),
    "phases": (3e-2,),
    "trees": (1.0,),
    "mixture": (1.0,),
}
MOST_ROWS = 24_000  # rows that are learned from; more are thinned out evenly
MOST_ROWS_OF_NETWORK = 40_000
MOST_ROWS_TO_CHOOSE = 8_000
FEWEST_INSIDE = 200  # periods inside phases that are worth learning from
FURTHER = 3  # strengths that are tried beyond those, where the last one is best
ROUNDS = 1  # of fits that weigh runs by the errors of the one before


def fit_learner(
    rows: AlignedRows,
    kind: LearnerKind,
    *,
    strength: float | None = None,
    seed: int = 0,
    rounds: int = ROUNDS,
) -> Learner:
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
    if kind == PHASES:
        return _fit_inside(rows, best, seed)
    rows = rows.thinned(MOST_ROWS)
    scale = scale_of(rows.own)
    slow = np.clip(rows.slowdown, FASTEST, SLOWEST)
    if kind == MIXTURE:
        return fit_mixture(rows, limits_of(slow))
    if kind.learner == "trees":
        return fit_trees(rows, scale, limits_of(slow), seed)
    if len(choices) > 1 and len(np.unique(rows.group)) >= 2:
        best = _best_strength(rows.thinned(MOST_ROWS_TO_CHOOSE), kind, scale, choices, seed)
    return fit_linear(rows, kind, scale, best, seed, rounds)


def _best_strength(
    rows: AlignedRows, kind: LearnerKind, scale: np.ndarray, choices: Sequence[float], seed: int
) -> float:
    """The one of least error; where that is the last one, further ones are tried too."""

    def error(strength: float) -> float:
        return left_out_error(
            rows, seed, lambda some: fit_linear(some, kind, scale, strength, seed)
        )

    errors = {s: error(s) for s in choices}
    for _ in range(FURTHER):
        best = min(errors, key=lambda s: errors[s])
        if best not in (min(errors), max(errors)):
            break
        further = best * (10 if best == max(errors) else 0.1)
        errors[further] = error(further)
    return min(errors, key=lambda s: errors[s])


def at_edge(learned: LinearModel, learner: str) -> bool:
    """Whether the strength is the least or the largest that is ever tried."""
    low, high = min(STRENGTHS[learner]), max(STRENGTHS[learner])
    beyond = 10.0**FURTHER
    return not low / beyond * 1.01 < learned.strength < high * beyond / 1.01


def _fit_network(rows: AlignedRows, decay: float, seed: int) -> Network:
    slow = np.clip(rows.slowdown, FASTEST, SLOWEST)
    options = TrainingOptions(decay=decay)
    return _trained(Network, rows, slow, limits_of(slow), options, seed)


def _fit_inside(rows: AlignedRows, decay: float, seed: int) -> PhaseNetwork:
    """From periods inside phases; where there are next to none, from all."""
    inside = rows.inside_phases()
    rows = (inside if len(inside) >= FEWEST_INSIDE else rows).thinned(MOST_ROWS_OF_NETWORK)
    slow = np.clip(rows.slowdown, FASTEST, SLOWEST)
    options = replace(INSIDE, decay=decay)
    return _trained(PhaseNetwork, rows, slow, _limits_of_sets(rows, slow), options, seed)


def _trained(
    kind: type[NetworkT],
    rows: AlignedRows,
    slowdown: np.ndarray,
    limits: tuple[float, float],
    options: TrainingOptions,
    seed: int,
) -> NetworkT:
    rates, weight = (rows.own, rows.others), rows.solo_seconds / rows.solo_seconds.mean()
    how = {"weight": weight, "options": options, "seed": seed}
    return train(kind, rates, slowdown, scale_of(rows.own), limits, **how)


def _limits_of_sets(rows: AlignedRows, slowdown: np.ndarray) -> tuple[float, float]:
    """Inside phases the largest slowdowns are no noise: what the set with the largest but one reached for a
    twentieth of its periods may be answered."""
    low, high = limits_of(slowdown)
    reached = [np.quantile(slowdown[rows.group == one], 0.95) for one in np.unique(rows.group)]
    if len(reached) >= FEWEST_SETS:
        high = float(np.clip(np.sort(reached)[-2] * BEYOND, high, SLOWEST))
    return low, high


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
