"""Many at once: brute force agrees on tiny fleets, what is assigned is safe, and order does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import UsageError
from jostle.models import Model
from jostle.placement import (
    GOALS,
    Assignment,
    Effort,
    Fleet,
    Node,
    Placed,
    Placement,
    Request,
    Standard,
    Unplaced,
    assign_requests,
    level_of_chosen,
    place,
)
from tests.packages.placement.conftest import PLATFORMS, WORKLOADS


def drawn(seed: int, requests: int, nodes: int, **more: Any) -> tuple[list[Request], Fleet]:
    random = np.random.default_rng(seed)
    limits = [1.05, 1.2, 1.5, 2.0, 3.0]
    asked = [
        Request(
            str(random.choice(WORKLOADS)), f"r{i}", slowdown=float(random.choice(limits)), **more
        )
        for i in range(requests)
    ]
    fleet = []
    for i in range(nodes):
        here = [Request(str(random.choice(WORKLOADS)), f"t{i}", slowdown=4.0)][: random.integers(2)]
        fleet.append(
            Node(
                f"n{i}",
                str(random.choice(PLATFORMS[:3])),
                int(random.integers(1, 4)),
                price_per_hour=float(random.integers(1, 4)),
                tenants=tuple(here),
            )
        )
    return asked, Fleet(tuple(fleet))


def all_ways(asked: list[Request], placed: Placement) -> Iterator[tuple[int, dict[str, list[Any]]]]:
    """(how many are placed, {node: (request, bound) there}) of every way that passes safe."""
    fleet = placed.fleet
    for way in product(range(-1, len(fleet)), repeat=len(asked)):
        there: dict[str, list[Any]] = {}
        for number, node in enumerate(fleet.nodes):
            here = [r for r, at in zip(asked, way, strict=True) if at == number]
            if not here:
                continue
            found = SAFE.get((node.name, tuple(r.name for r in here)))
            if found is None:
                answers = placed.safe(here, node.name, together=True).answers
                bounds = [
                    next((m.bound_seconds for m in a.members if m.is_newcomer), None)
                    for a in answers
                ]
                found = (all(a.is_safe for a in answers), bounds)
                SAFE[node.name, tuple(r.name for r in here)] = found
            if not found[0]:
                break
            there[node.name] = found[1]
        else:
            yield sum(at >= 0 for at in way), there


SAFE: dict[Any, Any] = {}


def cost_of(goal: str, there: dict[str, list[Any]], fleet: Fleet) -> float:
    if goal == "most_accepted":
        return float(sum(not fleet.node(name).tenants for name in there))
    return sum(fleet.node(n).price_per_hour * max(b) / 3600 for n, b in there.items())


@pytest.mark.parametrize("seed", range(6))
def test_brute_force_agrees_on_tiny_fleets(model: Model, seed: int) -> None:
    asked, fleet = drawn(seed, 4, 3)
    placed = place(model, fleet, promise="each")
    SAFE.clear()
    ways = list(all_ways(asked, placed))
    most = max(number for number, _ in ways)
    for goal in GOALS:
        found = placed.assign(asked, goal)
        assert len(found.placed) == most
        assert found.worth_at_most >= most - 1e-6
        least = min(cost_of(goal, there, fleet) for number, there in ways if number == most)
        assert found.cost == pytest.approx(least, rel=1e-6, abs=1e-12)
        assert found.is_optimal
        assert found.gap_ratio == 0


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(GOALS), st.booleans())
def test_what_is_assigned_passes_safe(model: Model, seed: int, goal: Any, joint: bool) -> None:
    asked, fleet = drawn(seed, 9, 4)
    placed = place(model, fleet, promise="joint" if joint else "each")
    found = placed.assign(asked, goal)
    by_name = {request.name: request for request in asked}
    assert sorted(by_name) == sorted(one.request for one in (*found.placed, *found.unplaced))
    for node, there in found.by_node.items():
        here = [by_name[one.request] for one in there]
        assert placed.safe(here, node, together=True).is_safe
    after = found.applied_to(fleet, asked)
    assert sum(len(node.tenants) for node in after.nodes) == len(found.placed) + sum(
        len(node.tenants) for node in fleet.nodes
    )


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.randoms(use_true_random=False))
def test_the_order_of_requests_does_not_matter(model: Model, seed: int, random: Any) -> None:
    asked, fleet = drawn(seed, 10, 4)
    nodes = list(fleet.nodes)
    first = place(model, fleet).assign(asked)
    random.shuffle(asked)
    random.shuffle(nodes)
    assert place(model, nodes).assign(asked).placed == first.placed


@pytest.mark.parametrize("seed", [3, 8071])
def test_the_level_of_what_is_chosen_is_that_of_the_set(model: Model, seed: int) -> None:
    asked, fleet = drawn(seed, 10, 4)
    sets, shuffle = place(model, fleet).sets, np.random.default_rng(0).permutation
    ways = [[asked[i] for i in shuffle(len(asked))] for _ in range(30)]
    levels = {level_of_chosen(sets, way, fleet.nodes, is_least=False) for way in ways}
    assert len(levels) == 1


def searched(model: Model, asked: list[Request], fleet: Fleet) -> Assignment:
    effort, told = Effort(limit_seconds=1.0, list_up_to=0), []
    bounds = place(model, fleet).bounds
    progress = lambda done, total, _: told.append((done, total))  # noqa: E731
    found = assign_requests(asked, bounds, "most_accepted", effort, progress)
    assert told == sorted(told)
    assert {total for _, total in told} == {told[-1][0]}
    return found


def test_the_search_is_near_the_optimum_and_safe(model: Model) -> None:
    lost = 0.0
    for seed in range(4):
        asked, fleet = drawn(seed, 30, 9)
        placed = place(model, fleet)
        best, found = placed.assign(asked), searched(model, asked, fleet)
        assert best.is_optimal
        assert len(found.placed) <= len(best.placed) <= found.worth_at_most
        lost += 1 - len(found.placed) / len(best.placed)
        by_name = {request.name: request for request in asked}
        for node, there in found.by_node.items():
            here = [by_name[one.request] for one in there]
            assert placed.safe(here, node, together=True).is_safe
        assert seed or searched(model, asked, fleet).placed == found.placed
    assert lost / 4 < 0.04


def test_rules_are_respected(model: Model) -> None:
    limit: dict[str, Any] = {"deadline_seconds": 1e6}
    asked = [
        Request("w00", "pinned", pin="b", **limit),
        Request("w01", "shy", apart=("w00",), **limit),
        Request("w02", "big", memory_bytes=3.0, **limit),
        Request("w03", "needy", needs=("gpu",), **limit),
        Request("w04", "there", allowed=("p1",), **limit),
        Request("w05", "second", pin="b", apart=("pinned",), **limit),
        Request("nobody", "unknown", **limit),
    ]
    fleet = Fleet(
        (
            Node("a", "p0", 2, memory_bytes=2.0, labels=("gpu",)),
            Node("b", "p0", 2, memory_bytes=3.0),
            Node("c", "p1", 1),
        )
    )
    found = place(model, fleet).assign(asked)
    where = {one.request: one.node for one in found.placed}
    assert where == {
        "pinned": "b",
        "big": "b",
        "needy": "a",
        "shy": "a",
        "there": "c",
    } or where == {"second": "b", "big": "b", "needy": "a", "shy": "a", "there": "c"}
    why = {one.request: one.reason for one in found.unplaced}
    assert why.pop("unknown") == "unknown_workload"
    assert set(why.values()) == {"crowded_out"}


def test_worth_counts(model: Model) -> None:
    asked = [Request("w00", f"r{i}", deadline_seconds=1e6, worth=float(i + 1)) for i in range(5)]
    found = place(model, [Node("only", "p0", 2)]).assign(asked)
    assert {one.request for one in found.placed} == {"r3", "r4"}
    assert found.worth == 9
    assert {one.reason for one in found.unplaced} == {"crowded_out"}


def test_costs_are_for_as_long_as_requests_stay(model: Model) -> None:
    stays: dict[str, Any] = {"deadline_seconds": 1e6, "stay_seconds": 1800.0}
    fleet = [Node("dear", "p0", 2, price_per_hour=3.0), Node("cheap", "p1", 2, price_per_hour=1.0)]
    found = place(model, fleet).assign([Request("w00", "r", **stays)], "least_cost")
    assert [one.node for one in found.placed] == ["cheap"]
    assert found.cost == pytest.approx(0.5)


def test_no_more_than_was_ever_calibrated_beside_each_other_go_to_a_node(model: Model) -> None:
    limit: dict[str, Any] = {"deadline_seconds": 1e6}
    asked = [Request("w00", f"r{i}", **limit) for i in range(9)]
    here = (Request("w01", "t", **limit),)
    placed = place(model, [Node("n", "p0", 8), Node("m", "p0", 8, tenants=here)])
    most = placed.bounds.sets.most_members
    assert 2 * most - 1 < len(asked)
    there = placed.assign(asked).by_node
    assert {node: len(mine) for node, mine in there.items()} == {"n": most, "m": most - 1}


def test_nothing_to_place_and_nowhere(model: Model) -> None:
    assert not place(model, [Node("n", "p0")]).assign([]).is_complete
    nowhere = place(model, []).assign([Request("w00")])
    assert [one.reason for one in nowhere.unplaced] == ["no_node"]
    late = place(model, [Node("n", "p0")]).assign([Request("w00", deadline_seconds=1e-9)])
    assert [one.reason for one in late.unplaced] == ["newcomer_late"]
    goal: Any = "fun"
    with pytest.raises(UsageError, match=r"`goal` is .fun."):
        place(model, [Node("n", "p0")]).assign([Request("w00")], goal)


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
