"""Moments as foreign tables write them: ISO, seconds since 1970, days with slashes, names of months."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.quantities import NOTHING
from jostle.errors import UsageError

NO_TIME = np.iinfo(np.int64).min
_NONE = pa.array(sorted(NOTHING))
_CLOCK = r"\d\d:\d\d(:\d\d(\.\d{1,9})?)?"
_DAY = rf"\d{{4}}-\d\d-\d\d([T ]{_CLOCK})?"
_SLASHED = re.compile(
    r"(\d{1,4})[/.](\d{1,2})[/.](\d{1,4})"
    r"[ T,]*(?:(\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?\s*([AaPp][Mm])?"
)
# Readings of a clock in finer units than seconds are told by their size: 1e11 s is the year 5138.
FINER = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (0.0, 1.0))
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_UNTOLD = re.compile(r"\b(mon|tue|wed|thu|fri|sat|sun)[a-z]*\b,?|(?<=\d)[.,](?= )|@| [lxe]$")
_NAMED = re.compile(
    rf"(?:(\d{{1,2}})[ /-]({'|'.join(_MONTHS)})[a-z.]*|({'|'.join(_MONTHS)})[a-z.]* (\d{{1,2}}))"
    r"(?:[ /-](\d{4})(?=[ :]))?[ :](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?(?: (am|pm))?"
    r"(?: (utc|gmt|z|[+-]\d\d:?\d\d))?(?: (\d{4}))?"
)
DAY_DIGITS = (
    r"^(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])(([01]\d|2[0-3])([0-5]\d){2})?$"  # 20260131235959
)


def zone_named(name: str) -> tzinfo:
    """Return a time zone by its IANA name, such as Europe/Berlin. Raises UsageError."""
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"the time zone {name!r} is not known", fix="Give a name such as UTC or Europe/Berlin."
        ) from None


def times_of(column: Any, zone: str, order: str = "") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ((n,) int64 microseconds since 1970, NO_TIME where there is none; (n,) the same in the second
    pass of an hour that the zone has twice; (n,) bool: cannot be read).

    Cells are ISO 8601; numbers (seconds since 1970, or ms, us, ns by their size); days in eight digits, or
    fourteen with the time, where all numbers are so; days with slashes or dots whose order the column tells;
    or as ctime, mails and web servers write them. One without an offset is in the zone. order: `dm` or `md`,
    of days with slashes whose order the column does not tell.
    """
    text = pc.fill_null(
        pc.utf8_trim_whitespace(pa.array(column) if isinstance(column, list) else column), ""
    )
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    first, second = np.full(len(text), NO_TIME), np.full(len(text), NO_TIME)
    left = ~_flags(pc.is_in(pc.utf8_lower(text), value_set=_NONE))

    def in_zone(some: Any, ambiguous: str) -> Any:
        local = pc.replace_substring_regex(some, r"(\.\d{6})\d+$", r"\1").cast(pa.timestamp("us"))
        return pc.assume_timezone(local, zone, ambiguous=ambiguous, nonexistent="latest")

    def epoch(some: Any) -> Any:
        numbers = np.asarray(pc.replace_substring(some, ",", ".").cast(pa.float64()))
        units = np.select([numbers >= least for least, _ in FINER], [unit for _, unit in FINER])
        unit = np.median(units[numbers > 0]) if (numbers > 0).any() else 1.0
        is_other = (numbers == 0) | (units != unit)
        return pa.array(
            np.where(is_other, NO_TIME, np.round(numbers * unit * 1e6)).astype(np.int64)
        )

    def offset(some: Any) -> Any:
        return pc.replace_substring_regex(some, r"(\.\d{6})\d+", r"\1").cast(
            pa.timestamp("us", "UTC")
        )

    def digits(some: Any, ambiguous: str) -> Any:
        spelled = pc.replace_substring_regex(some, r"^(....)(..)(..)$", r"\1-\2-\3")
        form = r"^(....)(..)(..)(..)(..)(..)$", r"\1-\2-\3 \4:\5:\6"
        return in_zone(pc.replace_substring_regex(spelled, *form), ambiguous)

    numbers = pc.match_substring_regex(text, r"^\d+([.,]\d+)?$")
    is_spelled = pc.all(pc.match_substring_regex(text.filter(numbers), DAY_DIGITS)).as_py()
    ways: list[tuple[str, Callable[..., Any]]] = [
        *([(DAY_DIGITS, partial(digits, ambiguous="earliest"))] if is_spelled else []),
        (r"^\d{1,19}([.,]\d+)?([eE]\+?\d{1,2})?$", epoch),
        (f"^{_DAY}$", partial(in_zone, ambiguous="earliest")),
        (rf"^{_DAY} ?(Z|[+-]\d\d(:?\d\d)?)$", offset),
    ]
    for pattern, read in ways:
        at = np.flatnonzero(left & _flags(pc.match_substring_regex(text, pattern)))
        if len(at):
            some = text.take(pa.array(at))
            first[at] = second[at] = _moments(some, read)
            if isinstance(read, partial) and zone != "UTC":
                second[at] = _moments(some, partial(read.func, ambiguous="latest"))
            if read is epoch:  # 0 says that there is none
                left[at] = _flags(pc.match_substring_regex(some, "[1-9]"))
            left[at[first[at] != NO_TIME]] = False
    at = np.flatnonzero(left)
    if len(at):
        cells = text.take(pa.array(at)).to_pylist()
        first[at] = second[at] = _by_words(cells, zone, 0, order)
        if zone != "UTC":
            second[at] = _by_words(cells, zone, 1, order)
        left[at] = first[at] == NO_TIME
    return first, second, left


def seconds_of(column: Any, zone: str = "UTC") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the same in float64 seconds, NaN where there is none."""
    first, second, bad = times_of(column, zone)
    one, two = (np.where(some == NO_TIME, np.nan, some / 1e6) for some in (first, second))
    return one, two, bad


def moment_of(text: str, zone: str = "UTC") -> float:
    """Read a moment as seconds since 1970. Raises ValueError."""
    (value,), _, _ = seconds_of([text], zone)
    if np.isnan(value):
        raise ValueError(f"{text[:60]!r} is not a valid time")
    return float(value)


def _flags(mask: Any) -> np.ndarray:
    return np.asarray(pc.fill_null(mask, False)).astype(bool)


def _moments(some: Any, read: Callable[[Any], Any]) -> np.ndarray:
    """Return NO_TIME where a day is none."""
    try:
        values = read(some).cast(pa.int64())
    except pa.ArrowInvalid:
        values = pa.array([_one_time(cell, read) for cell in some.to_pylist()], pa.int64())
    return np.asarray(pc.fill_null(values, NO_TIME))


def _one_time(cell: str, read: Callable[[Any], Any]) -> int | None:
    try:
        return read(pa.array([cell])).cast(pa.int64())[0].as_py()
    except (ValueError, OverflowError):
        return None


def _by_words(cells: Sequence[str], zone: str, fold: int, order: str) -> np.ndarray:
    """Return days with slashes, and names of months."""
    place, order, known = zone_named(zone), _order(cells, order), dict[str, int]()
    for cell in dict.fromkeys(cells):
        try:
            moment = _slashed(cell, order) or _named(cell)
            if moment is not None:
                moment = moment if moment.tzinfo else moment.replace(tzinfo=place, fold=fold)
                known[cell] = int(
                    (moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1)
                )
        except (ValueError, OverflowError):
            continue
    return np.array([known.get(cell, NO_TIME) for cell in cells], np.int64)


def _order(cells: Sequence[str], usual: str) -> str:
    """Detect the order of day and month in dates with slashes: `dm`, `md`; usual if nothing tells, empty if
    cells contradict each other."""
    matches = [match for cell in dict.fromkeys(cells) if (match := _SLASHED.fullmatch(cell))]
    pairs = [(int(m[1]), int(m[2])) for m in matches if len(m[1]) < 3]
    is_day_first = any(one > 12 for one, _ in pairs) or any(
        "." in m[0].split(" ")[0] for m in matches
    )
    is_month_first = any(two > 12 for _, two in pairs)
    if not is_day_first and not is_month_first:
        return usual
    return "" if is_day_first and is_month_first else "dm" if is_day_first else "md"


def _slashed(cell: str, order: str) -> datetime | None:
    match = _SLASHED.fullmatch(cell)
    if match is None:
        return None
    one, two, three = int(match[1]), int(match[2]), int(match[3])
    if len(match[1]) == 4:
        year, month, day = one, two, three
    elif order or one == two:
        year, (day, month) = three, (one, two) if order == "dm" else (two, one)
    else:
        return None
    return _moment(year + (2000 if year < 100 else 0), month, day, *match.groups()[3:])


def _moment(year: int, month: int, day: int, *clock: str | None) -> datetime:
    """Put a moment together. clock: hour, minute, second, fraction, and am or pm where it says so."""
    hour, minute, second = (int(part or 0) for part in clock[:3])
    if clock[4]:
        hour = hour % 12 + (12 if clock[4].lower() == "pm" else 0)
    return datetime(
        year, month, day, hour, minute, second, int((clock[3] or "0").ljust(6, "0")[:6])
    )


def _named(cell: str) -> datetime | None:
    """Return None for a moment without a year, which could be of any."""
    match = _NAMED.fullmatch(" ".join(_UNTOLD.sub(" ", cell.lower()).split()))
    if match is None:
        return datetime.fromisoformat(cell)
    if bool(match[5]) == bool(match[12]):
        return None
    month = [*map(str, _MONTHS)].index(match[2] or match[3]) + 1
    moment = _moment(
        int(match[5] or match[12]), month, int(match[1] or match[4]), *match.groups()[5:10]
    )
    if match[11] is None:
        return moment
    sign = match[11] if match[11][0] in "+-" else "+0000"
    return moment.replace(tzinfo=datetime.strptime(sign, "%z").tzinfo)
