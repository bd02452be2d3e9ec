"""Runs in memory: what is filled in, what is refused, and how features are merged."""

from __future__ import annotations

import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.data import Colocations, Runs, merge_features
from jostle.errors import BadData, BadRows

from .strategies import columns_of, rows, some_runs


def make(**changes):
    columns = {
        "workload": ["a", "b", "a"],
        "platform": ["p", "p", "q"],
        "corunners": [["b"], [], ["c", "b"]],
        "runtime_seconds": [1.0, 2.0, 3.0],
    }
    return Runs.from_columns(**{**columns, **changes})


def bad_rows(**changes):
    with pytest.raises(BadRows) as caught:
        make(**changes)
    return caught.value


def test_what_is_left_out_is_filled_in():
    runs = make()
    assert runs.table.column("status").to_pylist() == ["ok"] * 3
    assert runs.table.column("reason").to_pylist() == [None] * 3
    assert runs.table.column("measured_at").to_pylist() == [None] * 3
    assert runs.table.column("campaign").to_pylist() == [""] * 3
    ids = runs.table.column("run_id").to_pylist()
    assert len(set(ids)) == 3
    assert runs.table.column("window_id").to_pylist() == ids
    assert len(set(runs.window.tolist())) == 3
    assert runs.table.column("corunners").to_pylist() == [["b"], [], ["b", "c"]]


def test_run_ids_tell_the_content():
    ids = make().table.column("run_id").to_pylist()
    assert make().table.column("run_id").to_pylist() == ids
    other = make(runtime_seconds=[1.0, 2.0, 3.5]).table.column("run_id").to_pylist()
    assert not set(ids) & set(other)


@given(rows)
def test_colocations_are_those_of_the_columns(drawn):
    runs = Runs.from_columns(**columns_of(drawn), runtime_seconds=[1.0] * len(drawn))
    direct = Colocations.from_columns(**columns_of(drawn))
    assert runs.colocations == direct
    assert runs.colocations.workload_names == direct.workload_names
    assert runs.colocations.platform_names == direct.platform_names


@given(some_runs(), st.data())
def test_take_keeps_rows_and_features(runs, data):
    n = len(runs)
    index = np.array(data.draw(st.lists(st.integers(0, n - 1)) if n else st.just([])), int)
    taken = runs.take(index)
    listed = runs.table.to_pylist()
    assert taken.table.to_pylist() == [listed[i] for i in index]
    assert taken.workload_features is runs.workload_features
    assert taken.colocations == runs.colocations.take(index)
    ok = runs.ok()
    assert ok.is_ok.all()
    assert len(ok) == runs.is_ok.sum()
    assert np.isfinite(ok.runtime_seconds).all()
    assert np.array_equal(np.isnan(runs.runtime_seconds), ~runs.is_ok)


@given(some_runs(prefix="x"), some_runs(prefix="y"))
def test_concatenate_is_list_addition(one, two):
    if one.workload_features is not None or one.platform_features is not None:
        two = Runs(two.table, one.workload_features, one.platform_features)
    else:
        one = Runs(one.table, two.workload_features, two.platform_features)
    both = Runs.concatenate([one, two])
    assert both.table.to_pylist() == one.table.to_pylist() + two.table.to_pylist()
    assert both.workload_features == one.workload_features


def test_concatenate_refuses_a_run_twice():
    with pytest.raises(BadRows, match="already stands in row 0"):
        Runs.concatenate([make(), make()])


def test_free_columns_are_null_where_a_part_has_none():
    one, two = make(note=[1, 2, 3]), make(runtime_seconds=[4.0, 5.0, 6.0])
    both = Runs.concatenate([one, two])
    assert both.table.column("note").to_pylist() == [1, 2, 3, None, None, None]
    with pytest.raises(BadData, match="two types"):
        Runs.concatenate([one, make(run_id=["x", "y", "z"], note=[[1], [2], [3]])])


@pytest.mark.parametrize("value", [0.0, -1.0, float("inf"), float("-inf"), float("nan"), None])
def test_no_measurement_is_refused(value):
    error = bad_rows(runtime_seconds=[1.0, value, 3.0])
    assert [row for row, _ in error.rows] == [1]
    assert "1 of 3 rows" in str(error)


def test_a_run_that_failed_has_no_runtime():
    runs = make(
        runtime_seconds=[1.0, float("nan"), None],
        status=["ok", "failed", "timeout"],
        reason=["", "it crashed", "30 s"],
    )
    assert runs.table.column("runtime_seconds").to_pylist() == [1.0, None, None]
    assert runs.table.column("reason").to_pylist() == [None, "it crashed", "30 s"]
    error = bad_rows(status=["ok", "contaminated", "ok"], reason=[None, "noise", None])
    assert error.rows == [(1, "runtime_seconds is given although status is 'contaminated'")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"status": ["ok", "fine", "ok"]}, "status 'fine' is none of ok"),
        ({"status": ["ok", None, "ok"]}, "status None"),
        ({"reason": [None, "slow", None]}, "a reason is given although status is ok"),
        ({"run_id": ["x", "x", "y"]}, "run_id 'x' already stands in row 0"),
        ({"run_id": ["x", "", "y"]}, "run_id is empty"),
        ({"window_id": ["x", None, "y"]}, "window_id is empty"),
        ({"workload": ["a", "", "b"]}, "workload is empty"),
        ({"platform": ["a", None, "b"]}, "platform is empty"),
        ({"corunners": [[], [""], []]}, "a co-runner's name is empty"),
        ({"corunners": [[], ["a", None], []]}, "a co-runner's name is empty"),
        ({"corunners": [[], None, []]}, "corunners is null"),
        ({"workload": ["a", 3, "b"]}, "workload is 3"),
        ({"workload": ["a", "\ud800", "b"]}, "workload is '\\ud800'"),
        ({"corunners": [[], "ab", []]}, "corunners is 'ab'"),
        ({"runtime_seconds": [1.0, "x", 3.0]}, "runtime_seconds is 'x'"),
        ({"workload_features": {"workload": ["a", "c"], "f": [1, 2]}}, "'b' is not in the work"),
        ({"platform_features": {"platform": ["p"], "f": [1]}}, "platform 'q' is not in the pl"),
        (
            {"workload_features": {"workload": ["a", "b"], "f": [1, 2]}},
            "row 2: co-runner 'c' is not in the workload features",
        ),
    ],
)
def test_bad_rows_are_named_with_the_reason(changes, message):
    error = bad_rows(**changes)
    assert message in str(error)
    assert error.rows


def test_many_bad_rows_are_counted_and_the_first_shown():
    n = 5000
    with pytest.raises(BadRows) as caught:
        Runs.from_columns(workload=["a"] * n, platform=["p"] * n, runtime_seconds=np.zeros(n))
    text = str(caught.value)
    assert "5000 of 5000 rows" in text
    assert "and 4980 more" in text
    assert "row 19:" in text
    assert "row 20:" not in text


def test_arrow_and_numpy_columns_are_taken():
    runs = make(
        workload=pa.array(["a", "b", "a"]).dictionary_encode(),
        platform=np.array(["p", "p", "q"]),
        corunners=pa.array([["b"], [], ["c", "b"]], pa.large_list(pa.large_string())),
        runtime_seconds=np.array([1, 2, 3]),
        campaign="test",
        measured_at=[datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), None, None],
    )
    assert runs.colocations == make().colocations
    assert runs.table.schema.field("measured_at").type == pa.timestamp("us", tz="UTC")
    assert runs.table.column("campaign").to_pylist() == ["test"] * 3
    assert runs.table.schema.field("runtime_seconds").metadata[b"unit"] == b"s"
    assert runs.table.schema.metadata[b"schema"] == b"runs/v1"


def test_a_sliced_table_is_read_right():
    table = pa.concat_tables([make().table.slice(1, 2), make().table.slice(0, 1)])
    assert Runs(table).colocations == make().colocations.take([1, 2, 0])


def test_a_table_without_the_columns_is_refused():
    with pytest.raises(BadData, match="columns window_id of runs/v1 are missing"):
        Runs(make().table.drop_columns(["window_id"]))
    table = make().table
    table = table.set_column(3, "runtime_seconds", pa.array(["x", "y", "z"]))
    with pytest.raises(BadData, match="column runtime_seconds cannot be read as double"):
        Runs(table)


def test_features_are_sorted_and_nan_becomes_null():
    runs = make(
        workload_features={
            "size": [1.0, float("nan"), 3.0],
            "workload": ["c", "b", "a"],
            "suite": pa.array(["s", "t", "s"]).dictionary_encode(),
        }
    )
    table = runs.workload_features
    assert table is not None
    assert table.to_pylist() == [
        {"workload": "a", "size": 3.0, "suite": "s"},
        {"workload": "b", "size": None, "suite": "t"},
        {"workload": "c", "size": 1.0, "suite": "s"},
    ]
    found, values = runs.features_of("workload")
    assert found == ("a", "b", "c")
    assert values is not None
    assert values.column_names == ["size", "suite"]
    assert runs.features_of("platform") == ((), None)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"name": ["a", "b", "c"]}, "no column 'workload'"),
        ({"workload": ["a", "b", "c", "a"]}, "'a' more than once"),
        ({"workload": ["a", "b", "c", None]}, "is empty"),
        ({"workload": ["a", "b", "c"], "f": [[1], [2], [3]]}, "'f' holds list"),
        ({"workload": ["a", "b", "c"], "f": [1, 2]}, "no table"),
    ],
)
def test_bad_feature_tables_are_refused(features, message):
    with pytest.raises(BadData, match=message):
        make(workload_features=features)


def test_merged_features_fill_each_others_gaps():
    one = pa.table({"workload": ["a", "b"], "x": [1, None], "s": ["t", None]})
    two = pa.table({"workload": ["b", "c"], "x": [2.5, None], "y": [True, None]})
    merged = merge_features([("one", one), ("two", two), ("three", one)], "workload")
    assert merged is not None
    assert merged.to_pylist() == [
        {"workload": "a", "x": 1.0, "s": "t", "y": None},
        {"workload": "b", "x": 2.5, "s": None, "y": True},
        {"workload": "c", "x": None, "s": None, "y": None},
    ]
    assert merge_features([], "workload") is None


def test_contradicting_features_name_both_sources():
    one = pa.table({"workload": ["a", "b"], "x": [1, 2]})
    two = pa.table({"workload": ["b"], "x": [3]})
    with pytest.raises(BadData, match="workload 'b' has x 2 in one and 3 in two"):
        merge_features([("one", one), ("two", two)], "workload")
    text = pa.table({"workload": ["c"], "x": ["large"]})
    with pytest.raises(BadData, match="workload feature 'x' is int64 in one and string in text"):
        merge_features([("one", one), ("text", text)], "workload")
