"""Several recordings of `perf stat -I` at once, by a table that says what ran in which file on which CPU.

    file,cpu,workload,window,runtime
    solo-a.csv,0,a,,whole
    solo-b.csv,0,b,,whole
    pair.csv,0,a,first,2.31
    pair.csv,1,b,first,

Files lie beside the table. Runs of one window ran beside each other; rows of one file are one window also
where no window is named. cpu: one, or several as `0;1` or `0-3`, which are added up; without it a file is of
one run.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from jostle._tables import RAGGED, csv_rows, read_text
from jostle._tables.cells import float_of
from jostle.errors import BadData, UnknownName
from jostle.traces.counters._counters import Traces
from jostle.traces.readers._perf_stat import (
    PerfLine,
    counted_several_ways,
    lines_of,
    natural,
    trace_of,
)
from jostle.traces.readers._registry import RecordedRun, text_of

COLUMNS = ("file", "workload", "platform", "cpu", "beside", "window", "run_id", "runtime")
WHOLE = "whole"
MOST_CPUS = 4096
_HEAD = 4096


@dataclass(frozen=True)
class _Row:
    """where: the table and the line, for errors. cpus: (first, …) numbers, empty for the whole file."""

    where: str
    cpus: tuple[int, ...]
    file: str
    workload: str
    platform: str
    beside: tuple[str, ...]
    window: str
    run_id: str
    runtime: str


def is_manifest(path: Path) -> bool:
    """Whether its first line names columns, a file and a workload among them."""
    try:
        with path.open("rb") as file:
            head = text_of(file.read(_HEAD))
    except OSError:
        return False
    lines = [line for line in head.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and {"file", "workload"} <= {
        cell.strip().strip('"').lower() for cell in lines[0].split(",")
    }


def read_manifest(
    path: Path, platform: str | None = None, separator: str = ",", *, whole: bool = False
) -> Traces:
    """All runs of the table. platform: of rows that do not say. whole: runs that do not say how long they
    took ended with their recording. Raises UnreadableFile, BadData naming the line of the table or of a
    file."""
    rows = _with_windows(_rows(path, platform or ""))
    files: dict[str, list[PerfLine]] = {}
    for row in rows:
        if row.file not in files:
            files[row.file] = lines_of(path.parent / row.file, separator)
    several = counted_several_ways([line for lines in files.values() for line in lines])
    # Equal for all files, so that a program alone and beside others is known to run on the same core.
    places = {cpu: n for n, cpu in enumerate(sorted({row.cpus[0] for row in rows if row.cpus}))}
    traces = []
    for row in rows:
        lines = _of_cpus(files[row.file], row)
        seconds = _runtime(row)
        recorded = RecordedRun(
            row.workload,
            row.run_id,
            platform=row.platform,
            corunners=row.beside,
            window_id=row.window or None,
            runtime_seconds=seconds,
        )
        place = places[row.cpus[0]] if row.cpus else 0
        trace = trace_of(lines, recorded, str(path.parent / row.file), several, place)
        if row.runtime.lower() == WHOLE or (whole and seconds is None):
            trace = replace(trace, runtime_seconds=float(trace.time_seconds[-1]))
        if seconds is not None:
            # What begins after the run had ended is not its own: others have its CPU by then.
            begins = trace.time_seconds - trace.interval_seconds
            trace = trace.take(begins < seconds * (1 - 1e-9))
        traces.append(trace)
    return Traces.from_traces(traces)


def _rows(path: Path, platform: str) -> list[_Row]:
    where = str(path)
    # Lines of comments stay in the count of lines.
    lines = ["" if line.startswith("#") else line for line in read_text(path).splitlines()]
    table = csv_rows("\n".join(lines), where, ",")
    rows = [{name.lower(): cell.strip() for name, cell in row.items()} for row in table.rows]
    if not rows:
        raise BadData("it lists no file", where=where, fix="One line for each run.")
    for column in dict.fromkeys(name for row in rows for name in row):
        if column not in (*COLUMNS, RAGGED):
            raise UnknownName("column", column, COLUMNS, where=where)
    times = Counter(row.get("file") for row in rows)
    manifest = []
    for cells, number in zip(rows, table.numbers, strict=True):
        place = f"{where} line {number}"
        if RAGGED in cells:
            raise BadData(cells[RAGGED], where=place)
        row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | cells
        for name in ("file", "workload"):
            if not row[name]:
                raise BadData(f"no {name} is named", where=place)
        if not Path(row["file"]).name:
            raise BadData(f"{row['file']!r} is no file", where=place)
        ending = f"-{row['cpu'] or row['workload']}" if times[row["file"]] > 1 else ""
        beside = (name.strip() for name in re.split("[;+]", row.pop("beside")))
        row["run_id"] = row["run_id"] or f"{Path(row['file']).with_suffix('')}{ending}"
        row["platform"] = row["platform"] or platform
        cpus = _cpus(row.pop("cpu"), place)
        manifest.append(_Row(place, cpus, beside=tuple(sorted(filter(None, beside))), **row))
    again = [name for name, count in Counter(row.run_id for row in manifest).items() if count > 1]
    if again:
        raise BadData(
            f"{again[0]!r} stands for several runs",
            where=where,
            fix="Give each a run_id, or the CPU it ran on.",
        )
    return manifest


def _cpus(text: str, where: str) -> tuple[int, ...]:
    """`2`, `CPU2`, `0;1`, `0-3`."""
    numbers: list[int] = []
    for part in filter(None, (part.strip() for part in re.split("[;+ ]", text))):
        match = re.fullmatch(r"(?:CPU)?(\d{1,6})(?:-(\d{1,6}))?", part, re.IGNORECASE)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + MOST_CPUS:
            raise BadData(f"no CPUs: {text!r}", where=where, fix="Write 2, 0;1 or 0-3.")
        numbers += range(first, last + 1)
    return tuple(dict.fromkeys(numbers))


def _with_windows(rows: list[_Row]) -> list[_Row]:
    """Every row with its window and its co-runners: whom it shares a window with."""
    by_file: dict[str, set[str]] = {}
    for row in rows:
        by_file.setdefault(row.file, set()).add(row.workload)
    count = Counter(row.file for row in rows)
    windows: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        if not row.window and not row.beside and count[row.file] > 1:
            row = replace(row, window=str(Path(row.file).with_suffix("")))
        windows.setdefault((row.platform, row.window), []).append(row)
    complete = []
    for (_, window), members in windows.items():
        for row in members:
            if not window:
                if row.beside:
                    raise BadData(
                        "it ran beside others, but no window says with whom",
                        where=row.where,
                        fix="Give runs that were recorded together one window.",
                    )
                complete.append(row)
                continue
            others = tuple(sorted(other.workload for other in members if other is not row))
            if not others or (row.beside and row.beside != others):
                claimed = " + ".join(row.beside) or "others"
                raise BadData(
                    f"it ran beside {claimed}, but window {window} lists "
                    f"{' + '.join(others) or 'nobody else'}",
                    where=row.where,
                    fix="One line for each that ran in a window.",
                )
            complete.append(replace(row, beside=others))
    return complete


def _of_cpus(lines: list[PerfLine], row: _Row) -> list[PerfLine]:
    """Of the CPUs that a run had, to be added up; of a file that does not tell CPUs apart, all."""
    cores = sorted({line.core for line in lines}, key=natural)
    if not row.cpus:
        if len(cores) > 1:
            raise BadData(
                f"{row.file} tells {len(cores)} cores apart: {', '.join(cores[:8])}",
                where=row.where,
                fix="Say in the column cpu which of them the workload ran on.",
            )
        return lines
    own = [core for core in cores if core and natural(core)[-1] in row.cpus]
    numbers = {natural(core)[-1] for core in own}
    if cores == [""] or not numbers.issuperset(row.cpus):
        missing = sorted(set(row.cpus) - numbers)
        raise BadData(
            f"{row.file} does not tell CPU {', '.join(map(str, missing))}: it has "
            f"{', '.join(filter(None, cores)) or 'no CPUs'}",
            where=row.where,
            fix="Record with perf stat -A -C CPUS, or leave the column cpu empty.",
        )
    own_cores = set(own)
    return [replace(one, core="", of_thread=True) for one in lines if one.core in own_cores]


def _runtime(row: _Row) -> float | None:
    """Seconds, None where the row says none or `whole`."""
    if row.runtime.lower() in ("", WHOLE):
        return None
    try:
        seconds = float_of(row.runtime)
    except ValueError:
        seconds = np.nan
    if not 0 < seconds < np.inf:
        raise BadData(
            f"the runtime {row.runtime!r} is not a time above 0",
            where=row.where,
            fix="Seconds, whole where the run ended with the recording, or nothing.",
        )
    return seconds
