"""Small runs, and the public measurements where they are at hand."""

from __future__ import annotations

import numpy as np

from jostle.data import Runs


def some_runs(n: int = 60, seed: int = 0, prefix: str = "r") -> Runs:
    """n runs of 5 workloads on 3 platforms with 0..2 co-runners, two to a window."""
    random = np.random.default_rng(seed)
    return Runs.from_columns(
        workload=[f"w{i}" for i in random.integers(0, 5, n)],
        platform=[f"p{i}" for i in random.integers(0, 3, n)],
        corunners=[[f"w{i}" for i in random.integers(0, 5, k)] for k in random.integers(0, 3, n)],
        runtime_seconds=random.lognormal(size=n),
        window_id=[f"{prefix}win{i // 2}" for i in range(n)],
        run_id=[f"{prefix}{i}" for i in range(n)],
        campaign="test",
    )
