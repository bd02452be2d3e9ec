"""What a command shows: tables and sentences for people, one JSON document for programs.

Rooms that find something make a Report; the console prints it. Numbers are written the same way everywhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from numbers import Integral, Real
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Table:
    """columns: headings. rows: cells as text. right, wrapped: the numbers of the columns that are aligned to
    the right, and of those that may break into lines where a terminal is narrow."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int] = ()
    title: str = ""
    wrapped: Sequence[int] = ()

    @classmethod
    def of(
        cls,
        items: Iterable[Any],
        cells: Mapping[str, Callable[[Any], str]],
        right: Sequence[int] = (),
        title: str = "",
    ) -> Table:
        """A row for each item. cells: of each column, by its heading."""
        rows = [[cell(item) for cell in cells.values()] for item in items]
        return cls(list(cells), rows, right, title)

    def to_html(self) -> str:
        """Make an HTML table of it; what stands in cells shows as text."""
        head = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.columns)
        lines = []
        for row in self.rows:
            kinds = (' class="n"' if n in self.right else "" for n in range(len(row)))
            cells = (
                f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)
            )
            lines.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


@dataclass(frozen=True)
class Report:
    """document: the JSON document. tables: what people read, in this order; a text is a line of its own.
    figures: pictures that were written. notes: remarks beside the result, such as what was left out.
    exit_code: of a command that prints it."""

    document: dict[str, Any]
    tables: Sequence[Table | str] = ()
    figures: Sequence[Path] = ()
    notes: Sequence[str] = ()
    exit_code: int = 0


class Glance(ABC):
    """Shows itself in a line, and in a notebook as a small table, by its facts."""

    @abstractmethod
    def facts(self) -> list[tuple[str, str]]:
        """(name, text) of what one wants to know at a glance."""

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}: {text}' for name, text in self.facts())})"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(name)}</th>"
            f"<td style='text-align:left'>{escape(text)}</td></tr>"
            for name, text in self.facts()
        )
        return f"<table><caption>{escape(type(self).__name__)}</caption>{rows}</table>"


def finite(value: Any) -> Any:
    """As JSON can hold it, which has no infinity and no NaN: None for such a number, also within lists and
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


def duration(seconds: float) -> str:
    """Seconds in three digits and the unit that fits: 12.3 ms."""
    if seconds != seconds:
        return "no answer"
    if seconds == float("inf"):
        return "no bound"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            return f"{seconds / size:.3g} {unit}" if seconds / size < 1000 else f"{seconds:.0f} s"
    return f"{seconds:.3g} s"


def percent(ratio: float, digits: int = 1) -> str:
    """A ratio as a percentage; a dash where there is none."""
    return "–" if ratio != ratio else f"{100 * ratio:.{digits}f}%"
