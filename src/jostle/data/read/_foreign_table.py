"""Foreign CSV and Parquet read with the place of every row, so that errors can name it."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from jostle._base.untrusted import parquet_file
from jostle.data.tables._read_table import text_of
from jostle.errors import BadData, UnreadableFile, require_known

SHOWN_TEXT = 200  # of a bad line, in messages


@dataclass(frozen=True)
class ForeignTable:
    """table: n rows. numbers: (n,) int64, where each row stands: line of a CSV file counting from
    1 at the header, or row of a Parquet file counting from 0; `unit` says which. ragged: (line,
    reason) of lines with the wrong number of cells, which are not in the table.
    """

    table: pa.Table
    numbers: np.ndarray
    where: str
    unit: str
    ragged: list[tuple[int, str]] = field(default_factory=list)

    def require(self, names: Sequence[str]) -> None:
        """Raises UnknownName for the first of these columns that is not there."""
        require_known("column", names, self.table.column_names, where=self.where)

    def row_name(self, row: int) -> str:
        """Return where a row of the table stands in the file."""
        return f"{self.unit} {self.numbers[row]}"


def read_parquet(content: bytes, where: str) -> ForeignTable:
    """Raises UnreadableFile."""
    try:
        table = parquet_file(where, pa.BufferReader(content), len(content)).read()
        table.validate(full=True)  # texts may be no UTF-8
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        text = f"not a readable Parquet file: {_first_line(error)}"
        raise UnreadableFile(text, where=where, fix="Write or copy it again.") from None
    _require_distinct(table.column_names, where)
    return ForeignTable(
        table.replace_schema_metadata(None), np.arange(table.num_rows), where, "row"
    )


def delimiter_of(line: str) -> str:
    """Tell what parts the cells of a table by its first line: a comma where it has one."""
    return "," if "," in line else max(";\t|", key=line.count) if re.search("[;\t|]", line) else ","


def first_line(content: bytes) -> str:
    """Return the first line of a table that holds something, without its mark of byte order."""
    return content.lstrip(b"\xef\xbb\xbf\r\n ").split(b"\n", 1)[0].decode("utf-8", "replace")


def read_csv(
    content: bytes, where: str, texts: Sequence[str] = (), delimiter: str = ","
) -> ForeignTable:
    """Return the columns in `texts` are text; the types of others are inferred from all rows.

    Raises UnreadableFile or BadData.
    """
    if not content.strip():
        raise UnreadableFile("the file is empty", where=where, fix="Its first line names columns.")
    text_of(content, where)
    wrong: list[str] = []

    def skip(row: Any) -> str:
        wrong.append(row.text)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(content),
            # One block: types are inferred from all rows, and not from the first megabyte.
            pyarrow.csv.ReadOptions(block_size=min(len(content) + 1, 2**31 - 1), use_threads=False),
            pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip
            ),
            pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in texts},
                strings_can_be_null=False,
            ),
        )
    except (pa.ArrowException, OSError) as error:
        text = f"not a readable CSV file: {_first_line(error)}"
        raise UnreadableFile(text, where=where, fix="Its first line names columns.") from None
    table = table.rename_columns([name.strip() for name in table.column_names])
    _require_distinct(table.column_names, where)
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    if lines == table.num_rows + 1 and not wrong:
        return ForeignTable(table, np.arange(table.num_rows) + 2, where, "line")
    return _located(table, content, where, delimiter)


def _located(table: pa.Table, content: bytes, where: str, delimiter: str) -> ForeignTable:
    """With blank lines, line breaks inside cells or ragged lines, lines have to be counted."""
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter)
    width, before = table.num_columns, 0
    good, ragged = [], []
    try:
        for number, cells in enumerate(reader):
            line, before = before + 1, reader.line_num
            if number == 0 or not cells:
                continue
            if len(cells) == width:
                good.append(line)
            else:
                text = delimiter.join(cells)[:SHOWN_TEXT]
                reason = f"{len(cells)} cells where there are {width} columns: {text!r}"
                ragged.append((line, reason))
    except csv.Error as error:
        raise BadData(
            f"line {before + 1}: {error}", where=where, fix="Quote cells evenly."
        ) from None
    if len(good) != table.num_rows:
        odd = _odd_line(content)
        raise BadData(
            f"{f'line {odd}: ' if odd else ''}quotes or line breaks make its rows ambiguous",
            where=where,
            fix="Quote cells evenly.",
        )
    return ForeignTable(table, np.array(good, np.int64), where, "line", ragged)


def _odd_line(content: bytes) -> int | None:
    """Return the first line with an odd number of quotes, if there is one."""
    lines = enumerate(content.split(b"\n"), start=1)
    return next((number for number, line in lines if line.count(b'"') % 2), None)


def _require_distinct(names: list[str], where: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        text = f"the column {twice[0]!r} is there more than once"
        raise BadData(text, where=where, fix="Rename one of them.")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
