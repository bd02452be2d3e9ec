"""A dataset: a folder of immutable Parquet files that any engine reads as they are.

    <folder>/runs/*.parquet                 runs/v1
    <folder>/workload_features/*.parquet    keyed by workload
    <folder>/platform_features/*.parquet    keyed by platform

Any number of writers add files without locks; `_files` says how a file comes to be. Names sort in
the order of writing and hold a hash of the content, so that the list of names is the version.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from jostle._files import (
    content_of,
    distinct_files,
    leftovers,
    parquet_files,
    parquet_rows,
    read_parquet,
    staged,
)
from jostle.errors import BadData, BadRows, UnreadableFile
from jostle.runs._check import find_bad_rows
from jostle.runs._columns import flags
from jostle.runs._features import merge_features
from jostle.runs._runs import Runs, join_tables
from jostle.runs._schema import FEATURES_VERSION, VERSION, conform, conform_features

# Arrow makes these functions at run time, so type checkers cannot see them.
pc: Any = pyarrow.compute

_VERSIONS = {
    "workload_features": FEATURES_VERSION["workload"],
    "platform_features": FEATURES_VERSION["platform"],
    "runs": VERSION,
}


class Dataset:
    """The dataset in folder `path`, which need not exist before the first write."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # Files never change, so what was read of one once holds for good.
        self._run_ids: dict[Path, pa.ChunkedArray] = {}
        self._features: dict[Path, pa.Table] = {}

    def __repr__(self) -> str:
        return f"Dataset({str(self.path)!r})"

    @property
    def exists(self) -> bool:
        """Whether there is at least one file."""
        return bool(self.files())

    def files(self) -> list[Path]:
        """All files, folder by folder, in the order in which they were written."""
        return [file for folder in _VERSIONS for file in parquet_files(self.path / folder)]

    def leftovers(self) -> list[Path]:
        """Temporary files of killed or still writing writers; readers pass them over."""
        return [file for folder in _VERSIONS for file in leftovers(self.path / folder)]

    def version(self) -> str:
        """16 hexadecimal digits: a hash of the file list, which changes with every file added."""
        names = sorted(f"{p.parent.name}/{p.name} {content_of(p)}" for p in self.files())
        return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]

    def write(self, runs: Runs) -> list[Path]:
        """Add the runs, and their features where there are any; returns the files written.

        A table that the dataset already holds as a file is not written again, so writing the same
        runs twice is harmless. Nothing becomes visible unless all of it is on disk.

        Raises BadRows for a run_id that the dataset holds already, BadData for features that
        contradict the dataset's or that lack a name, NotPermitted when the disk is full or the
        folder cannot be written.
        """
        self._require_features(runs)
        tables = {
            "workload_features": runs.workload_features,
            "platform_features": runs.platform_features,
            "runs": runs.table if len(runs) else None,
        }
        with ExitStack() as stack:
            ready = {
                folder: stack.enter_context(staged(table, self.path / folder))
                for folder, table in tables.items()
                if table is not None
            }
            if "runs" in ready and not ready["runs"].is_there():
                self._require_new(runs)
            # Features first: a reader never meets a run whose workload has none yet.
            written = [ready[folder].publish() for folder in tables if folder in ready]
        return [path for path in written if path is not None]

    def read(self) -> Runs:
        """All runs, in the order in which they were written.

        Raises UnreadableFile naming a file that is missing, truncated or foreign, BadRows naming
        the file and row of every bad row, BadData for features that contradict each other.
        """
        if not self.path.is_dir():
            raise UnreadableFile(
                "there is no such dataset folder",
                where=str(self.path),
                fix="Make one with jostle measure or jostle import.",
            )
        # Runs first: whatever features they need were there before them.
        tables = [
            (str(file), conform(read_parquet(file, VERSION), str(file)))
            for file in distinct_files(self.path / "runs")
        ]
        features = dict(zip(("workload", "platform"), self.features(), strict=True))
        if not tables and all(table is None for table in features.values()):
            raise UnreadableFile(
                "the folder holds no runs",
                where=str(self.path),
                fix="A dataset has Parquet files in a folder named runs; make one with jostle "
                "measure or jostle import.",
            )
        table = join_tables(tables)
        ends = np.cumsum([part.num_rows for _, part in tables])

        def row_name(row: int) -> str:
            number = int(np.searchsorted(ends, row, side="right"))
            return f"{tables[number][0]} row {row - int(ends[number]) + tables[number][1].num_rows}"

        findings = find_bad_rows(table, features["workload"], features["platform"], row_name)
        if len(findings):
            raise findings.error(where=str(self.path), row_name=row_name)
        return Runs(table, features["workload"], features["platform"], checked=True)

    def number_of_runs(self) -> int:
        """Rows in all files, from their footers. Raises UnreadableFile."""
        return sum(parquet_rows(file) for file in distinct_files(self.path / "runs"))

    def features(self) -> tuple[pa.Table | None, pa.Table | None]:
        """The workload and the platform features, None where there are none."""
        return self._merged("workload"), self._merged("platform")

    def _merged(self, key: str, new: pa.Table | None = None) -> pa.Table | None:
        folder = f"{key}_features"
        files = distinct_files(self.path / folder)
        for file in files:
            if file not in self._features:
                table = read_parquet(file, _VERSIONS[folder])
                self._features[file] = conform_features(table, key, str(file))
        tables = [(str(file), self._features[file]) for file in files]
        if new is not None:
            tables.append(("the features to be written", new))
        return merge_features(tables, key)

    def _require_features(self, runs: Runs) -> None:
        """Refuse what would make the dataset unreadable for everyone."""
        for key, new in (
            ("workload", runs.workload_features),
            ("platform", runs.platform_features),
        ):
            features = self._merged(key, new)
            if features is None:
                continue
            tables = [runs.table]
            if not parquet_files(self.path / f"{key}_features"):
                # The first features of their kind: runs that had none until now need theirs too.
                tables += self._readable(["workload", "platform", "corunners"])
            lost = sorted(_names(tables, key) - {*features.column(key).to_pylist()})
            if lost:
                raise BadData(
                    f"{len(lost)} {key}s have no row in the {key} features of the dataset, "
                    f"the first is {lost[0]!r}",
                    where=str(self.path),
                    fix=f"Write {key}_features for them along with the runs.",
                )

    def _readable(self, columns: list[str]) -> Iterator[pa.Table]:
        """These columns of the run files; a damaged file is left for readers to name, because it
        must not keep new measurements from being written."""
        for file in parquet_files(self.path / "runs"):
            with suppress(UnreadableFile):
                yield read_parquet(file, VERSION, columns)

    def _require_new(self, runs: Runs) -> None:
        ids = runs.table.column("run_id")
        for file in parquet_files(self.path / "runs"):
            if file not in self._run_ids:
                try:
                    self._run_ids[file] = read_parquet(file, VERSION, ["run_id"]).column("run_id")
                except UnreadableFile:
                    continue  # whoever reads the dataset is told; new measurements must not be lost
            known = pc.is_in(ids, value_set=self._run_ids[file].combine_chunks())
            rows = np.flatnonzero(flags(known))
            if len(rows):
                raise BadRows(
                    f"{len(rows)} runs are in the dataset already, the first is "
                    f"{ids[int(rows[0])].as_py()!r} in {file}",
                    rows=[(int(row), "run_id is in the dataset already") for row in rows[:1000]],
                    where=str(self.path),
                    fix="Write to another folder, or give new runs run_ids of their own.",
                )


def _names(tables: list[pa.Table], key: str) -> set[str]:
    """All workloads (co-runners too) or all platforms in these tables."""
    columns = [table.column(key) for table in tables]
    if key == "workload":
        columns += [pc.list_flatten(table.column("corunners")) for table in tables]
    return set().union(*(pc.unique(column).to_pylist() for column in columns))


def read_runs(path: str | os.PathLike[str]) -> Runs:
    """All runs of the dataset in folder `path`; see :meth:`Dataset.read`."""
    return Dataset(path).read()


def has_runs(path: str | os.PathLike[str]) -> bool:
    """Whether the folder holds files of runs; none is opened."""
    return bool(parquet_files(Path(path) / "runs"))
