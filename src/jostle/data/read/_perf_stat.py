"""Traces from `perf stat -I`: its lines with separators (`-x,`) and as JSON (`-j`).

    perf stat -I 10 -x, -e instructions,cache-misses -o FILE -- CMD       (also -j; -A, --per-core)

Times are perf's own, whose intervals drift: a sample's length is the distance to the one before. An
event becomes the counter `perf_` with its name in small letters; units become SI (a task-clock in
milliseconds is `perf_task_clock_ns`). `<not counted>` and `<not supported>` are null. Where perf took
turns with its counters the value is its estimate, and `<counter>_running_ratio` the share of the time
it counted. Modifiers (`:u`, `:k`) are part of a counter's name where an event stands there with several,
and `:k` always is: what the kernel did is not what the program did. Threads (`--per-thread`) are added
up. Lines that hold nothing but a metric, made of the counts above it, are passed over.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.data.read._trace_readers import RecordedRun
from jostle.data.tables._read_table import read_text
from jostle.data.tables.cells import float_of
from jostle.data.traces._traces import Trace, Traces
from jostle.errors import BadData

name = "perf"
_SCALES = {"": (1.0, ""), "msec": (1e6, "_ns"), "ns": (1.0, "_ns"), "Bytes": (1.0, "_bytes")}
_SCALES |= {"MiB": (2.0**20, "_bytes"), "Joules": (1.0, "_joules")}
_MISSING = ("<not counted>", "<not supported>")
_FEWEST_FIELDS = 4
KERNEL = "k"


@dataclass(frozen=True)
class PerfLine:
    """A count of one event in one interval. value: NaN where not available. running_ratio: of the time, NaN
    if untold."""

    seconds: float
    core: str
    counter: str
    value: float
    running_ratio: float
    modifier: str = ""
    of_thread: bool = False


def read(path: Path, recording: RecordedRun, separator: str = ",") -> Traces:
    """Return one run, lines or JSON. separator: what perf was given with -x.

    Output by core (`-A`, `--per-core`, `--per-socket`) or cgroup gives a trace for each, in their order.
    Raises UnreadableFile, BadData naming the line that cannot be read, or without a platform.
    """
    lines = lines_of(path, separator)
    several = counted_several_ways(lines)
    cores = sorted({line.core for line in lines}, key=lambda core: (natural(core), core))
    each = [[line for line in lines if line.core == core] for core in cores]
    return Traces.from_traces(
        [trace_of(own, recording, str(path), several, n) for n, own in enumerate(each)]
    )


def lines_of(path: Path, separator: str) -> list[PerfLine]:
    """Return all that was counted. Raises UnreadableFile, BadData."""
    where = str(path)
    if not separator:
        raise BadData("the separator is empty", where=where, fix="Give what perf had after -x.")
    text = read_text(path)
    first = next((line for line in text.splitlines() if line.strip() and line[0] not in "#{"), "")
    if separator == "," and first.count(";") > 3:
        separator = ";"
    if separator != ",":  # then a comma inside a number is a decimal one
        text = re.sub(r"(?<=\d),(?=\d)", ".", text)
    lines = list(_lines(text, where, separator))
    if not lines:
        raise BadData(
            "it holds no intervals",
            where=where,
            fix="Record with: perf stat -I 10 -x, -e instructions -o FILE -- CMD",
        )
    return lines


def trace_of(
    lines: Sequence[PerfLine],
    recording: RecordedRun,
    where: str,
    several: Collection[str] = (),
    number: int = 0,
) -> Trace:
    """Return one run. several: counters of events that were counted with several modifiers. number: of its
    core. Raises BadData."""
    if not recording.platform:
        raise BadData("it does not say where it was counted", where=where, fix="Say `platform`.")
    times = np.array(sorted({line.seconds for line in lines}))
    counters: dict[str, np.ndarray] = {}
    for line in lines:
        at = int(np.searchsorted(times, line.seconds))
        counter = line.counter
        if line.modifier and (counter in several or line.modifier == KERNEL):
            counter = f"{counter}_{line.modifier.lower()}"
        for name, value in (
            (counter, line.value),
            (f"{counter}_running_ratio", line.running_ratio),
        ):
            column = counters.setdefault(name, np.full(len(times), np.nan))
            if np.isfinite(column[at]) and line.of_thread:
                if name == counter and np.isfinite(value):
                    value += column[at]
                else:
                    value = np.fmin(column[at], value)
            elif np.isfinite(column[at]):
                raise BadData(
                    f"{name} stands twice at {line.seconds} s"
                    + (f" for {line.core}" if line.core else ""),
                    where=where,
                    fix="One file holds one recording.",
                )
            column[at] = value
    for name in [name for name in counters if name.endswith("_running_ratio")]:
        share = counters[name]
        if not np.any(share < 1):  # always counted, or never: the counter itself says so
            del counters[name]
    seconds = recording.runtime_seconds
    return Trace(
        run_id=recording.run_id,
        core=number,
        workload=recording.workload,
        platform=recording.platform,
        corunners=recording.corunners,
        window_id=recording.window_id,
        runtime_seconds=float("nan") if seconds is None else seconds,
        time_seconds=times,
        interval_seconds=np.diff(times, prepend=0.0),
        counters=counters,
    )


def counted_several_ways(lines: Iterable[PerfLine]) -> set[str]:
    """Return the counters of events that are listed with several modifiers."""
    ways: dict[str, set[str]] = {}
    for line in lines:
        ways.setdefault(line.counter, set()).add(line.modifier)
    return {counter for counter, modifiers in ways.items() if len(modifiers) > 1}


def _lines(text: str, where: str, separator: str) -> Iterator[PerfLine]:
    for number, whole in enumerate(text.splitlines(keepends=True), start=1):
        line = whole.strip()
        if not line or line.startswith("#"):
            continue
        place = f"{where} line {number}"
        if _is_metric_alone(line, separator):
            continue
        if line.startswith(f"time{separator}"):
            raise BadData(
                "it holds metrics alone, no counts (--metric-only)",
                where=place,
                fix="Record without --metric-only: perf stat -I 10 -x, -e instructions -o FILE -- CMD",
            )
        try:
            if whole[-1] not in "\r\n" and line[0] != "{":
                raise ValueError  # perf ends every line
            one = _line(line, separator)
        except (ValueError, RecursionError, OverflowError):
            raise BadData(
                f"not a line of perf stat -I: {line[:80]!r}",
                where=place,
                fix="Record with -I and -x; where numbers have decimal commas, in LC_ALL=C or with -x;"
                if re.match(r"\d+,\d{9},", line)
                else "Record with -I and -x, or -j; remove a line that was cut off.",
            ) from None
        if not (0 < one.seconds < float("inf")) or one.value < 0 or np.isinf(one.value):
            text = "a time or count is not a number from 0 up"
            raise BadData(text, where=place, fix="Remove a line that was cut off.")
        yield one


def _line(text: str, separator: str) -> PerfLine:
    """Raises ValueError for what is none."""
    try:
        found = _of_json(text) if text.startswith("{") else _of_fields(text.split(separator))
        return _perf_line(found)
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(str(error)) from None


def _is_metric_alone(text: str, separator: str) -> bool:
    """Return whether it holds nothing but a metric: no count, unit or event before it."""
    if text.startswith("{"):
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return False
        return isinstance(event, dict) and "metric-value" in event and "event" not in event
    fields = [field.strip() for field in text.split(separator)]
    if len(fields) < _FEWEST_FIELDS + 2 or not _is_count(fields[0]) or not _is_count(fields[-2]):
        return False
    rest = fields[1:-2]
    if re.match(r"(CPU|S\d|N\d)", rest[0]) or _is_thread(rest[0]):
        rest = rest[1:]
    if rest and rest[0].isdigit() and len(rest) > _FEWEST_FIELDS:
        rest = rest[1:]  # how many cores are added up
    return bool(fields[-1]) and not any(rest)


# Time, core, value, unit, event, share of the time, and whether it is of a thread.
_Fields = tuple[object, str, str, str, str, object, bool]


def _of_json(line: str) -> _Fields:
    event = json.loads(line)
    if not all(isinstance(event[key], str) for key in ("unit", "event")):
        raise ValueError
    core = next((str(event[k]) for k in ("cpu", "core", "die", "socket", "node") if k in event), "")
    value, running = str(event["counter-value"]), event.get("pcnt-running")
    fields = event["interval"], core, value, event["unit"], event["event"]
    return *fields, running, "thread" in event


def _of_fields(fields: list[str]) -> _Fields:
    """time[,core[,how many] or thread],value,unit,event,run time,share of it, ..."""
    if len(fields) < _FEWEST_FIELDS:
        raise ValueError
    core, rest = "", fields[1:]
    if re.match(r"(CPU|S\d|N\d)", rest[0]):
        core, rest = rest[0], rest[1:]
        if not core.startswith("CPU"):
            rest = rest[1:]
    # A thread is its command's name and a number: no count, and a count comes after it.
    of_thread = len(rest) > _FEWEST_FIELDS and _is_thread(rest[0]) and _is_count(rest[1])
    if of_thread:
        rest = rest[1:]
    if len(rest) > 3 and re.search("[A-Za-z/]", rest[3]):  # counted of a cgroup
        core = f"{core}{rest.pop(3)}"
    running = rest[4] if len(rest) > 4 else None
    return fields[0], core, rest[0], rest[1], rest[2], running, of_thread


def _is_thread(text: str) -> bool:
    return re.fullmatch(r"\s*\S.*-\d+\s*", text) is not None and not _is_count(text)


def _is_count(text: str) -> bool:
    return text in _MISSING or re.fullmatch(r"\s*\d+(\.\d+)?\s*", text) is not None


def _perf_line(fields: _Fields) -> PerfLine:
    seconds, core, value, unit, event, running, of_thread = fields
    scale, ending = _SCALES.get(unit, (1.0, f"_{_plain(unit)}"))
    name = _plain(re.sub(r":[ukhGHp]+$", "", event))
    modifier = re.sub(r"^.*?(:([ukhGHp]+))?$", r"\2", event)
    if not name:
        raise ValueError
    missing = value in _MISSING
    count = float("nan") if missing else float_of(value) * scale
    if math.isnan(count) and not missing:
        raise ValueError
    share = float("nan") if missing or running in (None, "") else float_of(running) / 100
    counter, modifier = f"perf_{name}{ending}", re.sub("[^ukh]", "", modifier)
    return PerfLine(float_of(seconds), core, counter, count, share, modifier, of_thread)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def natural(core: str) -> list[int]:
    # At most so many digits: Python reads no more than some thousands, and no machine has such cores.
    return [int(digits) for digits in re.findall(r"[0-9]{1,18}", core)]
