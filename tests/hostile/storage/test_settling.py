"""Writers who could not see each other: what they say of the same thing is settled when it is read."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.data import (
    GPUS,
    Dataset,
    Runs,
    Traces,
    read_profiles,
    read_runs,
    read_traces,
    tasks_from_rows,
    write_profiles,
    write_traces,
)
from jostle.errors import BadData, BadRows
from tests.command_line import jostle as command
from tests.plain_traces import plain_trace

from .carriers import runs_of


def at_once(folder: Path, *parts: Runs) -> list[Path]:
    """Every writer has made all its checks before the first publishes; the files of runs they wrote."""
    with ExitStack() as stack:
        publish = [stack.enter_context(Dataset(folder).ready_to_add(runs)) for runs in parts]
        written = [file for one in publish for file in one()]
    return [file for file in written if file.parent.name == "runs"]


def test_features_that_contradict_each_other(tmp_path: Path) -> None:
    first = {"workload": ["a", "s"], "size": [1, 7], "kind": ["x", None]}
    second = {"workload": ["b", "s"], "size": [2, 8], "kind": ["y", "z"]}
    at_once(
        tmp_path,
        runs_of("a", workload_features=first),
        runs_of("b", workload_features=second),
    )
    found = read_runs(tmp_path)
    assert found.workload_features is not None
    assert found.workload_features.to_pylist() == [
        {"workload": "a", "size": 1, "kind": "x"},
        {"workload": "b", "size": 2, "kind": "y"},
        {"workload": "s", "size": 7, "kind": "z"},
    ]
    (note,) = found.notes
    files = sorted((tmp_path / "workload_features").iterdir())
    for part in ("'s'", "size", "7 in", "8 in", "passed over", *(file.name for file in files)):
        assert part in note
    assert Dataset(tmp_path).features() == (found.workload_features, None)
    assert found.take([0]).notes == found.ok().notes == found.notes
    # What both can see is refused as ever, and what agrees with what stands is taken.
    with pytest.raises(BadData, match=r"size 7 in .* and 8 in the features to be written"):
        Dataset(tmp_path).write(
            runs_of("c", workload_features={"workload": ["c", "s"], "size": [3, 8]})
        )
    Dataset(tmp_path).write(
        runs_of("c", workload_features={"workload": ["c", "s"], "size": [3, 7]})
    )
    assert len(read_runs(tmp_path)) == 3


def test_feature_columns_of_two_types(tmp_path: Path) -> None:
    at_once(
        tmp_path,
        runs_of("a", platform_features={"platform": ["p"], "cores": [4], "ok": [1.5]}),
        runs_of("b", platform_features={"platform": ["p"], "cores": ["four"], "ok": [1.5]}),
    )
    found = read_runs(tmp_path)
    assert found.platform_features is not None
    assert found.platform_features.to_pylist() == [{"platform": "p", "cores": 4, "ok": 1.5}]
    assert len(found.notes) == 1
    assert "'cores'" in found.notes[0]


def test_names_that_the_first_features_do_not_have(tmp_path: Path) -> None:
    """One wrote runs where nobody had features, the other the first features, for its own runs."""
    without = runs_of("b", corunners=[["c"]])
    with_features = runs_of(
        "a",
        workload_features={"workload": ["a"], "size": [1]},
        platform_features={"platform": ["p"], "cores": [4]},
    )
    at_once(tmp_path, without, with_features)
    found = read_runs(tmp_path)
    assert found.workload_features is not None
    assert found.workload_features.column("size").to_pylist() == [1, None, None]
    assert found.workload_features.column("workload").to_pylist() == ["a", "b", "c"]
    assert found.workload_features.schema.metadata == {b"schema": b"workload_features/v1"}
    (note,) = found.notes
    assert "2 workloads have no row" in note


def test_a_run_id_of_two_writers(tmp_path: Path) -> None:
    two: dict[str, Any] = {
        "workload": ["a", "b"],
        "platform": ["p", "q"],
        "runtime_seconds": [1.0, 2.0],
    }
    first = Runs.from_columns(**two, run_id=["x", "y"])
    other: dict[str, Any] = two | {"runtime_seconds": [3.0, 4.0]}
    second = Runs.from_columns(**other, run_id=["z", "y"])
    files = at_once(tmp_path, first, second)
    found = read_runs(tmp_path)
    assert found.table.column("run_id").to_pylist() == ["x", "y", "z"]
    assert found.runtime_seconds.tolist() == [1.0, 2.0, 3.0]
    assert found == read_runs(tmp_path)
    (note,) = found.notes
    assert note.startswith(f"1 runs of {files[1]} were passed over")
    assert note.endswith(f"the first is 'y' in {files[0]}")
    with pytest.raises(BadRows, match="in the dataset already"):
        Dataset(tmp_path).write(runs_of("y"))


def test_a_bad_row_is_named_by_its_row_though_others_are_passed_over(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    Dataset(tmp_path).write(runs_of("a"))
    three = pa.concat_tables([runs_of(name).table for name in "abc"])
    seconds = pa.array([1.0, -1.0, 1.0])
    three = three.set_column(3, "runtime_seconds", seconds)
    three = three.replace_schema_metadata(runs_of("a").table.schema.metadata)
    pq.write_table(three, tmp_path / "runs" / "zzz.parquet")
    with pytest.raises(BadRows, match=r"zzz\.parquet row 1: runtime_seconds is -1\.0") as raised:
        read_runs(tmp_path)
    assert len(raised.value.rows) == 1


def test_free_columns_of_two_types(tmp_path: Path) -> None:
    many = {"platform": ["p"] * 40, "runtime_seconds": [1.0] * 40}
    parts = [
        Runs.from_columns(
            workload=["w"] * 40,
            run_id=[f"{value}{k}" for k in range(40)],
            remark=[value] * 40,
            **many,
        )
        for value in (1.5, "text", None)
    ]
    first, second, _ = at_once(tmp_path, *parts)
    found = read_runs(tmp_path)
    assert found.table.column("remark").to_pylist() == [1.5] * 40 + [None] * 80
    (note,) = found.notes
    for part in ("'remark'", "double", "string", str(first), str(second)):
        assert part in note
    with pytest.raises(BadData, match=r"remark.*nothing was written"):
        Dataset(tmp_path).write(runs_of("w", remark=["more text"]))
    Dataset(tmp_path).write(runs_of("w", remark=[2]))
    assert len(read_runs(tmp_path)) == 121


def test_other_tools_may_write_the_named_columns_in_other_types(tmp_path: Path) -> None:
    """They are read in the types of the schema: that is no contradiction."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names, two = [f"w{k}" for k in range(40)], {"platform": ["p"] * 40}
    for place, seconds in (("first", 1.0), ("second", 2.0)):
        part = Runs.from_columns(
            workload=names, runtime_seconds=[seconds] * 40, run_id=[place + n for n in names], **two
        )
        table = part.table
        if place == "second":
            whole = pa.array([2] * 40, pa.int32())
            table = table.set_column(3, "runtime_seconds", whole)
            encoded = table.column("workload").dictionary_encode()
            table = table.set_column(0, "workload", encoded)
            table = table.replace_schema_metadata(part.table.schema.metadata)
        (tmp_path / "runs").mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / "runs" / f"{place}.parquet")
    found = read_runs(tmp_path)
    assert (len(found), found.notes) == (80, ())


def test_commands_say_what_was_settled(tmp_path: Path) -> None:
    many = {
        "workload": ["a", "b"] * 20,
        "platform": ["p"] * 40,
        "runtime_seconds": np.linspace(1, 2, 40),
        "run_id": [str(number) for number in range(40)],
    }
    at_once(tmp_path / "set", Runs.from_columns(**many), runs_of("0"))
    (note,) = read_runs(tmp_path / "set").notes
    assert note in command("runs", tmp_path / "set").stderr
    result = command("runs", tmp_path / "set", "--json")
    assert json.loads(result.stdout)["notes"] == [note]
    words = [
        sys.executable,
        "-m",
        "jostle",
        "fit",
        "set",
        "-o",
        "model",
        "--method=slowdown",
        "--json",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=True)
    assert note.replace(f"{tmp_path}/", "") in json.loads(done.stdout)["notes"]


def test_features_of_a_damaged_file_do_not_keep_measurements_out(tmp_path: Path) -> None:
    Dataset(tmp_path).write(runs_of("a", workload_features={"workload": ["a"], "size": [1]}))
    (file,) = (tmp_path / "workload_features").iterdir()
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    Dataset(tmp_path).write(runs_of("b", platform_features={"platform": ["p"], "cores": [4]}))
    with pytest.raises(BadData, match=file.name):
        read_runs(tmp_path)
    file.write_bytes(content)
    found = read_runs(tmp_path)
    assert len(found) == 2
    assert found.workload_features is not None
    assert found.workload_features.column("size").to_pylist() == [1, None]


def test_samples_of_a_killed_writer_are_not_taken_for_those_of_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os

    real = os.link

    def killed(source: Path, target: Path) -> None:
        if "traced_runs" in str(target):
            raise KeyboardInterrupt
        real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", killed)
        with pytest.raises(KeyboardInterrupt):
            write_traces(tmp_path, Traces.from_traces([plain_trace({"x": [1.0] * 5}, run_id="a")]))
    assert list((tmp_path / "traces").glob("*.parquet"))
    write_traces(tmp_path, Traces.from_traces([plain_trace({"x": [2.0] * 3}, run_id="a")]))
    found = read_traces(tmp_path)
    assert found.of("a").counters["x"].tolist() == [2.0] * 3


def test_a_traced_run_of_two_writers(tmp_path: Path) -> None:
    for place, value, names in (("one", 1.0, "ab"), ("two", 2.0, "bc")):
        write_traces(
            tmp_path / place,
            Traces.from_traces([plain_trace({"x": [value] * 3}, run_id=n) for n in names]),
        )
    for file in (tmp_path / "two").rglob("*.parquet"):
        target = tmp_path / "one" / file.parent.name / file.name.replace("00000001", "00000002")
        target.write_bytes(file.read_bytes())
    found = read_traces(tmp_path / "one")
    assert found.run_ids == ("a", "b", "c")
    assert [trace.counters["x"].tolist() for trace in found] == [[1.0] * 3, [1.0] * 3, [2.0] * 3]
    (note,) = found.notes
    assert "'b'" in note
    samples = next((tmp_path / "one" / "traces").glob("00000002*"))
    samples.rename(tmp_path / "elsewhere")
    with pytest.raises(BadData, match="is missing"):
        read_traces(tmp_path / "one")


def test_traces_that_name_no_samples(tmp_path: Path) -> None:
    """Files of other tools, and of Jostle before it did so: all samples of a run are taken."""
    import pyarrow.parquet as pq

    traces = Traces.from_traces(
        [plain_trace({"x": [1.0] * 3}, run_id="a"), plain_trace({"x": [2.0] * 3}, run_id="b")]
    )
    for folder, table in (("traces", traces.samples), ("traced_runs", traces.traced)):
        (tmp_path / folder).mkdir()
        half = table.num_rows // 2
        pq.write_table(table.slice(0, half), tmp_path / folder / "one.parquet")
        pq.write_table(table.slice(half), tmp_path / folder / "two.parquet")
    found = read_traces(tmp_path)
    assert [trace.counters["x"].tolist() for trace in found] == [[1.0] * 3, [2.0] * 3]
    assert found.notes == ()


def test_a_profile_of_two_writers(tmp_path: Path) -> None:
    for place, seconds in (("one", 1.0), ("two", 2.0)):
        rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": seconds, "name": "k"}]
        write_profiles(tmp_path / place, [tasks_from_rows(rows, run_id="a", gpu=GPUS["T4"])])
    for file in (tmp_path / "two").rglob("*.parquet"):
        target = tmp_path / "one" / file.parent.name / file.name.replace("00000001", "00000002")
        target.write_bytes(file.read_bytes())
    (found,) = read_profiles(tmp_path / "one").values()
    assert found.column("duration_seconds").tolist() == [1.0]
    assert found.tasks.column("sequence").to_pylist() == [0]
    assert any("passed over" in note for note in found.notes)
