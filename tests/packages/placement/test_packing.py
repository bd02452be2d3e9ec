"""The parts of a packing by hand: columns kept once, what they cost, room, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.placement import Assignment, Placed, Standard, Unplaced
from jostle.placement.assign._packing_columns import Columns
from jostle.placement.assign._packing_problem import Problem

COUNTS, COPIES, WORTH = np.array([2, 1, 3]), np.array([2, 1]), np.array([1.0, 5.0, 2.0])
STAY = np.array([np.nan, 7200.0, np.nan])


def problem(**changed: Any) -> Problem:
    """Three kinds of requests on two kinds of nodes; what it has room for needs no model."""
    bare = Problem.__new__(Problem)
    known = {
        "kinds": [None] * 3,
        "places": [None] * 2,
        "counts": COUNTS,
        "copies": COPIES,
        "worth": WORTH,
        "stay": STAY,
        "prices": np.array([3.0, 10.0]),
        "is_used": np.array([False, True]),
        "slots": np.array([2, 3]),
        "permitted": np.array([[True, True, True], [True, False, True]]),
        "has_apart": False,
        "_free": np.array([4.0, 6.0]),
        "_memory": np.array([1.0, 2.0, 3.0]),
    }
    for name, value in (known | changed).items():
        setattr(bare, name, value)
    return bare


def columns_of(sets: list[tuple[int, list[int], list[float]]], **changed: Any) -> Columns:
    columns = Columns(problem(**changed))
    for place, items, seconds in sets:
        columns.add(np.array([place]), np.array([items]), np.array([seconds]))
    return columns


SETS = [(0, [0], [10.0]), (1, [2, 0], [7.0, 9.0]), (0, [1, 2], [3600.0, 4.0]), (1, [0, 0], [5, 6])]


def test_a_set_is_kept_once_with_its_seconds_in_order() -> None:
    columns = columns_of(SETS)
    assert columns.add(np.array([1, 1]), np.array([[0, 2], [2, 0]]), np.ones((2, 2))) == 0
    assert columns.add(np.array([0, 0]), np.array([[0, 2], [2, 0]]), np.ones((2, 2))) == 1
    assert columns.place.tolist() == [0, 1, 0, 1, 0]
    assert columns.items.tolist() == [[0, -1], [0, 2], [1, 2], [0, 0], [0, 2]]
    assert columns.seconds[:4] == pytest.approx(
        np.array([[10, np.nan], [9, 7], [3600, 4], [5, 6]]), nan_ok=True
    )
    assert columns.worth.tolist() == [1, 3, 7, 2, 3]
    few = columns.take(np.array([2, 0]))
    assert (few.worth.tolist(), len(few)) == ([7, 1], 2)


def assignment(unplaced: int, *, optimal: bool = False, **more: Any) -> Assignment:
    placed = [
        Placed("b", "w", "n2", "p", 2.0, 4.0),
        Placed("a", "w", "n1", "q", 3.0, None),
        Placed("c", "w", "n2", "p", 1.0, 4.0),
    ]
    rest = [Unplaced(f"u{i}", "w", "no_slot") for i in range(unplaced)]
    items = (*rest, *placed)
    return Assignment("most_accepted", Standard(), items, 3.0, 4.0, 2.0, 1.0, optimal, 2, **more)


def said(answer: Assignment) -> str:
    return "\n".join(part for part in answer.report().tables if isinstance(part, str))


def test_an_answer_says_who_is_where_and_who_is_not() -> None:
    whole = assignment(0)
    assert (whole.is_complete, whole.exit_code) == (True, 0)
    assert [one.request for one in whole.placed] == ["b", "c", "a"]
    assert {node: len(there) for node, there in whole.by_node.items()} == {"n2": 2, "n1": 1}
    assert whole.gap_ratio == 0.25
    assert assignment(0, optimal=True).gap_ratio == 0
    some = assignment(20, arrangements={"n2": "in turns"})
    assert (some.is_complete, some.exit_code) == (False, 1)
    text = said(some)
    assert "3 of a worth of at most 4, a gap of 25" in text
    assert "3 of 23 requests placed on 2 nodes" in text
    assert "n2 is shared: in turns." in text
    assert "u19" in text
    assert "…" not in text
    more = said(assignment(21))
    assert "…" in more
    assert "u20." not in more
    assert "the best there is for as many as can be placed" in said(assignment(0, optimal=True))
    empty = Assignment("most_accepted", Standard(), (), 0.0, 0.0, 0.0, 0.0, True, 0)
    assert (empty.is_complete, empty.gap_ratio) == (False, 0.0)
    assert all(isinstance(part, str) for part in empty.report().tables)  # no heading of nothing
    assert replace(empty, is_optimal=False).gap_ratio == 0.0
