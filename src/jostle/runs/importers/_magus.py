"""The published measurements of Magus: 13 CUDA programs on one GPU, alone and in all pairs.

A folder holds `pairs.csv` (see `_pairs`) and, from NVIDIA's profiler, `metrics/*_metrics.csv` and
`traces/*_trace.csv` of every program alone, from which the features are made. Two campaigns measured all
pairs; they are repeats of one another, and keep their names in the column `campaign`.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import pyarrow as pa

from jostle._options import Positional
from jostle._tables import read_text
from jostle._untrusted import understands
from jostle.errors import BadRows, UnreadableFile
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
_SECTOR_BYTES = 32  # what one DRAM transaction moves
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_BYTES = {"B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3}


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
            raise UnreadableFile("the folder has no pairs.csv", where=str(path))
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
    rows = _rows(file, ("Duration", "Size", "Grid X", "Name"))
    units = next(rows, None)
    if units is None:
        raise UnreadableFile("the trace holds no row of units", where=str(file))
    line, unit = units
    if unit["Duration"] not in _SECONDS or (unit["Size"] or "B") not in _BYTES:
        raise _bad(file, line, f"units {unit['Duration']!r}, {unit['Size']!r} are not known")
    kernel = transfer = moved = 0.0
    kernels = 0
    for line, row in rows:
        seconds = _number(file, line, row, "Duration") * _SECONDS[unit["Duration"]]
        if row["Grid X"]:
            kernel += seconds
            kernels += 1
        else:
            transfer += seconds
            if row["Size"]:
                moved += _number(file, line, row, "Size") * _BYTES[unit["Size"] or "B"]
    if not kernels:
        raise UnreadableFile("the trace holds no kernel", where=str(file))
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
    for line, row in _rows(file, ("Kernel", "Invocations", "Metric Name", "Avg")):
        kernel, name = row["Kernel"], row["Metric Name"]
        if name not in needed:
            continue
        count, mean = (_number(file, line, row, column) for column in ("Invocations", "Avg"))
        if calls.setdefault(kernel, count) != count:
            raise _bad(file, line, f"{count:g} invocations of {kernel!r}, {calls[kernel]:g} before")
        if by_kernel.setdefault(kernel, {}).setdefault(name, mean) != mean:
            raise _bad(file, line, f"{name} of {kernel!r} stands there twice")
    if not by_kernel:
        raise UnreadableFile("the file holds no metric that is used", where=str(file))
    for kernel, values in by_kernel.items():
        lost = sorted(needed - set(values))
        if lost:
            raise UnreadableFile(f"kernel {kernel!r} has no {lost[0]!r}", where=str(file))

    def total(metric: str) -> float:
        return math.fsum(calls[k] * values[metric] for k, values in by_kernel.items())

    issued, counted = total("inst_issued"), math.fsum(total(metric) for metric in _MIX)
    if issued <= 0 or counted <= 0:
        raise UnreadableFile("the kernels issued no instruction", where=str(file))
    out = {column: total(metric) / counted for metric, column in _MIX.items()}
    for metric, column in _MEANS.items():
        weighted = (calls[k] * v["inst_issued"] * v[metric] for k, v in by_kernel.items())
        out[column] = math.fsum(weighted) / issued
    moved = total("dram_read_transactions") + total("dram_write_transactions")
    return out | {"dram_bytes": moved * _SECTOR_BYTES, "instructions": issued}


def _rows(file: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """(line, row) of a profiler's CSV, whose comments begin with ==."""
    lines = read_text(file).split("\n")
    header: list[str] | None = None
    for number, text in enumerate(lines, start=1):
        if not text.strip() or text.startswith("=="):
            continue
        try:
            cells = next(csv.reader([text.removesuffix("\r")], strict=True))
        except csv.Error as error:
            raise _bad(file, number, f"not a line of CSV: {error}") from None
        if header is None:
            header = cells
            for column in columns:
                if header.count(column) != 1:
                    raise _bad(file, number, f"{header.count(column)} columns {column!r}, not one")
        elif len(cells) != len(header):
            raise _bad(file, number, f"{len(cells)} cells where there are {len(header)} columns")
        else:
            yield number, dict(zip(header, cells, strict=True))


def _number(file: Path, line: int, row: dict[str, str], column: str) -> float:
    """A number that is not negative; a percentage is a ratio."""
    cell = row[column]
    try:
        digits = "" if "_" in cell else cell.removesuffix("%")  # Python would take 1_000
        value = float(digits) / (100 if cell.endswith("%") else 1)
    except ValueError:
        raise _bad(file, line, f"{column} {cell!r} is not a number") from None
    if not math.isfinite(value) or value < 0:
        raise _bad(file, line, f"{column} is {cell}")
    return value


def _bad(file: Path, line: int, reason: str) -> BadRows:
    return BadRows(f"line {line}: {reason}", rows=[(line, reason)], where=str(file))
