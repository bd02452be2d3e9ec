"""Two kernels on one V100, measured and simulated: which shared resources explain what happens.

The measurements (`v100_interference`) are medians of kernels of known launch shape, alone, one after the
other, and together. The simulator has PEs and memory bandwidth; L2 bandwidth and the SMs' issue pipeline
come as further resources that kernels need, no code. Every capacity is taken from one co-run of its own
kind and tested on the others. What no stretch describes is flagged and not predicted: working sets that
together reach the L1 cache, or the copies' own working set the L2 cache.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from jostle.accelerator import Application, Device, Task, Tenant, simulate
from jostle.errors import UnreadableFile
from jostle.traces import gpu_named
from studies.accelerator.tables import read_measurements

L1_BYTES = 128 * 1024
# Read from these rows; they are not counted as tested.
CAPACITY_FROM = {"memory": 120, "l2": 2.0, "pipeline": 4}


@dataclass(frozen=True)
class KernelMeasurement:
    """median: of so many repeats, in ms, or in GB/s where the condition is a bandwidth."""

    experiment: str
    condition: str
    repeats: int
    median: float

    @property
    def seconds(self) -> float:
        return self.median * 1e-3

    def number(self, pattern: str) -> float:
        """The number in the condition. Raises UnreadableFile."""
        match = re.search(pattern, self.condition)
        if match is None:
            raise UnreadableFile(f"unknown condition {self.condition!r}", where="parsed.csv")
        return float(match[1])


@dataclass(frozen=True)
class KernelPair:
    """One co-run. predicted_seconds: None where it is flagged, with the reason. with_three: the same with
    PEs, memory and bus only. fitted: a capacity was read from it."""

    experiment: str
    condition: str
    alone_seconds: float
    measured_seconds: float
    predicted_seconds: float | None
    with_three_seconds: float
    sequential_seconds: float
    fitted: bool
    flag: str | None

    def error(self, seconds: float | None = None) -> float:
        """Relative, of predicted_seconds by default."""
        value = self.predicted_seconds if seconds is None else seconds
        assert value is not None
        return abs(value - self.measured_seconds) / self.measured_seconds


def simulated_pairs(folder: Path) -> list[KernelPair]:
    """Every co-run of the measurements, 23 of them. Raises UnreadableFile."""
    columns = ("experiment", "condition", "n", "median_ms")
    table = read_measurements(folder / "parsed.csv", columns, "V100 measurements")
    rows = [
        KernelMeasurement(
            row["experiment"], row["condition"], int(row["n"]), float(row["median_ms"])
        )
        for row in table
    ]
    found = [*_scheduler(rows), *_memory(rows), *_l2(rows), *_copy_and_compute(rows)]
    return [*found, *_l1(rows), *_pipelines(rows)]


def _device(**resources: float) -> Device:
    gpu = gpu_named("V100")
    return Device(gpu.pes, gpu.warps_per_pe, resources, placement="spread")


def _together(device: Device, *tasks: Task, sharing: str = "concurrent") -> float:
    """Seconds until all kernels that start together are done."""
    tenants = [Tenant(Application.of(f"k{n}", task)) for n, task in enumerate(tasks)]
    found = simulate(tenants, device, sharing)
    return max(float(ends[0]) for ends in found.run_ends)


def _corun(
    row: KernelMeasurement,
    tasks: tuple[Task, Task],
    device: Device | None,
    *,
    three: Device | None = None,
    fitted: bool = False,
    flag: str | None = None,
) -> KernelPair:
    plain = three or Device(80, 64, placement="spread")
    return KernelPair(
        experiment=row.experiment,
        condition=row.condition,
        alone_seconds=max(task.seconds for task in tasks),
        measured_seconds=row.seconds,
        predicted_seconds=None if device is None else _together(device, *tasks),
        with_three_seconds=_together(plain, *tasks),
        sequential_seconds=_together(plain, *tasks, sharing="sequential"),
        fitted=fitted,
        flag=flag,
    )


def _of(rows: list[KernelMeasurement], experiment: str, *words: str) -> list[KernelMeasurement]:
    return [r for r in rows if r.experiment == experiment and all(w in r.condition for w in words)]


def _kernel(
    seconds: float, blocks: int, threads: int, needs: dict[str, float] | None = None
) -> Task:
    return Task("kernel", seconds, 0.0, blocks, threads // 32, 1.0, needs or {})


def _scheduler(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Sleeping kernels: nothing but PEs. Two blocks of 1024 threads fit an SM."""
    found = []
    for row in _of(rows, "inter_sm_thread_block_scheduler", "colocated"):
        blocks = int(row.number(r"\((\d+), 1024\)"))
        alone = _of(rows, row.experiment, "alone", f"({blocks}, 1024)")[0].seconds
        task = _kernel(alone, blocks, 1024)
        found.append(_corun(row, (task, task), _device()))
    return found


def _memory(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Copies of 2 GB under MPS, half the SMs each. Rows of more than 10 repeats are both processes of a
    co-run, though they are called alone. GB: the sum of what both draw at 120 blocks."""
    name = "inter_sm_memory_bandwidth"
    pairs = []
    capacity = 0.0
    for blocks in (40, 80, 120, 160):
        mine = _of(rows, name, f"({blocks}, 1024)")
        times = [r for r in mine if "bandwidth" not in r.condition]
        drawn = [r.median * 1e9 for r in mine if "bandwidth" in r.condition]
        alone = next(r for r in times if r.repeats == 10)
        together = next(r for r in times if r.repeats > 10)
        pairs.append((blocks, alone, together, drawn[0]))
        if blocks == CAPACITY_FROM["memory"]:
            capacity = drawn[1] + drawn[2]
    found = []
    for blocks, alone, together, draws in pairs:
        # MPS gives each process 40 SMs: at most 80 blocks are resident, on 40 PEs.
        task = _kernel(alone.seconds, 40, 2048, {"memory": draws / 40})
        device = _device(memory=capacity)
        fitted = blocks == CAPACITY_FROM["memory"]
        found.append(_corun(together, (task, task), device, three=device, fitted=fitted))
    return found


def _l2(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Copies that repeat over a few MB: both buffers in L2 up to 3 MB, then past its 6 MB."""
    name = "inter_sm_l2_cache"
    pairs = []
    capacity = 0.0
    for row in _of(rows, name, "colocated"):
        size = row.number(r"copying ([\d.]+) MB")
        alone = _of(rows, name, "alone", f"copying {size:.6f} MB")[0].seconds
        pairs.append((row, size, alone))
        if size == CAPACITY_FROM["l2"]:
            capacity = 2 * size / row.seconds
    found = []
    limit = (gpu_named("V100").l2_bytes or 0) / 2**20
    for row, size, alone in pairs:
        task = _kernel(alone, 40, 1024, {"l2": size / alone / 40})
        if 2 * size > limit:
            flag = f"each copy's buffers ({2 * size:g} MB) exceed the L2 cache of {limit:g} MB"
            found.append(_corun(row, (task, task), None, flag=flag))
            continue
        fitted = size == CAPACITY_FROM["l2"]
        found.append(_corun(row, (task, task), _device(l2=capacity), fitted=fitted))
    return found


def _copy_and_compute(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """A copy and a compute kernel on the same SMs: neither needs what the other does."""
    name = "intra_sm_ipc"
    copy = _kernel(_of(rows, name, "copy kernel alone")[0].seconds, 80, 1024)
    compute = _kernel(_of(rows, name, "compute kernel", "alone")[0].seconds, 80, 128)
    return [_corun(row, (copy, compute), _device()) for row in _of(rows, name, "colocated")]


def _l1(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Blocks that copy a few KB again and again, two on each SM; source and destination both count."""
    name = "intra_sm_l1_cache"
    sequential: dict[float, list[float]] = {}
    for row in _of(rows, name, "sequentially"):
        size = row.number(r"copying (\d+) KB")
        sequential.setdefault(size, []).append(row.seconds)
    found = []
    seen: dict[float, int] = {}
    for row in _of(rows, name, "colocated"):
        size = row.number(r"copying (\d+) KB")
        repeat = seen[size] = seen.get(size, -1) + 1
        task = _kernel(sequential[size][repeat] / 2, 80, 64)
        footprint = 2 * 2 * size * 1024
        if footprint >= L1_BYTES:
            flag = f"working sets of {footprint / 1024:g} KB on an SM reach its L1 cache of 128 KB"
            found.append(_corun(row, (task, task), None, flag=flag))
        else:
            found.append(_corun(row, (task, task), _device()))
    return found


def _pipelines(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Compute kernels with 1 to 4 independent instruction streams (ILP) on the same SMs. Work is
    proportional to ILP; a kernel's need of the pipeline is its rate, ILP per second."""
    name = "intra_sm_pipelines"
    in_turn, together = (
        {row.number(r"ILP (\d)"): row for row in _of(rows, name, how)}
        for how in ("sequentially", "colocated")
    )
    alone = {number: row.seconds / 2 for number, row in in_turn.items()}
    ilp = float(CAPACITY_FROM["pipeline"])
    capacity = 2 * ilp / together[ilp].seconds * 80
    found = []
    for number, row in together.items():
        task = _kernel(alone[number], 80, 128, {"pipeline": number / alone[number]})
        found.append(_corun(row, (task, task), _device(pipeline=capacity), fitted=number == ilp))
    return found
