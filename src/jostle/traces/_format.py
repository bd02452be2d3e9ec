"""The format of a table in a dataset's folder: its columns with their units, and how its files are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from jostle._files import distinct_files, read_parquet
from jostle.errors import BadData


@dataclass(frozen=True)
class TableFormat:
    """version: as the files' metadata has it. columns: type, unit and meaning of each. optional: columns
    that a file may lack, because they came later."""

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
        """The table in these columns and types. Raises BadData naming what is missing."""
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

    def read(self, folder: Path) -> pa.Table:
        """All rows of the files in a folder, in the order in which they were written."""
        tables = [
            self.conform(read_parquet(file, self.version), str(file))
            for file in distinct_files(folder)
        ]
        return pa.concat_tables([self.schema.empty_table(), *tables])

    def run_ids(self, folder: Path) -> set[str]:
        """The run_ids in the files of a folder."""
        tables = [read_parquet(file, self.version, ["run_id"]) for file in distinct_files(folder)]
        return {run_id for table in tables for run_id in table.column("run_id").to_pylist()}
