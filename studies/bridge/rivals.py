"""What a forecast must beat: simple ways to say what a workload uses between two snapshots.

Each takes the training snapshots and a time, and gives a cloud in the snapshots' units. Those that are
methods of the bridge room themselves (nearest, mixture, exact transport, spline) are called there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from jostle.bridge import (
    Cloud,
    Distribution,
    Forecast,
    Snapshot,
    Snapshots,
    few,
    squared_distances,
)
from studies.bridge.graphs.clock import clock_of

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


def gaussian(snapshots: Snapshots, core: int, time: float) -> Cloud:
    """The Gaussians of the two snapshots, interpolated by the Bures geodesic: x moved by its linear map."""
    before, after, lam = _around(snapshots, core, time)
    x, y = before.cloud, after.cloud
    unit = np.sqrt(np.maximum(np.diag(x.covariance) + np.diag(y.covariance), 1e-300))
    a = x.covariance / np.outer(unit, unit) + 1e-9 * np.eye(len(unit))
    b = y.covariance / np.outer(unit, unit) + 1e-9 * np.eye(len(unit))
    root = _root(a)
    inverse = np.linalg.inv(root)
    push = inverse @ _root(root @ b @ root) @ inverse
    start = (x.atoms - x.mean) / unit
    random = np.random.default_rng(0)
    # Atoms of the interpolated Gaussian, not of x: it is the baseline that knows two moments only.
    law = (1 - lam) * np.eye(len(unit)) + lam * push
    spread = _root(law @ a @ law)
    drawn = random.standard_normal((max(len(start), len(y)), len(unit))) @ spread
    return Cloud.of((1 - lam) * x.mean + lam * y.mean + drawn * unit)


def _root(matrix: np.ndarray) -> np.ndarray:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


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


def clock_nearest(snapshots: Snapshots, core: int, time: float) -> Cloud | None:
    """What the phase-aware method knows, in the simplest way: each run's own progress at that time, and a
    state that some run had at the progress nearest to it; None without a clock."""
    clock = clock_of(snapshots)
    if clock is None:
        return None
    asked = clock.at(core, time)[0]
    asked = asked[np.isfinite(asked)]
    atoms, places = [], []
    for when, shot in zip(snapshots.times_seconds, snapshots.of(core), strict=True):
        if shot.idle_ratio < 1:
            there = clock.at(core, float(when))[0][shot.runs]
            atoms.append(shot.cloud.atoms[np.isfinite(there)])
            places.append(there[np.isfinite(there)])
    known = np.concatenate(places) if places else np.zeros(0)
    if not len(asked) or not len(known):
        return None
    random = np.random.default_rng(0)
    gap = np.abs(asked[:, None] - known) + 1e-9 * random.random((len(asked), len(known)))
    return Cloud.of(np.concatenate(atoms)[gap.argmin(axis=1)])


SIMPLE: dict[str, Callable[[Snapshots, int, float], Cloud | None]] = {
    "climatology": climatology,
    "independent": independent,
    "run_paired": run_paired,
    "gaussian": gaussian,
    "quantile": quantile,
    "clock_nearest": clock_nearest,
}
OWN = ("average", "nearest", "mixture", "ot", "spline", "bridge", "phase")


def predictions(
    forecast: Forecast, core: int, time: float, period: float | None
) -> dict[str, Cloud]:
    """{method: cloud} of every method that can answer, ended runs as an atom at 0."""
    snapshots = forecast.snapshots
    found: dict[str, Cloud] = {}
    for name in OWN:
        if name == "phase" and clock_of(snapshots) is None:
            continue
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
