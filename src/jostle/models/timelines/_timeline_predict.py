"""What a model says of questions whose company changes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.conformal import Bounds
from jostle.models.timelines._arrival_simulation import Rates
from jostle.models.timelines._survival import outlived_bound
from jostle.models.timelines._timeline_calibration import QUARTERS, asked_codes, told_by
from jostle.models.timelines._timelines import THROUGHOUT, Timelines


def told(model: Any, asked: Timelines) -> np.ndarray:
    """(n,) seconds from start to end. Raises UnknownName, UsageError."""
    newcomers = None if model.acts is None else model.acts.newcomers
    return told_by(Rates(model), asked, newcomers)


def bounded(model: Any, asked: Timelines, confidence: float) -> tuple[np.ndarray, Bounds]:
    """(told, bounds). On the act where the model learned from a log; else, of a known timeline, from the
    bounds of each of its companies. Raises UnknownName, UsageError."""
    seconds = told(model, asked)
    apart = model.calibration_model
    rates = Rates(apart)
    own = seconds if apart is model else told(apart, asked)
    if model.acts is None or not len(model.acts.score):
        bounds = outlived_bound(apart, asked, confidence, np.ones(len(asked), bool))
    else:
        log_times = np.log(apart.predict(asked.colocations))
        quarter = np.floor(QUARTERS * np.nan_to_num(asked.progress(log_times)[0])).astype(int)
        codes = asked_codes(rates, asked)
        on_act = model.acts.bound(own, asked, np.minimum(quarter, QUARTERS - 1), codes, confidence)
        is_plain = np.array([o == THROUGHOUT for o in asked.over]) & (asked.elapsed_seconds == 0)
        # What the replay is too short for keeps the bound of its companies, where those are known.
        own_way = is_plain | (~on_act.is_valid & ~asked.is_open)
        theirs = np.flatnonzero(~own_way)
        bounds = outlived_bound(apart, asked, confidence, own_way).put(theirs, on_act.take(theirs))
    return seconds, replace(bounds, seconds=np.fmax(bounds.seconds, seconds))
