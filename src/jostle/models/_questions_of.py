"""What a model is given, as questions: co-locations, timelines, or a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def questions_of(model: Any, given: Any, *, throughout: bool = False) -> Any:
    """Co-locations or timelines as they are; of a table, or a row of one, those of its rows. throughout: see
    over_time."""
    if hasattr(given, "to_dict") and not hasattr(given, "columns"):  # a row of pandas
        given = given.to_dict()
    row: Any = given
    if isinstance(given, Mapping) and isinstance(row.get("workload"), str):
        row = [row]
    if not _is_table(row):
        return row
    from jostle.models._answered_table import colocations_of
    from jostle.models.timelines._timeline_predict import over_time

    return over_time(model, colocations_of(model, row), throughout=throughout)


def _is_table(given: Any) -> bool:
    """Whether it is a table of questions, or rows of one, and no questions as such."""
    if hasattr(given, "number_of_corunners") or hasattr(given, "elapsed_seconds"):
        return False
    rows: list[Any] = given[:1] if hasattr(given, "append") else [given]
    return bool(rows) and all(isinstance(one, Mapping) or hasattr(one, "columns") for one in rows)
