"""A dataset: a folder of immutable Parquet files that any engine reads as they are.

    <folder>/runs/*.parquet                 runs/v1
    <folder>/workload_features/*.parquet    keyed by workload
    <folder>/platform_features/*.parquet    keyed by platform

A writer adds a file under a temporary name (a leading dot: readers pass it over), fsyncs it, links
it to its final name (which fails rather than overwrites) and fsyncs the folder. So any number of
writers need no lock, and a crash loses at most the file being written. File names are a serial
number, so that files read in the order written, and a hash of the content, so that the list of names
tells the version.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from jostle.errors import BadData, JostleError, NotPermitted, UnreadableFile
from jostle.runs._features import merge_features
from jostle.runs._runs import Runs
from jostle.runs._schema import FEATURES_VERSION, VERSION, check_features, conform, runs_schema

_FOLDERS = {
    "runs": VERSION,
    "workload_features": FEATURES_VERSION["workload"],
    "platform_features": FEATURES_VERSION["platform"],
}


class Dataset:
    """The dataset in folder `path`, which need not exist before the first write."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def exists(self) -> bool:
        """Whether there is at least one file."""
        return any(True for _ in self._list())

    def files(self) -> list[Path]:
        """All files of the dataset, folder by folder, in the order in which they were written."""
        return list(self._list())

    def leftovers(self) -> list[Path]:
        """Temporary files of killed or still writing writers; readers pass them over."""
        return [p for folder in _FOLDERS for p in sorted((self.path / folder).glob(".*.tmp"))]

    def version(self) -> str:
        """16 hexadecimal digits: a hash of the file list, which changes with every file added."""
        names = "\n".join(f"{p.parent.name}/{p.name}" for p in self._list())
        return hashlib.sha256(names.encode()).hexdigest()[:16]

    def write(self, runs: Runs) -> list[Path]:
        """Add the runs, and their features where there are any; returns the files written.

        Raises UnreadableFile or NotPermitted with what to do where the disk does not take them;
        then nothing half-written is left under a name that readers see.
        """
        written = []
        # Features first: a reader never meets a run whose workload has no features yet.
        for folder, table in (
            ("workload_features", runs.workload_features),
            ("platform_features", runs.platform_features),
            ("runs", runs.table if len(runs) else None),
        ):
            if table is not None and table.num_rows:
                written.append(self._add(folder, table))
        return written

    def read(self) -> Runs:
        """All runs. Raises UnreadableFile naming a missing, truncated or foreign file, and BadRows
        naming the file and row of a bad one."""
        if not self.path.is_dir():
            raise UnreadableFile(
                "there is no such dataset folder",
                where=str(self.path),
                fix="Make one with jostle measure or jostle import.",
            )
        tables: dict[str, list[tuple[str, pa.Table]]] = {folder: [] for folder in _FOLDERS}
        for file in self._list():
            tables[file.parent.name].append((str(file), _read_file(file)))
        if not any(tables.values()):
            raise UnreadableFile(
                "the folder holds no runs",
                where=str(self.path),
                fix="A dataset has Parquet files in a folder named runs; make one with jostle "
                "measure or jostle import.",
            )
        features = {
            key: merge_features(
                [(where, check_features(t, key, where)) for where, t in tables[f"{key}_features"]],
                key,
            )
            for key in ("workload", "platform")
        }
        parts = [(where, conform(table, where)) for where, table in tables["runs"]]
        for where, table in parts:
            # File by file first, so that an error names the file and the row in it.
            Runs(table, features["workload"], features["platform"], where=where)
        table = pa.concat_tables(
            [table for _, table in parts] or [runs_schema().empty_table()],
            promote_options="permissive",
        )
        return Runs(
            table.replace_schema_metadata(runs_schema().metadata),
            features["workload"],
            features["platform"],
            where=str(self.path),
        )

    def _list(self) -> Any:
        for folder in _FOLDERS:
            for file in sorted((self.path / folder).glob("*.parquet")):
                if not file.name.startswith("."):
                    yield file

    def _add(self, folder: str, table: pa.Table) -> Path:
        place = self.path / folder
        temporary = place / f".{os.getpid()}-{os.urandom(6).hex()}.tmp"
        try:
            place.mkdir(parents=True, exist_ok=True)
            with open(temporary, "xb") as file:
                pq.write_table(table, file, compression="zstd")
                file.flush()
                os.fsync(file.fileno())
            content = hashlib.sha256(temporary.read_bytes()).hexdigest()[:16]
            final = _link_next(temporary, place, content)
            _sync_folder(place)
            return final
        except OSError as error:
            raise _cannot_write(error, place) from error
        finally:
            temporary.unlink(missing_ok=True)


def read_runs(path: str | os.PathLike[str]) -> Runs:
    """All runs of the dataset in folder `path`; see :meth:`Dataset.read`."""
    return Dataset(path).read()


def _link_next(temporary: Path, place: Path, content: str) -> Path:
    """Link under the next free serial number. Two writers may take the same number, never the same
    name unless the content is the same, and then it is the same file."""
    numbers = [int(p.name[:8]) for p in place.glob("*-*.parquet") if p.name[:8].isdigit()]
    final = place / f"{max(numbers, default=-1) + 1:08d}-{content}.parquet"
    try:
        os.link(temporary, final)
    except FileExistsError:
        return final
    except PermissionError:  # a file system without hard links
        os.rename(temporary, final)
    return final


def _sync_folder(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot_write(error: OSError, place: Path) -> JostleError:
    said = error.strerror or str(error)
    if isinstance(error, PermissionError):
        return NotPermitted(said, where=str(place), fix="Choose a folder you may write to.")
    return UnreadableFile(
        f"could not write: {said}",
        where=str(place),
        fix="Nothing half-written was left behind; make room and do it again.",
    )


def _read_file(file: Path) -> pa.Table:
    try:
        with open(file, "rb") as opened:
            table = pq.read_table(opened)
    except FileNotFoundError:
        raise UnreadableFile("the file vanished while reading", where=str(file)) from None
    except (OSError, pa.ArrowException, EOFError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnreadableFile(
            f"not a readable Parquet file: {first}",
            where=str(file),
            fix="Restore it from a copy, or move it out of the dataset.",
        ) from None
    version = (table.schema.metadata or {}).get(b"schema", b"").decode()
    if version != _FOLDERS[file.parent.name]:
        raise BadData(
            f"the file's schema is {version or 'not given'}, not {_FOLDERS[file.parent.name]}",
            where=str(file),
            fix="Bring foreign tables in with jostle import.",
        )
    return table
