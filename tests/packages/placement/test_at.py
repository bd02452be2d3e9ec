"""`at`: who ends when on a node, against small steps; what is promised, and what cannot be told."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.data import Colocations
from jostle.errors import UsageError
from jostle.models import Model
from jostle.placement import Node, Request, Requests, place
from tests.packages.models.over_time_samples import Lookup
from tests.packages.models.timelines_samples import node_log


def seconds_of(model: Model, names: list[str]) -> list[float]:
    asked = Colocations.from_columns(
        workload=names,
        platform=["p1"] * len(names),
        corunners=[names[:k] + names[k + 1 :] for k in range(len(names))],
    )
    return model.predict(asked).tolist()


def test_everybody_ends_when_small_steps_say_so(model: Model) -> None:
    tenants = (
        Request("w01", "a", elapsed_seconds=0.5, done_ratio=0.25, deadline_seconds=1e9),
        Request("w02", "b", elapsed_seconds=1.0, done_ratio=0.5, deadline_seconds=1e9),
    )
    here = place(model, [Node("n", "p1", tenants=tenants)], confidence=0.5)
    answer: Any = here.at([Request("w03", "c", deadline_seconds=1e-9)])
    left = {"w01": 0.75, "w02": 0.5, "w03": 1.0}
    seconds = seconds_of(model, list(left))
    step = min(seconds) / 1000
    # Who tells how far it has come goes on at the pace that it has had.
    pace = {
        "w01": 0.35 / (0.5 / seconds[0] + 0.1),
        "w02": 0.6 / (1.0 / seconds[1] + 0.1),
        "w03": 1.0,
    }
    clock, told = 0.0, {one.workload: one.end_seconds for one in (*answer.residents, *answer.items)}
    rates = {tuple(left): seconds_of(model, list(left))}
    while left:
        names = tuple(left)
        if names not in rates:
            rates[names] = seconds_of(model, list(names))
        clock += step
        for name, seconds in zip(names, rates[names], strict=True):
            left[name] -= step * pace[name] / seconds
            if left[name] <= 0:
                assert told[name] == pytest.approx(clock, rel=0.01)
                del left[name]
    kept = {one.workload: one.is_kept for one in (*answer.residents, *answer.items)}
    assert kept["w01"]
    assert not kept["w03"]
    elapsed = {"w01": 0.5, "w02": 1.0}
    for one in answer.residents:
        assert one.runtime_seconds == pytest.approx(elapsed[one.workload] + one.end_seconds)
    assert answer.exit_code == 1
    (one,) = answer.items
    assert one.over == "timeline"
    assert one.bound_seconds is None or one.bound_seconds >= one.runtime_seconds
    assert one.runtime_seconds == pytest.approx(one.end_seconds)
    table = next(part for part in answer.report().tables if not isinstance(part, str))
    assert [str(row[2]) for row in table.rows] == ["500 ms", "1 s", "begins"]


def test_who_is_alone_takes_what_it_takes_alone(model: Model) -> None:
    answer: Any = place(model, [Node("n", "p1"), Node("m", "p1")]).at(Request("w04", node="n"))
    (one,) = answer.items
    assert one.end_seconds == pytest.approx(seconds_of(model, ["w04"])[0])
    assert one.over == "throughout"
    assert answer.exit_code == 0
    assert np.isfinite(one.runtime_seconds)
    late = Node("n", "p1", tenants=(Request("w04", elapsed_seconds=2 * one.end_seconds),))
    overdue: Any = place(model, [late]).at().residents[0]
    assert overdue.end_seconds == pytest.approx(0.05 * one.end_seconds)
    assert overdue.runtime_seconds == pytest.approx(overdue.elapsed_seconds + overdue.end_seconds)


def test_what_cannot_be_told_is_said(model: Model) -> None:
    nodes = [Node("n", "p1", tenants=(Request("w01"), Request("unheard"))), Node("m", "nowhere")]
    requests = [
        Request("w02"),
        Request("w02", "x", node="elsewhere"),
        Request("what", node="n"),
        Request("w02", "y", node="m"),
    ]
    answer: Any = place(model, nodes).at(requests)
    words = ("names no node", "elsewhere", "what", "nowhere")
    for one, word in zip(answer.items, words, strict=True):
        assert one.status == "error"
        assert word in one.error
    unread: Any = place(model, nodes).at(Requests.of([{"workload": "w02", "deadline": "soon"}]))
    assert unread.items[0].status != "ok"
    # Who is beside a name that is not known ends nobody knows when, and so does who comes there.
    assert answer.residents == ()
    (untold,) = answer.untold
    assert "'unheard' on the node 'n'" in untold
    assert untold in answer.notes
    beside: Any = place(model, nodes[:1]).at(Request("w02"))
    assert not beside.is_kept
    (refused,) = beside.items
    assert "unheard" in refused.error
    assert not place(model, nodes[:1]).at().is_kept
    assert place(model, nodes[:1]).at().report().tables == ["Nothing is told: the notes say why."]
    empty = place(model, [Node("n", "p1")]).at()
    assert empty.items == ()
    assert "nobody is on these nodes" in str(empty.report().tables)
    wrong: list[dict[str, Any]] = [
        {"elapsed_seconds": -1},
        {"done_ratio": 1.0},
        {"done_ratio": 0.5},
    ]
    for columns in wrong:
        with pytest.raises(UsageError, match=next(iter(columns))):
            Request("w01", **columns)


def test_a_limit_that_is_kept_beside_who_is_there_bounds_who_has_it() -> None:
    model = jostle.fit(node_log(300, seed=2), Lookup(), seed=0)
    tenants = (
        Request("w1", "a", elapsed_seconds=4.0, deadline_seconds=1e3),
        Request("w3", "d", elapsed_seconds=1.0, deadline_seconds=1e-3),
        Request("w2", "b", elapsed_seconds=2.0),
        Request("w1", "c", slowdown=9.0),
    )

    def told(of: Model, people: tuple[Request, ...]) -> dict[str, Any]:
        answer = place(of, [Node("n", "p", tenants=people)], confidence=0.8).at()
        return {one.name: one for one in answer.residents}

    closed = copy(model)
    closed.acts = None
    free = tuple(replace(one, deadline_seconds=None, slowdown=None) for one in tenants)
    here, open_ = told(model, tenants), told(model, free)
    assert {one.over for one in here.values()} == {"future"}
    node = Node("n", "p")
    for throughout, over in ((False, "future"), (True, "throughout")):
        placed = place(model, node, confidence=0.8)
        answer = placed.walltime(Request("w1"), throughout=throughout)
        assert [row.over for row in answer.rows] == [over]
        assert ("whoever comes" in str(answer.report().tables)) == (over == "future")
    for name, one in open_.items():
        assert here[name].runtime_seconds == one.runtime_seconds
        # Whatever came in the log, later ones are let in for as long as the limit is kept.
        most = here[name].limit_seconds if name in "ac" else one.bound_seconds
        assert here[name].bound_seconds == most
        assert one.runtime_seconds > one.elapsed_seconds + 0.5 * one.end_seconds
    assert [here[name].is_kept for name in "abcd"] == [True, True, True, False]
    # Between what those who are there take at most and what may come takes, the limit is what holds.
    among = told(closed, tuple(replace(one, deadline_seconds=1e9) for one in free))["b"]
    assert among.bound_seconds < open_["b"].bound_seconds
    limit = (among.bound_seconds + open_["b"].bound_seconds) / 2
    tight = replace(tenants[2], deadline_seconds=limit)
    held = told(model, (*tenants[:2], tight, tenants[3]))["b"]
    assert held.is_kept
    assert held.bound_seconds == limit < open_["b"].bound_seconds
