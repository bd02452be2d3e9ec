"""The published throughputs of Gavel (OSDI 2020): training jobs alone and in pairs on three kinds of GPU.

Its two files, `oracle_throughputs.json` and `simulation_throughputs.json`, come from two campaigns that
measured under different conditions, so that they must not meet in one dataset. Each holds steps per
second, `{GPU: {job: {"null": alone, other job: [job's, other job's]}}}`. Zeros are pairs that were not
measured or did not fit into memory. Kept are jobs on one GPU; in the simulation file jobs on several GPUs
have no measured pair, and the `_unconsolidated` sections repeat the others.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data import Origin, Runs, windows_of, with_origins
from jostle.errors import BadData, UnreadableFile, require_known

CAMPAIGNS = {"oracle": "oracle_throughputs.json", "simulation": "simulation_throughputs.json"}
_BATCH = re.compile(r" \(batch size (\d+)\)$")


def read_gavel(folder: Path, campaign: str) -> Runs:
    """Read one campaign, as seconds per step; the campaign's name is `gavel-oracle` or `gavel-simulation`.

    Workload features: `family` and `batch_size` (null where the name gives none).
    Raises UnknownName, UnreadableFile, and BadData naming the first bad entry.
    """
    require_known("campaign", campaign, CAMPAIGNS)
    file = folder / CAMPAIGNS[campaign]
    if not file.is_file():
        raise UnreadableFile("there is no such file", where=str(file), fix="Check the name.")
    name = f"gavel-{campaign}"
    rows = list(_rows(json.loads(file.read_text("utf-8")), str(file)))
    workload, platform, corunner, rate = (list(column) for column in zip(*rows, strict=True))
    ids = [
        f"{name}:{place}:{job}|{other or 'alone'}"
        for place, job, other in zip(platform, workload, corunner, strict=True)
    ]
    seconds = 1 / np.array(rate, float)
    jobs, place = sorted(set(workload) | {job for job in corunner if job}), sorted(set(platform))
    window = np.arange(len(rows))
    pairs = np.array([row for row in window if corunner[row]])
    window[pairs] = pairs[
        windows_of(
            np.array([place.index(platform[row]) for row in pairs]),
            np.array([jobs.index(workload[row]) for row in pairs]),
            np.array([[jobs.index(corunner[row])] for row in pairs]),
            seconds[pairs],
        )
    ]
    sizes = [_BATCH.search(job) for job in jobs]
    features = pa.table(
        {
            "workload": jobs,
            "family": [_BATCH.sub("", job) for job in jobs],
            "batch_size": pa.array([int(size[1]) if size else None for size in sizes], pa.int64()),
        }
    )
    runs = Runs.from_columns(
        workload=workload,
        platform=platform,
        corunners=[[other] if other else [] for other in corunner],
        runtime_seconds=seconds,
        campaign=name,
        run_id=ids,
        window_id=[ids[first] for first in window],
        metric=["throughput"] * len(rows),
    )
    origin = Origin(name, "Gavel (OSDI 2020), github.com/stanford-futuredata/gavel", "MIT")
    return Runs(with_origins(runs.table, [origin]), features, where=str(file))


def _rows(content: Any, where: str) -> Iterator[tuple[str, str, str | None, float]]:
    """Yield (workload, platform, co-runner or None, steps per second) of all that was measured on one GPU."""
    for platform, jobs in content.items():
        if platform.endswith("_unconsolidated"):
            continue
        for job, others in jobs.items():
            workload, gpus = _job(job)
            for other, value in others.items() if gpus == 1 else ():
                beside, width = (None, 1) if other == "null" else _job(other)
                rate: Any = None
                try:
                    rate = value if beside is None else value[0]
                    usable = 0 <= float(rate) < float("inf")
                except (TypeError, ValueError, IndexError):
                    usable = False
                if not usable:
                    text = f"{platform!r} / {job!r} / {other!r}: {value!r:.60} is no throughput"
                    raise BadData(text, where=where, fix="Fetch the file again.")
                if width == 1 and rate:
                    yield workload, platform, beside, rate


def _job(key: str) -> tuple[str, int]:
    """Read (name, number of GPUs); keys are names or, in the simulation file, the text of a pair."""
    return ast.literal_eval(key) if key.startswith("(") else (key, 1)
