"""Cells of a log: times, node lists, and which workload a row is of, a column at a time."""

from __future__ import annotations

import re
import string
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from jostle.data.runs._name_columns import filled
from jostle.data.tables.arrow_compute import pc
from jostle.errors import UnknownName, UsageError

NO_TIME = np.iinfo(np.int64).min
_NONE = pa.array(["", "Unknown", "None", "N/A", "null"])
_DAY = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_MOST_NODES = 100_000


def zone_of(name: str) -> str:
    """The name of a time zone that is known. Raises UsageError."""
    try:
        return ZoneInfo(name).key
    except (ValueError, OSError, KeyError) as error:
        raise UsageError(
            f"unknown time zone {name!r}: {error}", fix="Such as Europe/Berlin."
        ) from None


def times_of(column: Any, zone: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """((n,) int64 microseconds since 1970, NO_TIME where there is none; (n,) the same in the second pass of
    an hour that the zone has twice; (n,) bool: cannot be read).

    Cells are ISO 8601, or seconds since 1970; one without an offset is in the zone.
    """
    text = pc.fill_null(pc.utf8_trim_whitespace(column), "")
    first, second = np.full(len(text), NO_TIME), np.full(len(text), NO_TIME)
    left = ~filled(pc.is_in(text, value_set=_NONE), False).astype(bool)

    def in_zone(some: Any, ambiguous: str) -> Any:
        local = some.cast(pa.timestamp("us"))
        return pc.assume_timezone(local, zone, ambiguous=ambiguous, nonexistent="latest")

    ways: list[tuple[str, Callable[[Any], Any]]] = [
        (r"^\d{1,11}(\.\d+)?$", lambda some: pc.round(pc.multiply(some.cast(pa.float64()), 1e6))),
        (f"^{_DAY}$", partial(in_zone, ambiguous="earliest")),
        (rf"^{_DAY}(Z|[+-]\d\d(:?\d\d)?)$", lambda some: some.cast(pa.timestamp("us", "UTC"))),
    ]
    for pattern, read in ways:
        at = np.flatnonzero(left & filled(pc.match_substring_regex(text, pattern), False))
        if len(at):
            some = text.take(pa.array(at))
            first[at] = second[at] = _moments(some, read)
            if isinstance(read, partial) and zone != "UTC":
                second[at] = _moments(some, partial(in_zone, ambiguous="latest"))
            left[at[first[at] != NO_TIME]] = False
    return first, second, left


def _moments(some: Any, read: Callable[[Any], Any]) -> np.ndarray:
    """NO_TIME where a day is none."""
    try:
        values = read(some).cast(pa.int64())
    except pa.ArrowInvalid:
        values = pa.array([_one_time(cell, read) for cell in some.to_pylist()], pa.int64())
    return filled(values, NO_TIME)


def _one_time(cell: str, read: Callable[[Any], Any]) -> int | None:
    try:
        datetime.fromisoformat(cell).astimezone(UTC)
        return read(pa.array([cell])).cast(pa.int64())[0].as_py()
    except (ValueError, OverflowError):
        return None


def spans_of(column: Any) -> np.ndarray:
    """(n,) float64 seconds of `[D-]HH:MM:SS` or of plain seconds; NaN where it is neither."""

    def read(cell: str | None) -> float:
        match = re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)|(\d+)", cell or "")
        if match is None:
            return np.nan
        days, hours, minutes, seconds, plain = (int(part or 0) for part in match.groups())
        return float(plain + 86_400 * days + 3600 * hours + 60 * minutes + seconds)

    return np.array(_by_value(column, read), np.float64)


def in_one_pass(
    starts: Sequence[np.ndarray], ends: Sequence[np.ndarray], took: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(start, end, whether they are not as far apart as the job took, whether another pass would do as well)
    of n jobs. starts, ends: in the first and the second pass of an hour that the clock has twice, as
    `times_of` gives them. took: microseconds, NaN where it is not known."""
    is_both = (starts[0] != NO_TIME) & (ends[0] != NO_TIME)
    is_known = is_both & np.isfinite(took)
    start, end = starts[0].copy(), ends[0].copy()
    is_found, unsure = np.zeros(len(took), bool), np.zeros(len(took), bool)
    for begin, until in ((0, 0), (0, 1), (1, 1)):
        length = ends[until].astype(float) - starts[begin]
        fits = np.where(is_known, np.abs(length - took) <= 1.5e6, is_both & (length > 0))
        is_other = (starts[begin] != start) | (ends[until] != end)
        unsure |= is_found & fits & is_other
        start, end = (
            np.where(fits & ~is_found, one, now)
            for one, now in ((starts[begin], start), (ends[until], end))
        )
        is_found |= fits
    # One that still runs has no end.
    unsure |= (ends[0] == NO_TIME) & (starts[0] != starts[1])
    return start, end, is_known & ~is_found, unsure


def nodes_of(text: str) -> tuple[str, ...]:
    """The nodes of a list such as `rack[1-2]n[01-03,07],gpu1`; () where it is none. Raises ValueError."""
    names: list[str] = []
    for part in re.split(r",(?![^\[]*\])", text):
        pieces = [_ranges(piece) for piece in re.split(r"(\[[^\]]*\])", part) if piece]
        if np.prod([len(piece) for piece in pieces], dtype=float) + len(names) > _MOST_NODES:
            raise ValueError(f"over {_MOST_NODES} nodes")
        names += ["".join(one).strip() for one in product(*pieces)] if pieces else []
    return tuple(name for name in names if name and name != "None assigned")


def _ranges(piece: str) -> list[str]:
    if not piece.startswith("["):
        if "[" in piece or "]" in piece:
            raise ValueError("brackets that do not close")
        return [piece]
    numbers: list[str] = []
    for part in piece[1:-1].split(","):
        first, _, last = part.strip().partition("-")
        if not (first.isdecimal() and (last or first).isdecimal()):
            raise ValueError(f"{part!r} is not a number")
        if int(last or first) - int(first) > _MOST_NODES:
            raise ValueError(f"over {_MOST_NODES} nodes")
        width = len(first) if first.startswith("0") else 0
        numbers += [f"{n:0{width}d}" for n in range(int(first), int(last or first) + 1)]
    return numbers


class WorkloadRule:
    """What a row is a run of: a column, or text with columns in braces, each with a regular expression if
    need be, of which the first group counts: `{User}/{JobName:^[a-z]+}`. not_matched: how many rows an
    expression did not fit, whose cells count whole. Raises UsageError."""

    def __init__(self, rule: str) -> None:
        self.not_matched = 0
        try:
            self._parts = list(string.Formatter().parse(rule if "{" in rule else f"{{{rule}}}"))
            self._patterns = [re.compile(spec) if spec else None for *_, spec, _ in self._parts]
        except (ValueError, re.error) as error:
            raise UsageError(
                f"the rule {rule!r} of workloads cannot be read: {error}",
                fix="A column, or such as {user}/{name:^[a-z]+}.",
            ) from None
        self.columns = tuple(field for _, field, *_ in self._parts if field)
        if not self.columns:
            raise UsageError(f"the rule {rule!r} of workloads names no column")

    def names(self, cells: Mapping[str, Any], where: str) -> Any:
        """(n,) text. cells: columns by name, in any case. Raises UnknownName."""
        known = {name.lower(): column for name, column in cells.items()}
        pieces: list[Any] = []
        for (literal, field, *_), pattern in zip(self._parts, self._patterns, strict=True):
            if literal:
                pieces.append(pa.scalar(literal))
            if field is None:
                continue
            if field.lower() not in known:
                raise UnknownName("`workload` column", field, list(cells), where=where)
            pieces.append(self._cut(known[field.lower()], pattern))
        whole = pc.binary_join_element_wise(
            *pieces, "", null_handling="replace", null_replacement=""
        )
        return pc.if_else(pc.equal(pc.utf8_trim_whitespace(whole), ""), "no name", whole)

    def _cut(self, column: Any, pattern: re.Pattern[str] | None) -> Any:
        if pattern is None:
            return column

        def read(cell: str | None) -> tuple[str, bool]:
            match = pattern.search(cell or "")
            if match is None:
                return cell or "", False
            return (match[1] or "" if pattern.groups else match[0]), True

        pairs = _by_value(column, read)
        self.not_matched += sum(not good for _, good in pairs)
        return pa.array([name for name, _ in pairs], pa.string())


def _by_value(column: Any, read: Callable[[str | None], Any]) -> list[Any]:
    """What `read` gives of each cell, asked once for each value."""
    encoded = pc.dictionary_encode(column)
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    values = [read(value) for value in encoded.dictionary.to_pylist()]
    nothing = read(None)
    return [nothing if code is None else values[code] for code in encoded.indices.to_pylist()]
