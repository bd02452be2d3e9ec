"""Two kernels on one V100, measured and simulated: which shared resources explain what happens.

The measurements (`v100_interference`) are medians of kernels of known launch shape, alone, one after the
other, and together. The simulator has PEs and memory bandwidth; L2 bandwidth and the SMs' issue pipeline
come as further resources that kernels need, no code. Every capacity is taken from one co-run of its own
kind and tested on the others. What no stretch describes is flagged and not predicted: working sets that
together reach the L1 cache, or the copies' own working set the L2 cache.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle._base.report import Table, percent
from jostle.data import gpu_named
from jostle.errors import UnreadableFile
from jostle.gpu import Application, Device, Task, Tenant, simulate

L1_BYTES = 128 * 1024
# Read from these rows; they are not counted as tested.
CAPACITY_FROM = {"memory": 120, "l2": 2.0, "pipeline": 4}
FITTED = "a capacity is read from it"


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
    """One co-run. predicted, sequential: seconds as simulated, NaN where it is flagged. remark: the reason,
    or that a capacity was read from it."""

    row: KernelMeasurement
    predicted: float
    sequential: float
    remark: str

    def error(self, seconds: float) -> float:
        return abs(seconds - self.row.seconds) / self.row.seconds


def evaluate_accelerator_v100(folder: Path) -> Table:
    """Kernels of known launch shape, two at a time, on a V100. Raises UnreadableFile."""
    pairs = simulated_pairs(folder)
    described = [pair for pair in pairs if pair.remark in ("", FITTED)]
    tested = [pair for pair in described if not pair.remark]
    ours = np.mean([pair.error(pair.predicted) for pair in tested])
    rival = np.mean([pair.error(pair.sequential) for pair in tested])
    cells = []
    for pair in pairs:
        row, known = pair.row, pair in described
        predicted = f"{pair.predicted * 1e3:.1f}" if known else "–"
        error = f"{100 * pair.error(pair.predicted):.1f}%" if known else "–"
        name = f"{row.experiment}: {row.condition}"[:84]
        cells.append((name, f"{row.seconds * 1e3:.1f}", predicted, error, pair.remark))
    title = (
        f"mean error {percent(float(ours))} over {len(tested)} conditions, of the sequential model "
        f"{percent(float(rival))}; {len(pairs) - len(described)} of {len(pairs)} not predicted"
    )
    return Table(("co-run", "measured ms", "predicted ms", "error", ""), cells, title)


def simulated_pairs(folder: Path) -> list[KernelPair]:
    """Every co-run of the measurements, 23 of them. Raises UnreadableFile."""
    path = folder / "parsed.csv"
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [
                KernelMeasurement(
                    r["experiment"], r["condition"], int(r["n"]), float(r["median_ms"])
                )
                for r in csv.DictReader(file)
            ]
    except (OSError, KeyError, ValueError) as error:
        raise UnreadableFile(f"not the V100 measurements: {error}", where=str(path)) from None
    every = (_scheduler, _memory, _l2, _copy_and_compute, _l1, _pipelines)
    return [pair for part in every for pair in part(rows)]


def _corun(
    row: KernelMeasurement, tasks: tuple[Task, Task], remark: str = "", **resources: float
) -> KernelPair:
    """Both kernels start together, on a V100 with these resources."""
    gpu = gpu_named("V100")
    device = Device(gpu.pes, gpu.warps_per_pe, resources, placement="spread")
    if remark not in ("", FITTED):
        return KernelPair(row, float("nan"), float("nan"), remark)
    tenants = [Tenant(Application.of(f"k{n}", task)) for n, task in enumerate(tasks)]
    ends = [
        max(float(end[0]) for end in simulate(tenants, device, sharing).run_ends)
        for sharing in ("concurrent", "sequential")
    ]
    return KernelPair(row, ends[0], ends[1], remark)


def _of(rows: list[KernelMeasurement], experiment: str, *words: str) -> list[KernelMeasurement]:
    return [r for r in rows if r.experiment == experiment and all(w in r.condition for w in words)]


def _kernel(seconds: float, blocks: int, threads: int, **needs: float) -> Task:
    return Task("kernel", seconds, 0.0, blocks, threads // 32, 1.0, needs)


def _scheduler(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Sleeping kernels: nothing but PEs. Two blocks of 1024 threads fit an SM."""
    found = []
    for row in _of(rows, "inter_sm_thread_block_scheduler", "colocated"):
        blocks = int(row.number(r"\((\d+), 1024\)"))
        alone = _of(rows, row.experiment, "alone", f"({blocks}, 1024)")[0].seconds
        task = _kernel(alone, blocks, 1024)
        found.append(_corun(row, (task, task)))
    return found


def _memory(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Copies of 2 GB under MPS, half the SMs each. Rows of more than 10 repeats are both processes of a
    co-run, though they are called alone. GB: the sum of what both draw at 120 blocks."""
    pairs = []
    capacity = 0.0
    for blocks in (40, 80, 120, 160):
        mine = _of(rows, "inter_sm_memory_bandwidth", f"({blocks}, 1024)")
        times = [r for r in mine if "bandwidth" not in r.condition]
        drawn = [r.median * 1e9 for r in mine if "bandwidth" in r.condition]
        alone = next(r for r in times if r.repeats == 10)
        together = next(r for r in times if r.repeats > 10)
        # MPS gives each process 40 SMs: at most 80 blocks are resident, on 40 PEs.
        task = _kernel(alone.seconds, 40, 2048, memory=drawn[0] / 40)
        pairs.append((together, task, FITTED if blocks == CAPACITY_FROM["memory"] else ""))
        if blocks == CAPACITY_FROM["memory"]:
            capacity = drawn[1] + drawn[2]
    return [_corun(row, (task, task), remark, memory=capacity) for row, task, remark in pairs]


def _l2(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Copies that repeat over a few MB: both buffers in L2 up to 3 MB, then past its 6 MB."""
    name, limit = "inter_sm_l2_cache", (gpu_named("V100").l2_bytes or 0) / 2**20
    pairs = [(row, row.number(r"copying ([\d.]+) MB")) for row in _of(rows, name, "colocated")]
    (capacity,) = (2 * mb / row.seconds for row, mb in pairs if mb == CAPACITY_FROM["l2"])
    found = []
    for row, mb in pairs:
        alone = _of(rows, name, "alone", f"copying {mb:.6f} MB")[0].seconds
        task = _kernel(alone, 40, 1024, l2=mb / alone / 40)
        remark = FITTED if mb == CAPACITY_FROM["l2"] else ""
        if 2 * mb > limit:
            remark = f"each copy's buffers ({2 * mb:g} MB) exceed the L2 cache of {limit:g} MB"
        found.append(_corun(row, (task, task), remark, l2=capacity))
    return found


def _copy_and_compute(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """A copy and a compute kernel on the same SMs: neither needs what the other does."""
    name = "intra_sm_ipc"
    copy = _kernel(_of(rows, name, "copy kernel alone")[0].seconds, 80, 1024)
    compute = _kernel(_of(rows, name, "compute kernel", "alone")[0].seconds, 80, 128)
    return [_corun(row, (copy, compute)) for row in _of(rows, name, "colocated")]


def _l1(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Blocks that copy a few KB again and again, two on each SM; source and destination both count."""
    name = "intra_sm_l1_cache"
    sequential: dict[float, list[float]] = {}
    for row in _of(rows, name, "sequentially"):
        sequential.setdefault(row.number(r"copying (\d+) KB"), []).append(row.seconds)
    found = []
    for row in _of(rows, name, "colocated"):
        size = row.number(r"copying (\d+) KB")
        task = _kernel(sequential[size].pop(0) / 2, 80, 64)
        footprint = 2 * 2 * size * 1024
        remark = f"working sets of {footprint / 1024:g} KB on an SM reach its L1 cache of 128 KB"
        found.append(_corun(row, (task, task), remark if footprint >= L1_BYTES else ""))
    return found


def _pipelines(rows: list[KernelMeasurement]) -> list[KernelPair]:
    """Compute kernels with 1 to 4 independent instruction streams (ILP) on the same SMs. Work is
    proportional to ILP; a kernel's need of the pipeline is its rate, ILP per second."""
    in_turn, together = (
        {row.number(r"ILP (\d)"): row for row in _of(rows, "intra_sm_pipelines", how)}
        for how in ("sequentially", "colocated")
    )
    most = CAPACITY_FROM["pipeline"]
    capacity = 2 * most / together[most].seconds * 80
    found = []
    for ilp, row in together.items():
        alone = in_turn[ilp].seconds / 2
        task = _kernel(alone, 80, 128, pipeline=ilp / alone)
        found.append(_corun(row, (task, task), FITTED if ilp == most else "", pipeline=capacity))
    return found
