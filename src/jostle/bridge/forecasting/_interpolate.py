"""Between two snapshots: one function per way to interpolate, each from clouds to atoms.

All take the clouds in scaled units and lam, the share of the interval that has passed, and give atoms in
scaled units. The bridge's own law at lam, given the coupling P, is that of (1 - lam) x + lam y plus Gaussian
noise of variance lam (1 - lam) eps / 2 per component, for the kernel exp(-|x - y|^2 / eps); the paper
leaves the noise out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.bridge.problem._clouds import Cloud, median_cost, squared_distances
from jostle.bridge.solvers._coupling import EXACT, Convergence, Coupling
from jostle.errors import MissingExtra

METHODS = ("nearest", "mixture", "ot", "bridge", "spline", "phase")


@dataclass(frozen=True, eq=False)
class Between:
    """Atoms at one time in scaled units, with the mean and covariance of the law they come from."""

    cloud: Cloud
    mean: np.ndarray
    covariance: np.ndarray


def nearest(x: Cloud, y: Cloud, lam: float) -> Cloud:
    """The snapshot that is nearer in time."""
    return x if lam < 0.5 else y


def mixture(x: Cloud, y: Cloud, lam: float) -> Cloud:
    """Either snapshot, with the probability of its nearness."""
    parts = ((x, 1 - lam), (y, lam))
    kept = [(cloud, share) for cloud, share in parts if share > 0]
    return Cloud(
        np.concatenate([cloud.atoms for cloud, _ in kept]),
        np.concatenate([share * cloud.weights for cloud, share in kept]),
    )


def pot() -> Any:
    """Python Optimal Transport. Raises MissingExtra."""
    try:
        import ot
    except ModuleNotFoundError as error:
        raise MissingExtra(str(error.name), "bridge") from None
    return ot


def wasserstein(x: Cloud, y: Cloud) -> float:
    """W2: the root of the least mean squared distance over all couplings, by POT's network simplex."""
    cost = squared_distances(x.atoms, y.atoms)
    value = pot().emd2(x.weights, y.weights, cost, numItermax=2_000_000)
    return float(np.sqrt(max(float(value), 0.0)))


def transport(x: Cloud, y: Cloud) -> Coupling:
    """The exact optimal transport plan, by POT's network simplex."""
    ot = pot()
    cost = squared_distances(x.atoms, y.atoms)
    plan, log = ot.emd(x.weights, y.weights, cost, numItermax=2_000_000, log=True)
    with np.errstate(divide="ignore"):
        joint = np.log(plan)
    status = "converged" if log["warning"] is None else "max_sweeps"
    error = float(np.abs(plan.sum(axis=1) - x.weights).sum())
    return Coupling(x, y, joint, 0.0, float(np.median(cost)), Convergence(status, 0.0, error, 0))


def product(x: Cloud, y: Cloud) -> Coupling:
    """The independent coupling, the limit of large eps, without that limit's boundless noise."""
    joint = np.log(x.weights)[:, None] + np.log(y.weights)
    return Coupling(x, y, joint, 0.0, median_cost(x, y), EXACT)


def displace(coupling: Coupling, lam: float) -> Cloud:
    """(1 - lam) x + lam y for every pair that has mass: for sparse couplings."""
    i, j = np.nonzero(coupling.matrix > 0)
    atoms = (1 - lam) * coupling.x.atoms[i] + lam * coupling.y.atoms[j]
    weights = coupling.matrix[i, j]
    return Cloud(atoms, weights / weights.sum())


def bridge(
    coupling: Coupling, lam: float, *, noise: np.ndarray, draws: int, seed: int | list[int]
) -> Between:
    """Atoms of the bridge's law at lam by a stratified draw: for every x, `draws` of its y.

    noise: (d,) whether a component has any. mean and covariance are those of all n m pairs, exactly, with
    the noise.
    """
    x, y = coupling.x, coupling.y
    random = np.random.default_rng(seed)
    order, below = coupling.ranked
    n = len(x)
    # Stratified twice: each x has its own part of [0, 1), and the parts are spread over the x.
    levels = (random.permuted(np.tile(np.arange(n), (draws, 1)), axis=1).T + 0.5) / n
    levels = (levels + np.arange(draws) / draws) % 1.0
    found = [
        np.searchsorted(row, level * row[-1]) for row, level in zip(below, levels, strict=True)
    ]
    chosen = order[np.minimum(np.array(found), len(y) - 1)]
    atoms = (1 - lam) * x.atoms[:, None] + lam * y.atoms[chosen]
    atoms = atoms.reshape(n * draws, -1)
    eps = coupling.eps if coupling.noise_eps is None else coupling.noise_eps
    variance = lam * (1 - lam) * eps / 2 * noise
    if variance.any():
        atoms = atoms + random.normal(scale=np.sqrt(variance), size=atoms.shape)
    cloud = Cloud(atoms, np.repeat(x.weights / draws, draws))
    mean = (1 - lam) * x.mean + lam * y.mean
    cross = coupling.cross
    covariance = (1 - lam) ** 2 * x.covariance + lam**2 * y.covariance
    covariance = covariance + lam * (1 - lam) * (cross + cross.T)
    return Between(cloud, mean, covariance + np.diag(variance))


def spline(
    before: Coupling | None, across: Coupling, after: Coupling | None, times: np.ndarray, at: float
) -> Cloud:
    """Cubic paths through up to four snapshots, chained by exact transport.

    times: (4,) of the snapshots k - 1, k, k + 1, k + 2 (NaN where there is none). A pair of atoms that
    transport joins across the interval moves on the cubic Hermite curve whose slopes at the ends are those
    of the parabola through three snapshots, the outer ones being where transport sends the pair on
    average; without an outer snapshot the slope is that of the chord.
    """
    i, j = np.nonzero(across.matrix > 0)
    weights = across.matrix[i, j]
    t0, t1 = times[1], times[2]
    x, y = across.x.atoms[i], across.y.atoms[j]
    chord = (y - x) / (t1 - t0)
    left = right = chord
    if before is not None:
        came = (before.matrix.T @ before.x.atoms)[i] / before.y.weights[i][:, None]
        earlier, past = t0 - times[0], (x - came) / (t0 - times[0])
        left = (past * (t1 - t0) + chord * earlier) / (t1 - t0 + earlier)
    if after is not None:
        goes = (after.matrix @ after.y.atoms)[j] / after.x.weights[j][:, None]
        later, future = times[3] - t1, (goes - y) / (times[3] - t1)
        right = (chord * later + future * (t1 - t0)) / (t1 - t0 + later)
    u, h = (at - t0) / (t1 - t0), t1 - t0
    atoms = (2 * u**3 - 3 * u**2 + 1) * x + (u**3 - 2 * u**2 + u) * h * left
    atoms = atoms + (3 * u**2 - 2 * u**3) * y + (u**3 - u**2) * h * right
    return Cloud(atoms, weights / weights.sum())
