"""Tables on the pages of results, made from the files that commands printed them to.

    python docs/_tables.py        makes them anew, between their marks

A mark is a comment with a JSON object, a line above a block of text: `file` in docs/results/raw, `from` how the
table's first line begins, `rows` a pattern that the rows to show match, their cells two blanks apart, `columns` those to show beside the first, by name or number.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
MARK = re.compile(r"^<!-- table: (\{[^\n]*\}) -->\n```text\n.*?^```$", re.M | re.S)


def table(file: str, rows: str = "", columns: Any = None, **start: str) -> str:
    """The table as text, its columns aligned. Raises LookupError for what is not in the file."""
    head, *body = printed(file, start.get("from", ""))
    body = [row for row in body if re.search(rows, "  ".join(row))]
    if not body:
        raise LookupError(f"{file}: no row {rows!r}")
    places = range(1, len(head))
    if columns is not None:
        places = [one if isinstance(one, int) else head.index(one) for one in columns]
    lines = [[row[place] for place in (0, *places)] for row in (head, *body)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    columns_of_cells = list(zip(*lines, strict=True))
    are_numbers = [
        any(re.match(r"[-+]?\d", one) for one in cells[1:]) for cells in columns_of_cells
    ]
    sides = [str.ljust, *(str.rjust if is_one else str.ljust for is_one in are_numbers[1:])]

    def joined(row: list[str]) -> str:
        cells = (side(cell, n) for side, cell, n in zip(sides, row, widths, strict=True))
        return "  ".join(cells).rstrip()

    return "".join(f"{joined(row)}\n" for row in lines)


def printed(file: str, start: str) -> list[list[str]]:
    """Cells of the lines from the one that begins so to the next empty one, as many as there the most."""
    lines = (RESULTS / "raw" / f"{file}.txt").read_text("utf-8").splitlines()
    first = next((n for n, line in enumerate(lines) if line.lstrip().startswith(start)), None)
    if first is None:
        raise LookupError(f"{file}: no line begins with {start!r}")
    rows_of_cells = []
    for line in lines[first:]:
        if not line.strip():
            break
        cells = re.split(r" \| " if " | " in line else r"\s{2,}", line.strip().strip("|").strip())
        if rows_of_cells and len(cells) == len(rows_of_cells[0]) - 1 and line.startswith(" "):
            cells = ["", *cells]
        if line[0] == " " and not rows_of_cells:
            cells = ["", *cells]
        if not set(line) <= set("|- "):
            rows_of_cells.append(cells)
    return [row for row in rows_of_cells if len(row) == len(rows_of_cells[0])]


def renewed(text: str) -> str:
    """A page's text with its tables as the files have them."""

    def block(match: re.Match[str]) -> str:
        return f"<!-- table: {match[1]} -->\n```text\n{table(**json.loads(match[1]))}```"

    return MARK.sub(block, text)


if __name__ == "__main__":
    for page in (ROOT / "docs").rglob("*.md"):
        page.write_text(renewed(page.read_text("utf-8")), "utf-8")
