"""Tables of runs out of jobs and who was beside them, and what is counted while they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data.read._log_sweep import Company
from jostle.data.read._mixed_names import groups_apart
from jostle.data.runs._name_columns import filled, lists_from_codes, text_from_codes
from jostle.data.runs._runs_columns import columns_table
from jostle.data.runs._schema import with_covariates
from jostle.data.runs._segments import longest_company, stretches_column
from jostle.data.tables.arrow_compute import pc
from jostle.data.tables.quantities import OK, STATUS_OF

STATUS = np.array(STATUS_OF)


@dataclass
class MadeOfLog:
    """Result of the import of a log. jobs: rows of jobs. runs: of those that could be. added: of those that
    the dataset had not. status, left_aside: counts by name. stretches: of a run, in the mean. workloads,
    once: names, and those of one run. sets, on_one_node: sets met at least twice, and of those the ones that
    only one node had, whose slowdowns cannot be told from that node's own. several: names whose times beside
    the same company are in groups, as of several programs. unknown_corunners: runs beside which others were
    that nobody knows. understood: what columns and cells were taken for."""

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
    unknown_corunners: int = 0
    understood: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class JobArrays:
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
    peak: np.ndarray
    requested: np.ndarray
    unknown: np.ndarray | None
    covariates: dict[str, Any]


def run_ids(campaign: str, ids: Any, start: np.ndarray) -> Any:
    """Return (n,) text: the cluster, the job's number, and the second of its start: a number may come
    again."""
    return pc.binary_join_element_wise(
        campaign, ids, pa.array(start // 1_000_000).cast(pa.string()), ":"
    )


def table_of(
    about: JobArrays, company: Company, job: np.ndarray, node: np.ndarray, tally: LogTally
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
    more: dict[str, Any] = {
        name: pa.array(values[at], from_pandas=True)
        for name, values in (
            ("peak_memory_bytes", about.peak), ("requested_memory_bytes", about.requested),
        )
        if np.isfinite(values).any()
    }  # fmt: skip
    more |= {name: column.take(pa.array(at)) for name, column in about.covariates.items()}
    if about.unknown is not None:
        more["unknown_corunners"] = about.unknown[company.stay]
        tally.unknown += int(about.unknown[company.stay].sum())
    table = columns_table(
        **more,
        workload=text_from_codes(about.workload[at], names),
        platform=text_from_codes(about.platform[node[company.stay]], about.platform_names.tolist()),
        corunners=corunners,
        runtime_seconds=pc.if_else(pa.array(ok), runtime, pa.scalar(None, pa.float64())),
        measured_at=pa.array(about.start[at], pa.timestamp("us", tz="UTC")),
        campaign=about.campaign,
        run_id=run_ids(about.campaign, about.id.take(pa.array(at)), about.start[at]),
        status=pa.array(STATUS[about.outcome[at]].tolist(), pa.string()),
        reason=pc.if_else(pa.array(ok), pa.scalar(None, pa.string()), states),
        stretches=pc.if_else(pa.array(single), pa.scalar(None, every.type), every),
        node=text_from_codes(node[company.stay], about.node_names.tolist()),
    )
    return with_covariates(table, [*about.covariates]) if about.covariates else table


class LogTally:
    """Counts made while tables are made of a log."""

    def __init__(self, workloads: int) -> None:
        self.runs = self.stretches = self.unknown = 0
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

    def into(self, made: MadeOfLog, about: JobArrays) -> None:
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
