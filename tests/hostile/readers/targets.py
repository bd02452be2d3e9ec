"""What reads files from elsewhere, each with a way to make files that are nearly good."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data import CsvImport, ImportedLog, JobsImport, RecordedRun, Runs, SeriesImport, Traces
from jostle.errors import BadData, JostleError, UsageError
from tests.hostile.readers import recordings, samples
from tests.hostile.readers.mutation import (
    ODD,
    bytes_changed,
    cells_changed,
    json_changed,
    json_text,
)
from tests.packages.data.runs.import_contract_samples import EXAMPLES
from tests.packages.data.runs.log_sources_samples import EDGES, SHAPES, made_jobs

Make = Callable[[random.Random, Path], bytes]


@dataclass(frozen=True)
class Target:
    """file: the name under which a reader meets what `make` made. prepare: what else must lie there."""

    file: str
    make: Make
    read: Callable[[Path], object]
    prepare: Callable[[Path], object] = lambda _: None

    def tried(self, content: bytes, folder: Path) -> JostleError | None:
        """Read it; the error where it is refused. Raises what a reader should not; what only the net of
        `jostle._base.untrusted` has caught has that as its cause."""
        folder.mkdir(parents=True, exist_ok=True)
        self.prepare(folder)
        path = folder / self.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        try:
            found = self.read(path)
        except JostleError as error:
            if not isinstance(error, BadData | UsageError) or not error.what:
                raise AssertionError(f"refused with {type(error).__name__}: {error}") from error
            return error
        found = getattr(found, "runs", found)
        assert not isinstance(found, Runs | Traces) or len(found), "nothing was read, in silence"
        return None


def _bytes(sample: bytes) -> Make:
    return lambda rng, _: bytes_changed(rng, sample)


def _text(sample: bytes) -> Make:
    return lambda rng, _: rng.choice((bytes_changed, cells_changed))(rng, sample)


def _json(document: Any, packed: bool = False) -> Make:
    def make(rng: random.Random, _: Path) -> bytes:
        text = json_text(json_changed(rng, document))
        if rng.randrange(3) == 0:
            text = bytes_changed(rng, text)
        if not packed:
            return text
        return bytes_changed(rng, gzip.compress(text)) if rng.randrange(2) else gzip.compress(text)

    return make


def _profile(format: str) -> Callable[[Path], object]:
    """By the reader itself: in `read_any` a net is under it."""

    def read(path: Path) -> object:
        reader = import_module(f"jostle.data.read._{format}")
        return reader.read(path, RecordedRun("w", "r"))

    return read


def _perf(path: Path) -> object:
    reader = import_module("jostle.data.read._perf_stat")
    return reader.read(path, RecordedRun("w", "r", platform="p"))


def _perf_made(rng: random.Random, _: Path) -> bytes:
    if rng.randrange(2):
        return rng.choice((bytes_changed, cells_changed))(rng, samples.PERF_LINES)
    lines = [json_text(json_changed(rng, samples.PERF_JSON)) for _ in range(2)]
    return b"\n".join(lines)


_TABLES = "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "TARGET_INFO_GPU", "StringIds"
_COLUMNS = """start end deviceId streamId gridX blockX registersPerThread bytes copyKind srcKind id value name
    smCount maxWarpsPerSm memoryBandwidth computeMajor l2CacheSize graphNodeId threadsPerWarp demangledName
    maxShmemPerSm staticSharedMemory"""
_VALUES = """null '' 'x' x'00ff' -1 0 9223372036854775807 1e308 -1e400 1e400 0.5 '\u0663' randomblob(9)
    zeroblob(100000) '\0' x'ed'"""


def _nsys(rng: random.Random, folder: Path) -> bytes:
    if rng.randrange(3) == 0:
        return bytes_changed(rng, samples.nsys_bytes(folder))
    table, column = rng.choice(_TABLES), rng.choice(_COLUMNS.split())
    statements = [
        f'update {table} set "{column}" = {rng.choice(_VALUES.split())}',
        f'alter table {table} drop column "{column}"',
        f"drop table {table}",
        f'alter table {table} rename column "{column}" to "a""b"',
        f"insert into {table} select * from {table}",
        f"alter table {table} rename to t; ",
        f"create view t as select 1; drop table {table}",
    ]
    return samples.nsys_with(
        folder, rng.choices(statements, weights=(8, 2, 1, 2, 1, 1, 1), k=rng.choice((1, 2, 3)))
    )


def _csv(path: Path) -> object:
    from jostle.data import CsvImport

    return CsvImport(path, "job", "wall", "ms", "host", corunners=("beside",), drop_bad=True).read()


def _parquet(path: Path) -> object:
    from jostle.data import ParquetImport

    return ParquetImport(
        path, "job", "wall", "ms", "host", corunners=("beside",), drop_bad=True
    ).read()


def _arrow(value: Any) -> pa.Array:
    try:
        return pa.array([value] * 3)
    except (pa.ArrowException, OverflowError, ValueError):
        return pa.nulls(3)


def _odd_table(rng: random.Random) -> pa.Table:
    table = samples.foreign_table()
    at = rng.randrange(table.num_columns)
    odd = [
        *(_arrow(value) for value in ODD),
        *(pa.nulls(3), pa.array([b"\xff", b"", None]), pa.array([[[1]], None, []])),
        pa.array([{"a": 1}, None, {}], pa.struct([("a", pa.int64())])),
        pa.array([0, 1, None], pa.timestamp("ns")),
        pa.array(["a", "b", None]).dictionary_encode(),
        pa.array([1, 2, 3], pa.decimal128(38, 2)),
    ]
    name = rng.choice(
        (table.column_names[at], table.column_names[at], "", "runtime_seconds", "window_id")
    )
    return table.set_column(at, name, rng.choice(odd))


def _parquet_made(rng: random.Random, _: Path) -> bytes:
    if rng.randrange(3) == 0:
        return bytes_changed(rng, samples.parquet(samples.foreign_table()))
    while True:
        try:
            return samples.parquet(_odd_table(rng))
        except pa.ArrowException:  # what no Parquet file can hold
            continue


def _dataset(path: Path) -> object:
    from jostle.data import read_runs, summarise

    return summarise(read_runs(path.parent.parent))


def _dataset_made(rng: random.Random, _: Path) -> bytes:
    from jostle.data import Runs

    table = Runs.from_columns(
        workload=["a", "b"], platform=["p", "p"], corunners=[["b"], []], runtime_seconds=[1.0, 2.0]
    ).table
    if rng.randrange(2):
        return bytes_changed(rng, samples.parquet(table))
    while True:
        at = rng.randrange(table.num_columns)
        column = _arrow(rng.choice(ODD))[:2]
        try:
            return samples.parquet(table.set_column(at, table.column_names[at], column))
        except pa.ArrowException:  # what no Parquet file can hold
            continue


def _pairs(path: Path) -> object:
    from jostle.data import PairsImport

    return PairsImport(path, drop_bad=True).read()


def _as_in_the_contract(name: str) -> Target:
    example = EXAMPLES[name]

    def read(path: Path) -> object:
        found = example.importer(path).read()
        return found.runs() if isinstance(found, ImportedLog) else found

    is_json, text = example.file.endswith(".json"), example.text
    make = _json(json.loads(text)) if is_json else _text(text.encode())
    return Target(example.file, make, read)


def _log(shape: str) -> Target:
    """A log as its source writes it, in which lines and cells are changed, or values of its JSON."""
    made, options, _ = SHAPES[shape]
    text = made(made_jobs(3))
    mark = next((mark for mark in ("|", "\t", ";", ":", ",") if mark in text.splitlines()[-1]), " ")

    def make(rng: random.Random, _: Path) -> bytes:
        if text[0] in "[{" and rng.randrange(2):
            return json_text(json_changed(rng, json.loads(text)))
        if rng.randrange(2):
            return bytes_changed(rng, text.encode())
        return cells_changed(rng, text.encode(), mark)

    return Target("log.txt", make, lambda path: JobsImport(path, **EDGES | options).read().runs())


_SMI = b"timestamp, index, power.draw [W], memory.used [MiB]\n" + b"".join(
    b"2026/01/27 08:00:0%d.5, %d, %d.5 W, %d MiB\n" % (n, n % 2, n, 900 + n) for n in range(8)
)
_PSRECORD = b"# Elapsed time   CPU (%%)   Real (MB)\n" + b"".join(
    b" %d.500   %d.1   %d.5\n" % (n, n, n) for n in range(8)
)
_PIDSTAT = b"Linux 6 (h)\n\n# Time  PID  %usr  RSS  Command\n" + b"".join(
    b" 176423040%d  7  %d.0  %d  a b\n" % (n, n, n) for n in range(8)
)
_DOCKER = b"".join(
    b'{"time": "2026-01-27T08:00:0%dZ", "Mem": "%d.5MiB / 9GiB", "CPU": "%d%%"}\n' % (n, n, n)
    for n in range(8)
)
_BENCHMARK = b"rule\ts\th:m:s\tmax_rss\tthreads\na\t1.5\t0:00:01\t20.5\t2\nb\t90\t0:01:30\t-\t1\n"
_TABLES_OF_SERIES = {"smi": _SMI, "psrecord": _PSRECORD, "pidstat": _PIDSTAT, "docker": _DOCKER}


def _series_table(path: Path) -> object:
    return SeriesImport((path,), "w", "p").read()


def _journal(path: Path) -> object:
    from jostle.collect import recover

    return recover(path.parent.parent)


def _journal_made(rng: random.Random, _: Path) -> bytes:
    row: Any = json_changed(rng, samples.JOURNAL_ROW)
    rows: Any = json_changed(rng, [row]) if rng.randrange(4) == 0 else [row]
    try:
        line = samples.journal_line(rows)
    except ValueError:
        line = samples.journal_line([samples.JOURNAL_ROW])
    return bytes_changed(rng, line) if rng.randrange(2) else line


def _journal_rest(folder: Path) -> None:
    for file in (folder / "runs").glob("*"):
        file.unlink()


def _wasm(path: Path) -> object:
    from jostle.collect import exported_functions
    from jostle.collect.kernels.opcodes._rewrite import rewrite

    content = path.read_bytes()
    exported_functions(content, str(path))
    return rewrite(content)


def _wasm_made(rng: random.Random, _: Path) -> bytes:
    from jostle.collect import KERNEL_FOLDER

    name = rng.choice(("sort", "crc32", "edit", "gemv"))
    return bytes_changed(rng, (KERNEL_FOLDER / f"{name}.wasm").read_bytes())


def _saved(path: Path) -> object:
    from jostle._base.tensors import read_document
    from jostle.models import SCHEMA

    return read_document(path.parent, "model", SCHEMA, fix="Save it again.")


def _saved_rest(folder: Path) -> None:
    from tests.documents import write_parts

    if not (folder / "model.json").exists():
        write_parts(folder, {"a": [1]}, {"x": np.zeros(3)})


def _saved_made(rng: random.Random, folder: Path) -> bytes:
    """A document with a checksum of its own, as somebody makes it who wants to be believed."""
    from tests.documents import BLANK, filled

    _saved_rest(folder / "good")
    text = (folder / "good" / "model.json").read_bytes()
    if rng.randrange(2):
        return bytes_changed(rng, text)
    document = {**json.loads(text), "sha256": BLANK}
    key = rng.choice(("tensors", "tensors_sha256", "schema", "a", "sha256"))
    made = json_text({**document, key: json_changed(rng, document[key])})
    return filled(made)


def _sysinfo_rest(folder: Path) -> None:
    (folder / "a.csv").write_bytes(samples.ROCPROF_TEXT)


_SHARED = ("jobs", "sacct", "kubernetes", "windows")
TARGETS: dict[str, Target] = {
    **{name: _as_in_the_contract(name) for name in (*_SHARED, "prometheus", "series")},
    **{f"log-{shape}": _log(shape) for shape in SHAPES},
    **{
        f"series-{name}": Target("a.csv", _text(text), _series_table)
        for name, text in _TABLES_OF_SERIES.items()
    },
    "benchmark": Target(
        "a.tsv", _text(_BENCHMARK), lambda path: CsvImport(path, drop_bad=True).read()
    ),
    "kineto": Target("a.json", _json(samples.KINETO), _profile("kineto")),
    "kineto_packed": Target("a.json.gz", _json(samples.KINETO, True), _profile("kineto")),
    "nvprof": Target("a.csv", _text(samples.NVPROF_TEXT), _profile("nvprof")),
    "rocprof": Target("a.csv", _text(samples.ROCPROF_TEXT), _profile("rocprof")),
    "rocprof_sysinfo": Target(
        "sysinfo.csv",
        _text(samples.SYSINFO),
        lambda path: _profile("rocprof")(path.with_name("a.csv")),
        _sysinfo_rest,
    ),
    "rocprof_v3": Target(
        "1_kernel_trace.csv",
        _text(recordings.ROCPROF_V3),
        _profile("rocprof"),
        recordings.rocprof_v3_rest,
    ),
    "nsys": Target("a.sqlite", _nsys, _profile("nsys")),
    "perf": Target("a.txt", _perf_made, _perf),
    "csv": Target("a.csv", _text(samples.CSV), _csv),
    "parquet": Target("a.parquet", _parquet_made, _parquet),
    "pairs": Target("a.csv", _text(samples.PAIRS), _pairs),
    "dataset": Target("runs/a.parquet", _dataset_made, _dataset),
    "journal": Target("journal/c.jsonl", _journal_made, _journal, _journal_rest),
    "wasm": Target("a.wasm", _wasm_made, _wasm),
    "model": Target("model.json", _saved_made, _saved, _saved_rest),
}
