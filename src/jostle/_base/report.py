"""What a command shows: tables and sentences for people, one JSON document for programs.

Rooms that find something make a Report; the console prints it. Numbers are written the same way everywhere.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest
from numbers import Integral, Real
from pathlib import Path
from textwrap import wrap
from typing import Any

LEAST_WIDTH = 24  # of a column of text in characters, before rows are written one cell a line
_NUMBER = re.compile(r"[x×+-]? ?\d[\d.,e+-]*( ?[a-zµ]{1,2}|%)?( of \d+| \(predicted\))?|inf|nan")
_NO_NUMBER = ("", "–", "none", "no bound", "no answer", "begins", "grows", "nothing")


@dataclass(frozen=True)
class Table:
    """A table of texts with a title. columns: headings, all empty for none. rows: cells as text."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""

    @classmethod
    def of(
        cls,
        items: Iterable[Any],
        cells: Mapping[str, str | Callable[[Any], str]],
        title: str = "",
    ) -> Table:
        """Make a row of each item. cells: of each column, by its heading, the field that it shows (see
        `written`) or what makes its text."""
        rows = [
            [
                written(cell, getattr(item, cell)) if isinstance(cell, str) else cell(item)
                for cell in cells.values()
            ]
            for item in items
        ]
        return cls(list(cells), rows, title)

    def is_right(self, column: int) -> bool:
        """Check whether a column holds numbers only, and so is aligned to the right."""
        cells = {row[column] for row in self.rows}.difference(_NO_NUMBER)
        return bool(cells) and all(map(_NUMBER.fullmatch, cells))

    def to_text(self, width: int | None = None) -> str:
        """Write it in lines, no wider than a terminal of this width. Columns of text are folded; if that is
        not enough, each row takes a line for each of its cells. Nothing is cut."""
        from rich.cells import cell_len

        heads = [list(self.columns)] if any(self.columns) else []
        grid, title = [*heads, *map(list, self.rows)], [self.title] if self.title else []
        sizes = [max(map(cell_len, column)) for column in zip(*grid, strict=True)]
        right = [self.is_right(n) for n in range(len(sizes))]
        if width is not None and sum(sizes) + 2 * (len(sizes) - 1) > width:
            long = [n for n, size in enumerate(sizes) if size > LEAST_WIDTH and not right[n]]
            room = width + 2 - sum(sizes[n] + 2 for n in range(len(sizes)) if n not in long)
            if not long or room < (LEAST_WIDTH + 2) * len(long):
                return "\n".join([*title, *self._records(width)])
            for left, n in enumerate(sorted(long, key=sizes.__getitem__)):
                sizes[n] = min(sizes[n], room // (len(long) - left) - 2)
                room -= sizes[n] + 2
        lines = []
        for row in grid:
            folded = [_wrapped(*both) or [""] for both in zip(row, sizes, strict=True)]
            for line in zip_longest(*folded, fillvalue=""):
                parts = [
                    " " * (sizes[n] - cell_len(part)) + part if right[n] else part
                    for n, part in enumerate(line)
                ]
                pads = [
                    " " * (size - cell_len(part)) for size, part in zip(sizes, parts, strict=True)
                ]
                lines.append("  ".join(map("".join, zip(parts, pads, strict=True))).rstrip())
        return "\n".join([*title, *lines])

    def _records(self, width: int) -> Iterator[str]:
        """Return rows as lines of a heading and a cell each."""
        for number, row in enumerate(self.rows):
            yield from [""] if number else []
            for head, cell in zip(self.columns, row, strict=True):
                text = f"{head}: {cell}" if head else cell
                yield from _wrapped(text, width, "  ") if cell else ()

    def to_html(self) -> str:
        """Make an HTML table of it; what stands in cells shows as text."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        lines = []
        for row in self.rows:
            kinds = (' class="n"' if self.is_right(n) else "" for n in range(len(row)))
            cells = (
                f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)
            )
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return wrap(text, max(width, 4), subsequent_indent=indent, break_on_hyphens=False)


@dataclass(frozen=True)
class Report:
    """Output of a command, for programs and for people. document: the JSON document. tables: what people
    read, in this order; a text is a line of its own. figures: pictures that were written. notes: remarks
    beside the result, such as what was left out. exit_code: of a command that prints it."""

    document: dict[str, Any]
    tables: Sequence[Table | str] = ()
    figures: Sequence[Path] = ()
    notes: Sequence[str] = ()
    exit_code: int = 0

    def __str__(self) -> str:
        """Write the tables and lines as plain text."""
        return "\n".join(p.to_text() if isinstance(p, Table) else p for p in self.tables)

    def to_html(self) -> str:
        """Make HTML of the tables and lines; names in it show as text."""
        return "".join(
            p.to_html() if isinstance(p, Table) else f"<p>{escape(p)}</p>" for p in self.tables if p
        )


class Reported(ABC):
    """Show an object as its report, as text and in a notebook."""

    @abstractmethod
    def report(self) -> Report:
        """Return what people read."""

    def __repr__(self) -> str:
        return str(self.report())

    def _repr_html_(self) -> str:
        return self.report().to_html()


class Glance(ABC):
    """Shows itself in a line, and in a notebook as a small table, by its facts."""

    @abstractmethod
    def _facts(self) -> list[tuple[str, str]]:
        """List what one wants to know at a glance, as pairs (name, text)."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}: {text}' for name, text in self._facts())})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self._facts()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


class PictureMenu(Glance):
    """List the pictures that an object can draw."""

    def _facts(self) -> list[tuple[str, str]]:
        """Name each picture, and say what it shows."""
        draw = [(name, one) for name, one in vars(type(self)).items() if not name.startswith("_")]
        return [(n, re.split(r"[.;:]\s", " ".join((f.__doc__ or "").split()))[0]) for n, f in draw]


def finite(value: Any) -> Any:
    """Make a value one that JSON can hold: infinite numbers and NaN become None, also within lists and
    mappings."""
    if type(value) is float:  # most are
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    # Those of NumPy are real numbers, too, which not every writer of JSON takes.
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value) if math.isfinite(value) else None
    return value


def written(name: str, value: Any) -> str:
    """Write the value of a field for people, by the unit in which its name ends; a dash for none."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (hasattr(value, "__len__") and not len(value)):
        return "no bound" if name == "bound_seconds" else "–"
    if name.endswith("_seconds"):
        return duration(value)
    if name.endswith("_ratio"):
        return percent(value)
    if isinstance(value, list | tuple):
        return " + ".join(map(str, value))
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def duration(seconds: float) -> str:
    """Write seconds in three digits and the unit that fits: 12.3 ms."""
    if seconds != seconds:
        return "no answer"
    if seconds == float("inf"):
        return "no bound"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{seconds / size:.3g} {unit}" if seconds / size < 1000 else f"{seconds:.0f} s"
    return f"{seconds:.3g} s"


def percent(ratio: float, digits: int = 1) -> str:
    """Write a ratio as a percentage; a dash for NaN."""
    return "–" if ratio != ratio else f"{100 * ratio:.{digits}f}%"
