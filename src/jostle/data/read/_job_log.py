"""A log of jobs as runs with stretches: what is kept of each job, what is left aside, and what was made."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.read._job_tables import STATUS, JobArrays, LogTally, MadeOfLog, run_ids, table_of
from jostle.data.read._log_cells import nodes_of
from jostle.data.read._log_sweep import Stays, companies
from jostle.data.runs._name_columns import filled, number_text
from jostle.data.runs._runs import Runs
from jostle.data.runs._workload_groups import with_group
from jostle.data.store._dataset import Dataset
from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.moments import NO_TIME, times_of
from jostle.data.tables.quantities import (
    CACHED,
    OK,
    OUT_OF_MEMORY,
    PENDING,
    RUNNING,
    covariate_in,
    is_nothing,
)
from jostle.errors import BadData, UnreadableFile

_SLICES_OF_A_FILE = 3
_IDS_AT_ONCE = 500_000
_LONGER = "Print a longer time of it."


@dataclass
class JobBatch:
    """A batch of n jobs that a reader of logs yields. id, node, workload, state: text. start, end: (n,) int64
    microseconds since 1970, NO_TIME where there is none. outcome: (n,) int8. bad: {why: which rows are no
    jobs}. odd: {why: which are jobs whose times are not known: nobody knows when they were beside others}.
    bounds: (n,) from when on and until when a job may have been there, where its times do not say. unsure:
    (n,) which may have run an hour later. user: names. peak, requested: (n,) bytes, NaN where not known.
    covariates: (n,) texts by name."""

    id: Any
    node: Any
    workload: Any
    state: Any
    start: np.ndarray
    end: np.ndarray
    outcome: np.ndarray
    bad: dict[str, np.ndarray] = field(default_factory=dict)
    odd: dict[str, np.ndarray] = field(default_factory=dict)
    bounds: tuple[np.ndarray, np.ndarray] | None = None
    unsure: np.ndarray | None = None
    user: Any = None
    peak: np.ndarray | None = None
    requested: np.ndarray | None = None
    covariates: dict[str, Any] = field(default_factory=dict)


class ImportedLog:
    """The jobs of a log. platform_of: {node: platform}, or None where each node is one by itself.

    since, until: microseconds between which the log holds every job that ran; by default from the earliest
    end on (a job that ended before is not there), and up to the latest start unless jobs are still running.
    """

    def __init__(
        self,
        source: str,
        campaign: str,
        platform_of: dict[str, str] | None = None,
        since: int | None = None,
        until: int | None = None,
    ) -> None:
        self.source, self.campaign, self.platform_of = source, campaign, platform_of
        self._since, self._until = since, until
        self.group: str | None = None  # an expression that tells groups of workloads
        self.rule = "{name:^[a-z]+}"  # one that cuts names, as an example
        self._parts: list[tuple[Any, ...]] = []
        self._texts: list[dict[str, Any]] = []  # covariates
        self._lost: list[tuple[np.ndarray, ...]] = []  # node lists, from when on, until when
        self._codes: tuple[dict[str, int], ...] = ({}, {}, {})  # node lists, workloads, states
        self._users: set[str] = set()
        self._last: tuple[str, int] = ("", -1)  # a job's number, and its place in the last part
        self.left_aside: Counter[str] = Counter()
        self.notes: list[str] = []
        self.understood: list[str] = []
        self.jobs = 0
        self.is_partial = False  # whether others may have run who are not in the log

    @property
    def users(self) -> int:
        """Number of different users of the jobs, two for several; 0 if the log does not say."""
        return len(self._users)

    @property
    def a_user(self) -> str:
        """One of them."""
        return min(self._users, default="")

    def add(self, batch: JobBatch) -> None:
        """Take these jobs in."""
        n, start, end = len(batch.start), batch.start, batch.end
        self.jobs += n
        peak, outcome = self._with_steps(batch)
        good = np.ones(n, bool)

        def aside(reason: str, rows: np.ndarray) -> np.ndarray:
            nonlocal good
            rows = rows & good
            self.left_aside[reason] += int(rows.sum())
            good = good & ~rows
            return rows

        for reason, rows in batch.bad.items():
            aside(reason, rows)
        aside("they were not run again (cached)", outcome == CACHED)
        first, last = batch.bounds or (np.full(n, NO_TIME),) * 2
        is_told = (start != NO_TIME) | (first != NO_TIME)
        is_over = (end != NO_TIME) & (start != NO_TIME)
        is_odd = np.any([*batch.odd.values(), np.zeros(n, bool)], axis=0)
        aside(
            "they never started",
            (outcome == PENDING) | (~is_told & ~is_odd & ((end == NO_TIME) | (outcome != OK))),
        )
        aside("they took no time", is_over & (end == start))
        odd = np.zeros(n, bool)
        for reason, rows in batch.odd.items():
            odd |= aside(reason, rows)
        odd |= aside("it is not known when they began", start == NO_TIME)
        odd |= aside("they have no end", (end == NO_TIME) & (outcome != RUNNING))
        if batch.unsure is not None and (later := batch.unsure & good).any():
            self.notes.append(
                f"{int(later.sum())} jobs ran in an hour that the clock has twice, and nothing tells when "
                "(write times with an offset): beside whom is not known"
            )
            odd = odd | later
        self._lose(batch, odd, first, last)
        at = pa.array(np.flatnonzero(good))
        codes = [
            self._code(known, column.take(at))
            for known, column in zip(
                self._codes, (batch.node, batch.workload, batch.state), strict=True
            )
        ]
        running = (outcome == RUNNING) | (end == NO_TIME)
        end = np.where(running, NO_TIME, end)
        if batch.user is not None and len(self._users) < 2:
            users = pc.unique(batch.user.take(at)).to_pylist()
            self._users |= {user for user in users if user and not is_nothing(user)}
        requested = np.full(n, np.nan) if batch.requested is None else batch.requested
        kept = [one[good] for one in (start, end, outcome, peak, requested)]
        self._texts.append({name: column.take(at) for name, column in batch.covariates.items()})
        self._parts.append((batch.id.take(at), *codes, *kept))
        if n and batch.peak is not None and good.any():
            place = int(np.flatnonzero(good)[-1])
            self._last = str(batch.id[place].as_py()), int(good.sum()) - 1

    def _with_steps(self, batch: JobBatch) -> tuple[np.ndarray, np.ndarray]:
        """Return (peak, outcome) of the jobs with those of their steps, which stand below them."""
        n, outcome = len(batch.start), batch.outcome.copy()
        peak = np.full(n, np.nan) if batch.peak is None else batch.peak.copy()
        steps = batch.bad.get("they are steps of jobs", np.zeros(n, bool))
        wanted = np.flatnonzero(steps & (np.isfinite(peak) | (outcome == OUT_OF_MEMORY)))
        if not len(wanted):
            return peak, outcome
        others = steps | batch.bad.get("they are headings", np.zeros(n, bool))
        owner = np.maximum.accumulate(np.where(others, -1, np.arange(n)))[wanted]
        names = batch.id.take(pa.array(wanted))
        base = pc.list_element(pc.split_pattern(names, ".", max_splits=1), 0)
        above = batch.id.take(pa.array(np.maximum(owner, 0)))
        mine = filled(pc.equal(base, above), False).astype(bool) & (owner >= 0)
        died = outcome[wanted] == OUT_OF_MEMORY
        np.fmax.at(peak, owner[mine], peak[wanted][mine])
        outcome[owner[mine & died]] = OUT_OF_MEMORY
        number, place = self._last
        for at in np.flatnonzero(owner < 0):  # of the last job of the part before
            if self._parts and base[int(at)].as_py() == number and place >= 0:
                before = self._parts[-1]
                before[7][place] = np.fmax(before[7][place], peak[wanted[at]])
                before[6][place] = OUT_OF_MEMORY if died[at] else before[6][place]
        return peak, outcome

    def _lose(self, batch: JobBatch, odd: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
        """Remember on which nodes jobs may have been whose times are not known, from when until when."""
        at = np.flatnonzero(odd)
        if not len(at):
            return
        known = np.array([one[at] for one in (batch.start, batch.end, first)])
        least = np.where(known == NO_TIME, np.iinfo(np.int64).max, known).min(0)
        most = np.where(batch.start[at] == NO_TIME, np.maximum(batch.end[at], last[at]), last[at])
        is_unsure = np.zeros(len(odd), bool) if batch.unsure is None else batch.unsure
        for reason in ("their end is before", "they did not take", "a clock that"):
            rows = next((r for text, r in batch.odd.items() if text.startswith(reason)), None)
            if rows is not None:  # both are told, one of them an hour off
                both = np.maximum(batch.start[at], batch.end[at]) + 3_600_000_000
                most = np.where(rows[at] | is_unsure[at], both, most)
        least = np.where(least == np.iinfo(np.int64).max, NO_TIME, least)
        most = np.where(most == NO_TIME, np.iinfo(np.int64).max, most)
        codes = (
            self._code(known, column.take(pa.array(at)))
            for known, column in zip(self._codes, (batch.node, batch.workload), strict=False)
        )
        self._lost.append((*codes, least, most))

    def lose(self, lines: list[list[str]], zone: str) -> None:
        """Count lines that cannot be read; the times in them say when nobody knows who was beside others."""
        if not lines:
            return
        self.jobs += len(lines)
        reason = "their lines have more or fewer cells than the header (a delimiter in a name?)"
        self.left_aside[reason] += len(lines)
        for cells in lines:
            times, _, bad = times_of(pa.array(cells, pa.string()), zone)
            told = times[
                (times != NO_TIME) & ~bad & np.array([not cell.isdigit() for cell in cells])
            ]
            nodes = [cell for cell in cells if cell in self._codes[0]] or list(self._codes[0])
            if len(told):
                most = told.max() if len(told) > 1 else np.iinfo(np.int64).max
                codes = np.array([self._codes[0][node] for node in nodes], np.int32)
                ends = np.full((2, len(codes)), [[told.min()], [most]])
                self._lost.append((codes, np.full(len(codes), -1), *ends))

    @staticmethod
    def _code(known: dict[str, int], column: Any) -> np.ndarray:
        encoded = pc.dictionary_encode(pc.fill_null(column, ""))
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        values = [known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()]
        return np.array(values, np.int32)[encoded.indices.to_numpy()]

    def runs(self) -> Runs:
        """Return all of them in memory. Raises BadData where no job is a run."""
        return Runs.concatenate([Runs(table) for table in self._tables(MadeOfLog())])

    def write(self, path: str | os.PathLike[str]) -> tuple[MadeOfLog, list[Path]]:
        """Add what the dataset in folder `path` does not hold yet, some hundred thousand runs at a time:
        (what was made, the files written). An import that was cut short is completed by doing it again.

        Raises BadData where no job is a run, and what Dataset.write raises.
        """
        dataset, made = Dataset(path), MadeOfLog()
        known = [ids for _, ids in dataset.run_ids()]
        files: list[Path] = []
        for table in self._tables(made):
            for ids in known:
                table = table.filter(pc.invert(pc.is_in(table.column("run_id"), value_set=ids)))
            made.added += table.num_rows
            if table.num_rows:
                files += dataset.write(Runs(table))
        if not made.added:
            made.notes.append(
                "nothing is new: for another rule of workloads or table of nodes take a new folder"
            )
        return made, files

    def _tables(self, made: MadeOfLog) -> Iterator[pa.Table]:
        if not self._parts or not any(len(part[1]) for part in self._parts):
            why = _reasons(self.left_aside)
            what = f"the log holds no job that ran{f' ({why})' if why else ''}"
            raise UnreadableFile(what, where=self.source, fix=_LONGER)
        ids = _plain(pa.chunked_array([_plain(part[0]) for part in self._parts], pa.string()))
        columns = [
            np.concatenate(column) for column in zip(*(p[1:] for p in self._parts), strict=True)
        ]
        self._parts = [(ids, *columns)]
        names, state, start, end, outcome, peak, requested = columns[1:]
        lists, states = (list(self._codes[i]) for i in (0, 2))
        made.jobs, left = self.jobs, Counter(self.left_aside)
        there = _last_of_each(self.campaign, ids, start)
        pa.default_memory_pool().release_unused()  # what reading took
        left["they stand more than once"] += int((~there).sum())
        node_names, stays_of, is_odd = _nodes(lists)
        left["their nodes cannot be read"] += int((is_odd[columns[0]] & there).sum())
        horizon = int(max(start.max(), end.max()) + 1)
        is_open = end == NO_TIME
        since, until = self._edges(start, end, is_open, made.notes)
        number = np.array([len(one) for one in stays_of], np.int32)[columns[0]]
        platforms = self._platforms(node_names)
        first = np.array([one[0] if len(one) == 1 else 0 for one in stays_of])
        has_platform = (platforms[first] >= 0)[columns[0]]
        is_run = there & (number > 0)
        for reason, rows in {
            "they were still running": is_open,
            "they ran on several nodes": number > 1,
            "the log begins after their start": start < since,
            "the log ends before their end": ~is_open & (end > until),
            "their node is not in the table of nodes": ~has_platform,
        }.items():
            left[reason] += int((is_run & rows).sum())
            is_run &= ~rows
        job = np.repeat(np.arange(len(start), dtype=np.int32), np.where(there, number, 0))
        nodes = (code for code in columns[0][there].tolist() for code in stays_of[code])
        stays = Stays(
            np.fromiter(nodes, np.int32, len(job)),
            names[job],
            start[job],
            np.where(is_open, np.maximum(horizon, start + 1), end)[job],
            is_run[job],
        )
        unknown = self._beside_unknown(stays, stays_of, is_open[job])
        made.runs = int(is_run.sum())
        made.status = {
            str(name): n
            for code, name in enumerate(STATUS)
            if (n := int((outcome[is_run] == code).sum()))
        }
        about = JobArrays(
            ids, names, state, start, end, outcome, np.array(states), np.array(list(self._codes[1])),
            np.array(node_names), platforms, np.array(sorted(self._platform_names(node_names))),
            self.campaign, self.rule, peak, requested, unknown, self._read_covariates(made),
        )  # fmt: skip
        tally = LogTally(len(about.workload_names))
        batch: list[pa.Table] = []
        for company in companies(stays):
            batch.append(table_of(about, company, job, stays.node, tally))
            if len(batch) == _SLICES_OF_A_FILE:
                yield with_group(pa.concat_tables(batch), self.group)
                batch = []
        if batch:
            yield with_group(pa.concat_tables(batch), self.group)
        made.unknown_corunners = tally.unknown
        left["their company changed too often"] += made.runs - tally.runs
        made.runs = tally.runs
        made.left_aside = {reason: n for reason, n in left.items() if n}
        if not made.runs:
            what = f"no job is a run ({_reasons(left)})"
            raise BadData(what, where=self.source, fix=_LONGER)
        tally.into(made, about)
        made.notes += self.notes
        made.understood = [*self.understood, *made.understood]
        if made.unknown_corunners:
            made.notes.append(
                f"{made.unknown_corunners} of {made.runs} runs had co-runners that are not known: they tell "
                "nothing of slowdowns, and their memory counts"
            )

    def _beside_unknown(
        self, stays: Stays, stays_of: list[list[int]], is_open: np.ndarray
    ) -> np.ndarray | None:
        """Return (n,) which stays others may have been beside whose times are not known; None where none was.
        Where nothing says until when, it counts as twice the longest time that a job of the name took."""
        if self.is_partial:
            return np.ones(len(stays.node), bool)
        if not self._lost:
            return None
        lists, names, least, most = (np.concatenate(one) for one in zip(*self._lost, strict=True))
        longest = np.zeros(len(self._codes[1]) + 1, np.int64)
        np.maximum.at(longest, stays.workload[~is_open], (stays.end - stays.start)[~is_open])
        is_bounded = (most == np.iinfo(np.int64).max) & (least != NO_TIME) & (longest[names] > 0)
        most = np.where(is_bounded, least + 2 * longest[names], most)
        where = [(node, i) for i, code in enumerate(lists.tolist()) for node in stays_of[code]]
        unknown = np.zeros(len(stays.node), bool)
        order = np.lexsort((stays.start, stays.node))
        node, start = stays.node[order], stays.start[order]
        for place, i in where:
            first, last = np.searchsorted(node, (place, place + 1))
            last = first + int(np.searchsorted(start[first:last], most[i]))
            mine = order[first:last]
            unknown[mine[stays.end[mine] > least[i]]] = True
        return unknown

    def _read_covariates(self, made: MadeOfLog) -> dict[str, Any]:
        """Return (n,) numbers or text by name, of all jobs."""
        read: dict[str, Any] = {}
        for name in self._texts[0] if self._texts else ():
            texts = pa.chunked_array(
                [_plain(part[name]) for part in self._texts], pa.string()
            ).to_pylist()
            numbers, how = covariate_in(texts, base=1024)
            read[name] = pa.array(
                [None if is_nothing(text) else text for text in texts], pa.string()
            ) if numbers is None else pa.array(numbers.values)  # fmt: skip
            made.understood.append(f"covariate {name}: {how}")
        return read

    def _edges(
        self, start: np.ndarray, end: np.ndarray, is_open: np.ndarray, notes: list[str]
    ) -> tuple[int, int]:
        since, until = self._since, self._until
        if since is None:
            since = int(end[~is_open].min()) if (~is_open).any() else int(start.max()) + 1
            notes.append(
                "what ran before the first end in the log is not known: if it holds all from the "
                "beginning, say `since`"
            )
        if until is None:
            until = np.iinfo(np.int64).max if is_open.any() else int(start.max())
            if (end > until).any():
                notes.append(
                    "who came after the last start in the log is not known: if it reaches further, "
                    "say `until`"
                )
        return since, until

    def _platform_names(self, node_names: list[str]) -> set[str]:
        known = self.platform_of
        return set(node_names) if known is None else {known[n] for n in node_names if n in known}

    def _platforms(self, node_names: list[str]) -> np.ndarray:
        place = {name: code for code, name in enumerate(sorted(self._platform_names(node_names)))}
        of = {name: name for name in node_names} if self.platform_of is None else self.platform_of
        return np.array([place.get(of.get(name, ""), -1) for name in node_names] or [-1], np.int32)


def _plain(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _last_of_each(campaign: str, ids: Any, start: np.ndarray) -> np.ndarray:
    """Return (n,) bool: the last row of each run_id, which knows most of the job. Those that start in the
    same second are looked at together, some at a time, as text that all differs takes much memory."""
    last, second = np.zeros(len(start), bool), start // 1_000_000
    parts = 1 + len(start) // _IDS_AT_ONCE
    for part in range(parts):
        at = np.flatnonzero(second % parts == part)
        codes = number_text(run_ids(campaign, ids.take(pa.array(at)), start[at]))
        latest = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        latest[codes] = at
        last[latest] = True
    return last


def _nodes(lists: list[str]) -> tuple[list[str], list[list[int]], np.ndarray]:
    """Return (names of nodes, of each list the codes of its nodes, of each whether it cannot be read)."""
    names: dict[str, int] = {}
    stays, odd = [], np.zeros(len(lists), bool)
    for place, text in enumerate(lists):
        try:
            nodes = dict.fromkeys(nodes_of(text))
        except ValueError:
            nodes = {}
        odd[place] = not nodes
        stays.append([names.setdefault(name, len(names)) for name in nodes])
    return list(names), stays, odd


def _reasons(left: Counter[str]) -> str:
    return "; ".join(f"{n}: {reason}" for reason, n in left.items() if n)
