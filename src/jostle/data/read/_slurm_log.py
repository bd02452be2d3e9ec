"""Logs that are tables: of any scheduler, and what Slurm's sacct prints."""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from jostle._base.option_fields import Positional
from jostle._base.untrusted import understands
from jostle.data.read._foreign_table import read_csv
from jostle.data.read._job_log import FAILED, OK, RUNNING, TIMEOUT, ImportedLog, JobBatch
from jostle.data.read._log_cells import (
    NO_TIME,
    WorkloadRule,
    in_one_pass,
    spans_of,
    times_of,
    zone_of,
)
from jostle.data.runs._name_columns import filled
from jostle.data.tables._read_table import file_bytes, text_of
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData, UnreadableFile, UsageError

_BLOCK = 16 << 20  # bytes at a time
_OUTCOMES = {
    **dict.fromkeys(("completed", "succeeded", "success", "done", "finished", "ok", ""), OK),
    "timeout": TIMEOUT,
    **dict.fromkeys(
        ("running", "suspended", "completing", "stopped", "signaling", "stage_out", "resizing"),
        RUNNING,
    ),
}  # all others failed in one way or another


@dataclass(frozen=True)
class JobsImport:
    """Import a log of jobs: who was on which node from when to when.

    A CSV or Parquet file with columns job, node (or host), start, end, and state (or status) where there is
    one (COMPLETED, FAILED, TIMEOUT, RUNNING ...). Whoever was on a node at the same time ran beside each
    other, and each job is a run with its stretches. The same log tomorrow adds what is new.
    """

    name: ClassVar[str] = "jobs"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        "job": ("job", "job_id", "jobid", "id"), "node": ("node", "host", "hostname"),
        "start": ("start", "start_time", "started", "begin"), "end": ("end", "end_time", "ended", "finish"),
        "state": ("state", "status"), "took": ("elapsed",),
    }  # fmt: skip
    delimiter: ClassVar[str] = ","
    has_steps: ClassVar[bool] = False
    free_text: ClassVar[str] = ""  # the column that may hold delimiters
    printed_by: ClassVar[str] = ""  # the command that makes such a log
    cutting_rule: ClassVar[str] = "{workload:^[a-z]+}"  # of workloads: an example

    file: Annotated[
        str | os.PathLike[str] | BinaryIO, "The log; - reads standard input.", Positional()
    ]
    workload: Annotated[
        str,
        "What a job is a run of: a column, or columns in braces, in any case, each with a regular expression "
        "if need be, such as {user}/{name:^[a-z]+}.",
    ] = "workload"
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
        zone_of(self.timezone)
        WorkloadRule(self.workload)
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
            raise UsageError(
                f"`{name}` {value!r} is not a valid time", fix="Such as 2026-01-31T00:00:00."
            )
        return int(time)

    @understands("file")
    def read(self) -> ImportedLog:
        """Raises UnreadableFile, BadData for a missing column."""
        where = self._where
        log = ImportedLog(
            where, self.campaign, self._platforms(), self._edge("since"), self._edge("until")
        )
        log.rule = self.cutting_rule
        rule = WorkloadRule(self.workload)
        for cells in self._cells(log, where):
            known = {name.lower(): name for name in cells}
            named = {}
            for key, columns in self.columns.items():
                there = next((one for one in columns if one in known), None)
                if there is not None:
                    named[key] = cells[known[there]]
                elif key not in ("state", "took"):
                    raise BadData(
                        f"no column is called {' or '.join(columns)}",
                        where=where,
                        fix=self.printed_by or f"Call one of them so: {', '.join(cells)}.",
                    )
            log.add(self._batch(named, rule.names(cells, where)))
        if log.unsure:
            log.notes.append(
                f"{log.unsure} jobs began or ended in an hour that {self.timezone} has twice, and nothing "
                "tells in which: they count as in the first (write times with an offset, or a column elapsed)"
            )
        if rule.not_matched:
            log.notes.append(
                f"{rule.not_matched} cells do not match the rule of workloads, and count whole"
            )
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
        table = read_csv(content, where, ["node", "platform"])
        table.require(["node", "platform"])
        pairs = (table.table.column(name).to_pylist() for name in ("node", "platform"))
        known: dict[str, str] = {}
        for line, node, platform in zip(table.numbers.tolist(), *pairs, strict=True):
            if not node or not platform or known.setdefault(node, platform) != platform:
                raise BadData(f"line {line}: node {node!r} has no platform, or two", where=where)
        return known

    def _batch(self, cells: dict[str, Any], workload: Any) -> JobBatch:
        (*starts, bad_start), (*ends, bad_end) = (
            times_of(cells[key], self.timezone) for key in ("start", "end")
        )
        took = spans_of(cells["took"]) * 1e6 if "took" in cells else np.full(len(bad_start), np.nan)
        start, end, odd, unsure = in_one_pass(starts, ends, took)
        state = cells.get("state", pa.array([""] * len(start)))
        first = pc.utf8_lower(pc.extract_regex(state, r"^\s*(?P<word>[A-Za-z_]*)").field(0))
        words = pc.unique(first)
        kinds = [_OUTCOMES.get(word or "", FAILED) for word in words.to_pylist()]
        outcome = np.array(kinds, np.int8)[filled(pc.index_in(first, value_set=words), 0)]
        if "state" not in cells:
            outcome = np.where(end == NO_TIME, RUNNING, OK).astype(np.int8)
        is_step = filled(pc.match_substring(cells["job"], "."), False).astype(bool)
        bad = {
            "a time of theirs cannot be read": bad_start | bad_end,
            "they are steps of jobs": is_step & self.has_steps,
        }
        reason = "they did not take what lies between start and end (suspended, or say `timezone`)"
        bad[reason] = odd
        return JobBatch(
            cells["job"], cells["node"], workload, state, start, end, outcome, bad, unsure
        )

    def _delimiter_of(self, line: bytes, where: str) -> str:
        """Find what parts the cells of a first line. Raises UnreadableFile if nothing does."""
        found = next((d for d in (self.delimiter, *"|,;\t") if d.encode() in line), None)
        if found is None and line:
            fix = self.printed_by or f"It names columns: a{self.delimiter}b."
            raise UnreadableFile("its first line has one cell", where=where, fix=fix)
        return found or self.delimiter

    def _cells(self, log: ImportedLog, where: str) -> Iterator[dict[str, Any]]:
        """Columns of text by name, some at a time. Raises UnreadableFile."""
        if where.endswith((".parquet", ".pq")):
            yield from _parquet_cells(self.file, where)
            return
        ragged = 0
        mended: list[list[str]] = []

        def skip(row: Any) -> str:
            nonlocal ragged
            cells, free = row.text.split("|"), [name.lower() for name in names]
            if delimiter == "|" and len(cells) > len(names) and self.free_text in free:
                at = free.index(self.free_text)
                end = at + 1 + len(cells) - len(names)
                mended.append([*cells[:at], "|".join(cells[at:end]), *cells[end:]])
            else:
                ragged += 1
            return "skip"

        try:
            with _opened(self.file) as stream:
                line = stream.readline()
                delimiter = self._delimiter_of(line, where)
                names = _header(line, delimiter, where)
                if hasattr(stream, "peek") and not stream.peek(1):
                    return  # a header alone: no job, and Arrow's reader may abort where it ends at once
                reader = pyarrow.csv.open_csv(
                    pa.PythonFile(_Checked(stream), "r"),
                    pyarrow.csv.ReadOptions(
                        block_size=_BLOCK, use_threads=False, column_names=names
                    ),
                    pyarrow.csv.ParseOptions(
                        delimiter=delimiter,
                        quote_char='"' if delimiter != "|" else False,
                        invalid_row_handler=skip,
                    ),
                    pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
                )
                for batch in reader:
                    yield dict(zip(names, batch.columns, strict=True))
                if mended:
                    texts = [pa.array(column, pa.string()) for column in zip(*mended, strict=True)]
                    yield dict(zip(names, texts, strict=True))
        except (pa.ArrowException, OSError, EOFError, UnicodeDecodeError) as error:
            if "Empty CSV" not in str(error):  # a header alone: no job
                raise _unreadable(error, where) from None
        log.jobs += ragged
        reason = "their lines have more or fewer cells than the header (a delimiter in a name?)"
        log.left_aside[reason] += ragged
        if ragged:
            log.notes.append(
                "who ran beside jobs whose lines cannot be read counts as without them"
            )


@dataclass(frozen=True)
class SacctImport(JobsImport):
    """Import what Slurm's accounting prints.

    Of sacct -a -P -o JobID,User,JobName,NodeList,Start,End,State,ElapsedRaw steps are left aside; each job
    of an array, and each time that a job was requeued (sacct -D), is a job. Who failed, was cancelled or
    still runs is company, but no measured run; who ran on several nodes is company on each. The same log
    tomorrow adds what is new.
    """

    name: ClassVar[str] = "sacct"
    columns: ClassVar[dict[str, tuple[str, ...]]] = {
        "job": ("jobid",), "node": ("nodelist",), "start": ("start",), "end": ("end",), "state": ("state",),
        "took": ("elapsedraw", "elapsed"),
    }  # fmt: skip
    delimiter: ClassVar[str] = "|"
    has_steps: ClassVar[bool] = True
    free_text: ClassVar[str] = "jobname"
    cutting_rule: ClassVar[str] = "{User}/{JobName:^[a-z]+}"
    printed_by: ClassVar[str] = (
        "Print it so: sacct -aDP -o JobID,User,JobName,NodeList,Start,End,State,ElapsedRaw > sacct.txt"
    )

    workload: Annotated[
        str, "What a job is a run of; columns as sacct names them, in any case."
    ] = "{User}/{JobName}"
    campaign: Annotated[str, "A name for the cluster: with a job's number it tells runs apart."] = (
        "slurm"
    )


class _Checked:
    """A stream of text in UTF-8: Arrow checks no line that it skips. `read` raises UnicodeDecodeError."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self._stream, self._decoder = stream, codecs.getincrementaldecoder("utf-8")()

    def read(self, count: int) -> bytes:
        part = self._stream.read(count)
        self._decoder.decode(part, final=not part)
        return part


def _opened(file: Any) -> Any:
    if file == "-":
        return nullcontext(sys.stdin.buffer)
    if isinstance(file, (str, os.PathLike)):
        return gzip.open(file) if str(file).endswith(".gz") else open(file, "rb")
    return nullcontext(file)


def _header(line: bytes, delimiter: str, where: str) -> list[str]:
    (names,) = (
        csv.reader([text_of(line, where).strip("\r\n")], delimiter=delimiter) if line else ([],)
    )
    names = [name.strip() or f"column {place}" for place, name in enumerate(names)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if not names or twice:
        what = f"the column {twice[0]!r} is there more than once" if twice else "the file is empty"
        raise UnreadableFile(what, where=where, fix="Its first line names columns.")
    return names


def _unreadable(error: Exception, where: str) -> UnreadableFile:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    is_file = not isinstance(error, (FileNotFoundError, IsADirectoryError))
    fix = "Its first line names columns." if is_file else "Check the name."
    return UnreadableFile(f"not a readable log: {text.splitlines()[0]}", where=where, fix=fix)


def _parquet_cells(file: Any, where: str) -> Iterator[dict[str, Any]]:
    """Read columns of a Parquet file as text, a batch at a time. Raises UnreadableFile."""
    try:
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches():
            texts = [column.cast(pa.string()) for column in batch.columns]
            yield dict(zip(batch.schema.names, texts, strict=True))
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(error, where) from None
