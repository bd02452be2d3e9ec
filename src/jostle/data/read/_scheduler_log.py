"""Logs of schedulers and workflow engines: which column holds what of a job, and how it is read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa

from jostle._base.option_fields import Positional
from jostle._base.untrusted import understands
from jostle.data.read._foreign_table import read_table
from jostle.data.read._job_columns import JobColumns
from jostle.data.read._job_log import ImportedLog, JobBatch
from jostle.data.read._job_presets import DIED, ROLES, preset_named
from jostle.data.read._log_cells import WorkloadRule, in_one_pass
from jostle.data.read._log_stream import LogStream
from jostle.data.runs._name_columns import filled
from jostle.data.runs._workload_groups import GroupRule, require_pattern
from jostle.data.tables._read_table import file_bytes
from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.moments import NO_TIME, times_of, zone_named
from jostle.data.tables.quantities import OUT_OF_MEMORY
from jostle.errors import BadData, UsageError, require_choice


@dataclass(frozen=True)
class JobsImport:
    """Import a log of jobs: who was on which node from when to when.

    A table (CSV, JSON or Parquet) with columns job, node, start, end, and state where there is one, or what
    Slurm, Nextflow, HTCondor, PBS, Grid Engine, LSF or Airflow write. Whoever was on a node at the same time
    ran beside each other, and each job is a run with its stretches. Peaks of memory and memory limits are
    kept where the log has them. The same log tomorrow adds what is new.
    """

    name: ClassVar[str] = "jobs"
    usual: ClassVar[str | None] = None  # the preset, where the kind says it

    file: Annotated[
        str | os.PathLike[str] | BinaryIO, "The log; - reads standard input.", Positional()
    ]
    workload: Annotated[
        str | None,
        "What a job is a run of: a column, or columns in braces, in any case, each with a regular expression "
        "if need be, such as {user}/{name:^[a-z]+}.  [default: what the source usually calls so]",
    ] = None
    preset: Annotated[
        str | None,
        "The source: sacct, nextflow, htcondor, pbs, sge, lsf or airflow.  [default: as columns say]",
    ] = None
    column: Annotated[
        tuple[str, ...], "A column's name, such as job=task_id or start=begin; may be repeated."
    ] = ()
    covariate: Annotated[
        tuple[str, ...],
        "Column of what is known before a job starts, as NAME or NAME=COLUMN; may be repeated.",
    ] = ()
    group: GroupRule = None
    node: Annotated[str | None, "A rule for nodes, as `workload` is for workloads."] = None
    state: Annotated[
        tuple[str, ...],
        "What a state means, such as 3=failed, of ok, failed, timeout, out_of_memory; may be repeated.",
    ] = ()
    all_jobs: Annotated[
        bool, "The log holds all jobs of its nodes, though all are of one user."
    ] = False
    nodes: Annotated[
        Path | None, "CSV file with columns 'node' and 'platform'; else each node is a platform."
    ] = None
    timezone: Annotated[str, "Of times without an offset."] = "UTC"
    since: Annotated[str | None, "From when on the log holds every job that ran."] = None
    until: Annotated[str | None, "Up to when it does."] = None
    campaign: Annotated[str, "A name for the cluster: with a job's number it tells runs apart."] = (
        "log"
    )

    def __post_init__(self) -> None:
        """Raises UsageError."""
        zone_named(self.timezone)
        require_pattern(self.group)
        for rule in filter(None, (self.workload, self.node)):
            WorkloadRule(rule)
        if self.preset is not None:
            preset_named(self.preset)
        for text in self.column:
            require_choice("column", text.partition("=")[0], ROLES)
        for text in self.state:
            require_choice("state", text.rpartition("=")[2], DIED)
        for name in ("since", "until"):
            self._edge(name)

    def _edge(self, name: str) -> int | None:
        value = getattr(self, name)
        if value is None:
            return None
        # In an hour that the zone has twice: what holds either way.
        (first,), (second,), (is_bad,) = times_of(pa.array([value]), self.timezone)
        time = second if name == "since" else first
        if is_bad or time == NO_TIME:
            what = f"`{name}` {value!r} is not a valid time"
            raise UsageError(what, fix="Such as 2026-01-31T00:00:00.")
        return int(time)

    @cached_property
    def _states(self) -> dict[str, int]:
        pairs = (text.rpartition("=") for text in self.state)
        return {state.strip().lower(): DIED[meaning] for state, _, meaning in pairs}

    @understands("file")
    def read(self) -> ImportedLog:
        """Read the jobs of a log.

        Raises UnreadableFile, BadData for a missing column, a time or a state that cannot be read.
        """
        where = self._where
        log = ImportedLog(
            where, self.campaign, self._platforms(), self._edge("since"), self._edge("until")
        )
        log.group = self.group
        columns: JobColumns | None = None
        for cells in self._cells(log, where):
            if columns is None:
                columns = JobColumns(self, list(cells), where)
                log.rule = columns.preset.cutting
            log.add(self._batch(columns, cells, log))
        if columns is not None:
            columns.tell(log, self)
        return log

    @property
    def _where(self) -> str:
        if self.file == "-":
            return "<stdin>"
        is_path = isinstance(self.file, (str, os.PathLike))
        return str(self.file if is_path else getattr(self.file, "name", "<stream>"))

    def _platforms(self) -> dict[str, str] | None:
        if self.nodes is None:
            return None
        content, where = file_bytes(self.nodes)
        table = read_table(content, where, ["node", "platform"])
        table.require(["node", "platform"])
        pairs = (table.table.column(name).to_pylist() for name in ("node", "platform"))
        known: dict[str, str] = {}
        for line, node, platform in zip(table.numbers.tolist(), *pairs, strict=True):
            if not node or not platform or known.setdefault(node, platform) != platform:
                raise BadData(f"line {line}: node {node!r} has no platform, or two", where=where)
        return known

    def _batch(self, columns: JobColumns, cells: dict[str, Any], log: ImportedLog) -> JobBatch:
        named, n = columns.of(cells), len(next(iter(cells.values())))
        absent = np.full(n, NO_TIME)
        starts, ends = (
            columns.times(key, named[key], self.timezone) if key in named else (absent, absent)
            for key in ("start", "end")
        )
        took, is_bad = np.full(n, np.nan), np.zeros(n, bool)
        if "took" in named:
            took, is_bad = columns.spans(named["took"], starts, ends)
            is_bad &= (absent == starts[0]) | (absent == ends[0])  # else both times tell
        if columns.preset.is_part and {"start", "end"} <= named.keys():
            took = np.full(n, np.nan)  # staging lies between start and end, too
        start, end, odd, unsure = in_one_pass(starts, ends, took)
        is_told = np.abs(took) < 2.0**62
        length = np.where(is_told, took, 0).astype(np.int64)
        if "end" not in named:
            end = np.where((start != NO_TIME) & is_told, start + length, end)
        if "start" not in named:
            start = np.where((end != NO_TIME) & is_told, end - length, start)
        outcome = columns.outcomes(named, cells, end, self._states)
        job = named["job"]
        is_step = np.zeros(n, bool)
        if columns.has_steps:
            is_step = filled(pc.match_substring(job, "."), False).astype(bool)
        if "died" in cells:
            died = filled(pc.equal(cells["died"], "1"), False).astype(bool)
            outcome = np.where(died, OUT_OF_MEMORY, outcome)
        peak, requested = (
            columns.sizes(key, named.get(key), n, cells) for key in ("peak", "requested")
        )
        bounds = [
            times_of(named[key], self.timezone)[0] if key in named else absent
            for key in ("first", "last")
        ]
        is_head = filled(pc.equal(job, columns.name_of_job), False).astype(bool)
        is_none = is_step | is_head
        unread = columns.unread(named, is_step, is_head) | (is_bad & ~is_none)
        is_turned = (end < start) & (end != NO_TIME) & (start != NO_TIME)
        return JobBatch(
            job,
            columns.nodes(cells, named),
            columns.workload.names(cells, log.source),
            named.get("state", pa.array([""] * n)),
            start,
            end,
            outcome.astype(np.int8),
            bad={"they are steps of jobs": is_step, "they are headings": is_head},
            odd={
                "a time of theirs cannot be read": unread,
                "their end is before their start": is_turned,
                "they did not take what lies between start and end (suspended, or say `timezone`)": odd,
                "a clock that has an hour twice does not tell when they ran": unsure & ~is_told,
            },
            unsure=unsure & is_told,
            bounds=(bounds[0], bounds[1]),
            user=named.get("user"),
            peak=peak,
            requested=requested,
            covariates=columns.covariates(cells),
        )

    def _cells(self, log: ImportedLog, where: str) -> Iterator[dict[str, Any]]:
        """Return columns of text by name, some at a time. Raises UnreadableFile."""
        preset = preset_named(self.preset or self.usual or "jobs")
        spellings = (*preset.columns.values(), *preset_named("jobs").columns.values())
        words = {column for names in spellings for column in names}
        told = {text.partition("=")[2].lower() for text in self.column}
        stream = LogStream(self.file, where, frozenset(words | told), preset.printed_by)
        yield from stream.cells()
        log.understood += stream.understood
        log.notes += stream.notes
        log.lose(stream.lost, self.timezone)


@dataclass(frozen=True)
class SacctImport(JobsImport):
    """Import what Slurm's accounting prints: sacct -P, with fixed widths, or --json.

    Of sacct -a -P -o JobID,User,JobName,NodeList,Start,End,State,ElapsedRaw,MaxRSS,ReqMem steps tell the peak
    of their job; each job of an array, and each time that a job was requeued (sacct -D), is a job. Who
    failed, was cancelled or still runs is company, but no measured run; who ran on several nodes is company
    on each.
    The same log tomorrow adds what is new.
    """

    name: ClassVar[str] = "sacct"
    usual: ClassVar[str | None] = "sacct"

    campaign: Annotated[str, "A name for the cluster: with a job's number it tells runs apart."] = (
        "slurm"
    )
