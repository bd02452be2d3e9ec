"""What is said of a packing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jostle.placement import Assignment, Placed, Standard, Unplaced


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
