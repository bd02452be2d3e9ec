"""The runs that a dataset got after it had a certain version."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import numpy as np

from jostle._files import read_parquet
from jostle.errors import UsageError
from jostle.runs._runs import Runs
from jostle.runs._schema import VERSION
from jostle.runs.store._dataset import Dataset, version_of

MOST_TRIED = 20_000  # lists of files that are looked through for a version


def runs_since(path: str | os.PathLike[str], version: str) -> Runs:
    """Those in files written after the dataset in folder `path` had this version, with all features.

    A version is a hash of the list of files, and files are only ever added, so an older version is that of
    the files written first. Raises UsageError for one that the folder never had, and what Dataset.read
    raises.
    """
    dataset = Dataset(path)
    before = _files_of(dataset, version)
    if before is None:
        raise UsageError(
            f"the dataset {path} never had the version {version}",
            fix="Look at what jostle runs prints, or leave `since` out and learn all of it.",
        )
    runs = dataset.read()
    known = set()
    for file in before:
        if file.parent.name == "runs":
            known.update(read_parquet(file, VERSION).column("run_id").to_pylist())
    ids = runs.table.column("run_id").to_pylist()
    return runs.take(np.array([number not in known for number in ids], bool))


def _files_of(dataset: Dataset, version: str) -> list[Path] | None:
    """The files of an older version; None where there is none. Of each folder it has the first few."""
    folders: dict[str, list[Path]] = {"runs": []}
    for file in dataset.files():
        folders.setdefault(file.parent.name, []).append(file)
    counts = [range(len(files), -1, -1) for files in folders.values()]
    for tried, sizes in enumerate(product(*counts)):
        if tried >= MOST_TRIED:
            return None
        parts = zip(folders.values(), sizes, strict=True)
        files = [file for every, size in parts for file in every[:size]]
        if version_of(files) == version:
            return files
    return None
