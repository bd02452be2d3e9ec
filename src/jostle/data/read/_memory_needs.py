"""How much memory bandwidth kernels need, from counters that were recorded beside a profile.

    ncu --csv [--page raw] --metrics dram__bytes_read.sum,dram__bytes_write.sum,gpu__time_duration.sum PROGRAM

A need is bytes of device memory / seconds / PEs in use (Prophet, ASPLOS 2017, Table 1). A kernel that comes
close to what the memory can do needs at least so much.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from jostle.data.tables.lines import Line, csv_lines, plain, table_lines
from jostle.data.tables.quantities import SECONDS
from jostle.data.traces._profile_tasks import Profile
from jostle.errors import UnreadableFile

SATURATED = 0.7  # of the peak, from which a need is called a lower bound
_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_SIZE = re.compile(r"([kmgt]?)i?b(?:ytes?)?(?:/(?:s|second|sec))?", re.IGNORECASE)
_BYTES = ("dram__bytes_read.sum", "dram__bytes_write.sum", "dram__bytes.sum")
_RATES = tuple(f"{name}.per_second" for name in _BYTES)
_DURATION = "gpu__time_duration.sum"
_COUNTED = {*_BYTES, *_RATES, _DURATION}
_KERNEL = ("kernelname", "kernel")


@dataclass
class _Launch:
    """Traffic of one launch, or of a kernel's mean: bytes, bytes/s and s, NaN where not counted."""

    bytes: float = math.nan
    rate: float = math.nan
    seconds: float = math.nan

    def add(self, metric: str, value: float) -> None:
        if metric in _BYTES:
            self.bytes = (0.0 if math.isnan(self.bytes) else self.bytes) + value
        elif metric in _RATES:
            self.rate = (0.0 if math.isnan(self.rate) else self.rate) + value
        elif metric == _DURATION:
            self.seconds = value


def with_memory_counters(profile: Profile, path: Path) -> Profile:
    """Return the profile with the bandwidth need of kernels by name, the median of their launches; a note
    says of how many kernels. A name without template and parameters stands for all of it.

    Raises UnreadableFile for a file without such counters, BadRows for a line that cannot be read."""
    launches = _launches(path)
    own = profile.tasks.column("name").to_pylist()
    kernel = np.array([kind == "kernel" for kind in profile.tasks.column("kind").to_pylist()])
    seconds, pes = profile.column("duration_seconds"), pes_in_use(profile)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row in np.flatnonzero(kernel).tolist():
        rows_of[own[row] or ""].append(row)
    by_base: dict[str, list[str]] = defaultdict(list)
    for name in launches:
        by_base[_base(name)].append(name)
    needs, close = {}, 0
    for name, rows in rows_of.items():
        names = [name] if name in launches else by_base.get(_base(name), [])
        known = [launch for other in names for launch in launches[other]]
        typical = float(np.median(seconds[rows]))
        rates = [_rate(launch, typical) for launch in known]
        rates = [rate for rate in rates if math.isfinite(rate) and rate >= 0]
        if not rates:
            continue
        rate = float(np.median(rates))
        needs[name] = rate / float(np.median(pes[rows]))
        close += rate > SATURATED * peak_bandwidth(profile)
    notes = [
        f"memory bandwidth of {len(needs)} of {len(rows_of)} kernels (by name) is from {path.name}"
    ]
    if close:
        notes.append(f"{close} of them come close to the memory's peak and may need more than that")
    with_needs = profile.with_bandwidth(needs)
    return replace(with_needs, notes=(*profile.notes, *notes))


def _rate(launch: _Launch, typical_seconds: float) -> float:
    if not math.isnan(launch.rate):
        return launch.rate
    seconds = typical_seconds if math.isnan(launch.seconds) else launch.seconds
    return launch.bytes / seconds if seconds > 0 else math.nan


def peak_bandwidth(profile: Profile) -> float:
    """Return bytes/s of the slowest device's memory; infinite where none is known."""
    peaks = [gpu.memory_bandwidth_bytes_per_second for gpu in profile.gpus.values() if gpu]
    known = [peak for peak in peaks if peak and peak > 1.0]
    return min(known) if known else math.inf


def pes_in_use(profile: Profile) -> np.ndarray:
    """Return (n,) PEs that a kernel fills by its blocks, all where its launch shape is not known."""
    columns = ("device", "blocks", "threads_per_block", "occupancy_ratio")
    device, blocks, threads, occupancy = (profile.column(c).astype(float) for c in columns)
    pes = np.ones(len(device))
    for number in np.unique(device):
        gpu, mine = profile.gpus.get(int(number)), device == number
        if gpu is None:
            continue
        warps = np.ceil(threads[mine] / gpu.threads_per_warp)
        resident = np.maximum(1, (occupancy[mine] * gpu.warps_per_pe + 1e-9) // warps)
        used = np.ceil(blocks[mine] / resident)
        pes[mine] = np.where(np.isnan(used), gpu.pes, np.minimum(used, gpu.pes))
    return np.maximum(pes, 1.0)


def _base(name: str) -> str:
    """Return a kernel's name without its return type, template and parameters, and what compilers hang on."""
    plain = re.split(r"[<(]", name.replace("(anonymous namespace)", "anonymous"))[0].strip()
    return plain.split()[-1] if plain else name


def _launches(path: Path) -> dict[str, list[_Launch]]:
    """Return {kernel: what was counted of it}; a table has a row for each counter, or a column for each."""
    rows, where = csv_lines(path), str(path)
    launches: dict[tuple[str, str], _Launch] = {}
    columns = next((row for _, row in rows if {*map(plain, row)} & {*_KERNEL}), [])
    units: dict[str, str] = {}
    counted = {plain(metric): metric for metric in columns if metric in _COUNTED}
    for line in table_lines(rows, columns, where):
        kernel = line.text(*_KERNEL)
        if kernel is None:  # ncu's raw page has a line of units below the header
            units = dict(line.cells)
            continue
        launch = line.text("id") or ""
        metric, value = line.cells.get("metricname"), line.cells.get("metricvalue")
        if metric is None or value is None:
            launch = str(line.number)
            cells = [(counted[c], line.cells[c], units.get(c, "")) for c in counted]
        else:
            cells = [(metric, value, line.text("metricunit") or "")] if metric in _COUNTED else []
        one = launches.setdefault((kernel, launch), _Launch())
        for name, text, unit in cells:
            one.add(name, _number(text, unit, line))
    if all(math.isnan(one.bytes) and math.isnan(one.rate) for one in launches.values()):
        raise UnreadableFile(
            "no counters of device memory in this file",
            where=where,
            fix=f"Record some of {', '.join(_BYTES)} with ncu, as CSV.",
        )
    by_kernel: dict[str, list[_Launch]] = defaultdict(list)
    for (name, _), one in launches.items():
        by_kernel[name].append(one)
    return by_kernel


def _number(text: str, unit: str, line: Line) -> float:
    """Read a number in bytes, bytes/s or s; the unit may stand behind it (`12.3GB/s`). Raises BadRows."""
    match = re.fullmatch(r"([0-9.eE+-]+)\s*([A-Za-z/%]*)", text.strip().replace(",", ""))
    unit = (match[2] if match else "") or unit.strip()
    size = _SIZE.fullmatch(unit)
    scale = _PREFIXES[size[1].lower()] if size else SECONDS.get(unit, math.nan if unit else 1.0)
    try:
        value = float(match[1]) * scale if match else math.nan
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise line.bad(f": {text[:40]!r} in unit {unit[:20]!r} is no count")
    return value
