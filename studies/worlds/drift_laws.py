"""Campaigns whose devices may change: shared capacity, with errors of several kinds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jostle.data import Runs

WORKLOADS, PLATFORMS = 30, 10
LAWS = (
    "crossed",
    "crossed widths heavy",
    "widths of both one-sided",
    "far ones",
    "skewed crossed heavy",
)


def campaign(law: str, seed: int) -> Callable[[int], Any]:
    """Draws so many runs of one campaign."""
    r = np.random.default_rng([seed, 5])
    base, speed = r.normal(size=WORKLOADS), 0.4 * r.normal(size=PLATFORMS)
    need, has = r.uniform(0.05, 0.5, WORKLOADS), r.uniform(0.6, 1.4, PLATFORMS)
    crossed = 0.15 * r.normal(size=(WORKLOADS, PLATFORMS)) * ("crossed" in law)
    width = r.choice([0.02, 0.05, 0.12], WORKLOADS) if "widths" in law else np.full(WORKLOADS, 0.05)
    wider = r.choice([0.5, 1.0, 3.0], PLATFORMS) if "both" in law else np.ones(PLATFORMS)

    def draw(n: int) -> Any:
        w, p = r.integers(0, WORKLOADS, n), r.integers(0, PLATFORMS, n)
        if "skewed" in law:
            p = np.minimum(r.geometric(0.25, n) - 1, PLATFORMS - 1)
        beside = [r.integers(0, WORKLOADS, k).tolist() for k in r.integers(0, 3, n)]
        others = np.array([need[mine].sum() for mine in beside])
        slowdown = np.maximum((need[w] + others) / has[p], 1) + 0.1 * others
        error = r.normal(size=n)
        if "heavy" in law:
            error = r.standard_t(4, n)
        elif "one-sided" in law:
            error = r.exponential(1, n)
        elif "far" in law:
            error = np.where(r.random(n) < 0.05, r.normal(6, 2, n), error)
        log = base[w] + speed[p] + crossed[w, p] + np.log(slowdown) + width[w] * wider[p] * error
        return Runs.from_columns(
            workload=[f"w{k}" for k in w],
            platform=[f"made:d{k}" for k in p],
            corunners=[[f"w{k}" for k in mine] for mine in beside],
            runtime_seconds=np.exp(log),
        )

    return draw


def devices_of(runs: Any) -> np.ndarray:
    from jostle.models._residual_baseline import device_of

    c = runs.colocations
    return np.array([device_of(name) for name in c.platform_names])[c.platform]


def scaled(runs: Any, factor: np.ndarray) -> Any:
    """The same runs, each so many times as long."""
    import pyarrow as pa

    table = runs.table
    place = table.column_names.index("runtime_seconds")
    column = pa.array(runs.runtime_seconds * factor)
    table = table.set_column(place, table.field(place), column)
    return Runs(table, runs.workload_features, runs.platform_features, checked=True)
