"""Fleets and requests from tables of every kind, and odd cells in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError
from jostle.placement import Fleet, Node, Request, Requests

ROWS = [
    {"name": "a", "workload": "w1", "deadline": "20ms", "memory": "2GiB"},
    {"name": "b", "workload": "w2", "deadline": "1.5x", "memory": None},
]


def test_tables_of_requests_are_read() -> None:
    for source in (pa.Table.from_pylist(ROWS), ROWS):
        found = Requests.read(source)
        assert found.status == ("ok", "ok")
        first, second = found.good
        assert (first.deadline_seconds, first.slowdown, first.memory_bytes) == (0.02, None, 2**31)
        assert (second.deadline_seconds, second.slowdown) == (None, 1.5)


def test_columns_are_mapped_and_slips_are_noticed() -> None:
    columns = {"job": ["w1"], "limit_s": [3.0], "colour": ["red"]}
    found = Requests.read(columns, {"workload": "job", "deadline_seconds": "limit_s"})
    assert found.good[0].deadline_seconds == 3.0
    assert found.ignored == ("colour",)
    with pytest.raises(UnknownName, match="deadline_seconds"):
        Requests.read({"workload": ["w1"], "deadline_second": [3.0]})
    with pytest.raises(UnknownName, match="limit"):
        Requests.read(columns, {"workload": "job", "deadline_seconds": "limit"})
    with pytest.raises(UnknownName, match="jobs"):
        Requests.read(columns, {"jobs": "job"})


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"workload": ""}, "empty"),
        ({"workload": None}, "empty"),
        ({"workload": "w", "deadline_seconds": float("nan")}, "not a number"),
        ({"workload": "w", "deadline_seconds": float("inf")}, "finite"),
        ({"workload": "w", "deadline_seconds": 0}, "above 0"),
        ({"workload": "w", "deadline_seconds": -1}, "above 0"),
        ({"workload": "w", "deadline_seconds": "soon"}, "not a number"),
        ({"workload": "w", "deadline": "20"}, "without a unit"),
        ({"workload": "w", "deadline": "20 parsecs"}, "unit"),
        ({"workload": "w", "slowdown": 0.9}, "at least 1"),
        ({"workload": "w", "slowdown": True}, "not a number"),
        ({"workload": "w", "deadline": "2x", "slowdown": 2}, "both"),
        ({"workload": "w", "confidence": 1}, "between 0 and 1"),
        ({"workload": "w", "confidence": 90}, "between 0 and 1"),
        ({"workload": "w", "memory": "2 boxes"}, "unit"),
        ({"workload": "w", "memory_bytes": -1}, "at least 0"),
        ({"workload": "w", "worth": float("nan")}, "finite"),
    ],
)
def test_one_bad_row_spoils_no_batch(row: dict[str, Any], reason: str) -> None:
    found = Requests.read([{"workload": "w0", "deadline": "1s"}, row, {"workload": "w1"}])
    assert [status == "ok" for status in found.status] == [True, False, True]
    assert reason in found.status[1]
    assert [request.workload for request in found.good] == ["w0", "w1"]


def test_names_are_made_and_kept_apart() -> None:
    found = Requests.read({"workload": ["w", "w", "v"], "name": [None, "w", "w"]})
    assert [request.name for request in found.good] == ["w 2", "w"]
    assert "earlier row" in found.status[2]


def test_a_line_with_other_cells_is_a_bad_row(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("workload,deadline\nw1,20ms\nw2\nw3,1s,9\n")
    found = Requests.read(tmp_path / "r.csv")
    assert [status == "ok" for status in found.status] == [True, False, False]
    assert found.numbers == (2, 3, 4)


def test_files_that_are_no_tables(tmp_path: Path) -> None:
    for name, content, error in (
        ("empty.csv", b"", UnreadableFile),
        ("x.parquet", b"PAR1 and no more", UnreadableFile),
        ("x.json", b"{", UnreadableFile),
        ("x.json", b"[1, 2]", BadData),
        ("x.csv", b"\xff\xfe\x00", UnreadableFile),
        ("x.csv", b"workload,workload\na,b", BadData),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(error):
            Requests.read(tmp_path / name)
    with pytest.raises(UnreadableFile):
        Requests.read(tmp_path / "nowhere.csv")
    (tmp_path / "head.csv").write_text("workload,deadline\n")
    assert len(Requests.read(tmp_path / "head.csv")) == 0


def test_tables_as_others_write_them(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("workload;deadline;needs\nw1;20ms;\nw2;2x;\n")
    assert [r.deadline_seconds for r in Requests.read(path).good] == [0.02, None]
    stream = tmp_path / "r.anything"
    table = pa.Table.from_pylist(ROWS)
    with pa.OSFile(str(stream), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert Requests.read(stream).status == ("ok", "ok")
    one = {"name": "a", "platform": "p0", "tenants": [{"workload": "w1"}]}
    many = {"version": 1, "notes": ["x"], "nodes": [one, {"name": "b", "platform": "p1"}]}
    for content, names in ((one, ["a"]), (many, ["a", "b"])):
        (tmp_path / "f.json").write_text(json.dumps(content))
        assert [node.name for node in Fleet.read(tmp_path / "f.json").nodes] == names
    with pytest.raises(BadData, match=r"workload.*prog"):
        Requests.read([{"prog": "w1"}])
    with pytest.raises(BadData, match="platform"):
        Fleet.read([{"box": "w1"}])


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"rate_per_second": -1}, "above 0"),
        ({"statistic": "p42"}, "none of"),
        ({"pes_ratio": 1.5}, "at most 1"),
    ],
)
def test_what_services_ask_is_checked(row: dict[str, Any], reason: str) -> None:
    assert reason in Requests.read([{"workload": "w", **row}]).status[0]
    assert Request("w", statistic="p95").confidence == 0.95
    assert Request("w", statistic="p95", confidence=0.8).confidence == 0.8


def test_a_fleet_with_tenants_in_a_column_and_in_a_table() -> None:
    fleet = Fleet.read(
        {
            "name": ["a", "b", "c"],
            "platform": ["p0", "p1", "p1"],
            "slots": ["2", "3", "two"],
            "memory": ["4GiB", None, None],
            "tenants": ["w1@1.5x; w2", '[{"workload": "w3", "deadline": "20ms"}]', None],
        },
        tenants=[{"name": "late", "workload": "w4", "node": "b", "slowdown": 2, "done": 0.4}],
    )
    assert fleet.ignored == ("done of tenants",)
    a, b, c = fleet.nodes
    assert [(t.workload, t.slowdown) for t in a.tenants] == [("w1", 1.5), ("w2", None)]
    assert (a.free_slots, a.memory_bytes) == (0, 2**32)
    assert [t.workload for t in b.tenants] == ["w3", "w4"]
    assert "slots is 'two'" in c.status
    with pytest.raises(UnknownName, match="node"):
        fleet.with_tenants([{"workload": "w1", "node": "z"}])
    with pytest.raises(UsageError, match="no node"):
        fleet.with_tenants([{"workload": "w1"}])


def test_a_fleet_may_call_its_nodes_as_tenants_and_answers_do() -> None:
    rows = [{"node": "north", "platform": "p0"}, {"node": "south", "platform": "p0"}]
    fleet = Fleet.read(rows, tenants=[{"workload": "a", "node": "south"}])
    assert [node.name for node in fleet.nodes] == ["north", "south"]
    assert not fleet.ignored
    assert len(fleet.node("south").tenants) == 1
    twice = Fleet.read([{"node": "north", "platform": "p0"}] * 2)
    assert "stands in an earlier row" in twice.nodes[1].status


def test_bad_tenants_and_repeated_names_close_a_node() -> None:
    fleet = Fleet.read({"name": ["a", "a", "b"], "tenants": ["", "", "w1@never"]})
    assert [node.status == "ok" for node in fleet.nodes] == [True, False, False]
    twice = Fleet.read({"platform": ["p0", "p0"]})
    assert [node.name for node in twice.nodes] == ["p0", "p0 2"]
    with pytest.raises(UsageError, match="two nodes"):
        Fleet((Node("a", "p"), Node("a", "p")))
    with pytest.raises(UsageError, match="slots"):
        Node("a", "p", slots=-1)


def test_a_request_in_code_is_checked_too() -> None:
    bad: dict[str, Any]
    for bad in ({"deadline_seconds": float("nan")}, {"slowdown": 0.5}, {"confidence": 2.0}):
        with pytest.raises(UsageError):
            Request("w", **bad)
    assert Request.of_text("a@b@2x").workload == "a@b"
