"""Tables from anywhere as rows: CSV, Parquet, JSON and Arrow files, tables and columns in memory."""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from jostle._base.untrusted import Unpacked, require_regular
from jostle.data.tables.arrow_rows import arrow_rows
from jostle.data.tables.lines import encoding_of, require_text
from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError, require_known

RAGGED = "(cells and headings differ)"  # a column of rows that cannot be read, with the reason
_ROW_KEYS = {"workload", "platform", "name"}  # an object with one of them is a row itself
_ARROW = (".arrow", ".arrows", ".feather", ".ipc")
_STREAM = b"\xff\xff\xff\xff"  # how a stream of Arrow begins
_ALIKE = 0.8  # how alike a column's name must be to one that is known to be taken for a slip


@dataclass(frozen=True)
class TableRows:
    """Rows of a foreign table, with their places. rows: a mapping of columns to cells each. numbers: where
    each stands in the file. where: the file. ignored: columns of the table that mean nothing here."""

    rows: list[dict[str, Any]]
    numbers: list[int]
    where: str
    ignored: tuple[str, ...] = ()


def read_rows(
    source: Any,
    known: Sequence[str],
    columns: Mapping[str, str] | None = None,
    *,
    others: Callable[[str], str] | None = None,
) -> TableRows:
    """Return the rows of a table.

    source: a path (by its ending or its first bytes CSV, Parquet, JSON, lines of JSON, or Arrow), `-` for
    standard input, an Arrow, pandas or polars table, a mapping of columns, or a list of mappings.
    known: what columns may be called. columns: {known name: name in the table}. others: what a column that
    means nothing here is kept under; without it none is kept.
    Raises UnreadableFile, BadData, and UnknownName for a column that is missing, or so nearly called
    like one that is known that it must be meant.
    """
    mapped = dict(columns or {})
    require_known("column", mapped, known)
    table = _read(source)
    present = [n for n in dict.fromkeys(n for row in table.rows for n in row) if n != RAGGED]
    if table.rows:
        require_known("column", mapped.values(), present, where=table.where)
    back = {theirs: name for name, theirs in mapped.items()}
    ignored = []
    for name in present:
        if name in back or (name in known and name not in mapped):
            continue
        ignored.append(name)
        near = difflib.get_close_matches(name, known, n=1, cutoff=_ALIKE)
        if near and near[0] not in present and near[0] not in mapped:
            raise UnknownName("column", name, list(known), where=table.where)
    names = {name: back.get(name, name) for name in [*present, RAGGED] if name not in ignored}
    if others is not None:
        names |= {name: others(name) for name in ignored}
    rows = [
        {names[name]: cell for name, cell in row.items() if name in names} for row in table.rows
    ]
    return TableRows(rows, table.numbers, table.where, tuple(ignored))


def _read(source: Any) -> TableRows:
    if isinstance(source, (str, Path)):
        content, where = file_bytes("-" if str(source) == "-" else source)
        return _parsed(content, where)
    if isinstance(source, Mapping):
        columns = {name: list(values) for name, values in source.items()}
        if len({len(values) for values in columns.values()}) > 1:
            raise BadData("the columns differ in length", where="the table")
        return _numbered(
            [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        )
    for call in ("to_pylist", "to_dicts"):  # Arrow; polars
        if hasattr(source, call):
            return _numbered(getattr(source, call)())
    if hasattr(source, "to_dict"):  # pandas
        return _numbered(source.to_dict("records"))
    if isinstance(source, Sequence) and all(isinstance(row, Mapping) for row in source):
        return _numbered([dict(row) for row in source])
    raise UsageError(f"a {type(source).__name__} is not a table", fix="Give a path or columns.")


def _numbered(rows: list[dict[str, Any]], where: str = "the table", first: int = 0) -> TableRows:
    return TableRows(rows, list(range(first, first + len(rows))), where)


def file_bytes(source: str | os.PathLike[str] | BinaryIO) -> tuple[bytes, str]:
    """Return (content, name for errors) of a file, of `-` for standard input, or of an open binary file;
    unpacked where it is packed by gzip, and in UTF-8 where it is in UTF-16.

    Raises UnreadableFile.
    """
    if not isinstance(source, (str, os.PathLike)):
        return source.read(), str(getattr(source, "name", "<stream>"))
    if source == "-":
        return sys.stdin.buffer.read(), "<stdin>"
    try:
        require_regular(source)
        content = Path(source).read_bytes()
        if content[:2] == b"\x1f\x8b":
            packed = Unpacked(io.BytesIO(content), len(content), str(source))
            content = b"".join(iter(lambda: packed.read(1 << 20), b""))
        if encoding_of(content) != "utf-8-sig":
            content = text_of(content, str(source)).encode()
        return content, str(source)
    except (OSError, ValueError) as error:  # a path may hold a null
        reason = getattr(error, "strerror", None) or error
        text = f"cannot be read: {reason}"
        raise UnreadableFile(text, where=str(source), fix="Check the name.") from None


def text_of(content: bytes, where: str) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 where its mark of byte order says so, without that
    mark. Raises UnreadableFile naming the line."""
    require_text(content, where)
    try:
        text = content.decode(encoding_of(content))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        reason = f"line {line}: not text in UTF-8: {error.reason}"
        raise UnreadableFile(reason, where=where, fix="Save it as UTF-8.") from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        reason = f"line {line}: a zero byte, which no text holds"
        raise UnreadableFile(reason, where=where, fix="Save it as UTF-8.")
    return text


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file. Raises UnreadableFile."""
    return text_of(*file_bytes(path))


def _parsed(content: bytes, where: str) -> TableRows:
    if content[:4] == b"PAR1" or where.endswith((".parquet", ".pq")):
        return _numbered(arrow_rows(content, where, is_parquet=True), where)
    if content[:4] == _STREAM or content[:6] == b"ARROW1" or where.endswith(_ARROW):
        return _numbered(arrow_rows(content, where), where)
    decoded = text_of(content, where)
    if where.endswith((".json", ".jsonl", ".ndjson")) or decoded.lstrip()[:1] in ("[", "{"):
        return _json(decoded, where)
    return csv_rows(decoded, where)


def _json(decoded: str, where: str) -> TableRows:
    """Return a list of objects, one object that holds such a list, or an object on each line."""
    document = json_or_lines(decoded, where)
    if isinstance(document, dict):
        lists = [
            value
            for value in document.values()
            if isinstance(value, list) and all(isinstance(row, dict) for row in value)
        ]
        is_row = _ROW_KEYS & set(document)
        document = lists[0] if len(lists) == 1 and not is_row else [document]
    if not isinstance(document, list) or not all(isinstance(row, dict) for row in document):
        raise BadData("not a list of objects", where=where)
    return _numbered(document, where)


def json_or_lines(text: str, where: str) -> Any:
    """Return what a JSON document holds, or a list of what each line of JSON does. Raises UnreadableFile."""
    try:
        try:
            return json.loads(text)
        except ValueError:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
    except RecursionError:
        reason = "objects inside objects without end"
    except ValueError as error:
        reason = str(error)
    raise UnreadableFile(f"not readable JSON: {reason}", where=where)


def csv_rows(text: str, where: str, delimiter: str | None = None) -> TableRows:
    """Yield the lines by their number; one with more or fewer cells than the header says so in the column
    RAGGED.

    delimiter: None for commas, unless the headings have none: some spreadsheets write semicolons or tabs
    instead. Raises UnreadableFile, BadData.
    """
    if not text.strip():
        raise UnreadableFile(
            "the file is empty: it has no lines", where=where, fix="Its first line names columns."
        )
    if delimiter is None:
        head = next(line for line in text.splitlines() if line.strip())
        delimiter = next((mark for mark in (",", ";", "\t") if mark in head), ",")
        delimiter = "\t" if where.endswith(".tsv") else delimiter
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise UnreadableFile(f"not a readable CSV file: {error}", where=where) from None
    names = [name.strip() for name in lines[0][1]]
    if len(set(names)) < len(names):
        raise BadData("two columns have the same name, which stands there twice", where=where)
    rows: list[dict[str, Any]] = []
    for _, row in lines[1:]:
        rows.append(dict(zip(names, row, strict=False)))
        if len(row) != len(names):
            rows[-1][RAGGED] = f"{len(row)} cells under {len(names)} headings"
    return TableRows(rows, [line for line, _ in lines[1:]], where)
