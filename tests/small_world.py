"""A small synthetic world with known interference."""

from __future__ import annotations

import numpy as np

from jostle.data import Runs
from jostle.learn.learners.network import Factorization

WORKLOADS, PLATFORMS = 14, 6
# Learned from `make_world(1800, 0)` wherever a model is needed: one compiled program serves all.
QUICK_NETWORK = Factorization(rank=16, hidden=64, steps=600, quantiles=())


def make_world(
    n: int, seed: int, *, degrees: tuple[int, ...] = (0, 1, 2), features: bool = True
) -> Runs:
    """Runs whose slowdown is exp(sensitivity of the target x sum of the co-runners' pressure)."""
    truth = np.random.default_rng(99)
    base_w, base_p = truth.normal(size=WORKLOADS), truth.normal(size=PLATFORMS)
    kind = truth.integers(0, 3, WORKLOADS)
    affinity = 0.3 * truth.normal(size=(3, PLATFORMS))
    sensitive, press = truth.random(WORKLOADS), truth.random(WORKLOADS) * 0.8
    random = np.random.default_rng(seed)
    w, p = random.integers(0, WORKLOADS, n), random.integers(0, PLATFORMS, n)
    corunners = [random.integers(0, WORKLOADS, k) for k in random.choice(degrees, n)]
    pressure = np.array([press[k].sum() for k in corunners])
    log = base_w[w] + base_p[p] + affinity[kind[w], p] + sensitive[w] * pressure
    log = log + 0.02 * random.normal(size=n)
    names = [f"w{i:02d}" for i in range(WORKLOADS)]
    places = [f"p{i}" for i in range(PLATFORMS)]
    return Runs.from_columns(
        workload=[names[i] for i in w],
        platform=[places[i] for i in p],
        corunners=[[names[i] for i in k] for k in corunners],
        runtime_seconds=np.exp(log),
        workload_features={
            "workload": names,
            "kind": [f"kind{k}" for k in kind],
            "opcode_add": (1000 * np.exp(base_w)).astype(int),
            "opcode_load": (500 * np.exp(2 * press)).astype(int),
        }
        if features
        else None,
        platform_features={"platform": places, "clock_hertz": np.exp(-base_p) * 1e9}
        if features
        else None,
    )
