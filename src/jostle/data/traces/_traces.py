"""Counter samples over time: the tables `traces/v1` and `traced_runs/v1`, and one run's view of them.

`traces/v1` is long: one row per run, core, sample and counter, so that any counter may be absent
anywhere. `traced_runs/v1` says once per run what ran, where and beside what; its run_id is the run_id
of `runs/v1` where the same run was also measured as a whole.

History: v1, the first.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.files import parquet_files
from jostle.data.tables.arrow_compute import pc
from jostle.data.traces._table_format import TableFormat, TablePair
from jostle.errors import BadData, BadRows, UnknownName, UnreadableFile, require_known

# Taken as they are at the end of a sample: not counts over it.
LEVELS = ("resident_bytes",)
LEVEL_ENDING = "_level"  # of the names of all other levels
# Say where a program is, not what it uses: whole numbers of `phases` lie between two of them.
MARKS = ("phases",)


def is_level(counter: str) -> bool:
    """Return whether a counter is a level, by its name: taken as it is, not a count over the sample."""
    return counter in LEVELS or counter.endswith(LEVEL_ENDING)


SAMPLES = TableFormat(
    "traces/v1",
    {
        "run_id": (pa.string(), "name", "the run that was traced"),
        "core": (pa.int32(), "number", "0, 1, …: the core of this run, in the order of its slots"),
        "time_seconds": (pa.float64(), "s", "end of the sample since the run began"),
        "interval_seconds": (pa.float64(), "s", "how long the sample took"),
        "counter": (pa.string(), "name", "what was counted"),
        "value": (
            pa.float64(),
            "count",
            "in this sample, null where the counter was not available",
        ),
    },
)
_SLOWDOWN = (
    "how much slower than usual a core was right before and after, null where it was not watched"
)
TRACED = TableFormat(
    "traced_runs/v1",
    {
        "run_id": (pa.string(), "name", "unique in a dataset"),
        "workload": (pa.string(), "name", "the program with its input"),
        "platform": (pa.string(), "name", "where it ran: device and runtime"),
        "corunners": (pa.list_(pa.string()), "names", "workloads beside it, a multiset, sorted"),
        "window_id": (pa.string(), "name", "runs traced together share it, null where alone"),
        "runtime_seconds": (pa.float64(), "s", "of the whole run, null where it had not ended"),
        "core_slowdown_ratio": (pa.float64(), "ratio", _SLOWDOWN),
    },
    optional=("core_slowdown_ratio",),
)


@dataclass(frozen=True, eq=False)
class Trace:
    """Counters of one core of one run: T samples in the order of time.

    time_seconds: (T,) end of each sample since the run began. interval_seconds: (T,) above 0.
    counters: {name: (T,)} NaN where not available, never 0 for it.
    runtime_seconds: of the whole run, NaN where it had not ended when the trace did.
    core_slowdown_ratio: in older recordings, how much slower than usual a core was right before and after, by
    a probe; NaN where that was not watched.
    """

    run_id: str
    core: int
    workload: str
    platform: str
    corunners: tuple[str, ...]
    window_id: str | None
    runtime_seconds: float
    time_seconds: np.ndarray
    interval_seconds: np.ndarray
    counters: Mapping[str, np.ndarray]
    core_slowdown_ratio: float = float("nan")

    def __len__(self) -> int:
        return len(self.time_seconds)

    def __getitem__(self, counter: str) -> np.ndarray:
        """Return (T,) one counter. Raises UnknownName for one that this trace never had."""
        require_known("counter", counter, self.counters, where=self.run_id)
        return self.counters[counter]

    @property
    def solo(self) -> bool:
        """True if it ran alone."""
        return not self.corunners

    def take(self, samples: np.ndarray) -> Trace:
        """Keep only the samples of a mask or of these indices."""
        return replace(
            self,
            time_seconds=self.time_seconds[samples],
            interval_seconds=self.interval_seconds[samples],
            counters={name: values[samples] for name, values in self.counters.items()},
        )


class Traces:
    """Traces of any number of runs. samples: `traces/v1`; traced: `traced_runs/v1`. notes: what was settled
    where files of a dataset name the same run.

    Raises BadRows for a time that does not rise, an interval that is not above 0, a value that is
    negative (of no level) or not finite, a sample that stands twice, a run that `traced` does not name or
    names twice.
    """

    def __init__(
        self,
        samples: pa.Table,
        traced: pa.Table,
        *,
        where: str | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        self.samples = SAMPLES.conform(samples, where)
        self.traced = TRACED.conform(traced, where)
        self.notes = tuple(notes)
        self._check(where)

    @classmethod
    def from_traces(cls, traces: Sequence[Trace]) -> Traces:
        """Join single traces; those that share a run_id must agree on what ran."""
        samples: dict[str, list[Any]] = {name: [] for name in SAMPLES.columns}
        traced: dict[str, dict[str, Any]] = {}
        for trace in traces:
            facts = {
                "run_id": trace.run_id,
                "workload": trace.workload,
                "platform": trace.platform,
                "corunners": sorted(trace.corunners),
                "window_id": trace.window_id,
                "runtime_seconds": _or_null(trace.runtime_seconds),
                "core_slowdown_ratio": _or_null(trace.core_slowdown_ratio),
            }
            if traced.setdefault(trace.run_id, facts) != facts:
                raise BadData(
                    "two traces of one run disagree on what ran",
                    where=trace.run_id,
                    fix="Give runs run_ids of their own.",
                )
            n = len(trace)
            for counter, values in trace.counters.items():
                values = np.asarray(values, np.float64)
                if values.shape != (n,):
                    raise BadData(
                        f"counter {counter!r} has {values.size} values for {n} samples",
                        where=trace.run_id,
                    )
                samples["run_id"].append(pa.repeat(trace.run_id, n))
                samples["core"].append(pa.array(np.full(n, trace.core, np.int32)))
                samples["time_seconds"].append(pa.array(trace.time_seconds, pa.float64()))
                samples["interval_seconds"].append(pa.array(trace.interval_seconds, pa.float64()))
                samples["counter"].append(pa.repeat(counter, n))
                samples["value"].append(pa.array(values, mask=np.isnan(values)))
        columns = [
            pa.chunked_array(samples[field.name], field.type).combine_chunks()
            for field in SAMPLES.schema
        ]
        table = pa.Table.from_arrays(columns, schema=SAMPLES.schema)
        rows = pa.Table.from_pylist(list(traced.values()), schema=TRACED.schema)
        return cls(table, rows)

    def __len__(self) -> int:
        """Return how many runs."""
        return self.traced.num_rows

    def __repr__(self) -> str:
        return f"Traces({len(self)} runs, {self.samples.num_rows} values)"

    def __iter__(self) -> Iterator[Trace]:
        """Yield every core of every run, runs in the order of `traced`."""
        for run_id in self.run_ids:
            for core in self.cores(run_id):
                yield self.of(run_id, core)

    @cached_property
    def run_ids(self) -> tuple[str, ...]:
        """The run_ids, in the order of `traced`."""
        return tuple(self.traced.column("run_id").to_pylist())

    @property
    def counters(self) -> tuple[str, ...]:
        """All counters that occur, sorted."""
        return tuple(sorted(pc.unique(self.samples.column("counter")).to_pylist()))

    def cores(self, run_id: str) -> tuple[int, ...]:
        """Return the cores that a run has samples of."""
        self._require(run_id)
        return tuple(core for _, core in self._places.get(run_id, ()))

    def of(self, run_id: str, core: int = 0) -> Trace:
        """Return one core of one run. Raises UnknownName, BadData for a core without samples."""
        if (run_id, core) not in self._known:
            self._known[run_id, core] = self._of(run_id, core)
        return self._known[run_id, core]

    @cached_property
    def _known(self) -> dict[tuple[str, int], Trace]:
        return {}

    def _of(self, run_id: str, core: int) -> Trace:
        facts = self.traced.slice(self._require(run_id), 1).to_pylist()[0]
        rows = next((rows for rows, c in self._places.get(run_id, ()) if c == core), None)
        if rows is None:
            known = ", ".join(map(str, self.cores(run_id))) or "none"
            raise BadData(f"core {core} has no samples; known: {known}", where=run_id)
        table = self._sorted.slice(rows.start, rows.stop - rows.start)
        times = _numbers(table, "time_seconds")
        unique, first, sample = np.unique(times, return_index=True, return_inverse=True)
        names = table.column("counter").to_numpy()
        values = _numbers(table, "value")
        counters = {}
        for name in sorted(set(names)):
            mine = names == name
            counters[str(name)] = full = np.full(len(unique), np.nan)
            full[sample[mine]] = values[mine]
        seconds, slow = facts["runtime_seconds"], facts["core_slowdown_ratio"]
        return Trace(
            run_id=run_id,
            core=core,
            workload=facts["workload"],
            platform=facts["platform"],
            corunners=tuple(facts["corunners"] or ()),
            window_id=facts["window_id"],
            runtime_seconds=np.nan if seconds is None else seconds,
            time_seconds=unique,
            interval_seconds=_numbers(table, "interval_seconds")[first],
            counters=counters,
            core_slowdown_ratio=np.nan if slow is None else slow,
        )

    def select(self, run_ids: Sequence[str]) -> Traces:
        """Keep only these runs, in this order. Raises UnknownName."""
        rows = [self._require(run_id) for run_id in run_ids]
        rows_of_runs = pc.is_in(
            self.samples.column("run_id"), value_set=pa.array(run_ids, pa.string())
        )
        return Traces(
            self.samples.filter(rows_of_runs), self.traced.take(pa.array(rows, pa.int64()))
        )

    def _require(self, run_id: str) -> int:
        if run_id not in self._rows:
            raise UnknownName("run", run_id, self.run_ids)
        return self._rows[run_id]

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {run_id: row for row, run_id in enumerate(self.run_ids)}

    @cached_property
    def _sorted(self) -> pa.Table:
        return self.samples.sort_by([(name, "ascending") for name in ("run_id", "core")])

    @cached_property
    def _places(self) -> dict[str, list[tuple[range, int]]]:
        """Rows of `_sorted` and core by run, {run_id: [(rows, core)]}."""
        ids = self._sorted.column("run_id").to_numpy()
        cores = self._sorted.column("core").to_numpy()
        if not len(ids):
            return {}
        starts = np.flatnonzero(np.r_[True, (ids[1:] != ids[:-1]) | (cores[1:] != cores[:-1])])
        places: dict[str, list[tuple[range, int]]] = {}
        for start, stop in zip(starts, np.r_[starts[1:], len(ids)], strict=True):
            place = range(int(start), int(stop))
            places.setdefault(str(ids[start]), []).append((place, int(cores[start])))
        return places

    def _check(self, where: str | None) -> None:
        bad: list[tuple[int, str]] = []

        def forbid(rows: np.ndarray, reason: str) -> None:
            bad.extend((int(row), reason) for row in np.flatnonzero(rows)[:100])

        for table, nullable in ((self.samples, ("value",)), (self.traced, _MAY_BE_NULL)):
            for name in table.column_names:
                if name not in nullable and table.column(name).null_count:
                    forbid(np.asarray(pc.is_null(table.column(name))), f"{name} is null")
        if not bad:
            ids = self.traced.column("run_id").to_numpy()
            _, first, counts = np.unique(ids, return_index=True, return_counts=True)
            forbid(np.isin(np.arange(len(ids)), first[counts > 1]), "the run is listed twice")
            known = pc.is_in(
                self.samples.column("run_id"),
                value_set=self.traced.column("run_id").combine_chunks(),
            )
            forbid(~np.asarray(known), "the run is not among the traced runs")
            forbid(_numbers(self.samples, "core") < 0, "core is negative")
            for name in ("time_seconds", "interval_seconds"):
                value = _numbers(self.samples, name)
                forbid(~(np.isfinite(value) & (value > 0)), f"{name} is not above 0")
            value = _numbers(self.samples, "value")
            null = np.asarray(pc.is_null(self.samples.column("value")))
            counters = self.samples.column("counter")
            levels = [name for name in pc.unique(counters).to_pylist() if is_level(name)]
            may = np.asarray(pc.is_in(counters, value_set=pa.array(levels, pa.string())))
            good = np.isfinite(value) & ((value >= 0) | may)
            forbid(~null & ~good, "value is negative or not finite")
        if not bad and self.samples.num_rows:
            self._check_order(forbid)
        if bad:
            row, reason = bad[0]
            raise BadRows(
                f"{len(bad)} rows break the tables of traces, the first is row {row}: {reason}",
                rows=bad,
                where=where,
                fix="Repair them where they come from; what was not available is null.",
            )

    def _check_order(self, forbid: Any) -> None:
        """Refuse samples of one counter that overlap, and counters of a sample with own intervals."""
        order = np.lexsort(
            (
                _numbers(self.samples, "time_seconds"),
                pc.rank(self.samples.column("counter"), tiebreaker="dense").to_numpy(),
                _numbers(self.samples, "core"),
                pc.rank(self.samples.column("run_id"), tiebreaker="dense").to_numpy(),
            )
        )
        table = self.samples.take(pa.array(order))
        same = np.ones(len(order) - 1, bool)
        for name in ("run_id", "core", "counter"):
            column = table.column(name).to_numpy()
            same &= column[1:] == column[:-1]
        time, interval = _numbers(table, "time_seconds"), _numbers(table, "interval_seconds")
        # A thousandth of the interval may overlap: clocks are read one after the other.
        early = time[1:] - interval[1:] < time[:-1] - 1e-3 * interval[1:]
        wrong = np.zeros(len(order), bool)
        wrong[order[1:][same & early]] = True
        forbid(wrong, "the sample begins before the one before it ended, or stands twice")


_MAY_BE_NULL = ("window_id", "runtime_seconds", *TRACED.optional)


def _or_null(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).to_numpy()


_PAIR = TablePair(TRACED, "traced_runs", SAMPLES, "traces")


def write_traces(path: str | os.PathLike[str], traces: Traces) -> list[Path]:
    """Add the traces to the dataset in folder `path`; returns the files written.

    What the dataset already holds as a file is not written again. Raises BadData for a run_id that it
    holds already with other content, NotPermitted when the disk is full or the folder cannot be written.
    """
    folder = Path(path)

    def require_new() -> None:
        known = TRACED.run_ids(folder / "traced_runs")
        twice = [run_id for run_id in traces.run_ids if run_id in known]
        if twice:
            raise BadData(
                f"{len(twice)} traced runs are in the dataset already, the first is {twice[0]!r}",
                where=str(folder),
                fix="Write to another folder, or give new runs run_ids of their own.",
            )

    return _PAIR.write(folder, traces.traced, traces.samples, require_new)


def read_traces(path: str | os.PathLike[str]) -> Traces:
    """Return all traces of the dataset in folder `path`; of a run in two files, the earlier.

    Raises UnreadableFile naming a file that is missing, truncated or foreign, BadRows for bad rows.
    """
    folder = Path(path)
    traced, samples, notes = _PAIR.read(folder)
    if not traced.num_rows:
        raise UnreadableFile(
            "the folder holds no traces",
            where=str(folder),
            fix="A dataset has them in its folders traces and traced_runs; record some with jostle trace.",
        )
    return Traces(samples, traced, where=str(folder), notes=notes)


def has_traces(path: str | os.PathLike[str]) -> bool:
    """Return whether the folder holds files of traces; none is opened."""
    return bool(parquet_files(Path(path) / "traced_runs"))
