"""A dataset on disk: damage is named, crashes and other writers lose nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.data import Dataset, Runs, read_runs
from jostle.errors import JostleError, NotPermitted, UnreadableFile

from .conftest import some_runs

WRITER = """
import sys
from jostle.data import Dataset, Runs
folder, name, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
for i in range(count):
    runs = Runs.from_columns(workload=["a"] * 50, platform=["p"] * 50, runtime_seconds=[1.0] * 50,
                             run_id=[f"{name}-{i}-{j}" for j in range(50)])
    Dataset(folder).write(runs)
    print(i, flush=True)
"""


def written(folder: Path, runs: Runs) -> Path:
    Dataset(folder).write(runs)
    return sorted((folder / "runs").glob("*.parquet"))[-1]


def test_no_folder_and_an_empty_one(tmp_path: Path) -> None:
    (table := tmp_path / "times.csv").write_text("job,seconds\na,1\n")
    with pytest.raises(UnreadableFile, match=r"a file, not a dataset.*jostle runs"):
        Dataset(table).read()
    with pytest.raises(UnreadableFile, match="no such dataset folder"):
        read_runs(tmp_path / "nowhere")
    with pytest.raises(UnreadableFile, match="holds no runs"):
        read_runs(tmp_path)


def test_foreign_files_are_named(tmp_path: Path) -> None:
    written(tmp_path, some_runs(4))
    foreign = tmp_path / "runs" / "foreign.parquet"
    pq.write_table(pa.table({"x": [1]}), foreign)
    with pytest.raises(JostleError, match=r"foreign\.parquet") as raised:
        read_runs(tmp_path)
    assert raised.value.exit_code == 4
    foreign.write_bytes(b"PAR1 but not really PAR1")
    with pytest.raises(
        UnreadableFile, match=r"foreign\.parquet: not a readable Parquet file: \w+ \w+"
    ):
        read_runs(tmp_path)


def test_a_killed_writer_leaves_a_readable_dataset(tmp_path: Path) -> None:
    for round in range(4):
        arguments = [sys.executable, "-c", WRITER, str(tmp_path), f"k{round}", "100000"]
        writer = subprocess.Popen(arguments, stdout=subprocess.PIPE)
        assert writer.stdout is not None
        assert writer.stdout.readline()  # at least one write is through
        time.sleep(0.013 * round)
        writer.send_signal(signal.SIGKILL)
        acknowledged = 1 + writer.stdout.read().count(b"\n")
        writer.wait()
        ids = read_runs(tmp_path).table.column("run_id").to_pylist()
        mine = [name for name in ids if name.startswith(f"k{round}-")]
        assert len(mine) % 50 == 0
        assert len(mine) >= 50 * acknowledged  # what a writer was told is there is there


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), f"c{number}", "12"],
            stdout=subprocess.DEVNULL,
        )
        for number in range(3)
    ]
    assert [writer.wait() for writer in writers] == [0] * 3
    assert len(read_runs(tmp_path)) == 3 * 12 * 50
    assert Dataset(tmp_path).leftovers() == []


def test_a_really_full_disk(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    try:
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)], capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("no mount command")
    if done.returncode:
        pytest.skip("mounting a small tmpfs is not permitted here")
    try:
        written(place, some_runs(20))
        (place / "ballast").write_bytes(b"x" * 30_000)
        with pytest.raises(NotPermitted, match="full"):
            Dataset(place).write(some_runs(20_000, 1, "big"))
        assert len(read_runs(place)) == 20
        assert Dataset(place).leftovers() == []
    finally:
        subprocess.run(["umount", str(place)], check=True)
