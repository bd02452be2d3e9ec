"""An Arrow table as a CSV, Parquet, Arrow or JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle._base.files import errors_explained, write_whole
from jostle._base.report import finite
from jostle.data.tables.cells import SEPARATOR
from jostle.errors import UsageError


def write_table(table: Any, path: str | os.PathLike[str]) -> None:
    """Write an Arrow table to a file of the kind that its name ends in, whole or not at all. Lists stand in
    CSV separated by semicolons; JSON is one list of objects, with null for what is not finite. Raises
    UsageError for another ending, NotPermitted if the disk does not take it."""
    path = Path(path)
    file_content = content(table, path.suffix, str(path))
    with errors_explained(path.parent):
        write_whole(path, file_content)


def content(table: Any, kind: str, where: str) -> bytes:
    """Return what the file holds. kind: its ending, with the dot."""
    if kind not in _KINDS:
        known = ", ".join(_KINDS)
        raise UsageError(f"{where!r} ends in none of {known}", fix="Name it with one of them.")
    return _KINDS[kind](table)


def _csv(table: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.csv

    for place, name in enumerate(table.column_names):
        column = table.column(name)
        if pa.types.is_list(column.type):
            joined = [
                None if cell is None else SEPARATOR.join(map(str, cell))
                for cell in column.to_pylist()
            ]
            table = table.set_column(place, name, pa.array(joined, pa.string()))
    sink = pa.BufferOutputStream()
    pyarrow.csv.write_csv(table, sink)
    return sink.getvalue().to_pybytes()


def _parquet(table: Any) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet

    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    return sink.getvalue().to_pybytes()


def _arrow(table: Any) -> bytes:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _json(table: Any) -> bytes:
    return json.dumps(finite(table.to_pylist()), ensure_ascii=False, default=str).encode()


_KINDS: dict[str, Callable[[Any], bytes]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".arrow": _arrow,
    ".json": _json,
}
