"""A dataset: a folder of immutable Parquet files that any engine reads as they are.

    <folder>/runs/*.parquet                 runs/v1, or runs/v2 with stretches
    <folder>/workload_features/*.parquet    keyed by workload
    <folder>/platform_features/*.parquet    keyed by platform
    <folder>/set_aside/*.parquet            runs that readers pass over, and that they may have again

Any number of writers add files and none waits for another; `_files` says how a file comes to be. Names sort
in the order of writing and hold a hash of the content, so that the list of names is the version. A writer
is refused what contradicts what it can see; `_settle` is for what two could not see of each other.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.files import (
    content_of,
    distinct_files,
    errors_explained,
    leftovers,
    make_folder,
    parquet_files,
    parquet_rows,
    parquet_schema,
    read_parquet,
    staged,
    sweep,
    sync_folder,
)
from jostle._base.report import Glance
from jostle._base.untrusted import understood
from jostle.data.runs._feature_tables import agreed, columns_in_conflict, merge_features
from jostle.data.runs._name_columns import flags
from jostle.data.runs._row_rules import find_bad_rows
from jostle.data.runs._runs import Runs, join_tables
from jostle.data.runs._schema import (
    COLUMNS,
    FEATURES_VERSION,
    FREE,
    VERSIONS,
    conform,
    conform_features,
)
from jostle.data.runs._segments import STRETCHES, has_stretches, stretch_names
from jostle.data.store._set_aside import ASIDE_VERSION, SET_ASIDE, aside_table, rows_aside
from jostle.data.store._settle import rows_settled, with_rows_for
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData, BadRows, UnreadableFile, UsageError, require_known

_VERSIONS = {
    "workload_features": FEATURES_VERSION["workload"],
    "platform_features": FEATURES_VERSION["platform"],
    "runs": VERSIONS,
    SET_ASIDE: ASIDE_VERSION,
}


class Dataset(Glance):
    """The dataset in folder `path`, which need not exist before the first write."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        # Files never change, so what was read of one once holds for good.
        self._run_ids: dict[Path, pa.Array] = {}
        self._schemas: dict[Path, pa.Schema] = {}
        self._features: dict[Path, pa.Table] = {}

    def _facts(self) -> list[tuple[str, str]]:
        """Name the folder, and count files and runs by their footers."""
        files = parquet_files(self.path / "runs")
        try:
            runs = f"{sum(map(parquet_rows, files))}"
        except UnreadableFile:
            runs = "unreadable"
        return [("folder", str(self.path)), ("runs", runs), ("files", f"{len(self.files())}")]

    @property
    def exists(self) -> bool:
        """True if there is at least one file."""
        return bool(self.files())

    def files(self) -> list[Path]:
        """Return all files, folder by folder, in the order in which they were written."""
        return [file for folder in _VERSIONS for file in parquet_files(self.path / folder)]

    def leftovers(self) -> list[Path]:
        """Return temporary files of writers that are at work or were killed.

        Readers pass them over; the next writer of the same folder removes those of killed ones.
        """
        folders = sorted(place for place in self.path.glob("*") if place.is_dir())
        return [file for folder in folders for file in leftovers(folder)]

    def repair(self) -> list[str]:
        """Make the dataset readable again; a sentence for each thing that was done.

        Temporary files of killed writers are removed, and files that are truncated, changed or foreign are
        moved to `damaged/` in the dataset's folder, where nobody reads them: what they held is lost to
        readers until they are restored. Raises NotPermitted where the folder cannot be written.
        """
        done: list[str] = []
        with errors_explained(self.path, "What was done already is done"):
            before = self.leftovers()
            for folder in {file.parent for file in before}:
                sweep(folder)
            left = set(self.leftovers())
            done += [
                f"removed {file}, which a killed writer left" for file in before if file not in left
            ]
            for folder, version in _VERSIONS.items():
                for file in parquet_files(self.path / folder):
                    try:
                        read_parquet(file, version)
                    except UnreadableFile as error:
                        target = self.path / "damaged" / folder / file.name
                        make_folder(target.parent)
                        file.rename(target)
                        sync_folder(target.parent)
                        sync_folder(file.parent)
                        done.append(f"moved {file} to {target}: {error.what}")
        return done

    def version(self) -> str:
        """Return 16 hexadecimal digits: a hash of the file list, which changes with every file added."""
        return version_of(self.files())

    def write(self, runs: Runs) -> list[Path]:
        """Add the runs, and their features where there are any; returns the files written.

        A table that the dataset already holds as a file is not written again, so writing the same
        runs twice is harmless. Nothing becomes visible unless all of it is on disk.

        Names may have features or not: readers know nothing of those that have none. Raises BadRows
        for a run_id that the dataset holds already, BadData for features or a type of a free column that
        contradict the dataset's, NotPermitted when the disk is full or the folder cannot be written.
        """
        with self.ready_to_add(runs) as publish:
            return publish()

    @contextmanager
    def ready_to_add(self, runs: Runs) -> Iterator[Callable[[], list[Path]]]:
        """Check what `write` would write, and put it on the disk; nobody sees it before the yielded function
        is called. Raises what `write` raises."""
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

            def publish() -> list[Path]:
                # Features first: a reader never meets a run whose workload has none yet.
                written = [ready[folder].publish() for folder in tables if folder in ready]
                return [path for path in written if path is not None]

            yield publish

    def read(self) -> Runs:
        """Return all runs, in the order in which they were written.

        What files say differently of the same run or name is settled: the earlier file's word stands,
        and `notes` of what this gives has a sentence. Raises UnreadableFile naming a file that is
        missing, truncated, changed or foreign, BadRows naming the file and row of every bad row.
        """
        with understood(self.path, "Check the name."):
            is_there = self.path.is_dir()
        if not is_there:
            a_file = self.path.is_file()
            raise UnreadableFile(
                "a file, not a dataset" if a_file else "there is no such dataset folder",
                where=str(self.path),
                fix=f"jostle runs {self.path} says how to import it."
                if a_file
                else "Make one with jostle measure or jostle import.",
            )
        # Runs first: whatever features they need were there before them.
        tables = [
            (str(file), conform(read_parquet(file, VERSIONS), str(file)))
            for file in distinct_files(self.path / "runs")
        ]
        notes: list[str] = []
        features = {key: self._merged(key, notes) for key in ("workload", "platform")}
        if not tables and all(table is None for table in features.values()):
            raise UnreadableFile(
                "the folder holds no runs",
                where=str(self.path),
                fix="A dataset has Parquet files in a folder named runs; make one with jostle "
                "measure or jostle import.",
            )
        table = join_tables(agreed(tables, FREE, notes, COLUMNS))
        sizes = [part.num_rows for _, part in tables]
        number = np.repeat(np.arange(len(tables)), sizes)
        rows = np.arange(table.num_rows)
        valid = rows_settled(table.column("run_id"), number, [f for f, _ in tables], notes)
        if valid is not None:
            table, rows = table.filter(pa.array(valid)), rows[valid]
        if aside := self.aside():
            there = ~flags(
                pc.is_in(table.column("run_id"), value_set=pa.array(list(aside), pa.string()))
            )
            table, rows = table.filter(pa.array(there)), rows[there]
            notes.append(
                f"{len(aside)} runs are set aside, the first is {next(iter(aside))!r}: "
                f"{next(iter(aside.values()))}"
            )
        starts = np.cumsum([0, *sizes])

        def row_name(row: int) -> str:
            at = int(rows[row])
            return f"{tables[number[at]][0]} row {at - int(starts[number[at]])}"

        for key in features:
            features[key] = with_rows_for(features[key], key, _names([table], key), notes)
        findings = find_bad_rows(table, features["workload"], features["platform"], row_name)
        findings.require_none(where=str(self.path), row_name=row_name)
        return Runs(table, features["workload"], features["platform"], checked=True, notes=notes)

    def set_aside(
        self, run_ids: Sequence[str], reason: str, *, at: datetime, back: bool = False
    ) -> list[Path]:
        """Let readers pass over these runs from now on, or, with back, have them again; the files written.

        The runs stay where they are; what was set aside when and why stands in files of their own, of which
        the last word holds. Raises UnknownName for a run that the dataset has not, NotPermitted.
        """
        known = self.all_run_ids()
        require_known("run_id", run_ids, known, where=str(self.path))
        table = aside_table(run_ids, reason, at, back)
        with staged(table, self.path / SET_ASIDE) as ready:
            written = ready.publish()
        return [] if written is None else [written]

    def aside(self) -> dict[str, str]:
        """Return {run_id: reason}, of the runs that are set aside now. Raises UnreadableFile."""
        return rows_aside(self.path)

    def number_of_runs(self) -> int:
        """Count the rows of all files, from their footers. Raises UnreadableFile."""
        return sum(parquet_rows(file) for file in distinct_files(self.path / "runs"))

    def features(self, notes: list[str] | None = None) -> tuple[pa.Table | None, pa.Table | None]:
        """Return the workload and the platform features, None where there are none.

        notes: takes a sentence for each column in which files contradict each other.
        """
        notes = [] if notes is None else notes
        return self._merged("workload", notes), self._merged("platform", notes)

    def _merged(self, key: str, notes: list[str]) -> pa.Table | None:
        files = distinct_files(self.path / f"{key}_features")
        return merge_features(
            [(str(file), self._feature_file(file, key)) for file in files], key, notes
        )

    def _feature_file(self, file: Path, key: str) -> pa.Table:
        if file not in self._features:
            table = read_parquet(file, FEATURES_VERSION[key])
            self._features[file] = conform_features(table, key, str(file))
        return self._features[file]

    def _require_features(self, runs: Runs) -> None:
        """Refuse features that contradict the dataset's; names without any are unknown to readers."""
        for key, new in (
            ("workload", runs.workload_features),
            ("platform", runs.platform_features),
        ):
            if new is None:
                continue
            tables = []
            for file in distinct_files(self.path / f"{key}_features"):
                with suppress(UnreadableFile):  # readers are told; new runs must not be lost
                    tables.append((str(file), self._feature_file(file, key)))
            features = merge_features(tables, key, [])
            where = tables[0][0] if len(tables) == 1 else str(self.path)
            there = [] if features is None else [(where, features)]
            merge_features([*there, ("the features to be written", new)], key)

    def run_ids(self) -> Iterator[tuple[Path, pa.Array]]:
        """Yield each readable file of runs with its run_ids. Other files are reported by whoever reads the
        dataset; new measurements must not be lost for them."""
        for file in parquet_files(self.path / "runs"):
            if file not in self._run_ids:
                try:
                    table = read_parquet(file, VERSIONS, ["run_id"])
                except UnreadableFile:
                    continue
                self._run_ids[file] = table.column("run_id").combine_chunks()
                self._schemas[file] = parquet_schema(file)
            yield file, self._run_ids[file]

    def all_run_ids(self) -> set[str]:
        """Collect the run_ids in all readable files, also of runs that were set aside."""
        return {name for _, ids in self.run_ids() for name in ids.to_pylist()}

    def _require_new(self, runs: Runs) -> None:
        ids = runs.table.column("run_id")
        for file, there in self.run_ids():
            known = pc.is_in(ids, value_set=there)
            rows = np.flatnonzero(flags(known))
            if len(rows):
                raise BadRows(
                    f"{len(rows)} runs are in the dataset already, the first is "
                    f"{ids[int(rows[0])].as_py()!r} in {file}",
                    rows=[(int(row), "run_id is in the dataset already") for row in rows[:1000]],
                    where=str(self.path),
                    fix="Write to another folder, or give new runs run_ids of their own.",
                )
        there = [(str(file), self._schemas[file]) for file in sorted(self._schemas)]
        every = [*there, ("the runs to be written", runs.table.schema)]
        for number, name, text in columns_in_conflict(every, FREE, COLUMNS):
            if number == len(there):
                fix = f"Give the column {name!r} another name; nothing was written."
                raise BadData(text, fix=fix)


def _names(tables: list[pa.Table], key: str) -> set[str]:
    """Return all workloads (co-runners too) or all platforms in these tables."""
    columns = [table.column(key) for table in tables]
    if key == "workload":
        columns += [pc.list_flatten(table.column("corunners")) for table in tables]
        stretched = [table.column(STRETCHES) for table in tables if has_stretches(table.schema)]
        return set().union(*map(stretch_names, stretched), *map(_unique, columns))
    return set().union(*map(_unique, columns))


def _unique(column: Any) -> list[Any]:
    return pc.unique(column).to_pylist()


def version_of(files: Iterable[Path]) -> str:
    """Compute the version of a dataset that has these files, 16 hex digits."""
    names = sorted(f"{p.parent.name}/{p.name} {content_of(p)}" for p in files)
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def read_runs(path: str | os.PathLike[str]) -> Runs:
    """Read all runs of a dataset, as :meth:`Dataset.read` does.

    Parameters
    ----------
    path :
        Folder of the dataset.

    Returns
    -------
    Runs
    """
    return Dataset(path).read()


def has_runs(path: str | os.PathLike[str]) -> bool:
    """Return whether the folder holds files of runs; none is opened."""
    return bool(parquet_files(Path(path) / "runs"))


MOST_TRIED = 20_000  # lists of files that are looked through for a version


def runs_since(path: str | os.PathLike[str], version: str) -> Runs:
    """Return those in files written after the dataset in folder `path` had this version, with all features.

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
            known.update(read_parquet(file, VERSIONS).column("run_id").to_pylist())
    ids = runs.table.column("run_id").to_pylist()
    return runs.take(np.array([number not in known for number in ids], bool))


def _files_of(dataset: Dataset, version: str) -> list[Path] | None:
    """Return the files of an older version; None where there is none. Of each folder it has the first few."""
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
