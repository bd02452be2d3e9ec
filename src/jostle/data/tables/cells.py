"""Cells of foreign tables: numbers, times and sizes with their units, lists of names.

Every reader takes what a CSV file, JSON or Arrow may hold, gives None for an empty cell, and raises
ValueError with a reason for people.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable
from typing import Any, TypeVar

from jostle.errors import UsageError

T = TypeVar("T")

SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "min": 60.0, "h": 3600.0}
BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
BYTES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_WITH_UNIT = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?\d+)?)\s*([a-zA-Zµ]*)\s*")
SEPARATOR = ";"


def asked(read: Callable[[Any, str], T], cell: Any, what: str, such_as: str) -> T:
    """Return what a person gives by an option. read: one of the readers below. Raises UsageError."""
    try:
        return read(cell, what)
    except ValueError as error:
        raise UsageError(str(error), fix=f"Such as {such_as}.") from None


def is_empty(cell: Any) -> bool:
    """Return whether a cell holds nothing: null, blank text, or the NaN that stands for null in some
    tables."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return True
    return isinstance(cell, float) and math.isnan(cell)  # as pandas has null


def text(cell: Any, what: str) -> str | None:
    """Return a name."""
    if is_empty(cell):
        return None
    if isinstance(cell, (dict, list, tuple, bool)):
        raise ValueError(f"{what} is {cell!r}, not a name")
    return str(cell).strip()


def float_of(cell: Any) -> float:
    """Read a number as Python's `float` does, without what only Python writes (1_000) or reads (digits of
    other scripts).

    Raises ValueError, TypeError.
    """
    if isinstance(cell, str) and ("_" in cell or not cell.isascii()):
        raise ValueError(f"{cell!r} is not a number")
    return float(cell)


def number(cell: Any, what: str, least: float = 0.0, *, above: bool = True) -> float | None:
    """Return a finite number, above `least` or at least that."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return None
    try:
        if isinstance(cell, (bool, dict, list)):
            raise ValueError
        value = float_of(cell)
    except (TypeError, ValueError):
        raise ValueError(f"{what} is {cell!r}, not a number") from None
    if not math.isfinite(value) or value < least or (above and value == least):
        side = "above" if above else "at least"
        raise ValueError(f"{what} is {cell}, not a finite number {side} {least:g}")
    return value


def seconds(cell: Any, what: str, *, unit: str | None = None) -> float | None:
    """Read seconds above 0: text with a unit (`20ms`), or, with `unit`, a number in it."""
    if isinstance(cell, str) and (match := _WITH_UNIT.fullmatch(cell)) and match[2]:
        if match[2] not in SECONDS:
            known = ", ".join(SECONDS)
            raise ValueError(f"{what} is {cell!r}, in a unit that is none of {known}")
        value = number(match[1], what)
        return None if value is None else value * SECONDS[match[2]]
    value = number(cell, what)
    if value is not None and unit is None:
        raise ValueError(f"{what} is {cell!r}, without a unit such as 20ms")
    return None if value is None else value * SECONDS[unit or "s"]


def size(cell: Any, what: str) -> float | None:
    """Read bytes, at least 0: a number, or text with a unit (`4GiB`)."""
    if isinstance(cell, str) and (match := _WITH_UNIT.fullmatch(cell)) and match[2]:
        if match[2].lower() not in BYTES:
            raise ValueError(f"{what} is {cell!r}, in a unit that is none of {', '.join(BYTES)}")
        value = number(match[1], what, above=False)
        return None if value is None else value * BYTES[match[2].lower()]
    return number(cell, what, above=False)


def slowdown(cell: Any, what: str) -> float | None:
    """Return a ratio of at least 1, also written 1.5x."""
    if isinstance(cell, str):
        cell = cell.strip().lower().removesuffix("x")
    return number(cell, what, 1.0, above=False)


def limit(cell: Any, what: str) -> tuple[float | None, float | None]:
    """Return (seconds, slowdown) of a limit written in either way: 20ms or 1.5x."""
    if isinstance(cell, str) and re.fullmatch(r"[0-9.eE+-]+\s*[xX]", cell.strip()):
        return None, slowdown(cell, what)
    return seconds(cell, what), None


def names(cell: Any, what: str) -> tuple[str, ...]:
    """Read names in a list, or in text, parted by semicolons; sorted, each once."""
    if is_empty(cell):
        return ()
    parts = cell.split(SEPARATOR) if isinstance(cell, str) else cell
    if not isinstance(parts, (list, tuple, set, frozenset)):
        raise ValueError(f"{what} is {cell!r}, not a list of names")
    if bad := [part for part in parts if not isinstance(part, str)]:
        raise ValueError(f"{what} holds {bad[0]!r}, not a name")
    different = {part.strip() for part in parts}
    return tuple(sorted(part for part in different if part))


def entries(cell: Any, what: str, separator: str = SEPARATOR) -> list[Any]:
    """Return the entries of a list: as such, as JSON or Python write it, or in text parted by semicolons or
    another separator."""
    if is_empty(cell):
        return []
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        written = written_list(cell)
        if written is None:
            raise ValueError(f"{what} is {cell[:200]!r}, which is not JSON")
        return written
    if isinstance(cell, str):
        return [part.strip() for part in cell.split(separator) if part.strip()]
    if hasattr(cell, "tolist"):  # NumPy, as pandas has lists of a Parquet file
        cell = cell.tolist()
    if not isinstance(cell, (list, tuple)):
        raise ValueError(f"{what} is {cell!r}, not a list")
    return list(cell)


def written_list(cell: str) -> list[Any] | None:
    """Read a list that JSON or, as pandas does in CSV, Python wrote as text. Returns None of other text."""
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            return list(read(text))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return None
