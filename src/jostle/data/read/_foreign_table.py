"""Foreign CSV and Parquet read with the place of every row, so that errors can name it."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from jostle._base.untrusted import parquet_file
from jostle.data.runs._schema import ARROW_ERRORS
from jostle.data.tables._read_table import json_or_lines, text_of
from jostle.data.tables.lines import encoding_of, foreign_text, require_text
from jostle.errors import BadData, UnreadableFile, require_known

SHOWN_TEXT = 200  # of a bad line, in messages
_HEAD, _ABOVE = 1 << 16, 20  # bytes and lines in which the names of columns are looked for


@dataclass(frozen=True)
class ForeignTable:
    """A table of another program, as it was read. table: n rows. numbers: (n,) int64, where each row stands:
    line of a CSV file counting from 1 at the header, or row of a Parquet file counting from 0; `unit` says
    which. ragged: (line, reason) of lines with the wrong number of cells, which are not in the table. comma:
    whether it is parted by semicolons, so that a comma in a number is a decimal one."""

    table: pa.Table
    numbers: np.ndarray
    where: str
    unit: str
    ragged: list[tuple[int, str]] = field(default_factory=list)
    comma: bool = False

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


def read_table(
    content: bytes,
    where: str,
    texts: Sequence[str] | None = (),
    delimiter: str | None = None,
    wanted: Collection[str] = (),
) -> ForeignTable:
    """Return the rows of CSV, or of lines or a list of JSON. Columns in `texts` are text, all where it is
    None; the types of others are inferred from all rows.

    delimiter: None for a comma, or what the line of names has. wanted: names that this line has. Raises
    UnreadableFile or BadData.
    """
    if not content.strip():
        raise UnreadableFile("the file is empty", where=where, fix="Its first line names columns.")
    if content.lstrip(b"\xef\xbb\xbf \r\n")[:1] in b"[{":
        return _of_json(text_of(content, where), where, texts)
    content = plain_text(content, where).encode()
    head, above, delimiter = header_of(content, delimiter, wanted)
    names = next(csv.reader([head.decode()], delimiter=delimiter), [""])
    body = content.split(b"\n", above)[above]
    blank = rb"[ \r" + re.escape(delimiter.encode()) + rb"]+|" + re.escape(head) + rb"\r?"
    if body.count(head) > 1 or delimiter.encode() * max(len(names) - 1, 1) + b"\n" in body.replace(
        b"\r", b""
    ):
        first, _, rest = body.partition(b"\n")  # names again, and rows of nothing
        body = first + b"\n" + re.sub(b"(?m)^(" + blank + b")$", b"", rest)
    plain = [name for name in names if texts is None or name.strip() in texts]
    table, wrong = _arrow_table(body, where, plain, delimiter)
    lines = body.count(b"\n") + (not body.endswith(b"\n"))
    if lines == table.num_rows + 1 and not wrong:
        found = ForeignTable(table, np.arange(table.num_rows) + 2 + above, where, "line")
    else:
        found = _located(table, body, where, delimiter, above)
    return replace(found, comma=delimiter == ";")


def plain_text(content: bytes, where: str) -> str:
    """Return the text of a table, in UTF-8 or as spreadsheets write it. Raises UnreadableFile."""
    require_text(content, where)
    if b"\0" in content or encoding_of(content) != "utf-8-sig":
        return text_of(content, where)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return foreign_text(content)


def header_of(
    content: bytes, delimiter: str | None, wanted: Collection[str] = ()
) -> tuple[bytes, int, str]:
    """Return (the line that names the columns, how many are above it, what parts its cells)."""
    head = content[:_HEAD].removeprefix(b"\xef\xbb\xbf")
    lines = [line.rstrip(b"\r") for line in head.split(b"\n")]
    best = (-1, lines[0], 0, delimiter or ",")
    for above, line in enumerate(lines[:_ABOVE]):
        text = line.decode("utf-8", "replace")
        if not text.strip() or re.fullmatch("sep=.", text) or text.startswith("# "):
            continue
        mark = delimiter or ("," if "," in text else max(";\t|", key=text.count))
        score = len({cell.strip(' "') for cell in text.split(mark)} & set(wanted))
        if score > best[0]:
            best = (score, line, above, mark if mark in text else ",")
    return best[1:]


def _of_json(text: str, where: str, texts: Sequence[str] | None) -> ForeignTable:
    rows = json_or_lines(text, where)
    rows = rows if isinstance(rows, list) else [rows]
    if not all(isinstance(row, dict) for row in rows):
        raise BadData("not a list of objects", where=where, fix="Give an object for each row.")
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [json.dumps(c) if isinstance(c := row.get(name), dict) else c for row in rows]
        with suppress(*ARROW_ERRORS):
            if texts is not None and (name not in texts or any(isinstance(c, list) for c in cells)):
                columns[name] = pa.array(cells)
                continue
        columns[name] = pa.array(["" if c is None else str(c) for c in cells], pa.string())
    return ForeignTable(pa.table(columns), np.arange(len(rows)) + 1, where, "object")


def _arrow_table(
    content: bytes, where: str, texts: Sequence[str], delimiter: str
) -> tuple[pa.Table, list[str]]:
    """Return (the rows that have as many cells as there are names, the others as text)."""
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
                column_types={name: pa.string() for name in texts}, strings_can_be_null=False
            ),
        )
    except (pa.ArrowException, OSError) as error:
        text = f"not a readable CSV file: {_first_line(error)}"
        raise UnreadableFile(text, where=where, fix="Its first line names columns.") from None
    table = table.rename_columns([name.strip() for name in table.column_names])
    _require_distinct(table.column_names, where)
    return table, wrong


def _located(
    table: pa.Table, content: bytes, where: str, delimiter: str, above: int
) -> ForeignTable:
    """Count the lines of a table that has blank lines, line breaks inside cells or ragged lines."""
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter)
    width, before = table.num_columns, above
    good, ragged = [], []
    try:
        for number, cells in enumerate(reader):
            line, before = before + 1, above + reader.line_num
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
        lines = enumerate(content.split(b"\n"), start=1)
        odd = next((number for number, line in lines if line.count(b'"') % 2), None)
        raise BadData(
            f"{f'line {odd}: ' if odd else ''}quotes or line breaks make its rows ambiguous",
            where=where,
            fix="Quote cells evenly.",
        )
    return ForeignTable(table, np.array(good, np.int64), where, "line", ragged)


def _require_distinct(names: list[str], where: str) -> None:
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        text = f"the column {twice[0]!r} is there more than once"
        raise BadData(text, where=where, fix="Rename one of them.")


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
