"""Artificial disturbers at a known strength: how many windows are flagged with one, how many without."""

from __future__ import annotations

import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.kernels import child_environment
from jostle.measure.campaign._campaign import Campaign
from jostle.measure.campaign._session import measure
from jostle.measure.campaign._summary import MeasureOptions
from jostle.measure.workloads._workloads import Workload

# Holds a share of a core, in turns of a tenth of a second, and ends with its parent. CPU time is counted: by
# the clock on the wall, whoever computes on the same core would take half of the share back.
_PROGRAM = """
import os, sys, time
from jostle.kernels import die_with
share, core, parent = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
die_with(parent)
if core >= 0:
    os.sched_setaffinity(0, {core})
print(flush=True)
while True:
    began, until = time.monotonic(), time.process_time() + 0.1 * share
    while time.process_time() < until:
        pass
    time.sleep(max(0.0, began + 0.1 - time.monotonic()))
"""
_STANDARD_SCORE = 1.96
_FLAGGED_CORES = 0.1


@dataclass(frozen=True)
class Detection:
    """member: what was measured. share: of a core, held by another process, 0 for none; core: where it was
    kept, None where it was free. flagged: those of so many windows in which others held more, as it says,
    than a tenth of a core. interval: of the rate, at 95 % (Wilson, 1927).
    held_cores: what the collector says others held, in the median."""

    member: str
    share: float
    core: int | None
    windows: int
    flagged: int
    held_cores: float | None

    @property
    def rate(self) -> float:
        return self.flagged / self.windows if self.windows else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        if not self.windows:
            return 0.0, 1.0
        n, z = self.windows, _STANDARD_SCORE
        middle = (self.rate + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(self.rate * (1 - self.rate) / n + (z / n) ** 2 / 4)
        return max(0.0, middle - half), min(1.0, middle + half)


def measured_rows(
    workloads: Sequence[Workload],
    engine: str,
    cores: tuple[int, ...] | None,
    repeats: int,
    options: MeasureOptions,
) -> list[dict[str, Any]]:
    """The runs of workloads alone, measured now."""
    from jostle.runs import Dataset

    campaign = Campaign(
        workloads=list(workloads),
        engines=[engine],
        solo_repeats=repeats,
        sets=0,
        cores=cores,
        device="here",
    )
    with tempfile.TemporaryDirectory(prefix="jostle-audit-") as folder:
        path = Path(folder) / "data"
        measure(campaign, path, options)
        return Dataset(path).read().table.to_pylist()


@contextmanager
def disturber(share: float, core: int | None = None) -> Iterator[None]:
    """Another process that holds a share of a core while the context lasts; none where that is 0."""
    if not share:
        yield
        return
    import os

    words = [str(share), str(-1 if core is None else core), str(os.getpid())]
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM, *words],
        stdout=subprocess.PIPE,
        env=child_environment(),
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def detection(
    workload: Workload,
    engine: str,
    *,
    share: float,
    windows: int,
    core: int | None = None,
    cores: tuple[int, ...] | None = None,
) -> Detection:
    """Measure a workload alone in so many windows beside a disturber. Raises what `measure` does."""
    options = MeasureOptions(attempts=1)
    with disturber(share, core):
        rows = measured_rows([workload], engine, cores, windows, options)
    held = [
        row["foreign_cores"] + row["outside_cores"]
        for row in rows
        if row["foreign_cores"] is not None
    ]
    flagged = sum(cores > _FLAGGED_CORES for cores in held)
    median = statistics.median(held) if held else None
    return Detection(workload.name, share, core, len(rows), flagged, median)
