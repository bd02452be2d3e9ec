"""The format of a table in a dataset's folder: its columns with their units, and how its files are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from jostle._base.files import content_of, distinct_files, read_parquet, staged
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData, UnreadableFile

_PARTS = b"parts"


@dataclass(frozen=True)
class TableFormat:
    """Columns of a table on disk. version: as the files' metadata has it. columns: type, unit and meaning of
    each. optional: columns that a file may lack, because they came later."""

    version: str
    columns: Mapping[str, tuple[pa.DataType, str, str]]
    optional: tuple[str, ...] = ()

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns in order, with unit and meaning in their metadata."""
        fields = [
            pa.field(name, kind, metadata={"unit": unit, "meaning": meaning})
            for name, (kind, unit, meaning) in self.columns.items()
        ]
        return pa.schema(fields, metadata={"schema": self.version})

    def conform(self, table: pa.Table, where: str | None = None) -> pa.Table:
        """Return the table in these columns and types. Raises BadData naming what is missing."""
        for name in self.optional:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, self.columns[name][0]))
        missing = ", ".join(name for name in self.columns if name not in table.column_names)
        if missing:
            raise BadData(f"the columns {missing} of {self.version} are missing", where=where)
        parts = []
        for name, (kind, _, _) in self.columns.items():
            try:
                parts.append(table.column(name).cast(kind))
            except (pa.ArrowException, ValueError) as error:
                text = f"column {name} cannot be read as {kind}: {error}"
                raise BadData(text, where=where) from None
        return pa.Table.from_arrays(parts, schema=self.schema)

    def run_ids(self, folder: Path) -> set[str]:
        """Return the run_ids in the files of a folder, for writers: a damaged file is left for readers to
        name."""
        ids: set[str] = set()
        for file in distinct_files(folder):
            with suppress(UnreadableFile):
                ids |= {*read_parquet(file, self.version, ["run_id"]).column("run_id").to_pylist()}
        return ids


@dataclass(frozen=True)
class TablePair:
    """A table of heads, which list runs, and one of parts, which say what is in them; each in a folder of its
    own. A file of heads names the file of parts that it was written with, so that parts of a writer that was
    killed, or that came second with the same run_id, are never taken for those of another."""

    heads: TableFormat
    heads_folder: str
    parts: TableFormat
    parts_folder: str

    def write(
        self,
        folder: Path,
        heads: pa.Table,
        parts: pa.Table,
        require_new: Callable[[], None] | None = None,
    ) -> list[Path]:
        """Add both; returns the files written. Parts first: a reader passes over those nobody lists yet.

        require_new: called where the heads are not there already. Raises what it raises, and NotPermitted.
        """
        with ExitStack() as stack:
            first = stack.enter_context(staged(parts, folder / self.parts_folder))
            heads = heads.replace_schema_metadata(
                {**(heads.schema.metadata or {}), _PARTS: first.content}
            )
            second = stack.enter_context(staged(heads, folder / self.heads_folder))
            if require_new is not None and not second.is_there():
                require_new()
            return [file for part in (first, second) if (file := part.publish()) is not None]

    def read(self, folder: Path) -> tuple[pa.Table, pa.Table, list[str]]:
        """Return (heads, their parts, a sentence for each run_id in two files, of which the earlier is
        taken).

        Raises UnreadableFile naming a file that is missing, truncated, changed or foreign.
        """
        heads = [
            (file, read_parquet(file, self.heads.version))
            for file in distinct_files(folder / self.heads_folder)
        ]
        files = {content_of(file): file for file in distinct_files(folder / self.parts_folder)}
        named = {_parts_of(table) for _, table in heads}
        found_heads = [self.heads.schema.empty_table()]
        found_parts = [self.parts.schema.empty_table()]
        unnamed = [content for content in files if content not in named]
        known: dict[str, Path] = {}
        parts: dict[str, pa.Table] = {}
        notes = []
        for file, table in heads:
            ids = table.column("run_id").to_pylist()
            fresh = {run_id for run_id in ids if run_id not in known}
            notes += [
                f"the run {run_id!r} in {file} was passed over, because it stands in {known[run_id]} already"
                for run_id in dict.fromkeys(ids)
                if run_id not in fresh
            ]
            known |= dict.fromkeys(fresh, file)
            found_heads.append(_of(self.heads.conform(table, str(file)), fresh))
            content = _parts_of(table)
            if content is not None and content not in files:
                raise UnreadableFile(
                    f"the file of {self.parts_folder} that it names ({content}) is missing",
                    where=str(file),
                    fix="Restore it from a copy, or move both out of the dataset.",
                )
            for one in [content] if content is not None else unnamed:
                if one not in parts:
                    part = read_parquet(files[one], self.parts.version)
                    parts[one] = self.parts.conform(part, str(files[one]))
                found_parts.append(_of(parts[one], fresh))
        return pa.concat_tables(found_heads), pa.concat_tables(found_parts), notes


def _parts_of(heads: pa.Table) -> str | None:
    """Return the content of the file of parts that these heads name; None in files of other tools."""
    content = (heads.schema.metadata or {}).get(_PARTS)
    return None if content is None else content.decode(errors="replace")


def _of(table: pa.Table, run_ids: set[str]) -> pa.Table:
    ids = pa.array(sorted(run_ids), pa.string())
    return table.filter(pc.is_in(table.column("run_id"), value_set=ids))
