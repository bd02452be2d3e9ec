"""Samples and helpers for tests of watch, and for others that need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from jostle.data import Runs
from tests.packages.models.levels import campaign


def renamed(runs: Runs) -> Runs:
    """Three platforms a device: p00 to p02 are x:d0, y:d0, z:d0."""

    def of(name: str) -> str:
        return f"{'xyz'[int(name[1:]) % 3]}:d{int(name[1:]) // 3}"

    names = [of(name) for name in runs.table.column("platform").to_pylist()]
    c = runs.table
    return Runs.from_columns(
        workload=c.column("workload"),
        platform=names,
        corunners=c.column("corunners"),
        runtime_seconds=c.column("runtime_seconds"),
    )


def stream(seed: int, n: int = 1500) -> Runs:
    """Fresh runs of the same campaign, with new noise, in random order."""
    whole, random = renamed(campaign(24, 12)), np.random.default_rng(seed)
    rows = random.integers(0, len(whole), n)
    return times(whole.take(rows), np.exp(0.02 * random.normal(size=n)))


def times(runs: Runs, factor: Any) -> Runs:
    table = runs.table
    place = table.column_names.index("runtime_seconds")
    column = pa.array(runs.runtime_seconds * factor)
    ids = pa.array([f"r{i}" for i in range(len(runs))])
    table = table.set_column(place, table.field(place), column)
    return Runs(table.set_column(table.column_names.index("run_id"), "run_id", ids))


def names_of(runs: Runs, which: str) -> np.ndarray:
    return np.array(runs.table.column(which).to_pylist())
