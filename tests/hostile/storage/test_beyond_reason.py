"""Tables that unpack without end, and files that are none, are refused before they are read."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jostle.data import Dataset, read_runs
from jostle.errors import UnreadableFile
from jostle.gpu import read_arrivals
from jostle.models import fit, load
from jostle.placement import Fleet, Requests
from tests.command_line import jostle
from tests.small_world import make_world

ROWS = 1_000_000


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bombs may be small, too."""
    monkeypatch.setattr("jostle._base.untrusted._ALWAYS_ALLOWED_BYTES", 1 << 20)
    monkeypatch.setattr("jostle._base.untrusted._MOST_TIMES_LARGER", 20)


def a_long_word(rows: int) -> pa.DictionaryArray:
    """A word of a megabyte for each row, written once."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int8()), rows), ["x" * 10**6])


def all_in_one_row(cells: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(cells)]), cells)


BOMBS = {
    "rows": {"name": pa.repeat(pa.scalar(0, pa.int8()), ROWS)},
    "columns": dict.fromkeys(map(str, range(100)), pa.repeat(pa.scalar(0.0), ROWS // 100)),
    "words": {"name": a_long_word(100)},
    "a cell": {"name": all_in_one_row(a_long_word(100))},
}


@pytest.fixture(scope="module", params=BOMBS)
def bomb(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """Some kilobytes that repeat for ever."""
    path = tmp_path_factory.mktemp("bomb") / "bomb.parquet"
    pq.write_table(pa.table(BOMBS[request.param]), path, store_schema=False, compression="zstd")
    assert path.stat().st_size < 1 << 16
    return path


def test_tables_of_fleets_and_requests(bomb: Path) -> None:
    for read in (Fleet.read, Requests.read):
        with pytest.raises(UnreadableFile, match="which no table does"):
            read(bomb)


VIEWS = pa.array(["x" * 10**4, "y"], pa.string_view()).buffers()
PACKED: dict[str, Any] = {
    "rows": pa.repeat(pa.scalar(0, pa.int8()), ROWS),
    "a text": pa.array(["x" * (1 << 24)]),
    "words": a_long_word(100),
    "a cell": all_in_one_row(a_long_word(100)),
    "views": pa.Array.from_buffers(
        pa.string_view(), 1000, [None, pa.py_buffer(VIEWS[1].to_pybytes()[:16] * 1000), VIEWS[2]]
    ),
}


@pytest.mark.parametrize("new", [pa.ipc.new_file, pa.ipc.new_stream])
@pytest.mark.parametrize("kind", PACKED)
def test_arrow_that_is_packed(tmp_path: Path, kind: str, new: Any) -> None:
    path = tmp_path / "bomb.arrow"
    table = pa.table({"name": PACKED[kind]})
    with new(path, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as sink:
        sink.write_table(table)
    assert path.stat().st_size < 1 << 16
    kept = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(kept)
    pa.set_memory_pool(pool)
    try:
        for read in (Fleet.read, Requests.read):
            with pytest.raises(UnreadableFile, match="which no table does"):
                read(path)
    finally:
        pa.set_memory_pool(kept)
    assert pool.max_memory() < 1 << 22


JOB = b"1,a,n1,2026-01-01T00:00:00,2026-01-01T01:00:00,COMPLETED\n"


@pytest.mark.parametrize("end", [b"a", JOB])
def test_a_packed_log(tmp_path: Path, end: bytes) -> None:
    path = tmp_path / "jobs.csv.gz"
    head = b"JobID,JobName,NodeList,Start,End,State\n"
    path.write_bytes(gzip.compress(head + end * ((1 << 24) // len(end))))
    done = jostle("import", "--kind=jobs", str(path), "-o", str(tmp_path / "d"))
    assert done.exit_code != 0
    assert "times its size" in done.output
    assert not Dataset(tmp_path / "d").exists


COLUMNS = ("--workload", "name", "--platform", "name", "--runtime", "name", "--unit", "s")


@pytest.mark.parametrize("words", [("parquet", *COLUMNS), ("jobs",)])
def test_imports(bomb: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    kind, *more = words
    done = jostle("import", f"--kind={kind}", str(bomb), *more, "-o", str(tmp_path / "d"))
    assert done.exit_code != 0
    assert "which no table does" in done.output
    assert not Dataset(tmp_path / "d").exists


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [make_pipe, make_link])
def test_files_of_models_and_datasets_that_are_none(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    Dataset(tmp_path / "d").write(make_world(200, 0))
    fit(tmp_path / "d", "slowdown").save(tmp_path / "m")
    for path in [*(tmp_path / "m").iterdir(), *(tmp_path / "d").rglob("*.parquet")]:
        kept = path.with_name("kept")
        shutil.move(path, kept)
        make(path)
        with pytest.raises(UnreadableFile, match="no regular file"):
            load(tmp_path / "m") if path.parent.name == "m" else read_runs(tmp_path / "d")
        path.unlink()
        shutil.move(kept, path)
    assert load(tmp_path / "m") is not None


def make_kernels(path: Path) -> None:
    path.symlink_to("/proc/self/status")


NAMED = ("--workload", "w", "--platform", "p")
KINDS = {
    "csv": ("--workload", "a", "--runtime", "b", "--unit", "s", "--platform-name", "p"),
    "jobs": (),
    "kubernetes": (),
    "pairs-csv": (),
    "parquet": COLUMNS,
    "perf": NAMED,
    "profile": ("--workload", "w"),
    "prometheus": NAMED,
    "sacct": (),
    "series": NAMED,
    "windows": ("--platform", "p"),
}


@pytest.mark.parametrize("make", [make_pipe, make_link, make_kernels])
def test_what_may_never_end_is_no_table(tmp_path: Path, make: Callable[[Path], None]) -> None:
    """Pipes, devices and files of the kernel, wherever a file is read: refused before the first byte."""
    if make is make_kernels and not Path("/proc/self/status").exists():
        pytest.skip("no /proc here")
    for name in ("endless", "endless.parquet"):
        make(tmp_path / name)
        path = str(tmp_path / name)
        given = [(f"--kind={kind}", *more) for kind, more in KINDS.items()]
        told = [
            jostle("import", *words, path, "-o", str(tmp_path / "d")).output
            for words in [*given, ()]
        ]
        for read in (Fleet.read, Requests.read, read_runs, read_arrivals):
            with pytest.raises(UnreadableFile) as refused:
                read(path)
            told.append(str(refused.value))
        assert [text for text in told if "no regular file" not in " ".join(text.split())] == []
