"""Lines of profilers' CSV files with their numbers, so that errors can name them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from jostle.errors import BadRows, UnreadableFile


def encoding_of(head: bytes) -> str:
    """As the mark of byte order says, which some shells and editors write; UTF-8 without one."""
    return "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def csv_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) without `==PID==` lines and empty ones."""
    try:
        with path.open("rb") as file:
            encoding = encoding_of(file.read(2))
        with path.open(newline="", encoding=encoding, errors="replace") as file:
            quotes = 0

            def counted() -> Iterator[str]:
                nonlocal quotes
                for line in file:
                    quotes += line.count('"')
                    yield line

            reader = csv.reader(counted())
            for row in reader:
                if row and not row[0].startswith("==") and any(cell.strip() for cell in row):
                    yield reader.line_num, row
    except (OSError, UnicodeError, csv.Error) as error:
        raise UnreadableFile(f"cannot be read as CSV: {error}", where=str(path)) from None
    if quotes % 2:
        raise UnreadableFile(
            "cut off inside a text in quotes", where=str(path), fix="Record it again."
        )


def require_width(row: list[str], columns: list[str], number: int, where: str) -> None:
    if len(row) != len(columns):
        raise BadRows(
            f"line {number} has {len(row)} columns, the header {len(columns)}: cut off?",
            rows=[(number, "wrong number of columns")],
            where=where,
            fix="Record or copy the file again.",
        )


def bad_line(number: int, problem: str, where: str, fix: str | None = None) -> BadRows:
    """The error for a line that cannot be used. problem: continues "line 7"."""
    return BadRows(
        f"line {number}{problem}", rows=[(number, problem.strip(": "))], where=where, fix=fix
    )
