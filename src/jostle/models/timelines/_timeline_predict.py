"""What a model says of questions whose company changes, and which it takes for such."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.conformal import BEHIND, ON_THE_ACT, TIMELINE, Bounds
from jostle.models.timelines._arrival_simulation import Rates
from jostle.models.timelines._survival import outlived_bound
from jostle.models.timelines._timeline_calibration import asked_codes, told_by
from jostle.models.timelines._timelines import THROUGHOUT, Timelines

# Shares of the work, by the law, at which what is told by the time alone may come down.
_EARLIER = (0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95)


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
    timeline, from the bounds of each of its companies. Raises UnknownName, UsageError.

    What is told of a run by the time is not wider than what the same model told before, unless it is behind:
    its end is now predicted later than before, or so many like it had ended by now that earlier bounds hold
    less often. Then the outcome is `behind`, and the evidence says which. By counts of its own it is not
    wider than before unless the later count tells a later end.
    """
    seconds, bounds = _at_once(model, asked, confidence)
    on = np.flatnonzero(asked.elapsed_seconds > 0)
    if not len(on) or model.acts is None or not len(model.acts.error):
        return seconds, bounds
    some, now, late = asked.take(on), bounds.take(on), seconds[on]
    log_times = np.log(model.predict(some.colocations))
    before, of = some.earlier(log_times, _EARLIER)
    then, told_then = _at_once(model, before, confidence)
    # Of each run the least of what was told before, and what was told as it began.
    first = np.searchsorted(np.sort(of), np.arange(len(on)))
    best = np.lexsort((told_then.seconds, of))[first]
    least = then[np.lexsort((then, of))[first]]
    begun = np.empty(len(on))
    begun[of[before.elapsed_seconds == 0]] = then[before.elapsed_seconds == 0]
    most, is_told = told_then.seconds[best], np.isfinite(some.done_ratio)
    ended = model.acts.outlasted(begun, some, asked_codes(Rates(model), some), confidence)
    ended[is_told] = 0  # it tells itself how far it has come
    is_later = ~(late <= least * (1 + 1e-9))
    is_wider = now.seconds > most
    is_behind = is_wider & (is_later | (ended > 0))
    # By the time alone bounds come down in steps, so that none in between is below the next.
    earlier = np.flatnonzero(np.where(is_told, is_wider, np.isfinite(most)) & ~is_behind)
    evidence = now.evidence.copy()
    for row in np.flatnonzero(is_behind).tolist():
        why = f"{ended[row]} of its kind had ended by now"
        if is_later[row]:
            why = f"its end is told {late[row] / least[row] - 1:.1%} later than before"
        evidence[row] = f"{evidence[row]}; {why}"[:160]
    is_plain = np.isin(now.outcome, (ON_THE_ACT, TIMELINE))
    outcome = np.where(is_behind & is_plain, BEHIND, now.outcome)
    now = replace(now, outcome=outcome, evidence=evidence)
    return seconds, bounds.put(on, now.put(earlier, told_then.take(best[earlier])))


def _at_once(model: Any, asked: Timelines, confidence: float) -> tuple[np.ndarray, Bounds]:
    """Tell and bound without regard to what was told before. Returns (seconds, bounds)."""
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
