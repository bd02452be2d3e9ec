"""The published measurements of Magus: 13 CUDA programs on one GPU, alone and in all pairs.

A folder holds `pairs.csv` (see `_pairs`) and, from NVIDIA's profiler, `metrics/*_metrics.csv` and
`traces/*_trace.csv` of every program alone, from which the features are made. Two campaigns measured all
pairs; they are repeats of one another, and keep their names in the column `campaign`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import pyarrow as pa

from jostle._options import Positional
from jostle._tables.lines import SECONDS, Line, csv_lines, plain, table_lines
from jostle._untrusted import understands
from jostle.errors import UnreadableFile
from jostle.runs._runs import Runs
from jostle.runs.importers._imported import Imported
from jostle.runs.importers._pairs import PairsImport

SOURCE = "Magus, github.com/leimingyu/magus"
LICENCE = "MIT"
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
_AGAIN = "Fetch the file again."
_SECTOR_BYTES = 32  # what one DRAM transaction moves
_BYTES = {"": 1.0, "B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3}


@dataclass(frozen=True)
class MagusImport:
    """Import the published measurements of Magus: CUDA programs in pairs on one GPU, profiled alone."""

    name: ClassVar[str] = "magus"
    folder: Annotated[Path, "Where pairs.csv, metrics/ and traces/ are.", Positional()]

    @understands("folder")
    def read(self) -> Imported:
        """The runs in the folder, both campaigns, with features of every profiled workload.

        Workload features: `gpu_seconds` (kernels and transfers alone), `kernel_seconds`, `transfer_bytes`,
        `kernels`, `dram_bytes`, `instructions`, the instruction mix `mix_..._ratio` (shares of the
        instructions per thread, summing to 1), `occupancy_ratio`, `instructions_per_cycle`,
        `multiprocessors_active_ratio`; null for what was not profiled. None where neither folder is there.
        Raises UnreadableFile, BadData or BadRows naming the file and its line.
        """
        path = Path(self.folder)
        if not (path / "pairs.csv").is_file():
            text = "the folder has no pairs.csv"
            raise UnreadableFile(text, where=str(path), fix="Check the name.")
        imported = PairsImport(path / "pairs.csv", published=SOURCE, licence=LICENCE).read()
        names = imported.runs.colocations.workload_names
        features: dict[str, dict[str, float]] = {name: {} for name in names}
        for kind, read in (("trace", _trace), ("metrics", _metrics)):
            folder = path / ("traces" if kind == "trace" else kind)
            for file in sorted(folder.glob(f"*_{kind}.csv")):
                stem = file.stem.removesuffix(f"_{kind}")
                features.get(_ALIASES.get(stem, stem), {}).update(read(file))
        columns = sorted({column for row in features.values() for column in row})
        if not columns:
            return imported
        table = pa.table(
            {"workload": list(names)}
            | {
                column: pa.array([features[name].get(column) for name in names], pa.float64())
                for column in columns
            }
        )
        return replace(imported, runs=Runs(imported.runs.table, table, where=str(path)))


def _trace(file: Path) -> dict[str, float]:
    """Time and bytes of a program's kernels and transfers."""
    rows, columns = _table(file, ("duration", "size", "gridx", "name"))
    units = dict(zip(map(plain, columns), next(rows, (0, []))[1], strict=False))
    kernel = transfer = moved = 0.0
    kernels = 0
    for line in table_lines(rows, columns, str(file), units):
        seconds = _number(line, "duration", SECONDS)
        if line.text("gridx"):
            kernel += seconds
            kernels += 1
        else:
            transfer += seconds
            moved += _number(line, "size", _BYTES) if line.text("size") else 0.0
    if not kernels:
        raise UnreadableFile("the trace holds no kernel", where=str(file), fix=_AGAIN)
    return {
        "gpu_seconds": kernel + transfer,
        "kernel_seconds": kernel,
        "transfer_bytes": moved,
        "kernels": float(kernels),
    }


def _metrics(file: Path) -> dict[str, float]:
    """Instruction mix and utilisation of a program's kernels together."""
    needed = {*_MIX, *_MEANS, "inst_issued", "dram_read_transactions", "dram_write_transactions"}
    by_kernel: dict[str, dict[str, float]] = {}
    calls: dict[str, float] = {}
    rows, columns = _table(file, ("kernel", "invocations", "metricname", "avg"))
    for line in table_lines(rows, columns, str(file)):
        kernel, name = line.cells["kernel"], line.cells["metricname"]
        if name not in needed:
            continue
        count, mean = (_number(line, column) for column in ("invocations", "avg"))
        if calls.setdefault(kernel, count) != count:
            raise line.bad(f": {count:g} invocations of {kernel!r}, {calls[kernel]:g} before")
        if by_kernel.setdefault(kernel, {}).setdefault(name, mean) != mean:
            raise line.bad(f": {name} of {kernel!r} stands there twice")
    if not by_kernel:
        raise UnreadableFile("the file holds no metric that is used", where=str(file), fix=_AGAIN)
    for kernel, values in by_kernel.items():
        lost = sorted(needed - set(values))
        if lost:
            raise UnreadableFile(
                f"kernel {kernel!r} has no {lost[0]!r}", where=str(file), fix=_AGAIN
            )

    def total(metric: str) -> float:
        return math.fsum(calls[k] * values[metric] for k, values in by_kernel.items())

    issued, counted = total("inst_issued"), math.fsum(total(metric) for metric in _MIX)
    if issued <= 0 or counted <= 0:
        raise UnreadableFile("the kernels issued no instruction", where=str(file), fix=_AGAIN)
    out = {column: total(metric) / counted for metric, column in _MIX.items()}
    for metric, column in _MEANS.items():
        weighted = (calls[k] * v["inst_issued"] * v[metric] for k, v in by_kernel.items())
        out[column] = math.fsum(weighted) / issued
    moved = total("dram_read_transactions") + total("dram_write_transactions")
    return out | {"dram_bytes": moved * _SECTOR_BYTES, "instructions": issued}


def _table(
    file: Path, needed: tuple[str, ...]
) -> tuple[Iterator[tuple[int, list[str]]], list[str]]:
    """(the lines below the header, its columns) of a profiler's CSV."""
    rows = csv_lines(file)
    _, columns = next(rows, (0, []))
    names = list(map(plain, columns))
    for name in needed:
        if names.count(name) != 1:
            text = f"{names.count(name)} columns {name!r}, not one"
            raise UnreadableFile(text, where=str(file), fix=_AGAIN)
    return rows, columns


def _number(line: Line, column: str, scale: Mapping[str, float] | None = None) -> float:
    """One that is not negative."""
    value = line.value(column, scale=scale)
    if value is None or value < 0:
        raise line.bad(f": {column} is {line.cells[column][:40]!r}")
    return value
