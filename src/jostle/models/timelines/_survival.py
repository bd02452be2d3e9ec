"""Bounds of a known timeline from those of each of its companies, also of a run that goes on.

A run that has gone on for long is no longer any run: of those as slow as the bound of nine in ten, none is
over at it. Where a share s of all runs lasts longer than it has run by now, the bound of any run at 1 - (1 -
confidence) s is one of such a run at that confidence. How large s is, the model's own bounds tell: the least
confidence whose bound is not over yet; before the predicted end, under which no bound lies, as much is over
as would last as many times longer than predicted.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.conformal import BEHIND, TIMELINE, Bounds
from jostle.models.timelines._timelines import THROUGHOUT, Timelines

_HALVINGS = 6  # of confidence, by which the share that lasts longer is found


def outlived_bound(model: Any, asked: Timelines, confidence: float) -> Bounds:
    """Bound n timelines, given how long each has run; open timelines get no bound. A run that reports its own
    progress is bounded by that instead. If a run has outlived the calibration runs, its outcome is `behind`.
    """
    bounds = _integrated(asked, model.bound(asked.colocations, confidence))
    by_time = (asked.elapsed_seconds > 0) & np.isnan(asked.done_ratio) & ~asked.is_open
    on = np.flatnonzero(by_time & np.isfinite(bounds.seconds))
    if not len(on):
        return bounds
    elapsed = asked.elapsed_seconds[on]
    begun = _begun(asked.take(on))
    predicted = begun.runtime(np.log(model.predict(begun.colocations)))
    sooner = elapsed <= predicted
    reached = np.where(sooner, predicted**2 / elapsed, elapsed)
    least, over = np.zeros(len(on)), np.ones(len(on))
    for _ in range(_HALVINGS):
        middle = (least + over) / 2
        for level in np.unique(middle).tolist():
            here = np.flatnonzero(middle == level)
            ended = _whole(model, begun.take(here), level).seconds < reached[here]
            least[here[ended]], over[here[~ended]] = level, level
    before = np.where(over < 1, np.maximum(least, 0.5), 1)
    lasting = np.where(sooner, before, np.minimum(1 - over, 0.5))
    for share in np.unique(lasting[lasting < 1]).tolist():
        rows = on[lasting == share]
        if share:
            some = _whole(model, _begun(asked.take(rows)), 1 - (1 - confidence) * share)
        else:  # nobody that was measured lasted so long
            some = replace(bounds.take(rows), seconds=np.full(len(rows), np.inf))
        outcome = np.where(np.isfinite(some.seconds), BEHIND, "too_few_runs")
        bounds = bounds.put(rows, replace(some, outcome=outcome))
    return bounds


def _begun(asked: Timelines) -> Timelines:
    """Reset the questions as if none of it had run."""
    return replace(asked, elapsed_seconds=np.zeros(len(asked)))


def _whole(model: Any, begun: Timelines, confidence: float) -> Bounds:
    return _integrated(begun, model.bound(begun.colocations, confidence))


def _integrated(asked: Timelines, each: Bounds) -> Bounds:
    """Bound runs that go at the bound of each company; with one company that is its bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        seconds = asked.runtime(np.log(each.seconds))
    seconds = np.where(np.isnan(seconds) | asked.is_open, np.inf, seconds)
    now = asked.now
    infinite = ~np.isfinite(each.seconds)
    worst = now.copy()
    worst[asked.row[infinite]] = np.flatnonzero(infinite)
    at = np.where(np.isfinite(seconds), now, worst)
    is_plain = np.array([over == THROUGHOUT for over in asked.over], bool)
    is_plain &= asked.elapsed_seconds == 0
    outcome = np.where(is_plain | ~np.isfinite(seconds), each.outcome[at], TIMELINE).astype("<U20")
    outcome[asked.is_open] = "too_few_runs"
    return Bounds(
        seconds,
        outcome,
        each.pool[at],
        each.n[at],
        each.rank[at],
        each.confidence,
        each.evidence[at],
    )
