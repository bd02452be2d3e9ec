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

from jostle.data.read._log_cells import NO_TIME, nodes_of
from jostle.data.read._log_sweep import Company, Stays, companies
from jostle.data.read._mixed_names import groups_apart
from jostle.data.runs._name_columns import filled, lists_from_codes, number_text, text_from_codes
from jostle.data.runs._runs import Runs
from jostle.data.runs._runs_columns import columns_table
from jostle.data.runs._segments import longest_company, stretches_column
from jostle.data.store._dataset import Dataset
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadData, UnreadableFile

OK, FAILED, TIMEOUT, RUNNING = range(4)
_STATUS = np.array(["ok", "failed", "timeout"])
_SLICES_OF_A_FILE = 3
_IDS_AT_ONCE = 500_000


@dataclass
class JobBatch:
    """n jobs as a reader of logs gives them. id, node, workload, state: text. start, end: (n,) int64
    microseconds since 1970, NO_TIME where there is none. outcome: (n,) int8. bad: {why: which rows are left
    aside}. unsure: (n,) whether they may have been an hour later."""

    id: Any
    node: Any
    workload: Any
    state: Any
    start: np.ndarray
    end: np.ndarray
    outcome: np.ndarray
    bad: dict[str, np.ndarray] = field(default_factory=dict)
    unsure: np.ndarray | None = None


@dataclass
class MadeOfLog:
    """What an import of a log made. jobs: rows of jobs. runs: of those that could be. added: of those that
    the dataset had not. status, left_aside: counts by name. stretches: of a run, in the mean. workloads,
    once: names, and those of one run. sets, on_one_node: sets met at least twice, and of those the ones
    that only one node had, whose slowdowns cannot be told from that node's own. several: names whose times
    beside the same company are in groups, as of several programs."""

    jobs: int = 0
    runs: int = 0
    added: int = 0
    status: dict[str, int] = field(default_factory=dict)
    left_aside: dict[str, int] = field(default_factory=dict)
    stretches: float = 0.0
    platforms: int = 0
    runs_of_a_platform: float = 0.0
    workloads: int = 0
    once: int = 0
    sets: int = 0
    on_one_node: int = 0
    several: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


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
        self.rule = "{name:^[a-z]+}"  # one that cuts names, as an example
        self._parts: list[tuple[Any, ...]] = []
        self._codes: tuple[dict[str, int], ...] = ({}, {}, {})  # node lists, workloads, states
        self.left_aside: Counter[str] = Counter()
        self.notes: list[str] = []
        self.jobs = self.unsure = 0

    def add(self, batch: JobBatch) -> None:
        """Take these jobs in."""
        self.jobs += len(batch.start)
        start, end, good = batch.start, batch.end, np.ones(len(batch.start), bool)
        never = start == NO_TIME
        reasons = {
            **batch.bad,
            "they never started": never,
            "they have no end": (end == NO_TIME) & (batch.outcome != RUNNING) & ~never,
            "they took no time": (end != NO_TIME) & ~never & (end <= start),
        }
        for reason, rows in reasons.items():
            self.left_aside[reason] += int((rows & good).sum())
            good &= ~rows
        self.unsure += 0 if batch.unsure is None else int((batch.unsure & good).sum())
        at = pa.array(np.flatnonzero(good))
        codes = [
            self._code(known, column.take(at))
            for known, column in zip(
                self._codes, (batch.node, batch.workload, batch.state), strict=True
            )
        ]
        running = (batch.outcome == RUNNING) | (end == NO_TIME)
        end = np.where(running, NO_TIME, end)
        self._parts.append((batch.id.take(at), *codes, start[good], end[good], batch.outcome[good]))

    @staticmethod
    def _code(known: dict[str, int], column: Any) -> np.ndarray:
        encoded = pc.dictionary_encode(pc.fill_null(column, ""))
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        values = [known.setdefault(name, len(known)) for name in encoded.dictionary.to_pylist()]
        return np.array(values, np.int32)[encoded.indices.to_numpy()]

    def runs(self) -> Runs:
        """All of them in memory. Raises BadData where no job is a run."""
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
            raise UnreadableFile("the log holds no job that ran", where=self.source)
        ids = _plain(pa.chunked_array([_plain(part[0]) for part in self._parts], pa.string()))
        columns = [
            np.concatenate(column) for column in zip(*(p[1:] for p in self._parts), strict=True)
        ]
        self._parts = [(ids, *columns)]
        names, state, start, end, outcome = columns[1:]
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
        made.runs = int(is_run.sum())
        made.status = {
            str(name): n
            for code, name in enumerate(_STATUS)
            if (n := int((outcome[is_run] == code).sum()))
        }
        about = _Jobs(
            ids, names, state, start, end, outcome, np.array(states), np.array(list(self._codes[1])),
            np.array(node_names), platforms, np.array(sorted(self._platform_names(node_names))),
            self.campaign, self.rule,
        )  # fmt: skip
        tally = _Tally(len(about.workload_names))
        batch: list[pa.Table] = []
        for company in companies(stays):
            batch.append(_table(about, company, job, stays.node, tally))
            if len(batch) == _SLICES_OF_A_FILE:
                yield pa.concat_tables(batch)
                batch = []
        if batch:
            yield pa.concat_tables(batch)
        left["their company changed too often"] += made.runs - tally.runs
        made.runs = tally.runs
        made.left_aside = {reason: n for reason, n in left.items() if n}
        if not made.runs:
            why = "; ".join(f"{n}: {reason}" for reason, n in made.left_aside.items())
            raise BadData(f"no job is a run ({why})", where=self.source)
        tally.into(made, about)
        made.notes += self.notes

    def _edges(
        self, start: np.ndarray, end: np.ndarray, is_open: np.ndarray, notes: list[str]
    ) -> tuple[int, int]:
        since, until = self._since, self._until
        if since is None:
            since = int(end[~is_open].min()) if (~is_open).any() else int(start.max()) + 1
            if (start < since).any():
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


@dataclass(frozen=True)
class _Jobs:
    id: Any
    workload: np.ndarray
    state: np.ndarray
    start: np.ndarray
    end: np.ndarray
    outcome: np.ndarray
    state_names: np.ndarray
    workload_names: np.ndarray
    node_names: np.ndarray
    platform: np.ndarray
    platform_names: np.ndarray
    campaign: str
    rule: str


def _plain(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _run_ids(campaign: str, ids: Any, start: np.ndarray) -> Any:
    """(n,) text: the cluster, the job's number, and the second of its start: a number may come again."""
    return pc.binary_join_element_wise(
        campaign, ids, pa.array(start // 1_000_000).cast(pa.string()), ":"
    )


def _last_of_each(campaign: str, ids: Any, start: np.ndarray) -> np.ndarray:
    """(n,) bool: the last row of each run_id, which knows most of the job. Those that start in the same
    second are looked at together, some at a time, as text that all differs takes much memory."""
    last, second = np.zeros(len(start), bool), start // 1_000_000
    parts = 1 + len(start) // _IDS_AT_ONCE
    for part in range(parts):
        at = np.flatnonzero(second % parts == part)
        codes = number_text(_run_ids(campaign, ids.take(pa.array(at)), start[at]))
        latest = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        latest[codes] = at
        last[latest] = True
    return last


def _nodes(lists: list[str]) -> tuple[list[str], list[list[int]], np.ndarray]:
    """(names of nodes, of each list the codes of its nodes, of each whether it cannot be read)."""
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


def _table(
    about: _Jobs, company: Company, job: np.ndarray, node: np.ndarray, tally: _Tally
) -> pa.Table:
    at = job[company.stay]
    ok = about.outcome[at] == OK
    runtime = pa.array((about.end[at] - about.start[at]) / 1e6)
    names = about.workload_names.tolist()
    offsets = np.concatenate([[0], np.cumsum(company.sizes)]).astype(np.int64)
    rank = np.argsort(np.argsort(about.workload_names, kind="stable"))
    beside = lists_from_codes(offsets, rank[company.workload], sorted(names))
    start_seconds = company.offset / 1e6
    every = stretches_column(company.counts, start_seconds, beside)
    corunners = longest_company(every, runtime)
    single = (company.counts == 1) | ~ok
    tally.add(company, at, about.workload[at], node[company.stay], corunners, names)
    states = text_from_codes(about.state[at], about.state_names.tolist())
    return columns_table(
        workload=text_from_codes(about.workload[at], names),
        platform=text_from_codes(about.platform[node[company.stay]], about.platform_names.tolist()),
        corunners=corunners,
        runtime_seconds=pc.if_else(pa.array(ok), runtime, pa.scalar(None, pa.float64())),
        measured_at=pa.array(about.start[at], pa.timestamp("us", tz="UTC")),
        campaign=about.campaign,
        run_id=_run_ids(about.campaign, about.id.take(pa.array(at)), about.start[at]),
        status=pa.array(_STATUS[about.outcome[at]].tolist(), pa.string()),
        reason=pc.if_else(pa.array(ok), pa.scalar(None, pa.string()), states),
        stretches=pc.if_else(pa.array(single), pa.scalar(None, every.type), every),
        node=text_from_codes(node[company.stay], about.node_names.tolist()),
    )


class _Tally:
    """What is counted while tables are made."""

    def __init__(self, workloads: int) -> None:
        self.runs = self.stretches = 0
        self._mark = np.random.default_rng(0).integers(1, 2**63, workloads + 1, dtype=np.uint64)
        self._columns: list[tuple[np.ndarray, ...]] = []  # job, set, node

    def add(
        self,
        company: Company,
        job: np.ndarray,
        workload: np.ndarray,
        node: np.ndarray,
        corunners: Any,
        names: Any,
    ) -> None:
        self.runs += len(company.stay)
        self.stretches += len(company.offset)
        place = {name: code for code, name in enumerate(names)}
        encoded = pc.dictionary_encode(pc.list_flatten(corunners))
        code = np.array([place[name] for name in encoded.dictionary.to_pylist()], np.int64)
        sizes = filled(pc.list_value_length(corunners), 0)
        total = np.zeros(len(workload), np.uint64)
        if len(encoded):
            row = np.repeat(np.arange(len(workload)), sizes)
            np.add.at(total, row, self._mark[code[encoded.indices.to_numpy()]])
        self._columns.append((job, total * np.uint64(3) + self._mark[workload], node))

    def into(self, made: MadeOfLog, about: _Jobs) -> None:
        job, sets, nodes = (np.concatenate(one) for one in zip(*self._columns, strict=True))
        kinds, code, counts = np.unique(sets, return_inverse=True, return_counts=True)
        code = code.reshape(-1).astype(np.int64)
        pairs = np.unique(code * (int(nodes.max()) + 1) + nodes)
        places = np.bincount(pairs // (int(nodes.max()) + 1), minlength=len(kinds))
        made.sets = int((counts > 1).sum())
        made.on_one_node = int(((counts > 1) & (places == 1)).sum())
        made.stretches = self.stretches / self.runs
        good = np.flatnonzero(about.outcome[job] == OK)
        names = about.workload[job[good]]
        number = np.bincount(names, minlength=len(about.workload_names))
        made.workloads, made.once = int((number > 0).sum()), int((number == 1).sum())
        if 2 * made.once > made.workloads:
            one = about.workload_names[np.argmax(number == 1)]
            made.notes.append(
                f"{made.once} of {made.workloads} names were met once, such as {str(one)!r}: where they end "
                f"in a number, let the rule of workloads cut them, such as {about.rule}"
            )
        if not len(good):
            seen = ", ".join(
                repr(str(about.state_names[k])) for k in np.unique(about.state[job])[:5]
            )
            made.notes.append(
                f"no job ended well: COMPLETED, succeeded, done or ok says so, not {seen}"
            )
        platform = about.platform[nodes]
        of_platform = np.bincount(platform[platform >= 0])
        made.platforms = int((of_platform > 0).sum())
        made.runs_of_a_platform = float(np.median(of_platform[of_platform > 0]))
        company = (code * len(of_platform) + platform)[good]
        several = groups_apart(names, company, (about.end - about.start)[job[good]] / 1e6)
        made.several = about.workload_names[several].tolist()
