"""When jobs come and how long they stay: drawn with a seed, or from the files of public cluster traces.

Layouts as their publishers document them: Alibaba cluster-trace-v2018 (batch_task) and gpu-v2020
(pai_task_table), without headings, and gpu-v2023 (openb_pod_list); Google ClusterData 2011 (task_events) and
2019 (instance_events); Azure Public Dataset V1 and V2 (vmtable) and AzureTracesForPacking2020 (vm); Microsoft
Philly (cluster_job_log); SenseTime Helios (cluster_log). Only times are taken from them: none names workloads
that were measured, so measured ones are drawn onto them.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from jostle._tables import json_or_lines
from jostle.errors import BadData, UnreadableFile, UsageError

SPREAD = (
    1.2  # of the logarithm of how long drawn jobs stay: a few stay very long, as in public traces
)
DAY = 86_400.0
MOST_MICROSECONDS = 2**62  # what stands for after the end of a Google trace


@dataclass(frozen=True)
class Arrivals:
    """n jobs, ascending in time. seconds: (n,) since the first. stay_seconds: (n,) above 0. dropped: rows
    that say no such times, as of jobs that never ran."""

    seconds: np.ndarray
    stay_seconds: np.ndarray
    dropped: int = 0

    def __len__(self) -> int:
        return len(self.seconds)

    @classmethod
    def of(cls, pairs: Iterable[tuple[float, float] | None], where: str) -> Arrivals:
        """pairs: (arrival, stay), None where a row has none. Raises BadData where nothing is left."""
        rows = list(pairs)
        good = np.array(
            [
                pair
                for pair in rows
                if pair is not None and all(np.isfinite(pair)) and pair[0] >= 0 and pair[1] > 0
            ]
        ).reshape(-1, 2)
        if not len(good):
            raise BadData("no row says when a job came and how long it stayed", where=where)
        good = good[np.argsort(good[:, 0], kind="stable")]
        return cls(good[:, 0] - good[0, 0], good[:, 1], len(rows) - len(good))

    def take(self, jobs: int) -> Arrivals:
        """The first ones."""
        return Arrivals(self.seconds[:jobs], self.stay_seconds[:jobs], self.dropped)

    def at_load(self, nodes: float) -> Arrivals:
        """With times between arrivals stretched so that the jobs, alone, keep so many nodes busy."""
        span = float(self.seconds[-1]) if len(self) > 1 else 0.0
        if span <= 0:
            return self
        wanted = float(self.stay_seconds.sum()) / nodes
        return Arrivals(self.seconds * (wanted / span), self.stay_seconds, self.dropped)


def drawn_arrivals(jobs: int, seed: int, stay_seconds: float = 3600.0) -> Arrivals:
    """A Poisson process of jobs whose stays are log-normal around the median `stay_seconds`."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(1.0, jobs)
    return Arrivals(np.cumsum(gaps) - gaps[0], stay_seconds * random.lognormal(0.0, SPREAD, jobs))


@dataclass(frozen=True)
class TraceColumns:
    """A table of jobs. come, go: columns, by name, or by number where there are no headings. unit: of the
    times, in seconds; None for dates. stay: a column instead of go. fallback: a column instead of come."""

    come: str | int
    go: str | int | None = None
    unit: float | None = 1.0
    stay: str | int | None = None
    fallback: str | int | None = None

    def pairs(self, rows: Iterable[Any]) -> Iterator[tuple[float, float] | None]:
        for row in rows:
            come, go = self._time(row, self.come), self._time(row, self.go)
            if come is None:
                come = self._time(row, self.fallback)
            stay = self._number(row, self.stay)
            if stay is None and come is not None and go is not None:
                begin = self._time(row, self.fallback)
                stay = go - (come if begin is None else begin)
            yield None if come is None or stay is None else (come, stay)

    def _time(self, row: Any, column: str | int | None) -> float | None:
        if self.unit is not None:
            return self._number(row, column, self.unit)
        cell = _cell(row, column)
        return None if not cell else _date(str(cell))

    @staticmethod
    def _number(row: Any, column: str | int | None, unit: float = 1.0) -> float | None:
        try:
            return float(_cell(row, column)) * unit
        except (TypeError, ValueError):
            return None


def _cell(row: Any, column: str | int | None) -> Any:
    if column is None:
        return None
    if isinstance(column, int):
        return row[column] if column < len(row) else None
    return row.get(column)


def _date(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except ValueError:
        return None


TABLES = {
    "plain": TraceColumns("arrival_seconds", stay="stay_seconds"),
    "alibaba-2018": TraceColumns(5, 6),
    "alibaba-gpu-2020": TraceColumns(4, 5),
    "alibaba-gpu-2023": TraceColumns("creation_time", "deletion_time", fallback="scheduled_time"),
    "azure-vm": TraceColumns(3, 4),
    "azure-packing-2020": TraceColumns("starttime", "endtime", unit=DAY),
    "helios": TraceColumns("submit_time", "end_time", unit=None, stay="duration"),
}


def _philly(jobs: Any) -> Iterator[tuple[float, float] | None]:
    """Jobs with attempts; a job stays as long as all of them took."""
    for job in jobs:
        try:
            stays = [
                (_date(one["end_time"]) or np.nan) - (_date(one["start_time"]) or np.nan)
                for one in job["attempts"]
                if one.get("start_time") and one.get("end_time")
            ]
            come = _date(job["submitted_time"])
        except (KeyError, TypeError, AttributeError):
            yield None
            continue
        yield None if come is None else (come, float(np.nansum(stays)))


def _events(
    rows: Iterable[tuple[Any, Any, Any]], come: tuple[str, ...], begin: str, go: tuple[str, ...]
) -> Iterator[tuple[float, float] | None]:
    """Google's events: (who, microseconds, kind); from the first arrival, and the last begin to the end."""
    came: dict[Any, float] = {}
    began: dict[Any, float] = {}
    for who, at, kind in rows:
        try:
            seconds = float(at) * 1e-6
        except (TypeError, ValueError):
            continue
        kind = str(kind)
        if not 0 < seconds < MOST_MICROSECONDS * 1e-6:
            continue
        if kind in come:
            came.setdefault(who, seconds)
        elif kind == begin:
            began[who] = seconds
        elif kind in go and who in began:
            yield came.pop(who, began[who]), seconds - began.pop(who)


def _google_2011(lines: Iterable[list[str]]) -> Iterator[tuple[float, float] | None]:
    rows = (((row[2], row[3]), row[0], row[5]) for row in lines if len(row) > 5)
    return _events(rows, ("0",), "1", ("2", "3", "4", "5", "6"))


def _google_2019(rows: Iterable[dict[str, Any]]) -> Iterator[tuple[float, float] | None]:
    kinds = ("SUBMIT", "QUEUE", "ENABLE", "SCHEDULE", "EVICT", "FAIL", "FINISH", "KILL", "LOST")
    number = {name: str(code) for code, name in enumerate(kinds)}
    told = (
        (
            (row.get("collection_id"), row.get("instance_index")),
            row.get("time"),
            number.get(str(row.get("type")), str(row.get("type"))),
        )
        for row in rows
    )
    return _events(told, ("0",), "3", ("4", "5", "6", "7", "8"))


FORMATS = (*TABLES, "google-2011", "google-2019", "philly")


def read_cluster_trace(path: Path, layout: str) -> Arrivals:
    """Arrivals from a file: CSV, also packed by gzip; JSON for Philly and, a row on each line, Google 2019;
    SQLite for Azure's packing trace. Raises UsageError for an unknown layout, UnreadableFile, BadData."""
    if layout not in FORMATS:
        raise UsageError(f"unknown layout {layout!r}", fix=f"Known: {', '.join(FORMATS)}.")
    where = str(path)
    if layout == "azure-packing-2020" and _starts(path, b"SQLite format 3"):
        return Arrivals.of(TABLES[layout].pairs(_sqlite(path)), where)
    text = _text(path)
    if layout == "philly":
        return Arrivals.of(_philly(_json(text, where)), where)
    if layout == "google-2011":
        return Arrivals.of(_google_2011(csv.reader(text.splitlines())), where)
    if layout == "google-2019":
        is_json = text.lstrip()[:1] in ("{", "[")
        rows = _json(text, where) if is_json else csv.DictReader(text.splitlines())
        return Arrivals.of(_google_2019(rows), where)
    columns = TABLES[layout]
    if isinstance(columns.come, int):
        return Arrivals.of(columns.pairs(csv.reader(text.splitlines())), where)
    reader = csv.DictReader(text.splitlines())
    missing = {str(columns.come), str(columns.stay or columns.go)} - set(reader.fieldnames or ())
    if missing:
        raise BadData(f"no column {min(missing)!r}, as {layout} has", where=where)
    return Arrivals.of(columns.pairs(reader), where)


def _starts(path: Path, wanted: bytes) -> bool:
    return _read(path, lambda p: p.open("rb").read(len(wanted))) == wanted


def _text(path: Path) -> str:
    content = _read(path, Path.read_bytes)
    try:
        return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode(
            "utf-8-sig"
        )
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise UnreadableFile(f"not readable text: {error}", where=str(path)) from None


def _read(path: Path, how: Callable[[Path], bytes]) -> bytes:
    try:
        return how(path)
    except OSError as error:
        raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(path)) from None


def _json(text: str, where: str) -> list[Any]:
    found = json_or_lines(text, where)
    found = [found] if isinstance(found, dict) else found
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []


def _sqlite(path: Path) -> list[dict[str, Any]]:
    import sqlite3

    try:
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            rows = connection.execute("SELECT starttime, endtime FROM vm").fetchall()
    except sqlite3.Error as error:
        raise UnreadableFile(f"not Azure's packing trace: {error}", where=str(path)) from None
    return [dict(row) for row in rows]
