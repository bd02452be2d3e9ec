"""Bags on a made-up GPU, and on a made-up CPU."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from jostle.data import Runs

APPS = tuple(f"app{i}" for i in range(6))


def make_bags(seed: int = 0, most: int = 2, cpu: bool = False, noise: float = 0.0) -> Runs:
    """All bags of up to `most` + 1 of six applications: each waits 0.4 s, and longer beside what moves
    much memory. On the CPU each is slowed by its own share of memory."""
    random = np.random.default_rng(seed)
    solo = np.round(random.uniform(0.5, 3.0, 6), 3)
    memory = np.round(random.uniform(0.0, 1.0, 6), 3)
    rows = []
    for size in range(1, most + 2):
        for bag in combinations_with_replacement(range(6), size):
            for at in sorted(set(bag)):
                beside = list(bag)
                beside.remove(at)
                wait = 0.4 + memory[at] * memory[beside].sum() if beside else 0.0
                rows.append((at, "gpu", beside, solo[at] + wait))
                if cpu:
                    slow = 1 + memory[at] * len(beside)
                    rows.append((at, "cpu", beside, 10 * solo[at] * slow))
    seconds = np.array([r[3] for r in rows]) * np.exp(noise * random.normal(size=len(rows)))
    return Runs.from_columns(
        workload=[APPS[r[0]] for r in rows],
        platform=[r[1] for r in rows],
        corunners=[[APPS[j] for j in r[2]] for r in rows],
        runtime_seconds=seconds,
        workload_features={
            "workload": list(APPS),
            "mix_memory_ratio": memory,
            "mix_rest_ratio": 1 - memory,
            "threads": [None, 1, 2, 4, 8, 16],
            "kind": ["a", "a", "b", "b", "c", "c"],
        },
    )


@pytest.fixture(scope="session")
def bags() -> Runs:
    return make_bags()


@pytest.fixture(scope="session")
def pairs() -> Runs:
    return make_bags(most=1, cpu=True)
