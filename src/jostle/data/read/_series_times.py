"""Moments as people write them, and how a time without an end is cut into runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo

import numpy as np

from jostle.data.tables.moments import moment_of
from jostle.data.tables.quantities import duration_of
from jostle.data.traces._traces import Trace, Traces
from jostle.errors import BadData, UsageError

_MOST_PIECES = 1_000_000


@dataclass(frozen=True)
class Piece:
    """A run cut out of a longer time. label: unique. begin, end: seconds since 1970. is_unsure: whether it
    may have been an hour later."""

    label: str
    begin_seconds: float
    end_seconds: float
    is_unsure: bool = False


def query_moment(text: str, zone: tzinfo, now_seconds: float) -> float:
    """Return the same, or `now`, or so long before it: -6h, -7d. Raises UsageError."""
    if text.strip() == "now":
        return now_seconds
    if text.strip().startswith("-"):
        return now_seconds - length_of(text.strip()[1:])
    try:
        return moment_of(text, str(zone))
    except (ValueError, OverflowError):
        raise UsageError(
            f"{text!r} is not a valid time",
            fix="Give seconds since 1970, 2026-03-01T12:00:00, now, or -6h for six hours ago.",
        ) from None


def length_of(text: str) -> float:
    """Read the seconds of a length: 15, 15s, 5m, 6h, 7d. Raises UsageError."""
    try:
        seconds = duration_of(f"{text.strip()}s" if text.strip()[-1:].isdigit() else text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"{text!r} is no length of time", fix="Give such as 15s, 5m, 6h or 7d.")
    return seconds


def pieces_between(first: float, last: float, cut: str, zone: tzinfo) -> list[Piece]:
    """Return what a time is cut into: by `day`, `hour` or `minute` of the zone's clock, or by a length such
    as 15m (from 1970 on, in UTC). Raises UsageError for any other, and for more than a million."""
    if cut == "day":
        return _days(first, last, zone)
    length = {"hour": 3600.0, "minute": 60.0}.get(cut) or length_of(cut)
    if (last - first) / length > _MOST_PIECES:
        raise UsageError(
            f"the cut {cut!r} gives more than {_MOST_PIECES} runs", fix="Cut longer ones."
        )
    shift = 0.0
    if cut == "hour":  # zones are off by quarters of an hour
        offset = datetime.fromtimestamp(first, zone).utcoffset() or timedelta()
        shift = offset.total_seconds() % length
    begins = np.arange(np.floor((first + shift) / length), np.ceil((last + shift) / length))
    return [
        Piece(
            _label(begin * length - shift, zone),
            begin * length - shift,
            (begin + 1) * length - shift,
        )
        for begin in begins.tolist()
    ]


def _days(first: float, last: float, zone: tzinfo) -> list[Piece]:
    if (last - first) / 86400 > _MOST_PIECES:
        raise UsageError(f"there are more than {_MOST_PIECES} days", fix="Check the times.")
    day = datetime.fromtimestamp(first, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    pieces: list[Piece] = []
    while day.timestamp() < last:
        after = (day + timedelta(days=1)).replace(tzinfo=zone)
        pieces.append(Piece(f"{day:%Y-%m-%d}", day.timestamp(), after.timestamp()))
        day = after
    return pieces


def _label(seconds: float, zone: tzinfo) -> str:
    text = datetime.fromtimestamp(seconds, zone).isoformat(timespec="milliseconds")
    return re.sub(r"(:00)?\.000", "", text)


def in_line_order(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, int]:
    """Return ((n,) moments in the order of their lines, how many of them may be an hour later). first,
    second: in either pass of an hour that a clock has twice: where it has gone back once, the second
    begins."""
    moments, unsure = first.copy(), 0
    twice = np.flatnonzero(first != second)
    for part in np.split(twice, np.flatnonzero(np.diff(twice) > 1) + 1):
        back = np.flatnonzero(np.diff(first[part]) <= 0)
        if len(back) == 1:
            later = part[back[0] + 1 :]
            moments[later] = second[later]
        else:
            unsure += len(part)
    return moments, unsure


def pieces_of(
    labels: Sequence[str], begins: Sequence[np.ndarray], ends: Sequence[np.ndarray], where: str
) -> list[Piece]:
    """Return requests as pieces: (n,) begins and ends in either pass of an hour that a clock has twice.
    Raises BadData for one that ends before it begins."""
    crosses = (ends[0] <= begins[0]) & (ends[1] > begins[0])
    unsure = ~crosses & ((begins[0] != begins[1]) | (ends[0] != ends[1]))
    begin, end = begins[0], np.where(crosses, ends[1], ends[0])
    wrong = np.flatnonzero(~(end > begin))
    if len(wrong):
        raise BadData(
            f"{len(wrong)} requests do not end after they begin, the first is {labels[wrong[0]]!r}",
            where=where,
        )
    columns = labels, begin.tolist(), end.tolist(), unsure.tolist()
    return [Piece(*one) for one in zip(*columns, strict=True)]


def cut_traces(traces: Traces, length_seconds: float) -> Traces:
    """Return every trace as runs of so many seconds; what is left at the end, shorter than half of one, is
    left out.

    A sample belongs to the run in which it ends. Raises BadData for a length that no trace has two of.
    """
    runs: list[Trace] = []
    for trace in traces:
        # A hair of slack: samples that end where a run does are its last.
        numbers = np.ceil(trace.time_seconds / length_seconds - 1e-6).astype(np.int64) - 1
        for number in np.unique(numbers).tolist():
            mine = numbers == number
            part = trace.take(mine)
            times = part.time_seconds - number * length_seconds
            if number and times[-1] < length_seconds / 2:
                continue
            ending = f"-{number:04d}"
            runs.append(
                replace(
                    part,
                    run_id=trace.run_id + ending,
                    window_id=trace.window_id and trace.window_id + ending,
                    runtime_seconds=float("nan"),
                    time_seconds=times,
                )
            )
    if len(runs) < 2 * len(traces):
        raise BadData(
            f"the recording is shorter than two runs of {length_seconds:g} s",
            fix="Record longer, or cut shorter runs.",
        )
    return Traces.from_traces(runs)
