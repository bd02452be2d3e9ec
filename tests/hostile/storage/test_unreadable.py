"""Unreadable is not empty; what unpacks beyond reason, and models whose parts do not fit, are refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import jostle
from jostle._base import files as _files
from jostle.cli import exit_code
from jostle.collect.campaign._worker import _modules
from jostle.data import Dataset, has_runs, read_runs
from jostle.errors import NotPermitted, UnreadableFile
from tests.documents import read_parts, write_parts
from tests.hostile.storage.carriers import runs_of


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    features = {"workload_features": {"workload": ["a"], "size": [1]}}
    Dataset(tmp_path / "data").write(runs_of("a", **features))
    return tmp_path / "data"


def closed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """As for a user without permission; root has it everywhere."""
    real = os.listdir

    def listed(path: Any) -> list[str]:
        if Path(path) == folder:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real(path)

    monkeypatch.setattr(_files.os, "listdir", listed)


@pytest.mark.parametrize("part", ["runs", "workload_features", "platform_features"])
def test_a_folder_without_permission_is_an_error_that_names_it(
    part: str, dataset: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(read_runs(dataset)) == 1
    closed(monkeypatch, dataset / part)
    for read in (read_runs, lambda path: Dataset(path).version()):
        with pytest.raises(UnreadableFile, match="cannot be read: Permission denied") as error:
            read(dataset)
        assert str(dataset / part) in str(error.value)
    assert exit_code(["runs", str(dataset)]) == UnreadableFile.exit_code
    said = capsys.readouterr()
    assert "0 runs" not in said.out
    assert "Permission denied" in said.err


def test_what_is_not_there_is_empty(dataset: Path, tmp_path: Path) -> None:
    assert not has_runs(tmp_path)
    assert not _files.parquet_files(tmp_path / "nowhere")
    assert not _files.parquet_files(dataset / "runs" / "x.parquet" / "y")


def test_a_table_that_unpacks_beyond_reason_is_refused_before_it_is(dataset: Path) -> None:
    """A hundred million equal rows take half a megabyte."""
    file = dataset / "runs" / "bomb.parquet"
    batch = pa.RecordBatch.from_pydict({"x": np.zeros(1 << 22)})
    with pq.ParquetWriter(file, batch.schema, compression="zstd") as writer:
        for _ in range(24):
            writer.write_batch(batch)
    assert file.stat().st_size < 1 << 20
    with pytest.raises(UnreadableFile, match="unpacks to") as error:
        read_runs(dataset)
    assert "bomb.parquet" in str(error.value)


def test_a_model_whose_arrays_do_not_fit_is_refused_when_it_is_read(
    model_folder: Path, tmp_path: Path
) -> None:
    """Each array cut short, under a right checksum: read with a sentence, or answering without an error."""
    document, arrays = read_parts(model_folder)
    refused: list[str] = []
    for name in sorted(arrays):
        if arrays[name].ndim == 0 or not len(arrays[name]):
            continue
        write_parts(tmp_path, document, arrays | {name: arrays[name][:0]})
        try:
            model = jostle.load(tmp_path)
        except UnreadableFile as error:
            refused.append(str(error))
            continue
        asked = jostle.Colocations.from_columns(
            workload=["w00", "w01"], platform=["p0", "p1"], corunners=[["w02"], []]
        )
        model.predict(asked)
        model.bound(asked)
    assert len(refused) > len(arrays) // 3
    assert all(str(tmp_path) in sentence for sentence in refused)


def test_modules_are_run_from_a_folder_of_ones_own_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = _modules()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)
    with pytest.raises(NotPermitted, match="somebody else"):
        _modules()
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotPermitted, match="somebody else"):
        _modules()


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.small_world import make_world

    method = jostle.Factorization(rank=4, hidden=8, steps=60, quantiles=())
    folder = tmp_path_factory.mktemp("model") / "model"
    jostle.fit(make_world(600, 0), method, seed=0).save(folder)
    return folder
