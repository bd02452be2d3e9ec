"""How far slowdowns carry over to a platform where nothing ran beside others.

What others saw elsewhere may hold there, or nothing of it: platforms differ in what is shared on them. So all
runs beside others of known platforms are left out in turn, and additive effects learned on the rest tell
which share of the log slowdown is closest there, from none, which is the time alone, to all of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.learn.ensemble._folds import NAME_FOLDS, SET_FOLDS
from jostle.learn.ensemble._rules_learner import TURNS, label_of
from jostle.learn.ensemble._stacked_model import answers_of
from jostle.learn.rules._shrunk_weights import relative_error

if TYPE_CHECKING:
    from jostle.learn.ensemble._training_data import CanonicalRuns

FOLDS = SET_FOLDS + NAME_FOLDS  # of more platforms several are left out at once
SHARES = np.linspace(0, 1, 21)


def share_carried(campaign: CanonicalRuns, rules: Any, seed: int) -> float:
    """With the least mean relative error over platforms, of which each counts the same; 1 where there is no
    platform to ask about, or none that can be left out. rules: the expert of simple rules."""
    platform = campaign.codes[1]
    known = np.unique(platform[campaign.is_learned])
    if len(known) < 2 or _measured(campaign).all():
        return 1.0
    way = label_of(TURNS, "effects") if campaign.ground.takes_turns else "effects"
    cost = np.zeros(len(SHARES))
    for number in range(min(len(known), FOLDS)):
        left_out = np.isin(platform, known[np.arange(len(known)) % FOLDS == number])
        part = campaign.take(~(left_out & campaign.beside))
        asked = left_out & campaign.is_learned
        asked &= np.isfinite(part.log_alone.ravel()[campaign.cell])
        rows = campaign.rows_over(part.log_alone, part.unit_seconds).take(asked)
        experts = {"rules": rules.fit(part, (way,), seed=seed)}
        (answer,) = answers_of(experts, (way,), rows, part.ground)
        _, at, times = np.unique(platform[asked], return_inverse=True, return_counts=True)
        for place, share in enumerate(SHARES):
            error = relative_error(share * answer - rows.log_slowdown)
            cost[place] += (error / times[at]).sum()
    return float(SHARES[np.argmin(cost)])


def carried_there(part: CanonicalRuns, share: np.ndarray) -> np.ndarray:
    """(k, platforms) of log slowdowns, what is taken to hold there. share: (k,)."""
    return np.where(_measured(part), 1.0, share[:, None])


def _measured(campaign: CanonicalRuns) -> np.ndarray:
    """(platforms,) bool, whether anything ran beside others there."""
    out = np.zeros(campaign.size[0], bool)
    out[campaign.codes[1][campaign.beside]] = True
    return out
