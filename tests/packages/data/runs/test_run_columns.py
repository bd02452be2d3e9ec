"""What runs may say beside names and times: covariates, memory, co-runners that nobody knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.data import Colocations, Dataset, Runs, from_table, solo_medians, summarise
from jostle.errors import BadData, BadRows, UnknownName

COLUMNS: dict[str, Any] = {
    "workload": ["a", "a", "b"],
    "platform": ["p"] * 3,
    "runtime_seconds": [1.0, 2.0, 3.0],
    "input_bytes": [10.0, None, 30.0],
    "kind": ["x", None, "y"],
    "peak_memory_bytes": [5.0, None, 7.0],
    "requested_memory_bytes": [None, 6.0, 8.0],
    "unknown_corunners": [False, True, None],
    "note": ["m", "n", "o"],
}
COVARIATES = ("kind", "input_bytes")


def is_told(runs: Runs, rows: list[int]) -> None:
    assert set(runs.covariates) == set(COVARIATES)
    np.testing.assert_array_equal(
        runs.covariates["input_bytes"], np.array([10.0, np.nan, 30.0])[rows]
    )
    assert runs.covariates["kind"].tolist() == [["x", "", "y"][row] for row in rows]
    np.testing.assert_array_equal(runs.peak_memory_bytes, np.array([5.0, np.nan, 7.0])[rows])
    np.testing.assert_array_equal(runs.requested_memory_bytes, np.array([np.nan, 6.0, 8.0])[rows])
    assert runs.unknown_corunners.tolist() == [[False, True, False][row] for row in rows]
    assert runs.table.column("note").to_pylist() == ["mno"[row] for row in rows]
    assert runs.table.schema.metadata[b"schema"] == b"runs/v3"


def test_they_are_kept_through_everything(tmp_path: Path) -> None:
    runs = Runs.from_columns(**COLUMNS, covariates=COVARIATES)
    is_told(runs, [0, 1, 2])
    is_told(runs.take([2, 1]), [2, 1])
    is_told(runs.ok().with_one_company(runs.runtime_seconds), [0, 1, 2])
    is_told(Runs(runs.table), [0, 1, 2])
    is_told(Runs.concatenate([runs.take([0, 1]), runs.take([2])]), [0, 1, 2])
    Dataset(tmp_path / "d").write(runs.take([0, 2]))
    Dataset(tmp_path / "d").write(runs.take([1]))
    is_told(Dataset(tmp_path / "d").read(), [0, 2, 1])
    assert "alone: 2" in repr(runs)
    assert "with unknown co-runners: 1" in repr(runs)


def test_from_a_table() -> None:
    table = {name: COLUMNS[name] for name in COLUMNS if name != "input_bytes"}
    table["rchar"] = [10, None, 30]
    is_told(Runs.from_table(table, covariates=["kind", "input_bytes=rchar"]), [0, 1, 2])
    assert from_table(table).covariates == {}
    with pytest.raises(UnknownName, match="rchars"):
        from_table(table, covariates=["rchars"])
    with pytest.raises(BadData, match="'status' is a column of all runs"):
        from_table(table | {"x": [1, 2, 3]}, covariates=["status=x"])
    with pytest.raises(BadData, match="holds list"):
        from_table(table | {"x": [[1], [2], [3]]}, covariates=["x"])


def test_beside_runs_that_say_nothing_of_it(tmp_path: Path) -> None:
    plain = Runs.from_columns(workload=["c"], platform=["p"], runtime_seconds=[4.0])
    assert plain.table.schema.metadata == {b"schema": b"runs/v1"}
    assert plain.covariates == {}
    assert np.isnan(plain.peak_memory_bytes).all()
    assert not plain.unknown_corunners.any()
    Dataset(tmp_path / "d").write(plain)
    Dataset(tmp_path / "d").write(Runs.from_columns(**COLUMNS, covariates=COVARIATES))
    runs = Dataset(tmp_path / "d").read()
    assert np.isnan(runs.covariates["input_bytes"][0])
    assert runs.covariates["kind"].tolist() == ["", "x", "", "y"]
    assert runs.unknown_corunners.tolist() == [False, False, True, False]


def test_who_had_unknown_co_runners_was_not_alone() -> None:
    runs = Runs.from_columns(**COLUMNS, covariates=COVARIATES)
    np.testing.assert_allclose(solo_medians(runs, ("a", "b"), ("p",)), np.log([[1.0, 3.0]]))
    assert summarise(runs).solo_cells == 2
    assert summarise(runs.take([1])).solo_cells == 0


@pytest.mark.parametrize("name", ["peak_memory_bytes", "requested_memory_bytes"])
@pytest.mark.parametrize("value", [0.0, -1.0, np.inf])
def test_memory_is_above_zero(name: str, value: float) -> None:
    with pytest.raises(BadRows, match=f"{name} is .*, not above 0"):
        Runs.from_columns(**COLUMNS | {name: [value, 1.0, None]})


def test_a_run_takes_a_nanosecond_at_least() -> None:
    def timed(seconds: float) -> Runs:
        return Runs.from_columns(workload=["a"], platform=["p"], runtime_seconds=[seconds])

    assert timed(1e-9).runtime_seconds.tolist() == [1e-9]
    with pytest.raises(BadRows, match="runtime_seconds is 9e-10, under 1 ns"):
        timed(9e-10)


def test_out_of_memory_is_not_ok() -> None:
    runs = Runs.from_columns(
        workload=["a"],
        platform=["p"],
        runtime_seconds=[None],
        status=["out_of_memory"],
        peak_memory_bytes=[4.0],
    )
    assert not runs.is_ok.any()
    assert runs.peak_memory_bytes.tolist() == [4.0]


@given(
    st.lists(
        st.tuples(st.none() | st.floats(allow_nan=False, width=32), st.none() | st.text("ab")),
        min_size=1,
    )
)
def test_what_was_told_comes_back(rows: list[tuple[float | None, str | None]]) -> None:
    n = len(rows)
    table = pa.table(
        {
            "workload": ["w"] * n,
            "platform": ["p"] * n,
            "runtime_seconds": [1.0] * n,
            "number": pa.array([row[0] for row in rows], pa.float64()),
            "label": pa.array([row[1] for row in rows], pa.string()),
        }
    )
    told = from_table(table, covariates=["number", "label"]).covariates
    numbers = [np.nan if row[0] is None or np.isinf(row[0]) else row[0] for row in rows]
    np.testing.assert_array_equal(told["number"], numbers)
    assert told["label"].tolist() == [row[1] or "" for row in rows]


@pytest.mark.parametrize("value", ["p0", 3.0, np.float64(3), np.array(3.0), b"p0"])
@pytest.mark.parametrize("name", ["workload", "platform", "corunners", "runtime_seconds"])
def test_one_value_is_no_column(name: str, value: Any) -> None:
    columns: dict[str, Any] = {"workload": ["a"], "platform": ["p0"], "corunners": [[]]}
    with pytest.raises(BadRows, match=f"column '{name}' is one (text|value): .*one entry per row"):
        Runs.from_columns(**{**columns, "runtime_seconds": [1.0], name: value})
    if name != "runtime_seconds":
        with pytest.raises(BadRows, match=f"column '{name}' is one (text|value)"):
            Colocations.from_columns(**(columns | {name: value}))
