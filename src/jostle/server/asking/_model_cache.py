"""Predictions of one service: what was asked lately is not computed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.conformal import ADAPTING
from jostle.operations import predictions, read_items, with_timelines
from jostle.server.state._served_model import Served


def predict_items(
    served: Served, items: Sequence[Any], confidence: float, throughout: bool = False
) -> tuple[Any, ...]:
    """Answer each item with a Prediction, or why there is none. throughout: see jostle.models.over_time."""
    return with_timelines(
        served.model,
        items,
        served.known,
        confidence,
        lambda some: _plain_items(served, some, confidence, throughout),
        throughout,
    )


def _plain_items(
    served: Served, items: Sequence[Any], confidence: float, throughout: bool
) -> tuple[Any, ...]:
    read, lately = read_items(items, served.known), served.bounds_lately
    how, moved = (confidence, throughout), served.moved_lately
    answers = [lately.get((how, key)) or moved.get((how, key)) for key in read.keys]
    missing = [row for row, one in enumerate(answers) if one is None]
    if missing:
        every = len(missing) == len(answers)
        some = read.colocations if every else read.colocations.take(missing)
        is_moved = served.model.moved is not None
        good = predictions(served.model, some, confidence, throughout=throughout)
        for row, one in zip(missing, good, strict=True):
            answers[row] = one
            # What has drifted changes with every run; without a bound it cannot be told whether it has.
            is_firm = one.outcome != ADAPTING and not (is_moved and one.bound_seconds is None)
            (lately if is_firm else moved).put((how, read.keys[row]), one)
    return read.listed(answers)
