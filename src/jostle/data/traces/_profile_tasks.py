"""What ran on an accelerator, task by task: the table `tasks/v1`, and profiles made of it.

One row is one kernel, transfer or memset of one run, in the order of its start. What a profile cannot
say is null: the bandwidth that a kernel needs (of timelines only PyTorch's with shapes tells it), the
pinning of a copy in old files, the launch shape on AMD.

History: v1, the first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.untrusted import printable
from jostle.data.tables.arrow_compute import with_column
from jostle.data.traces._gpus import Gpu
from jostle.data.traces._table_format import TableFormat
from jostle.errors import BadData, BadRows

KINDS = ("kernel", "htod", "dtoh", "dtod", "memset", "graph")
# As profilers write them, in small letters without spaces and signs.
COPIES = {"htod": "htod", "dtoh": "dtoh", "dtod": "dtod"}
COPIES |= {"hosttodevice": "htod", "devicetohost": "dtoh", "devicetodevice": "dtod"}

TASKS = TableFormat(
    "tasks/v1",
    {
        "run_id": (pa.string(), "name", "the run that was profiled"),
        "sequence": (pa.int64(), "number", "0, 1, … in the order of start within the run"),
        "kind": (pa.string(), "name", "kernel, htod, dtoh, dtod, memset or graph"),
        "name": (pa.string(), "name", "of the kernel or copy, null where the profile has none"),
        "device": (pa.int32(), "number", "of the accelerator within the run"),
        "stream": (pa.int64(), "number", "stream or queue, null where not given"),
        "start_seconds": (pa.float64(), "s", "since the origin of the profile's clock"),
        "duration_seconds": (pa.float64(), "s", "on the device"),
        "bytes": (pa.int64(), "B", "moved or set, null for kernels and where not given"),
        "pinned": (
            pa.bool_(),
            "flag",
            "host memory of a transfer is page-locked, null where not given",
        ),
        "blocks": (pa.int64(), "count", "of the grid, null where not given"),
        "threads_per_block": (pa.int32(), "count", "null where not given"),
        "registers_per_thread": (pa.int32(), "count", "null where not given"),
        "shared_bytes": (pa.int64(), "B", "static and dynamic, per block, null where not given"),
        "occupancy_ratio": (
            pa.float64(),
            "ratio",
            "theoretical, null where device or shape is unknown",
        ),
        "bandwidth_per_pe": (
            pa.float64(),
            "B/s",
            "of device memory, per PE in use and unsaturated",
        ),
        "graph_node": (
            pa.int64(),
            "number",
            "node of a CUDA graph that launched it, null otherwise",
        ),
    },
)
_BATCH = 65_536
_COUNTS = ("bytes", "blocks", "threads_per_block", "registers_per_thread", "shared_bytes")
_OPTIONAL = (
    *("stream", "bytes", "pinned", "blocks", "threads_per_block", "registers_per_thread"),
    *("shared_bytes", "occupancy_ratio", "bandwidth_per_pe", "graph_node"),
)


@dataclass(frozen=True, eq=False)
class Profile:
    """Tasks of one profiled run. tasks: `tasks/v1` in the order of start. gpus: {device: its hardware, None
    where neither the file nor the table of devices has it}. notes: what the reader left out or could not
    know. marks: s at which marked steps began, where the file has them; they are not kept in a dataset.
    memory_bytes: of the device, that the run takes; None where it is not known."""

    run_id: str
    workload: str
    tasks: pa.Table
    gpus: Mapping[int, Gpu | None]
    notes: tuple[str, ...] = ()
    format: str = "tasks"
    marks: tuple[float, ...] = ()
    memory_bytes: float | None = None

    def __len__(self) -> int:
        return self.tasks.num_rows

    @property
    def devices(self) -> tuple[int, ...]:
        """Devices with at least one task, ascending."""
        return tuple(sorted(set(self.tasks.column("device").to_pylist())))

    def on(self, device: int) -> pa.Table:
        """Return the tasks of one device. Raises BadData for a device that has none."""
        if device not in self.devices:
            known = ", ".join(map(str, self.devices)) or "none"
            raise BadData(f"device {device} has no tasks; with tasks: {known}", where=self.run_id)
        return self.tasks.filter(pa.array(self.column("device") == device))

    def column(self, name: str) -> np.ndarray:
        """Return (n,) a column; NaN or None where null."""
        return self.tasks.column(name).to_numpy()

    def with_bandwidth(self, bytes_per_second_per_pe: Mapping[str, float]) -> Profile:
        """Return the profile with the bandwidth need of kernels by name, from a run small enough not to
        saturate memory: DRAM bytes / seconds / PEs in use. Raises BadData for a need below 0."""
        for name, need in bytes_per_second_per_pe.items():
            if not (np.isfinite(need) and need >= 0):
                raise BadData(f"the bandwidth need of {name!r} is {need}", where=self.run_id)
        old = self.tasks.column("bandwidth_per_pe").to_pylist()
        new = [
            bytes_per_second_per_pe.get(name or "", value)
            for name, value in zip(self.tasks.column("name").to_pylist(), old, strict=True)
        ]
        column = pa.array(new, pa.float64())
        return replace(self, tasks=with_column(self.tasks, "bandwidth_per_pe", column))


class TaskBuilder:
    """Collects rows of `tasks/v1` in batches, so that a large profile never stands in Python objects."""

    def __init__(self, run_id: str, where: str) -> None:
        self.run_id, self.where = run_id, where
        self.rows = 0
        self.devices: set[int] = set()
        self._parts: list[pa.RecordBatch] = []
        self._names: dict[str, int] = {}
        self._columns: dict[str, list[Any]] = self._empty()
        fields = [pa.field(n, TASKS.columns[n][0]) for n in self._columns if n != "name"]
        self._schema = pa.schema([*fields, pa.field("name", pa.int32())])

    @staticmethod
    def _empty() -> dict[str, list[Any]]:
        return {name: [] for name in TASKS.columns if name not in ("run_id", "sequence")}

    def add(
        self,
        kind: str,
        start_seconds: float,
        duration_seconds: float,
        *,
        name: str | None = None,
        device: int = 0,
        **more: Any,
    ) -> None:
        """Add one task. more: other columns, None if the profile has none. Raises BadRows for a time that is
        not a finite number or a negative duration."""
        # NaN fails every comparison.
        if not (-1e18 < start_seconds < 1e18) or not (0 <= duration_seconds < 1e18):
            raise BadRows(
                f"task {self.rows} ({name or kind}) starts at {start_seconds} s and takes "
                f"{duration_seconds} s",
                rows=[(self.rows, "impossible time")],
                where=self.where,
                fix="Times must be finite and durations not negative; record the profile again.",
            )
        columns = self._columns
        columns["kind"].append(kind)
        if name is not None:
            name = printable(name)
        columns["name"].append(
            None if name is None else self._names.setdefault(name, len(self._names))
        )
        columns["device"].append(device)
        self.devices.add(device)
        columns["start_seconds"].append(start_seconds)
        columns["duration_seconds"].append(duration_seconds)
        for column in _OPTIONAL:
            columns[column].append(more.get(column))
        self.rows += 1
        if self.rows % _BATCH == 0:
            self._flush()

    def _flush(self) -> None:
        try:
            part = pa.RecordBatch.from_pydict(self._columns, schema=self._schema)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise BadData(f"a value does not fit its column: {error}", where=self.where) from None
        for name in _COUNTS:
            counts = part.column(name).drop_null().to_numpy()
            if (counts < 0).any():
                raise BadData(f"{name} is {counts.min()}: no count is below 0", where=self.where)
        self._parts.append(part)
        self._columns = self._empty()

    def profile(
        self,
        workload: str,
        gpus: Mapping[int, Gpu | None],
        notes: Iterable[str] = (),
        format: str = "tasks",
    ) -> Profile:
        """Return all that was added. Raises BadData where there was no task at all."""
        return Profile(self.run_id, workload, self._table(gpus), gpus, tuple(notes), format)

    def _table(self, gpus: Mapping[int, Gpu | None]) -> pa.Table:
        """Return `tasks/v1`, in the order of start (ties as added), occupancy filled in where it is known."""
        if not self.rows:
            raise BadData(
                "no kernel or transfer ran on an accelerator in this profile",
                where=self.where,
                fix="Record with GPU tracing on (nsys -t cuda, nvprof --print-gpu-trace, "
                "torch.profiler with ProfilerActivity.CUDA).",
            )
        if self._columns["kind"]:
            self._flush()
        table = pa.Table.from_batches(self._parts)
        self._parts = []
        starts = table.column("start_seconds").to_numpy()
        if np.any(starts[1:] < starts[:-1]):
            table = table.take(pa.array(np.argsort(starts, kind="stable")))
        names = pa.array(list(self._names), pa.string())
        codes = table.column("name").combine_chunks()
        columns = {name: table.column(name) for name in table.column_names}
        columns["name"] = pa.DictionaryArray.from_arrays(codes, names).cast(pa.string())
        columns["run_id"] = pa.repeat(self.run_id, table.num_rows)
        columns["sequence"] = pa.array(np.arange(table.num_rows))
        columns["occupancy_ratio"] = pa.array(
            occupancies(table, gpus), pa.float64(), from_pandas=True
        )
        return pa.Table.from_arrays([columns[name] for name in TASKS.columns], schema=TASKS.schema)


def volume(sides: Iterable[float | None]) -> int | None:
    """Return the product of a launch shape's sides; None where any is absent or 0."""
    return math.prod(int(side or 0) for side in sides) or None


def occupancies(table: pa.Table, gpus: Mapping[int, Gpu | None]) -> np.ndarray:
    """Return (n,) theoretical occupancy of kernels, NaN where device or launch shape is unknown or where the
    block does not fit the device at all."""
    keys = ("device", "threads_per_block", "registers_per_thread", "shared_bytes")
    parts = [table.column(k).to_numpy().astype(np.float64) for k in keys]
    whole = np.nan_to_num(np.stack(parts, axis=1), nan=-1.0)
    unique, inverse = np.unique(whole, axis=0, return_inverse=True)
    answer = np.full(len(unique), np.nan)
    for row, (device, threads, registers, shared) in enumerate(unique):
        gpu = gpus.get(int(device))
        if gpu is not None and threads > 0:
            need = max(int(registers), 0), max(int(shared), 0)
            answer[row] = gpu.occupancy(int(threads), *need) or np.nan
    return answer[inverse.reshape(-1)]


def tasks_from_rows(
    rows: Iterable[Mapping[str, Any]], *, run_id: str, workload: str | None = None, gpu: Gpu
) -> Profile:
    """Return a profile from rows with the columns of `tasks/v1` (kind, start_seconds and duration_seconds
    at least), for one device. For tests, and for profilers that no reader here knows."""
    builder = TaskBuilder(run_id, run_id)
    for row in rows:
        unknown = set(row) - set(TASKS.columns)
        if unknown:
            raise BadData(f"{sorted(unknown)[0]!r} is no column of {TASKS.version}", where=run_id)
        if row["kind"] not in KINDS:
            raise BadData(f"kind {row['kind']!r} is none of {', '.join(KINDS)}", where=run_id)
        builder.add(**{k: v for k, v in row.items() if k not in ("run_id", "sequence")})
    return builder.profile(workload or run_id, {0: gpu})
