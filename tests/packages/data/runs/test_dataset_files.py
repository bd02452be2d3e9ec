"""The files of a dataset: what is written is what is read, and a damaged file is always named."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.data import Dataset, Runs, read_runs
from jostle.errors import BadData, BadRows, UnreadableFile
from tests.command_line import jostle as command

from .strategies import some_runs


def one(name: str = "a", **features) -> Runs:
    return Runs.from_columns(
        workload=[name],
        platform=["p"],
        runtime_seconds=[1.0],
        run_id=[f"run of {name}"],
        **features,
    )


@given(some_runs(min_size=1))
@settings(max_examples=40, deadline=None)  # it waits for the disk
def test_what_is_written_is_read(runs):
    with tempfile.TemporaryDirectory() as folder:
        Dataset(folder).write(runs)
        found = read_runs(folder)
        assert found == runs
        assert found.colocations == runs.colocations
        assert found.table.schema.equals(runs.table.schema, check_metadata=True)


@given(some_runs(min_size=1, prefix="x"), some_runs(min_size=1, prefix="y"))
@settings(max_examples=40, deadline=None)  # it waits for the disk
def test_two_writes_are_read_one_after_the_other(first, second):
    second = Runs(second.table, first.workload_features, first.platform_features)
    with tempfile.TemporaryDirectory() as folder:
        Dataset(folder).write(first)
        Dataset(folder).write(second)
        found = read_runs(folder)
        assert found.table.to_pylist() == first.table.to_pylist() + second.table.to_pylist()
        assert found.workload_features == first.workload_features


@given(st.data())
@settings(deadline=None)  # it waits for the disk
def test_a_file_cut_or_changed_anywhere_is_named(data):
    with tempfile.TemporaryDirectory() as folder:
        features = {"workload": ["a"], "f": [1.0]}
        written = Dataset(folder).write(one(workload_features=features))
        file = data.draw(st.sampled_from(written))
        content = bytearray(file.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        if data.draw(st.booleans()):
            content[place] ^= data.draw(st.integers(1, 255))
        else:
            del content[place:]
        file.write_bytes(content)
        readers = [read_runs] if file.parent.name == "runs" else [read_runs, features_read]
        for read in readers:
            with pytest.raises(UnreadableFile) as caught:
                read(folder)
            assert str(file) in str(caught.value)


def features_read(folder: str) -> object:
    return Dataset(folder).features()


def test_a_renamed_file_is_cut_anywhere(tmp_path: Path):
    """A file that other tools wrote has no hash in its name, and is still never read in part."""
    Dataset(tmp_path).write(one())[0].rename(tmp_path / "runs" / "foreign.parquet")
    file = tmp_path / "runs" / "foreign.parquet"
    assert len(read_runs(tmp_path)) == 1
    content = file.read_bytes()
    for size in range(0, len(content), 37):
        file.write_bytes(content[:size])
        with pytest.raises(UnreadableFile, match=r"foreign\.parquet"):
            read_runs(tmp_path)


def test_the_same_table_from_two_writers_is_read_once(tmp_path: Path):
    dataset = Dataset(tmp_path)
    file = dataset.write(one())[0]
    assert Dataset(tmp_path).write(one()) == []
    shutil.copy(file, file.with_name(file.name.replace("00000001", "00000002")))
    assert len(dataset.read()) == 1


def test_the_version_changes_with_every_file(tmp_path: Path):
    dataset = Dataset(tmp_path)
    assert not dataset.exists
    versions = [dataset.version()]
    for name in "abc":
        dataset.write(one(name))
        versions.append(dataset.version())
    assert len(set(versions)) == 4
    assert {len(version) for version in versions} == {16}
    dataset.write(one("a"))
    assert dataset.version() == versions[-1]
    assert dataset.exists


def test_features_alone_can_be_read(tmp_path: Path):
    features = {"workload": ["a"], "f": [1]}
    none = Runs.from_columns(
        workload=[], platform=[], runtime_seconds=[], workload_features=features
    )
    assert len(Dataset(tmp_path).write(none)) == 1
    assert len(read_runs(tmp_path)) == 0
    Dataset(tmp_path).write(one())
    found = read_runs(tmp_path).workload_features
    assert found is not None
    assert found.to_pylist() == [{"workload": "a", "f": 1}]


def features_of(dataset: Dataset) -> dict[str, int | None]:
    table = dataset.read().workload_features
    return {} if table is None else {row["workload"]: row["f"] for row in table.to_pylist()}


def test_runs_without_features_are_added_where_others_have_them(tmp_path: Path):
    dataset = Dataset(tmp_path)
    dataset.write(one(workload_features={"workload": ["a"], "f": [1]}))
    dataset.write(one("b"))
    assert features_of(dataset) == {"a": 1, "b": None}
    assert any("1 workloads have no row" in note for note in dataset.read().notes)
    # What is said later of it is known from then on, and what contradicts is refused.
    dataset.write(one("c", workload_features={"workload": ["b", "c"], "f": [2, 3]}))
    assert features_of(dataset) == {"a": 1, "b": 2, "c": 3}
    assert not dataset.read().notes
    with pytest.raises(BadData, match="'a'"):
        dataset.write(one("d", workload_features={"workload": ["a", "d"], "f": [9, 4]}))
    assert features_of(dataset) == {"a": 1, "b": 2, "c": 3}
    assert not dataset.leftovers()


def test_files_are_numbered(tmp_path: Path):
    dataset = Dataset(tmp_path)
    dataset.write(one(workload_features={"workload": ["a"], "f": [1]}))
    dataset.write(one("b", workload_features={"workload": ["b"], "f": [2]}))
    assert len(dataset.read()) == 2
    places = [(file.parent.name, file.name[:8]) for file in dataset.files()]
    numbers = ["00000001", "00000002"]
    assert places == [(name, n) for name in ("workload_features", "runs") for n in numbers]


def test_first_features_need_not_cover_older_runs(tmp_path: Path):
    dataset = Dataset(tmp_path)
    dataset.write(one())
    new = one("b", platform_features={"platform": ["p"], "f": [1]})
    assert len(dataset.write(new)) == 2
    assert features_of(dataset) == {}
    dataset.write(one("c", workload_features={"workload": ["b", "c"], "f": [1, 2]}))
    assert features_of(dataset) == {"a": None, "b": 1, "c": 2}
    assert len(dataset.read()) == 3


def test_a_run_that_is_there_is_refused_and_nothing_is_written(tmp_path: Path):
    dataset = Dataset(tmp_path)
    dataset.write(one())
    before = dataset.files()
    again = Runs.from_columns(
        workload=["a"], platform=["p"], runtime_seconds=[2.0], run_id=["run of a"]
    )
    with pytest.raises(BadRows, match="in the dataset already"):
        dataset.write(again)
    assert dataset.files() == before
    assert dataset.leftovers() == []


def test_a_damaged_file_does_not_stop_writers(tmp_path: Path):
    dataset = Dataset(tmp_path)
    dataset.write(one())[0].write_bytes(b"")
    assert len(Dataset(tmp_path).write(one("b"))) == 1
    with pytest.raises(UnreadableFile, match="00000001"):
        dataset.read()


def test_leftovers_are_passed_over_and_told(tmp_path: Path):
    dataset = Dataset(tmp_path)
    dataset.write(one())
    left = tmp_path / "runs" / ".1-abc.tmp"
    left.write_bytes(b"half a file")
    assert len(dataset.read()) == 1
    assert dataset.leftovers() == [left]
    result = command("runs", tmp_path, "--json")
    assert json.loads(result.stdout)["leftovers"] == [str(left)]
    result = command("runs", tmp_path)
    assert str(left) in result.stderr
    assert str(left) not in result.stdout


def test_another_schema_is_named(tmp_path: Path):
    import pyarrow.parquet as pq

    (tmp_path / "runs").mkdir()
    table = one().table.replace_schema_metadata({"schema": "runs/v9"})
    pq.write_table(table, tmp_path / "runs" / "new.parquet")
    with pytest.raises(UnreadableFile, match="runs/v9, not runs/v1"):
        read_runs(tmp_path)


def test_rows_that_other_tools_wrote_are_checked(tmp_path: Path):
    import pyarrow.parquet as pq

    dataset = Dataset(tmp_path)
    dataset.write(one())
    table = one("b").table
    bad = table.set_column(3, "runtime_seconds", pa.array([-1.0]))
    both = pa.concat_tables([table, bad]).replace_schema_metadata(table.schema.metadata)
    pq.write_table(both, tmp_path / "runs" / "other.parquet")
    with pytest.raises(BadRows) as caught:
        dataset.read()
    assert "other.parquet row 1: runtime_seconds is -1.0" in str(caught.value)
    assert "already stands in" in str(caught.value)
    assert "other.parquet row 0" in str(caught.value)
