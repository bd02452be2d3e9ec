"""Columns of memory in a log of any source: under the names and in the units that people give them."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from jostle.data import ImportedLog, JobsImport

# Logs of jobs count in powers of 1024, whatever the letters.
UNITS = {"kb": 2**10, "KiB": 2**10, "MB": 2**20, "(MiB)": 2**20, "GB": 2**30, "bytes": 1}


def log(path: Path, peak: str, requested: str, cell: str = "{}", number: float = 3.0) -> Path:
    lines = [f"job,workload,node,start,end,state,{peak},{requested}"]
    for job in range(30):
        start = f"2026-01-01T{job // 6:02}:{job % 6 * 10:02}:"
        sizes = f"{cell.format(number)},{cell.format(2 * number)}"
        lines.append(f"{job},w{job % 3},n1,{start}00,{start}50,ok,{sizes}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def sizes_of(found: ImportedLog) -> list[tuple[float, float]]:
    runs = found.runs()
    both = runs.peak_memory_bytes.tolist(), runs.requested_memory_bytes.tolist()
    return sorted(set(zip(*both, strict=True)))


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("peak", "requested"),
    [("memory", "memory limit"), ("Max RSS", "ReqMem"), ("peak-memory", "requested_memory")],
)
def test_the_unit_of_plain_numbers_is_that_of_the_name(
    tmp_path: Path, peak: str, requested: str, unit: str
) -> None:
    path = log(tmp_path / "jobs.csv", f"{peak} {unit}", f"{requested}_{unit}")
    found = JobsImport(path).read()
    assert sizes_of(found) == [(3 * UNITS[unit], 6 * UNITS[unit])]


@pytest.mark.parametrize(
    ("cell", "number", "size"), [("{} GB", 2.5, 2.5 * 2**30), ("{}", 4e9, 4e9)]
)
def test_cells_with_a_unit_and_bytes_need_none(
    tmp_path: Path, cell: str, number: float, size: float
) -> None:
    found = JobsImport(log(tmp_path / "jobs.csv", "memory", "mem_limit", cell, number)).read()
    assert sizes_of(found) == [(size, 2 * size)]


def test_small_numbers_without_a_unit_are_unknown(tmp_path: Path) -> None:
    """2 may be GB, and 2000 MB: neither is bytes, and a request of 2 bytes helps nobody."""
    found = JobsImport(log(tmp_path / "jobs.csv", "memory", "memory_limit_gb")).read()
    assert all(math.isnan(peak) for peak, _ in sizes_of(found))
    assert {requested for _, requested in sizes_of(found)} == {6 * 2**30}
    assert any("nothing tells the unit of 'memory'" in note for note in found.notes)
