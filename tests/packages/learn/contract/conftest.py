"""Data small enough to fit every method on, several times."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.data import Runs

WORKLOADS, PLATFORMS = 6, 3


def made_runs(seed: int = 0) -> Runs:
    """Every workload alone, all pairs and some sets of three, on every platform, with noise."""
    random = np.random.default_rng(seed)
    solo = random.uniform(0.5, 4.0, (PLATFORMS, WORKLOADS))
    hit, press = random.uniform(0.1, 1.0, WORKLOADS), random.uniform(0.1, 0.8, WORKLOADS)
    rows = []
    for p in range(PLATFORMS):
        for w in range(WORKLOADS):
            sets = [(), (), *((k,) for k in range(WORKLOADS))]
            sets += [tuple(random.integers(0, WORKLOADS, 2)) for _ in range(3)]
            for beside in sets:
                slow = 1 + hit[w] * press[list(beside)].sum()
                rows.append((w, p, beside, solo[p, w] * slow * np.exp(0.02 * random.normal())))
    names = [f"w{i}" for i in range(WORKLOADS)]
    return Runs.from_columns(
        workload=[names[w] for w, *_ in rows],
        platform=[f"p{p}" for _, p, *_ in rows],
        corunners=[[names[k] for k in beside] for *_, beside, _ in rows],
        runtime_seconds=[seconds for *_, seconds in rows],
        workload_features={"workload": names, "opcode_load": (100 * press).astype(int) + 1},
    )


@pytest.fixture(scope="session")
def runs() -> Runs:
    return made_runs()
