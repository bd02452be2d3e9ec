"""What a forecast must beat: simple ways to say what a workload uses between two snapshots.

Each takes the training snapshots and a time, and gives a cloud in the snapshots' units. Those that are
methods of the bridge room themselves (mixture, exact transport, bridge) are called there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jostle.usage import (
    METHODS,
    Cloud,
    Distribution,
    Forecast,
    Snapshot,
    Snapshots,
    few,
    squared_distances,
)

POOL = 500  # atoms of a pooled baseline
STEPS = 2_000_000  # of the simplex


def wasserstein(x: Cloud, y: Cloud) -> float:
    """W2: the root of the least mean squared distance over all couplings, by POT's network simplex."""
    import ot

    cost = squared_distances(x.atoms, y.atoms)
    value: Any = ot.emd2(x.weights, y.weights, cost, numItermax=STEPS)
    return float(np.sqrt(max(float(value), 0.0)))


def climatology(snapshots: Snapshots, core: int, time: float) -> Cloud:
    """All snapshots pooled, whatever the time."""
    pooled = np.concatenate([shot.cloud.atoms for shot in snapshots.of(core)])
    return few(Cloud.of(pooled), POOL, round(time * 1e6) % 2**31)


def same_phase(forecast: Forecast, core: int, time: float, period: float) -> Cloud | None:
    """The same place in the other cycles, by exact transport there, pooled; None where there is none."""
    first, last = forecast.span_seconds
    clouds = []
    for cycle in range(int(np.ceil(last / period))):
        there = time % period + cycle * period
        if cycle != int(time // period) and first <= there <= last:
            clouds.append(forecast.at(there, core, method="ot").cloud.atoms)
    return few(Cloud.of(np.concatenate(clouds)), POOL, 0) if clouds else None


def nearest(snapshots: Snapshots, core: int, time: float) -> Cloud:
    """The nearer of the two snapshots; of runs that ended nothing."""
    before, after, lam = _around(snapshots, core, time)
    if 1 in (before.idle_ratio, after.idle_ratio):
        return before.cloud if before.idle_ratio < 1 else after.cloud
    return before.cloud if lam < 0.5 else after.cloud


def _around(snapshots: Snapshots, core: int, time: float) -> tuple[Snapshot, Snapshot, float]:
    """The snapshots before and after, and the share of the time between them that has passed."""
    times, shots = snapshots.times_seconds, snapshots.of(core)
    k = int(np.clip(np.searchsorted(times, time, side="right") - 1, 0, len(times) - 2))
    return shots[k], shots[k + 1], float((time - times[k]) / (times[k + 1] - times[k]))


def independent(snapshots: Snapshots, core: int, time: float) -> Cloud:
    """Displacement under the product of the two snapshots: each atom paired at random."""
    before, after, lam = _around(snapshots, core, time)
    x, y = before.cloud, after.cloud
    random = np.random.default_rng(0)
    size = max(len(x), len(y))
    i, j = random.choice(len(x), size, p=x.weights), random.choice(len(y), size, p=y.weights)
    return Cloud.of((1 - lam) * x.atoms[i] + lam * y.atoms[j])


def run_paired(snapshots: Snapshots, core: int, time: float) -> Cloud | None:
    """Each run on the line between its own two states; None where runs are not known."""
    before, after, lam = _around(snapshots, core, time)
    _, i, j = np.intersect1d(before.runs, after.runs, return_indices=True)
    if len(i) < 2:
        return None
    return Cloud.of((1 - lam) * before.cloud.atoms[i] + lam * after.cloud.atoms[j])


def quantile(snapshots: Snapshots, core: int, time: float) -> Cloud:
    """Every component's quantiles interpolated by itself, joined by the ranks of the nearer snapshot."""
    x, y, lam = _around(snapshots, core, time)
    near, far, share = (x.cloud, y.cloud, lam) if lam < 0.5 else (y.cloud, x.cloud, 1 - lam)
    atoms = np.empty_like(near.atoms)
    for column in range(atoms.shape[1]):
        rank = near.atoms[:, column].argsort(kind="stable").argsort(kind="stable")
        level = (rank + 0.5) / len(near)
        there = np.quantile(far.atoms[:, column], level, method="hazen")
        atoms[:, column] = (1 - share) * near.atoms[:, column] + share * there
    return Cloud.of(atoms, near.weights)


SIMPLE: dict[str, Callable[[Snapshots, int, float], Cloud | None]] = {
    "climatology": climatology,
    "nearest": nearest,
    "independent": independent,
    "run_paired": run_paired,
    "quantile": quantile,
}


def predictions(
    forecast: Forecast, core: int, time: float, period: float | None
) -> dict[str, Cloud]:
    """{method: cloud} of every method that can answer, ended runs as an atom at 0."""
    snapshots = forecast.snapshots
    found: dict[str, Cloud] = {}
    for name in METHODS:
        found[name] = forecast.at(time, core, method=name).cloud
    simple = {name: rule(snapshots, core, time) for name, rule in SIMPLE.items()}
    if period is not None:
        simple["same_phase"] = same_phase(forecast, core, time, period)
    idle = _idle(snapshots, core, time)
    for name, cloud in simple.items():
        if cloud is not None:
            law = Distribution.of(cloud, snapshots.components, name, idle_ratio=idle)
            found[name] = law.cloud
    return found


def _idle(snapshots: Snapshots, core: int, time: float) -> float:
    """The share of ended runs, on the line between the two snapshots."""
    shares = [shot.idle_ratio for shot in snapshots.of(core)]
    return float(np.interp(time, snapshots.times_seconds, shares))
