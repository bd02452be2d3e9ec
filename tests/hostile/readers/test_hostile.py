"""Files made to take all time or memory: refused with a sentence, having taken little of either."""

from __future__ import annotations

import gzip
import json
import sqlite3
import time
import zlib
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from jostle import load
from jostle.data import CsvImport, ParquetImport, PerfImport, read_any, read_profile, read_runs
from jostle.errors import BadData, JostleError, UnreadableFile
from tests.documents import signed, write_parts
from tests.hostile.readers import samples

CPU_SECONDS = 20.0  # far below what the files ask for, far above what a busy machine needs


@pytest.fixture(autouse=True)
def in_time():
    began = time.process_time()
    yield
    assert time.process_time() - began < CPU_SECONDS


def packed(start: bytes, filling: bytes, megabytes: int) -> bytes:
    """A gzip file of so many megabytes of filling, made without ever holding them."""
    press = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = filling * ((1 << 20) // len(filling))
    return b"".join(
        [press.compress(start), *(press.compress(block) for _ in range(megabytes)), press.flush()]
    )


def test_gzip_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jostle._base.untrusted._ALWAYS_ALLOWED_BYTES", 1 << 22)
    path = tmp_path / "a.json.gz"
    path.write_bytes(packed(b'{"traceEvents": [', b" ", 32))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(UnreadableFile, match="unpacks to more than 500 times its size"):
        read_profile(path)


def test_deep_json(tmp_path: Path) -> None:
    for number, text in enumerate(
        ('{"traceEvents": [' + "[" * 200_000, "[" * 200_000, '{"a":' * 200_000)
    ):
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        with pytest.raises(UnreadableFile):
            read_any(path)
    path = tmp_path / "perf.txt"
    path.write_text('{"interval": ' + "[" * 100_000)
    with pytest.raises(BadData, match="line 1"):
        PerfImport(path, workload="w", platform="p").read()


def test_databases_that_compute_without_end(tmp_path: Path) -> None:
    forever = "with recursive n(x) as (select 1 union all select x + 1 from n) select x from n"
    schemas = [
        f"create view CUPTI_ACTIVITY_KIND_KERNEL as {forever}; create table StringIds (id, value)",
        "create table CUPTI_ACTIVITY_KIND_KERNEL (start, end as (length(zeroblob(900000000) || start))); "
        "insert into CUPTI_ACTIVITY_KIND_KERNEL values (1)",
        'create table StringIds (id, value); create table "a""b" ("c]d")',
        "create table CUPTI_ACTIVITY_KIND_KERNEL (START, [end] text, deviceId blob); "
        "insert into CUPTI_ACTIVITY_KIND_KERNEL values ('soon', 'later', x'00')",
    ]
    for number, schema in enumerate(schemas):
        path = tmp_path / f"{number}.sqlite"
        with closing(sqlite3.connect(path)) as base, base:
            base.executescript(schema)
        with pytest.raises(JostleError) as caught:
            read_profile(path)
        assert f"{number}.sqlite" in str(caught.value)


def test_zero_bytes_and_control_characters_in_paths(tmp_path: Path) -> None:
    for name in ("a\0b", "a\x1b[31m", "\udcff", "x" * 5000):
        path = tmp_path / name
        for read in (read_any, read_runs, load):
            with pytest.raises(JostleError):
                read(path)
        for importer in (CsvImport, ParquetImport):
            with pytest.raises(JostleError):
                importer(path, "w", "r", "s", "p").read()


def test_a_document_that_names_a_file_elsewhere(tmp_path: Path) -> None:
    write_parts(tmp_path / "there", {}, {"x": np.zeros(3)})
    write_parts(tmp_path / "here", {}, {"x": np.zeros(3)})
    path = tmp_path / "here" / "model.json"
    document = json.loads(path.read_text())
    tensors = document["tensors"]
    for name in (
        f"../there/{tensors}",
        str(tmp_path / "there" / tensors),
        "..",
        "",
        "a\0b",
        3,
        None,
    ):
        path.write_bytes(signed({**document, "tensors": name}))
        with pytest.raises(UnreadableFile, match="names no file of this folder"):
            load(tmp_path / "here")


def test_parts_of_gzip(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(samples.KINETO).encode())
    for number, content in enumerate(
        (whole[:-9], whole[:30], b"\x1f\x8b", whole[:20] + b"\0" * 50)
    ):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(content)
        with pytest.raises(UnreadableFile):
            read_profile(path, format="kineto")
