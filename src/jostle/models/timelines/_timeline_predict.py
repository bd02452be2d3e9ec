"""What a model says of questions whose company changes, and which it takes for such."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.conformal import Bounds
from jostle.models.timelines._arrival_simulation import Rates
from jostle.models.timelines._survival import outlived_bound
from jostle.models.timelines._timeline_calibration import asked_codes, told_by
from jostle.models.timelines._timelines import THROUGHOUT, Timelines


def over_time(model: Any, asked: Any, *, throughout: bool = False) -> Any:
    """Take Timelines or Colocations that do not say of which company they speak, as they are meant: to a
    model of a log, whatever may come from now on; to another, or `throughout`, those who are named. So it
    is where the last of them is still to come, and of names that the model does not know."""
    if throughout or model.acts is None:
        return asked
    timed = asked if isinstance(asked, Timelines) else Timelines.of_colocations(asked)
    is_open = timed.start_seconds[timed.last] <= timed.elapsed_seconds
    is_open[timed.row[~timed.colocations.known_in(*Rates(model).names)]] = False
    return replace(timed, is_open=is_open) if is_open.any() else asked


def told(model: Any, asked: Timelines) -> np.ndarray:
    """Predict (n,) seconds from start to end. Raises UnknownName, UsageError."""
    acts = model.acts
    if acts is None:
        return told_by(Rates(model), asked, None)
    return told_by(Rates(model), asked, acts.newcomers, correction=acts.correction)


def bounded(model: Any, asked: Timelines, confidence: float) -> tuple[np.ndarray, Bounds]:
    """Return (predictions, bounds). They are on the act if the model learned from a log; else, of a known
    timeline, from the bounds of each of its companies. Raises UnknownName, UsageError."""
    seconds = told(model, asked)
    rates, fitted = Rates(model), model.as_fitted
    own = seconds if fitted is model else told(fitted, asked)
    if model.acts is None or not len(model.acts.error):
        bounds = outlived_bound(model, asked, confidence)
    else:
        log_times = np.log(model.predict(asked.colocations))
        codes = asked_codes(rates, asked)
        on_act = model.acts.bound(own, asked, log_times, codes, confidence)
        if model.moved is not None:
            on_act = model.moved.bounded(model, asked.colocations.take(asked.last), on_act)
        is_plain = np.array([o == THROUGHOUT for o in asked.over]) & (asked.elapsed_seconds == 0)
        # What the replay is too short for keeps the bound of its companies, where those are known.
        own_way = np.flatnonzero(is_plain | (~on_act.is_valid & ~asked.is_open))
        bounds = on_act.put(own_way, outlived_bound(model, asked.take(own_way), confidence))
    return seconds, replace(bounds, seconds=np.fmax(bounds.seconds, seconds))
