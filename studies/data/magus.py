"""The published measurements of Magus: 13 CUDA programs on one GPU, alone and in all pairs.

A folder holds `pairs.csv` and, from NVIDIA's profiler, `metrics/*_metrics.csv` and
`traces/*_trace.csv` of every program alone, from which the features are made. Two campaigns measured all
pairs; they are repeats of one another, and keep their names in the column `campaign`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from jostle.data import PairsImport, Profile, Runs, read_profile
from jostle.errors import UnreadableFile

# The profiles are named after the samples' folders, the pairs after what was typed.
_ALIASES = {"binomialOptions": "binopt", "convolutionFFT2D": "convfft2d"}
# Instructions by kind, counted per thread; together they make the mix.
_MIX = {
    "inst_fp_16": "mix_fp16_ratio",
    "inst_fp_32": "mix_fp32_ratio",
    "inst_fp_64": "mix_fp64_ratio",
    "inst_integer": "mix_integer_ratio",
    "inst_bit_convert": "mix_convert_ratio",
    "inst_control": "mix_control_ratio",
    "inst_compute_ld_st": "mix_load_store_ratio",
    "inst_misc": "mix_misc_ratio",
    "inst_inter_thread_communication": "mix_communication_ratio",
}
# Averages over kernels, weighted by the instructions that each issues.
_MEANS = {
    "achieved_occupancy": "occupancy_ratio",
    "executed_ipc": "instructions_per_cycle",
    "sm_activity": "multiprocessors_active_ratio",
}
_USED = {*_MIX, *_MEANS, "inst_issued", "dram_read_transactions", "dram_write_transactions"}
_SECTOR_BYTES = 32  # what one DRAM transaction moves
_SCALES = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_SCALES |= {"B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3}


def read_magus(folder: Path) -> Runs:
    """Read both campaigns, with features of every profiled workload.

    Workload features: `gpu_seconds` (kernels and transfers alone), `kernel_seconds`, `transfer_bytes`,
    `kernels`, `dram_bytes`, `instructions`, the instruction mix `mix_..._ratio` (shares of the
    instructions per thread, summing to 1), `occupancy_ratio`, `instructions_per_cycle`,
    `multiprocessors_active_ratio`; null for what was not profiled.
    Raises UnreadableFile, BadData or BadRows naming the file.
    """
    source = "Magus, github.com/leimingyu/magus"
    runs = PairsImport(folder / "pairs.csv", published=source, licence="MIT").read().runs
    features: dict[str, dict[str, float]] = {n: {} for n in runs.colocations.workload_names}
    for read, files in (
        (_trace_features, _files(folder / "traces", "_trace")),
        (_metric_features, _files(folder / "metrics", "_metrics")),
    ):
        for name, file in files.items():
            features.get(name, {}).update(read(file))
    columns = sorted({column for row in features.values() for column in row})
    table = pa.table(
        {"workload": list(features)}
        | {
            column: pa.array([row.get(column) for row in features.values()], pa.float64())
            for column in columns
        }
    )
    return Runs(runs.table, table, where=str(folder)) if columns else runs


def read_magus_profiles(folder: Path) -> dict[str, Profile]:
    """Read the trace of every program alone; returns them by workload. Raises UnreadableFile."""
    files = _files(folder / "traces", "_trace")
    return {name: read_profile(file, workload=name) for name, file in files.items()}


def _files(folder: Path, ending: str) -> dict[str, Path]:
    """Find the files of a profiler, by workload."""
    stems = {file.stem.removesuffix(ending): file for file in sorted(folder.glob(f"*{ending}.csv"))}
    return {_ALIASES.get(stem, stem): file for stem, file in stems.items()}


def _trace_features(file: Path) -> dict[str, float]:
    """Add up time and bytes of a program's kernels and transfers."""
    rows = _lines(file)
    units = next(rows)
    kernel = transfer = moved = 0.0
    kernels = 0
    for row in rows:
        seconds = float(row["Duration"]) * _SCALES[units["Duration"]]
        if row["Grid X"]:
            kernel += seconds
            kernels += 1
        else:
            transfer += seconds
            moved += float(row["Size"]) * _SCALES[units["Size"]] if row["Size"] else 0.0
    return {
        "gpu_seconds": kernel + transfer,
        "kernel_seconds": kernel,
        "transfer_bytes": moved,
        "kernels": float(kernels),
    }


def _metric_features(file: Path) -> dict[str, float]:
    """Weigh instruction mix and utilisation of a program's kernels together."""
    kernels: dict[str, dict[str, float]] = {}
    calls: dict[str, float] = {}
    for row in _lines(file):
        name, kernel = row["Metric Name"], row["Kernel"]
        if name in _USED:
            calls[kernel] = float(row["Invocations"])
            kernels.setdefault(kernel, {})[name] = _number(row["Avg"])
    if not kernels or any(set(values) != _USED for values in kernels.values()):
        text = "a kernel has not all metrics that are used"
        raise UnreadableFile(text, where=str(file), fix="Fetch the file again.")

    def total(metric: str) -> float:
        return math.fsum(calls[k] * values[metric] for k, values in kernels.items())

    issued, counted = total("inst_issued"), math.fsum(total(metric) for metric in _MIX)
    out = {column: total(metric) / counted for metric, column in _MIX.items()}
    for metric, column in _MEANS.items():
        weighted = (calls[k] * v["inst_issued"] * v[metric] for k, v in kernels.items())
        out[column] = math.fsum(weighted) / issued
    moved = total("dram_read_transactions") + total("dram_write_transactions")
    return out | {"dram_bytes": moved * _SECTOR_BYTES, "instructions": issued}


def _lines(file: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a profiler's CSV below its header, without `==PID==` lines."""
    with file.open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(line for line in lines if not line.startswith("=="))


def _number(cell: str) -> float:
    return float(cell[:-1]) / 100 if cell.endswith("%") else float(cell)
