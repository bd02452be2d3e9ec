"""What a model is given, as questions: co-locations, timelines, or a table of them."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from jostle._base.documents import unknown_sentences


def questions_of(model: Any, given: Any, *, throughout: bool = False) -> Any:
    """Return co-locations or timelines as they are, and those in the rows of a table. throughout: see
    over_time."""
    if hasattr(given, "to_dict") and not hasattr(given, "columns"):  # a row of pandas
        given = given.to_dict()
    row: Any = given
    if isinstance(given, Mapping) and isinstance(row.get("workload"), str):
        row = [row]
    if not _is_table(row):
        _warn_of_unknown_names(model, row)
        return row
    from jostle.models._answered_table import colocations_of
    from jostle.models.timelines._timeline_predict import over_time

    asked = colocations_of(model, row)
    _warn_of_unknown_names(model, asked)
    return over_time(model, asked, throughout=throughout)


def _warn_of_unknown_names(model: Any, asked: Any) -> None:
    """Warn who called the model of names that it does not know, with the known ones that they are like.
    Callers in Jostle are not warned: their own answers say it."""
    caller = sys._getframe(3)
    asked = getattr(asked, "colocations", asked)
    if caller.f_globals.get("__name__", "").startswith("jostle.") or not hasattr(asked, "corunner"):
        return
    predictor = model.predictor
    if not getattr(predictor, "answers_new_names", False):
        return  # it refuses them by name
    workloads, platforms = predictor.workload_names, predictor.platform_names
    if set(asked.workload_names) <= set(workloads) and set(asked.platform_names) <= set(platforms):
        return
    used = np.unique(np.concatenate([asked.workload, asked.corunner]))
    sentences = (
        *unknown_sentences("workload", (asked.workload_names[code] for code in used), workloads),
        *unknown_sentences(
            "platform",
            (asked.platform_names[code] for code in np.unique(asked.platform)),
            platforms,
        ),
    )
    if sentences:
        text = f"{' '.join(sentences)} What is unknown is taken for a typical one."
        warnings.warn(text, UserWarning, stacklevel=4)


def _is_table(given: Any) -> bool:
    """Tell whether it is a table of questions, or rows of one, and no questions as such."""
    if hasattr(given, "number_of_corunners") or hasattr(given, "elapsed_seconds"):
        return False
    rows: list[Any] = given[:1] if hasattr(given, "append") else [given]
    return bool(rows) and all(isinstance(one, Mapping) or hasattr(one, "columns") for one in rows)
