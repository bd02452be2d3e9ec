"""Runs whose company changes, against plain lists: what is said, kept, checked, and the law of rates."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jostle
from jostle.data import Dataset, Runs, solo_medians, split_rows, summarise
from jostle.errors import BadRows
from tests.command_line import jostle as command

COMPANY = st.lists(st.sampled_from(["a", "b", "c"]), max_size=3)


@st.composite
def rows(draw: st.DrawFn) -> list[tuple[list[tuple[float, list[str]]], float]]:
    """(stretches, runtime) of some runs; one stretch is said by none."""
    made = []
    for _ in range(draw(st.integers(1, 5))):
        lasted = draw(st.lists(st.integers(1, 9), min_size=1, max_size=4))
        starts = np.cumsum([0, *lasted])
        made.append(([(float(s), draw(COMPANY)) for s in starts[:-1]], float(starts[-1])))
    return made


def runs_of(made: list[tuple[list[tuple[float, list[str]]], float]]) -> Runs:
    single = [parts[0][1] if len(parts) == 1 else None for parts, _ in made]
    longest = [
        max(
            zip(
                np.diff([s for s, _ in parts] + [end]), [-i for i in range(len(parts))], strict=True
            )
        )
        for parts, end in made
    ]
    return Runs.from_columns(
        workload=["a"] * len(made),
        platform=["p"] * len(made),
        runtime_seconds=[end for _, end in made],
        corunners=[
            parts[-at][1] if one is None else one
            for (parts, _), one, (_, at) in zip(made, single, longest, strict=True)
        ],
        stretches=[None if len(parts) == 1 else parts for parts, _ in made],
    )


@given(rows())
def test_stretches_are_what_was_said(made: list) -> None:
    runs = runs_of(made)
    parts = runs.stretches
    said = [(i, *part) for i, (stretches, _) in enumerate(made) for part in stretches]
    assert parts.row.tolist() == [i for i, _, _ in said]
    assert parts.colocations.to_columns()["corunners"] == [sorted(names) for *_, names in said]
    ends = [s for stretches, end in made for s in [*(s for s, _ in stretches[1:]), end]]
    assert parts.seconds.tolist() == [e - s for e, (_, s, _) in zip(ends, said, strict=True)]
    assert runs.is_steady.tolist() == [len(stretches) == 1 for stretches, _ in made]
    # The company of the longest stretch is found by itself, where it is not said.
    columns = runs.table.drop_columns(["corunners"]).to_pydict()
    if not runs.is_steady.any():
        assert (
            Runs.from_columns(**columns)
            .table.column("corunners")
            .equals(runs.table.column("corunners"))
        )
    assert Runs.concatenate(
        [runs.take([i]) for i in range(len(runs))]
    ).stretches.seconds.tolist() == (parts.seconds.tolist())


@given(rows(), st.integers(0, 5))
def test_the_law_of_rates_is_work_done_step_by_step(made: list, seed: int) -> None:
    parts = runs_of(made).stretches
    times = np.random.default_rng(seed).uniform(0.5, 50, len(parts.row))
    for i, said in enumerate(parts.log_runtime(np.log(times))):
        mine = parts.row == i
        # A run that takes `end` seconds, with this company for these shares of them, does all of its work.
        end, shares = np.exp(said), parts.seconds[mine] / parts.seconds[mine].sum()
        done = end * shares / times[mine]
        assert done.sum() == pytest.approx(1)
        assert parts.work(np.log(times))[mine] == pytest.approx(done)
    same = np.log(np.arange(1.0, len(made) + 1))[parts.row]
    assert parts.log_runtime(same) == pytest.approx(np.log(np.arange(1.0, len(made) + 1)))


def test_those_of_some_runs_are_under_the_names_of_all() -> None:
    runs = runs_of([([(0.0, [b]), (1.0, [])], 3.0) for b in "bac"])
    some, names = runs.stretches.take(np.array([2, 0])), runs.colocations.workload_names
    assert some.colocations.workload_names == names
    assert some.row.tolist() == [0, 0, 1, 1]
    assert some.seconds.tolist() == [1.0, 2.0, 1.0, 2.0]
    assert [names[code] for code in some.colocations.corunner] == ["c", "b"]


def test_a_dataset_keeps_them_beside_files_of_before(tmp_path: Path) -> None:
    before = Runs.from_columns(workload=["a"], platform=["p"], runtime_seconds=[3.0])
    assert before.table.schema.metadata == {b"schema": b"runs/v1"}
    changing = runs_of([([(0.0, ["b"]), (2.0, [])], 3.0), ([(0.0, ["c"])], 1.0)])
    assert changing.table.schema.metadata == {b"schema": b"runs/v2"}
    Dataset(tmp_path).write(before)
    Dataset(tmp_path).write(changing)
    assert jostle.read_runs(tmp_path).stretches.counts.tolist() == [1, 2, 1]
    # Runs of one company alone are a table of before, byte for byte.
    assert changing.take([1]).stretches.counts.tolist() == [1]
    assert Runs(changing.take([1]).table).table.schema.metadata == {b"schema": b"runs/v1"}


def test_a_run_is_alone_only_where_it_is_so_throughout(tmp_path: Path) -> None:
    runs = runs_of([([(0.0, []), (9.0, ["b"])], 10.0), ([(0.0, [])], 4.0), ([(0.0, ["b"])], 5.0)])
    assert np.exp(solo_medians(runs, ("a", "b"), ("p",)))[0, 0] == pytest.approx(4.0)
    summary = summarise(runs)
    assert (summary.solo_cells, summary.repeats) == (1, 0)
    assert summary.changing is not None
    assert (summary.changing.runs, summary.changing.longest_ratio) == (1, pytest.approx(0.9))
    assert summary.changing.steady_ratio == pytest.approx(2 / 3)
    parts = split_rows(runs, [0.5, 0.5], seed=0)
    assert sorted(np.concatenate(parts).tolist()) == [0, 1, 2]
    Dataset(tmp_path).write(runs)
    answer = command("runs", tmp_path)
    assert "company changes in" in answer.output
    assert "90% of their time" in " ".join(answer.output.split())
    answer = command("runs", tmp_path, "--json")
    assert json.loads(answer.output)["changing"]["runs"] == 1


@pytest.mark.parametrize(
    ("stretches", "reason"),
    [
        ([(1.0, [])], "does not start at 0"),
        ([(0.0, []), (0.0, ["x"])], "does not start after"),
        ([(0.0, []), (float("nan"), ["x"])], "lacks its start"),
        ([(0.0, ["x"]), (10.0, [])], "over already"),
        ([], "empty list"),
        ([(0.0, [""])], "in a stretch is empty"),
        ([(0.0, "xy")], "stretches"),
        ([(0.0, None)], "lacks its start or its corunners"),
        ([(0.0, ["x"]), (6.0, [])], "not the company of the longest"),
    ],
)
def test_what_is_no_stretch_is_refused(stretches: list, reason: str) -> None:
    with pytest.raises(BadRows, match=reason):
        Runs.from_columns(
            workload=["a"],
            platform=["p"],
            runtime_seconds=[10.0],
            corunners=[[]],
            stretches=[stretches],
        )


def test_stretches_need_a_runtime_and_known_names() -> None:
    said = {"workload": ["a"], "platform": ["p"], "stretches": [[(0.0, ["x"]), (1.0, [])]]}
    with pytest.raises(BadRows, match="there is no runtime"):
        Runs.from_columns(**said, runtime_seconds=[None], status=["failed"], corunners=[[]])
    features = pa.table({"workload": ["a"], "size": [1.0]})
    with pytest.raises(BadRows, match="in a stretch is not in the workload features"):
        Runs.from_columns(**said, runtime_seconds=[9.0], workload_features=features)


def test_a_free_column_of_that_name_is_no_stretches() -> None:
    runs = Runs.from_columns(
        workload=["a"], platform=["p"], runtime_seconds=[1.0], stretches=pa.array([3])
    )
    assert not runs.is_stretched
    assert runs.table.column("stretches").to_pylist() == [3]
