"""Fitting a learner: a small network of phases (`_network`), or the mixture of stressors (`_mixture`)."""

from __future__ import annotations

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.learn.learners.counters.learning._aligned_rows import AlignedRows
from jostle.learn.learners.counters.learning._answer_ranges import (
    BEYOND,
    FASTEST,
    SLOWEST,
    limits_of,
)
from jostle.learn.learners.counters.learning._network import PhaseNetwork, train
from jostle.learn.learners.counters.learning._traced_mixture import ProbedMixture, fit_mixture

Learner = PhaseNetwork | ProbedMixture
MOST_ROWS = 24_000  # rows that are learned from; more are thinned out evenly
MOST_ROWS_TO_CHOOSE = 8_000  # by which learners are compared
FEWEST_SETS = 6  # of which the second of what they reached is taken
FEWEST_INSIDE = 200  # periods inside phases that are worth learning from


def fit_learner(rows: AlignedRows, learner: str, *, seed: int = 0) -> Learner:
    """Fit `phases` or `mixture`. Raises NotEnoughRuns for no rows, MissingExtra without SciPy."""
    if len(rows) < 2:
        raise NotEnoughRuns(
            f"{len(rows)} periods are too few to learn from", fix="Trace more windows."
        )
    if learner == "mixture":
        rows = rows.thinned(MOST_ROWS)
        return fit_mixture(rows, limits_of(np.clip(rows.slowdown, FASTEST, SLOWEST)))
    # From periods inside phases; where there are next to none, from all.
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
