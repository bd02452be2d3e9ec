"""safe, rank and walltime: what they answer, what they never answer, and what they promise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jostle
from jostle.conformal import GUARANTEED
from jostle.data import Colocations, Runs
from jostle.errors import UnknownName, UsageError
from jostle.models import Model
from jostle.operations.placement.safe import SafeQuestion
from jostle.placement import Fleet, FleetBounds, Node, Request, Requests, place
from tests.packages.placement.conftest import PLATFORMS, WORKLOADS

TENANT = st.tuples(st.sampled_from(WORKLOADS), st.sampled_from([None, 1.1, 1.5, 2.0, 4.0]))


def request_of(drawn: tuple[str, float | None], name: str = "") -> Request:
    return Request(drawn[0], name or drawn[0], slowdown=drawn[1])


def node_with(platform: str, tenants: Any) -> Node:
    named = [request_of(t, f"t{n}") for n, t in enumerate(tenants)]
    return Node("here", platform, tenants=tuple(named))


def bound_of(model: Model, platform: str, workload: str, beside: list[str], c: float) -> float:
    asked = Colocations.from_columns(workload=[workload], platform=[platform], corunners=[beside])
    found = model.bound(asked, c)
    return float(found.seconds[0]) if found.outcome[0] == GUARANTEED else np.inf


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(PLATFORMS), TENANT, st.lists(TENANT, max_size=2), st.booleans())
def test_yes_only_where_every_bound_is_valid_and_kept(
    model: Model, platform: str, newcomer: Any, tenants: list[Any], joint: bool
) -> None:
    node, request = node_with(platform, tenants), request_of(newcomer, "new")
    placed = place(model, node, promise="joint" if joint else "each")
    answer = placed.safe(request).answers[0]
    people = [*node.tenants, request]
    level = 1 - 0.1 / len(people) if joint else 0.9
    for one in people:
        beside = [other.workload for other in people if other is not one]
        bound = bound_of(model, platform, one.workload, beside, level)
        limit = np.inf if one.slowdown is None else one.slowdown * alone(model, one, platform)
        if answer.is_safe and (one.has_objective or one is request):
            assert np.isfinite(bound)
            assert bound <= limit
    assert answer.is_safe == (answer.reason == "ok") == (len(placed.rank(request)[0]) == 1)
    assert not answer.is_safe or not answer.hurt


def alone(model: Model, request: Request, platform: str) -> float:
    asked = Colocations.from_columns(workload=[request.workload], platform=[platform])
    return float(model.predict(asked)[0])


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(PLATFORMS),
    TENANT,
    st.lists(TENANT, max_size=2),
    TENANT,
    st.booleans(),
    st.sampled_from([0.8, 0.9]),
)
def test_one_more_tenant_never_turns_a_no_into_a_yes(
    model: Model, platform: str, new: Any, tenants: list[Any], more: Any, joint: bool, c: float
) -> None:
    before = place(
        model, node_with(platform, tenants), confidence=c, promise="joint" if joint else "each"
    )
    after = place(
        model,
        node_with(platform, [*tenants, more]),
        confidence=c,
        promise="joint" if joint else "each",
    )
    request = request_of(new, "new")
    assert before.safe(request).is_safe or not after.safe(request).is_safe


def test_never_yes_without_calibration_unless_predictions_are_accepted(model: Model) -> None:
    crowd = node_with("p0", [("w01", None), ("w02", None), ("w03", None)])  # three were never met
    request = Request("w04", slowdown=50.0)
    assert place(model, crowd).safe(request).answers[0].reason == "no_ground"
    assert place(model, crowd, confidence=0.9999).safe(request).answers[0].reason == "no_ground"
    found = place(model, crowd, promise="predicted").safe(request)
    assert found.is_safe
    assert found.answers[0].used_predictions
    assert "nothing is promised" in found.promise
    (ranked,) = place(model, crowd, promise="predicted").rank(request)
    assert ranked.row(0).used_prediction
    assert "rests on the prediction" in ranked.promise
    (valid,) = place(model, Node("a", "p0"), promise="predicted").rank(request)
    assert "rests on the prediction" not in valid.promise
    tight = Request("w04", deadline_seconds=1e-9)
    assert not place(model, crowd, promise="predicted").safe(tight).is_safe


def test_a_model_of_runs_says_nothing_of_queries_at_a_rate(model: Model) -> None:
    fleet = [
        Node("a", "p0", tenants=(Request("w01", "web", rate_per_second=3.0),)),
        Node("b", "p0"),
    ]
    found = place(model, fleet, promise="predicted")
    assert {one.reason for one in found.safe(Request("w02")).answers} == {"not_modelled", "ok"}
    assert found.safe(Request("w02", statistic="max"), on="b").answers[0].reason == "not_modelled"


def test_assigned_by_predictions_is_said(model: Model) -> None:
    crowd = tuple(Request(f"w0{n}", f"t{n}") for n in range(3))
    request = Request("w04", slowdown=50.0)
    found = place(model, Node("a", "p0", tenants=crowd), promise="predicted").assign([request])
    assert found.is_complete
    assert "rests on the prediction" in found.promise
    valid = place(model, Node("a", "p0"), promise="predicted").assign([request])
    assert "rests on the prediction" not in valid.promise


def test_unknown_names_are_a_no_with_a_reason(model: Model) -> None:
    fleet = Fleet(
        (
            Node("good", "p0", memory_bytes=2e9),
            Node("mars", "mars"),
            Node("odd", "p0", tenants=(Request("nobody"),)),
            Node("full", "p0", slots=1, tenants=(Request("w01"),)),
            Node("small", "p0", memory_bytes=1e9),
            Node("bad", "p0", status="no"),
        )
    )
    asked = Request("w00", slowdown=9.0, memory_bytes=2e9)
    found = place(model, fleet).rank(asked)[0]
    reasons = {row.node: row.reason for row in found.details}
    assert [row.node for row in found.rows()] == ["good"]
    assert reasons == {
        "mars": "unknown_platform",
        "odd": "unknown_tenant",
        "full": "no_slot",
        "small": "no_memory",
        "bad": "bad_node",
    }
    stranger = place(model, fleet, promise="predicted").safe(Request("stranger"), on="good")
    assert stranger.answers[0].reason == "unknown_workload"
    for rule, reason in (
        ({"pin": "mars"}, "pinned_elsewhere"),
        ({"allowed": ("p5",)}, "not_allowed"),
        ({"needs": ("gpu",)}, "labels"),
    ):
        row = place(model, fleet).safe(replace(asked, **rule), on="good").answers[0]
        assert row.reason == reason
    apart = Node("here", "p0", tenants=(Request("w03", apart=("w00",)),))
    assert place(model, apart).safe(asked).answers[0].reason == "apart"


def test_who_would_be_hurt_and_what_would_help(model: Model) -> None:
    fleet = Fleet(
        (Node("here", "p0", tenants=(Request("w01", "strict", slowdown=1.0),)), Node("free", "p1"))
    )
    found = place(model, fleet).safe(Request("w02", slowdown=20.0), on="here")
    answer = found.answers[0]
    assert (found.is_safe, found.exit_code) == (False, 1)
    assert [member.name for member in answer.hurt] == ["strict"]
    assert answer.reason == "tenant_late"
    (hurt,) = answer.hurt
    assert (hurt.over_seconds or 0) == (hurt.bound_seconds or 0) - (hurt.limit_seconds or 0) > 0
    text = " / ".join(answer.helps)
    assert "wider limits: strict" in text
    assert "without strict" in text
    assert "another node: free" in text
    (table,) = [part for part in found.report().tables if not isinstance(part, str)]
    assert [row[table.columns.index("keeps it")] for row in table.rows] == ["no", "yes"]
    alone = place(model, fleet).safe(Request("w02", slowdown=1.0), on="free").answers[0]
    assert "another node" not in " / ".join(alone.helps)
    wider = answer.hurt[0].bound_seconds
    there = Node("here", "p0", tenants=(Request("w01", "strict", deadline_seconds=wider),))
    assert place(model, there).safe(Request("w02", slowdown=20.0)).is_safe


def test_what_only_the_least_confidence_helps_is_told(model: Model) -> None:
    low, more = (bound_of(model, "p0", "w02", [], level) for level in (0.5, 0.6))
    assert low < more < np.inf
    request = Request("w02", deadline_seconds=(low + more) / 2)
    (answer,) = place(model, Node("here", "p0")).safe(request).answers
    assert [text for text in answer.helps if "confidence" in text] == ["a confidence of 0.5"]


def test_a_bound_is_never_below_that_of_fewer_tenants(model: Model) -> None:
    names = ("w01", "w02", "w03", "w04")
    some = [c for k in range(3) for c in combinations(names, k)]
    nodes = [Node("+".join(c) or "-", "p0", tenants=tuple(map(Request, c))) for c in some]
    for asked in ("w00", "w05", "w06", "w07"):
        answers: Any = place(model, nodes).safe(Request(asked)).answers
        bound = {
            frozenset(c): next(m.bound_seconds for m in one.members if m.is_newcomer)
            for c, one in zip(some, answers, strict=True)
        }
        assert all(b >= bound[few] for c, b in bound.items() for few in bound if few < c)


def test_together_is_each_beside_the_others(model: Model) -> None:
    node = Node("here", "p0", slots=2)
    pair = [Request("w01", slowdown=30.0), Request("w02", slowdown=30.0)]
    assert place(model, node).safe(pair, together=True).is_safe
    many = [*pair, Request("w03", slowdown=30.0)]
    assert not place(model, node).safe(many, together=True).is_safe
    assert place(model, node).safe(many).is_safe


def test_many_at_once_say_the_same_without_explaining(model: Model) -> None:
    nodes = [
        Node(f"n{i}", PLATFORMS[i % 6], tenants=(Request("w01", slowdown=1.0 + 0.2 * i),))
        for i in range(9)
    ]
    asked = [Request(f"w{i:02d}", slowdown=2.0) for i in range(6)]
    placed = place(model, nodes)
    long = {(a.request, a.node): a.reason for a in placed.safe(asked).answers}
    short = placed.safe(asked, explain=False).answers
    assert {(a.request, a.node): a.reason for a in short} == long
    assert {a.is_safe for a in short} == {True, False}
    assert len(placed.safe(asked, on="n3", explain=False).answers) == 6


def calls_of(act: Callable[[], object]) -> int:
    """How many functions of Python it calls."""
    count = 0

    def called(_: object, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(before)
    return count


def test_explaining_takes_few_calls_of_the_model_and_of_python(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenants = (Request("w02", "two", slowdown=3.0), Request("w03", "three"))
    fleet = [
        Node("a", "p0", tenants=(Request("w01", "one", slowdown=1.05),)),
        Node("b", "p1", tenants=tenants),
        Node("c", "p2"),
    ]
    limits = {"x": 2.0, "y": 1.2, "z": 4.0, "u": 1.01}
    asked = [Request(f"w0{4 + n}", name, slowdown=x) for n, (name, x) in enumerate(limits.items())]
    confidences: list[float] = []
    bound = Model.bound

    def counted(model: Model, rows: Colocations, confidence: float) -> Any:
        confidences.append(confidence)
        return bound(model, rows, confidence)

    monkeypatch.setattr(Model, "bound", counted)
    placed = place(model, fleet)
    answers = placed.safe(asked).answers
    # One call for bounds, one for who is hurt, and at most one for each confidence that is tried.
    assert confidences[:2] == [0.9, 0.9]
    assert sorted(set(confidences[2:])) == sorted(confidences[2:])
    assert {len(answer.helps) > 1 for answer in answers} == {True, False}
    assert calls_of(lambda: placed.safe(asked)) <= 1000


@pytest.mark.parametrize(
    ("question", "is_taken"),
    [
        ({"explain": True}, False),
        ({"explain": True, "together": True}, True),
        ({"explain": False}, True),
        ({}, True),
    ],
)
def test_a_service_explains_no_more_than_it_has_time_for(
    question: dict[str, Any], is_taken: bool
) -> None:
    SafeQuestion(**question).served(8, 8)
    with nullcontext() if is_taken else pytest.raises(UsageError, match="65 requests on 1 nodes"):
        SafeQuestion(**question).served(65, 1)


def test_how_far_a_bound_grows_that_there_was_not_is_not_known(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed = place(model, [Node("n", "p1", tenants=(Request("w01"),))])
    assert placed.rank(Request("w00"))[0].rows()[0].growth_ratio is not None
    none = np.full((1, 1), np.inf), np.zeros((1, 1), bool)
    monkeypatch.setattr(FleetBounds, "now", none)
    assert placed.rank(Request("w00"))[0].rows()[0].growth_ratio is None


def test_rank_orders_by_what_is_asked(model: Model) -> None:
    nodes = [Node(f"n{i}", PLATFORMS[i % 6], price_per_hour=float(7 - i)) for i in range(6)]
    nodes.append(Node("shared", "p0", price_per_hour=1.0, tenants=(Request("w01"),)))
    placed, asked = place(model, nodes), Request("w00", deadline_seconds=1e6)
    by_bound = [row.bound_seconds for row in placed.rank(asked)[0].rows()]
    assert by_bound == sorted(by_bound)
    lines = str(placed.rank(asked).report().tables[0])
    assert "least bound" in lines
    full = place(model, [Node("f", "p0", slots=1, tenants=(Request("w01"),))]).rank(asked)
    assert full.report().tables[:2] == [
        "w00 may go to none of 1 nodes.",
        "1 ruled out: all slots are taken.",
    ]
    costs = [row.cost for row in placed.rank(asked, least="cost")[0].rows()]
    assert costs == sorted(costs)
    assert placed.rank(asked, least="neighbours")[0].rows()[-1].node == "shared"
    stays = placed.rank(replace(asked, stay_seconds=7200.0), least="cost")[0].rows()
    assert [row.cost for row in stays][:2] == [2.0, 4.0]  # twice the price of an hour
    with pytest.raises(UsageError, match=r"`least` is .luck."):
        placed.rank(asked, least="luck")  # pyright: ignore[reportArgumentType]


def test_walltime_holds_on_every_node_it_covers(model: Model) -> None:
    nodes = [Node(name, name) for name in PLATFORMS] + [Node("mars", "mars")]
    row = place(model, nodes).walltime(Request("w00"), step_seconds=60).rows[0]
    worst = max(bound_of(model, name, "w00", [], 0.9) for name in PLATFORMS)
    assert row.bound_seconds == pytest.approx(worst)
    assert row.seconds is not None
    assert row.seconds >= worst
    assert row.seconds % 60 == 0
    long = replace(row, seconds=2 * 86_400 + 3 * 3600 + 4 * 60 + 5)
    assert (long.text, replace(row, seconds=86_399.0).text) == ("2-03:04:05", "23:59:59")
    assert (row.covered, row.considered, row.ruled_out) == (6, 7, {"unknown_platform": 1})
    nowhere = place(model, nodes).walltime(Request("w00"), on="mars")
    assert (nowhere.rows[0].text, nowhere.rows[0].covered, nowhere.exit_code) == (None, 0, 1)
    unread = Requests.of([{"workload": "w00"}, {"workload": "w00", "deadline": "soon"}])
    assert place(model, nodes).walltime(unread).exit_code == 1
    with pytest.raises(UnknownName):
        place(model, nodes).walltime(Request("w00"), on="moon")
    for step in (0.5, 1.5, np.inf, np.nan):
        with pytest.raises(UsageError, match="step"):
            place(model, nodes).walltime(Request("w00"), step_seconds=step)


def test_limits_as_slowdowns_are_of_the_measured_time_where_runs_are_given(
    model: Model, world: Runs
) -> None:
    asked = Request("w00", slowdown=2.0)
    solo = world.take(world.colocations.number_of_corunners == 0)
    c = solo.colocations
    here = (c.workload == c.workload_names.index("w00")) & (c.platform == 0)
    seconds = float(np.exp(np.median(np.log(solo.runtime_seconds[here]))))
    found = place(model, Node("n", "p0"), runs=world).rank(asked)[0]
    assert found.row(0).limit_seconds == pytest.approx(2 * seconds)
    own = place(model, Node("n", "p0")).rank(replace(asked, solo_seconds=123.0))[0]
    assert own.row(0).limit_seconds == pytest.approx(246.0)


def test_own_confidences_and_a_union_bound_are_stricter(model: Model) -> None:
    node = Node("here", "p0", tenants=(Request("w01", slowdown=2.0),))
    request = Request("w02", deadline_seconds=1e9)

    def bound(**standard: Any) -> float:
        found: Any = place(model, node, **standard).rank(standard.pop("request", request))[0]
        return float(found.best.bound_seconds)

    own: Any = place(model, node).rank(replace(request, confidence=0.95))[0]
    assert bound() <= bound(promise="joint") == own.best.bound_seconds
    with pytest.raises(UsageError):
        place(model, node, confidence=1.0)
    with pytest.raises(UsageError):
        place(model, node, promise="hope")  # pyright: ignore[reportArgumentType]


def test_nothing_asked_is_not_a_yes(model: Model) -> None:
    assert not place(model, Node("n", "p0")).safe([]).is_safe
    assert not place(model, []).safe(Request("w00")).is_safe
    assert place(model, []).rank(Request("w00"))[0].best is None
    assert jostle.place is place
