"""A service's own data as importers: the kinds `prometheus` and `series`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Any, ClassVar

from jostle._base.option_fields import Positional, Short
from jostle._base.untrusted import understood
from jostle.data.read._imported_runs import Imported
from jostle.data.read._prometheus_series import Reading, range_queries, series_of
from jostle.data.read._series import Kind, Series
from jostle.data.read._series_columns import TableColumns, read_columns, read_requests, unit_of
from jostle.data.read._series_times import Piece, length_of, query_moment
from jostle.data.read._series_traces import Cut, traces_of
from jostle.data.read._watched_runs import everywhere, watched_runs
from jostle.data.tables.distinct_series import distinct
from jostle.data.tables.moments import zone_named
from jostle.data.tables.prometheus_json import Matrix, plain_name, read_answers
from jostle.data.tables.quantities import is_nobody
from jostle.data.traces._traces import Traces
from jostle.errors import UsageError

_HTTP = ("http://", "https://")


@dataclass(frozen=True, kw_only=True)
class _Service:
    """Settings of both kinds of readings of a service: what cuts them, and what they are called."""

    cut: Annotated[
        str | None, "Runs of a service without an end: day, hour, minute, or a length such as 15m."
    ] = None
    requests: Annotated[
        Path | None, "A CSV with begins and ends: each is a run, such as a request or a job."
    ] = None
    zone: Annotated[str, "Of days, and of times that name none: UTC, Europe/Berlin, …"] = "UTC"
    beside: Annotated[tuple[str, ...], "A co-runner, or none; may be repeated.", Short("-b")] = ()
    covariate: Annotated[
        tuple[str, ...],
        "A series known before a run starts, such as its load, as NAME or NAME=SERIES, of which each whole "
        "run gets the mean level, or rate a second; may be repeated. Whole ones become runs of the dataset.",
    ] = ()
    run_id: Annotated[str | None, "How the names of runs begin.  [default: the workload]"] = None

    def _traces(
        self, series: list[Series], where: str, workload: str, platform: str, *, whole: bool = False
    ) -> Any:
        if self.cut is not None and self.requests is not None:
            raise UsageError("cut and requests both say what a run is", fix="Give one of them.")
        zone = zone_named(self.zone)
        pieces: Sequence[Piece] = ()
        if self.requests is not None:
            with understood(self.requests):
                pieces = read_requests(self.requests, TableColumns(zone=zone))
        names = {one.name for one in series}
        covariates = {
            text.partition("=")[0]: next((n for n in spelled if n in names), spelled[0])
            for text in self.covariate
            for spelled in [_spellings(text)]
        }
        begins: dict[str, float] = {}
        traces = traces_of(
            everywhere(series, covariates),
            workload=workload,
            platform=platform,
            cut=Cut(self.cut, zone, pieces, ended=whole or self.requests is not None),
            corunners=[name for name in self.beside if not is_nobody(name)],
            run_id=self.run_id,
            where=where,
            begins=begins,
        )
        if not covariates:
            return traces
        told = bool(self.beside)
        return watched_runs(traces, begins, covariates, where, knows_corunners=told)


def _spellings(text: str) -> tuple[str, ...]:
    """List how series may be called that NAME=SERIES says: as it stands, in plain letters, without a unit."""
    name = text.rpartition("=")[2]
    return name, plain_name(name), unit_of(name)[0]


@dataclass(frozen=True)
class PrometheusImport(_Service):
    """Import a service's readings from Prometheus as traces: answers to range queries, from files or from a
    server. Names that end in _total, _count, _sum or _bucket are running totals, others levels."""

    name: ClassVar[str] = "prometheus"
    source: Annotated[
        tuple[str, ...], "JSON files of range queries, or the address of a server.", Positional()
    ]
    workload: Annotated[str, "The workload's name."]
    platform: Annotated[str, "The platform's name."]
    query: Annotated[
        tuple[str, ...], "Of a server: a query, as NAME=PROMQL or a metric; may be repeated."
    ] = ()
    start: Annotated[str, "Of a server: from this time on; -7d is seven days ago."] = "-1d"
    end: Annotated[str, "Of a server: until this time, or now."] = "now"
    step: Annotated[str, "Of a server: between readings."] = "15s"
    token: Annotated[Path | None, "Of a server: a file with its bearer token."] = None
    metric: Annotated[tuple[str, ...], "Only this metric; may be repeated."] = ()
    instance: Annotated[
        tuple[str, ...] | None,
        "A label that tells instances apart, each a run of its own; others are added up.  [default: pod or "
        "instance, where all series have it]",
    ] = None
    per: Annotated[
        tuple[str, ...], "A label of which each value is a quantity of its own; may be repeated."
    ] = ()
    total: Annotated[tuple[str, ...], "This metric is a running total; may be repeated."] = ()
    gauge: Annotated[tuple[str, ...], "This metric is a level; may be repeated."] = ()

    def read(self, now_seconds: float | None = None) -> Any:
        """Read series from answers of Prometheus; runs with their traces where covariates are named.

        now_seconds: the clock that `start` and `end` count from.

        Raises UnreadableFile, BadData, UsageError, NotPermitted for a server that does not answer.
        """
        zone = zone_named(self.zone)
        where = ", ".join(self.source[:3])
        metrics = (*self.metric, *(text.rpartition("=")[2] for text in self.covariate))
        kinds = _kinds(self.total, self.gauge, ())
        reading = Reading(self.instance, self.per, kinds, metrics if self.metric else ())
        with understood(where):
            if any(one.startswith(_HTTP) for one in self.source):
                matrices = list(self._answers(zone, now_seconds))
            elif self.query:
                raise UsageError("`query` is of a server", fix="Give its address, or leave it out.")
            else:
                matrices = [read_answers(Path(one)) for one in self.source]
            every, notes = distinct([one for matrix in matrices for one in matrix])
            series = series_of([every], reading, where)
            found = self._traces(series, where, self.workload, self.platform)
            if isinstance(found, Imported):
                return replace(found, understood=(*found.understood, *notes))
            return Traces(found.samples, found.traced, where=where, notes=[*found.notes, *notes])

    def _answers(self, zone: tzinfo, now_seconds: float | None) -> Iterator[Matrix]:
        if len(self.source) != 1:
            raise UsageError("a server is asked alone, without files")
        if not self.query:
            what = "nothing is asked of the server"
            raise UsageError(what, fix="Say by `query`, as NAME=PROMQL.")
        now = time.time() if now_seconds is None else now_seconds
        queries: dict[str, str] = {}
        for text in self.query:
            head, sign, rest = text.partition("=")
            is_named = sign and head.isidentifier() and not rest.startswith(("=", "~"))
            name, query = (head, rest) if is_named else (text, text)
            if name in queries:
                raise UsageError(f"two queries are called {name!r}")
            queries[name] = query
        token = None if self.token is None else self.token.read_text("utf-8").strip()
        start, end = (query_moment(text, zone, now) for text in (self.start, self.end))
        return range_queries(self.source[0], queries, start, end, length_of(self.step), token)


@dataclass(frozen=True)
class SeriesImport(_Service):
    """Tables of readings (CSV with a column of times), into the dataset's traces. Columns whose names end in
    _total, _count or _sum are running totals, others levels or rates, taken as they are."""

    name: ClassVar[str] = "series"
    file: Annotated[tuple[Path, ...], "CSV files with names of columns.", Positional()]
    workload: Annotated[str, "The workload's name."]
    platform: Annotated[str, "The platform's name."]
    time: Annotated[
        str | None, "The column of times: seconds since 1970 (or ms, us, ns), or ISO."
    ] = None
    instance: Annotated[str | None, "A column that tells instances apart."] = None
    run: Annotated[str | None, "A column that names runs, such as requests."] = None
    column: Annotated[tuple[str, ...], "Only this column; may be repeated."] = ()
    total: Annotated[tuple[str, ...], "This column is a running total; may be repeated."] = ()
    gauge: Annotated[tuple[str, ...], "This column is a level; may be repeated."] = ()
    count: Annotated[
        tuple[str, ...], "This column was counted since the line before; may be repeated."
    ] = ()
    separator: Annotated[str, "Between fields."] = ","
    whole: Annotated[bool, "Runs ended with their last line (with --run, or a file each)."] = False

    def read(self) -> Any:
        """Read the series of a table; runs with their traces where covariates are named.

        Raises UnreadableFile, BadData naming a line, UnknownName, UsageError.
        """
        zone = zone_named(self.zone)
        kinds = _kinds(self.total, self.gauge, self.count)
        only = (*self.column, *(text.rpartition("=")[2] for text in self.covariate))
        only = only if self.column else ()
        named = self.time, self.instance, self.run
        columns = TableColumns(*named, kinds, only, self.separator, zone)
        if self.run is not None and (self.cut is not None or self.requests is not None):
            raise UsageError("`run` already says what a run is", fix="Leave out cut and requests.")
        if len(set(self.file)) < len(self.file):
            raise UsageError("a file is given twice", fix="Give every file once.")
        where = ", ".join(map(str, self.file[:3]))
        series = []
        for file in self.file:
            with understood(file):
                own = read_columns(file, columns)
            if len(self.file) > 1:
                names = [one.stem for one in self.file]
                label = file.stem if names.count(file.stem) == 1 else str(file)
                own = [
                    replace(one, instance="-".join(t for t in (label, one.instance) if t))
                    for one in own
                ]
            series += own
        return self._traces(series, where, self.workload, self.platform, whole=self.whole)


def _kinds(
    totals: Sequence[str], gauges: Sequence[str], counts: Sequence[str]
) -> Mapping[str, Kind]:
    kinds: dict[str, Kind] = {}
    pairs: tuple[tuple[Kind, Sequence[str]], ...]
    pairs = (("total", totals), ("level", gauges), ("count", counts))
    for kind, names in pairs:
        for name in names:
            if kinds.setdefault(name, kind) != kind:
                raise UsageError(f"{name!r} is named as a {kinds[name]} and a {kind}")
    return kinds
