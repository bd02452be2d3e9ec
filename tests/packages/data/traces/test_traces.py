"""Counter traces: what goes in comes out, and bad samples are named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.data import Trace, Traces, cut_traces, read_traces, write_traces
from jostle.errors import BadData, BadRows, NotPermitted, UnknownName, UnreadableFile
from tests.plain_traces import plain_trace


def a_trace(run_id: str = "r0", core: int = 0, n: int = 5, **changes: Any) -> Trace:
    counters = {
        "instructions": np.arange(n) * 10.0,
        "misses": np.where(np.arange(n) == 2, np.nan, 1.0),
    }
    facts = {"run_id": run_id, "core": core, "corunners": ("b", "a"), "runtime_seconds": 1.0}
    return replace(plain_trace(counters, 0.01, **facts), **changes)


def assert_same(one: Trace, two: Trace) -> None:
    assert (one.run_id, one.core, one.workload, one.platform) == (
        two.run_id,
        two.core,
        two.workload,
        two.platform,
    )
    assert sorted(one.corunners) == sorted(two.corunners)
    np.testing.assert_array_equal(one.time_seconds, two.time_seconds)
    np.testing.assert_array_equal(one.interval_seconds, two.interval_seconds)
    assert set(one.counters) == set(two.counters)
    for name in one.counters:
        np.testing.assert_array_equal(one[name], two[name])


def test_a_recording_that_is_cut_is_runs_that_begin_at_zero() -> None:
    found = cut_traces(Traces.from_traces([a_trace(n=11)]), 0.04)
    assert [one.run_id for one in found] == ["r0-0000", "r0-0001", "r0-0002"]
    for one, begun in zip(found, (0, 4, 8), strict=True):
        n = min(4, 11 - begun)
        np.testing.assert_allclose(one.time_seconds, 0.01 * np.arange(1, n + 1))
        np.testing.assert_array_equal(one["instructions"], 10.0 * np.arange(begun, begun + n))
    assert len(list(cut_traces(Traces.from_traces([a_trace(n=9)]), 0.04))) == 2  # the rest is short
    with pytest.raises(BadData, match="shorter than two runs"):
        cut_traces(found, 1.0)


@given(
    st.lists(
        st.tuples(st.sampled_from(["x", "y", "z"]), st.integers(0, 3), st.integers(1, 6)),
        min_size=1,
        unique_by=lambda t: t[:2],
    ),
    st.randoms(),
)
def test_any_order_of_samples_gives_the_same_traces(parts: Any, random: Any) -> None:
    made = {(run, core): a_trace(run, core, n) for run, core, n in parts}
    traces = Traces.from_traces(list(made.values()))
    rows = list(range(traces.samples.num_rows))
    random.shuffle(rows)
    shuffled = Traces(traces.samples.take(rows), traces.traced)
    for (run, core), trace in made.items():
        assert_same(shuffled.of(run, core), trace)
    assert sum(1 for _ in shuffled) == len(made)


def test_saved_traces_come_back_and_add_up(tmp_path: Path) -> None:
    first, second = (
        Traces.from_traces([a_trace("a")]),
        Traces.from_traces([a_trace("b", core=1, runtime_seconds=np.nan)]),
    )
    assert len(write_traces(tmp_path, first)) == 2
    assert write_traces(tmp_path, first) == []
    write_traces(tmp_path, second)
    back = read_traces(tmp_path)
    assert back.run_ids == ("a", "b")
    assert_same(back.of("a"), a_trace("a"))
    assert np.isnan(back.of("b", 1).runtime_seconds)
    assert back.counters == ("instructions", "misses")
    assert back.select(["b"]).run_ids == ("b",)


def test_a_run_id_stands_for_one_run(tmp_path: Path) -> None:
    write_traces(tmp_path, Traces.from_traces([a_trace("a")]))
    with pytest.raises(BadData, match="already"):
        write_traces(tmp_path, Traces.from_traces([a_trace("a", n=7, workload="other")]))
    with pytest.raises(BadData, match="disagree"):
        Traces.from_traces([a_trace("a"), a_trace("a", core=1, workload="other")])


def test_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no traces"):
        read_traces(tmp_path)
    file, _ = write_traces(tmp_path, Traces.from_traces([a_trace("a")]))
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(UnreadableFile, match=file.name):
        read_traces(tmp_path)
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(NotPermitted):
        write_traces(tmp_path / "file", Traces.from_traces([a_trace("b")]))


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("value", -1.0, "negative"),
        ("value", np.inf, "not finite"),
        ("interval_seconds", 0.0, "not above 0"),
        ("time_seconds", np.nan, "not above 0"),
        ("time_seconds", 0.02, "begins before"),
        ("interval_seconds", 0.03, "begins before"),
        ("core", -1, "negative"),
        ("run_id", "nobody", "not among"),
        ("counter", None, "null"),
    ],
)
def test_bad_samples_are_refused(column: str, value: Any, reason: str) -> None:
    traces = Traces.from_traces([a_trace(counters={"instructions": np.arange(5.0)})])
    values = traces.samples.column(column).to_pylist()
    values[2] = value
    number = traces.samples.schema.get_field_index(column)
    broken = traces.samples.set_column(
        number, column, pa.array(values, traces.samples.schema.field(column).type)
    )
    with pytest.raises(BadRows, match=reason) as error:
        Traces(broken, traces.traced)
    assert error.value.rows[0][0] == 2


def test_unknown_names_are_named() -> None:
    traces = Traces.from_traces([a_trace("r0")])
    with pytest.raises(UnknownName, match="r0"):
        traces.of("r1")
    with pytest.raises(UnknownName, match="instructions"):
        traces.of("r0")["instruction"]
    with pytest.raises(BadData, match="core 3"):
        traces.of("r0", 3)
    with pytest.raises(BadRows, match="twice"):
        Traces(traces.samples, pa.concat_tables([traces.traced, traces.traced]))
    with pytest.raises(BadData, match="missing"):
        Traces(traces.samples.drop_columns(["core"]), traces.traced)
    with pytest.raises(BadData, match="3 values"):
        Traces.from_traces([a_trace(counters={"x": np.zeros(3)})])


def test_no_samples_and_one_sample() -> None:
    none = Traces.from_traces([a_trace(n=0)])
    assert len(none) == 1
    assert none.cores("r0") == ()
    assert len(Traces.from_traces([a_trace(n=1)]).of("r0")) == 1
    assert len(Traces.from_traces([])) == 0
