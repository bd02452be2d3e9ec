"""Runs of made traces as recorded ones are, and the published snapshots."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from jostle.data import Trace
from jostle.errors import UnreadableFile

COUNTERS = ("instructions", "llc-requests", "llc-misses")
UNITS = np.array([2e9, 5e6, 1e6])  # typical rates per second
PAPER_SCALE = {"instructions": 1e-8, "llc-requests": 1e-6, "llc-misses": 1e-5}  # counts per 10 ms
CYCLES = 5
Folder = str | os.PathLike[str]


def made_trace(run: int, time: np.ndarray, rates: np.ndarray) -> Trace:
    """Make one run on one core. rates: (T, 3) of COUNTERS in samples of one length that end at the times;
    NaN: not counted."""
    seconds = float(time[0])
    return Trace(
        run_id=f"run-{run:05d}",
        core=0,
        workload="made",
        platform="none",
        corunners=(),
        window_id=None,
        runtime_seconds=float(time[-1]),
        time_seconds=time,
        interval_seconds=np.full(len(time), seconds),
        counters={name: rates[:, i] * seconds for i, name in enumerate(COUNTERS)},
    )


def read_published(folder: Folder, between: int) -> tuple[np.ndarray, list[np.ndarray], list[str]]:
    """The published snapshots with `between` of them inside each control cycle.

    Returns times in cycles (s,), the clouds (500, 3) in counts per 10 ms, and a fingerprint of each cloud's
    data: equal fingerprints are the same samples. Raises UnreadableFile.
    """
    home = Path(folder) / f"halder_outfiles_0927_intermarginals{between}"
    count = CYCLES * (between + 1) + 1
    clouds, prints = [], []
    for k in range(count):
        found = sorted(home.glob(f"*_t{k}_3dim.txt"))
        if not found:
            raise UnreadableFile(f"there is no snapshot t{k}", where=str(home))
        try:
            cloud = np.loadtxt(found[0], ndmin=2)
        except ValueError as error:
            raise UnreadableFile(f"not a table of numbers: {error}", where=str(found[0])) from None
        clouds.append(cloud)
        prints.append(fingerprint(cloud))
    return np.arange(count) / (between + 1), clouds, prints


def fingerprint(atoms: np.ndarray) -> str:
    """The same for the same numbers in the same order."""
    return hashlib.sha256(np.ascontiguousarray(atoms, np.float64).tobytes()).hexdigest()[:16]
