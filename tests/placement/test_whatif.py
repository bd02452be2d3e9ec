"""What changes for whom: tenants followed through a change, those without a node, those that do not fit."""

from __future__ import annotations

import pytest

from jostle.errors import UnknownName, UsageError
from jostle.models import Model
from jostle.placement import Node, Request, place

ONE = Request("w01", "one", slowdown=50.0)
TWO = Request("w02", "two", slowdown=50.0)


def test_a_node_goes_and_its_tenants_may_go_elsewhere(model: Model) -> None:
    placed = place(model, [Node("a", "p0", tenants=(ONE, TWO)), Node("b", "p1")])
    found = placed.whatif(remove=["a"], move={"two": "b"})
    assert [name for name, _ in found.homeless] == ["one"]
    assert found.homeless[0][1].best == "b"
    assert {name: new.node for name, _, new in found.tenants} == {"one": None, "two": "b"}
    assert not found.is_better_for_all
    all_moved = placed.whatif(remove=["a"], move={"two": "b", "one": "b"})
    assert not all_moved.homeless
    assert all_moved.is_better_for_all
    with pytest.raises(UnknownName, match="node"):
        placed.whatif(remove=["a"], move={"one": "a"})


def test_who_does_not_fit_after_the_change(model: Model) -> None:
    shy = Request("w03", "shy", apart=("two",))
    fleet = [Node("a", "p0", 2, tenants=(ONE, TWO)), Node("b", "p1", 1, tenants=(shy,))]
    found = place(model, fleet).whatif(move={"two": "b"})
    assert {(one.tenant, one.reason) for one in found.misplaced} == {
        ("two", "no_slot"),
        ("shy", "no_slot"),
    }
    assert not found.is_better_for_all
    wider = [fleet[0], Node("b", "p1", 2, tenants=(shy,))]
    assert {one.reason for one in place(model, wider).whatif(move={"two": "b"}).misplaced} == {
        "apart"
    }
    mars = place(model, fleet).whatif(add=[Node("c", "mars")], move={"one": "c"})
    assert [(one.tenant, one.reason) for one in mars.misplaced] == [("one", "unknown_platform")]


def test_equal_tenants_are_followed_one_by_one(model: Model) -> None:
    same = Request("w01", slowdown=50.0)
    placed = place(model, [Node("a", "p0", tenants=(same, same)), Node("b", "p1", tenants=(same,))])
    with pytest.raises(UsageError, match="called"):
        placed.whatif(move={"w01": "b"})
    found = placed.whatif(move={"b/w01": "a"})
    moved = {name: (old.node, new.node) for name, old, new in found.tenants}
    assert moved["b/w01"] == ("b", "a")
    assert len(moved) == 3  # the two that were there have a neighbour more
    one = place(model, [Node("a", "p0", tenants=(ONE,)), Node("b", "p1")])
    with pytest.raises(UsageError, match="twice"):
        one.whatif(move={"one": "b", "a/one": "b"})


def test_a_device_bought_and_everything_assigned_anew(model: Model) -> None:
    asked = [Request(f"w0{n}", deadline_seconds=1e6) for n in range(4)]
    placed = place(model, [Node("a", "p0", 1)])
    found = placed.whatif(asked, add=[Node("b", "p1", 2)], goal="fewest_platforms")
    assert found.reassigned is not None
    assert found.reassigned.placed == (1, 3)
    assert len(found.reassigned.gained) - len(found.reassigned.lost) == 2
    fewer = placed.whatif(asked, remove=["a"], goal="most_accepted")
    assert fewer.reassigned is not None
    assert fewer.reassigned.lost
    assert not fewer.is_better_for_all
    document = found.to_document()
    assert document["reassigned"]["placed"] == [1, 3]
    assert place(model, []).whatif(asked, add=Node("b", "p1")).requests[0][2].nodes == 1


def test_predictions_that_stood_in_are_said(model: Model) -> None:
    crowd = tuple(Request(f"w0{n}", f"t{n}", slowdown=90.0) for n in range(4))
    placed = place(model, [Node("a", "p0", tenants=crowd), Node("b", "p1")], promise="predicted")
    assert "rests on the prediction" in placed.whatif(move={"t0": "b"}).promise
    quiet = place(model, [Node("b", "p1")], promise="predicted").whatif(remove=["b"])
    assert "rests on the prediction" not in quiet.promise
