"""Between two snapshots: one function per way to interpolate, each from clouds to atoms.

All take the clouds in scaled units and lam, the share of the interval that has passed, and give atoms in
scaled units. The bridge's own law at lam, given the coupling P, is that of (1 - lam) x + lam y plus Gaussian
noise of variance lam (1 - lam) eps / 2 per component, for the kernel exp(-|x - y|^2 / eps). The paper
leaves the noise out, and so is it here: data with zeros, heavy tails or glitches are no Gaussians.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.solvers._coupling import EXACT, Coupling

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
    present = [(cloud, share) for cloud, share in parts if share > 0]
    return Cloud(
        np.concatenate([cloud.atoms for cloud, _ in present]),
        np.concatenate([share * cloud.weights for cloud, share in present]),
    )


def product(x: Cloud, y: Cloud) -> Coupling:
    """The independent coupling, the limit of large eps."""
    joint = np.log(x.weights)[:, None] + np.log(y.weights)
    return Coupling(x, y, joint, 0.0, EXACT)


def displace(coupling: Coupling, lam: float) -> Cloud:
    """(1 - lam) x + lam y for every pair that has mass: for sparse couplings."""
    pairs = coupling.pairs
    atoms = (1 - lam) * coupling.x.atoms[pairs.i] + lam * coupling.y.atoms[pairs.j]
    return Cloud(atoms, pairs.mass / pairs.mass.sum())


def bridge(coupling: Coupling, lam: float, *, draws: int, seed: int | list[int]) -> Between:
    """Atoms of the bridge's law at lam by a stratified draw: for every x, `draws` of its y.

    mean and covariance are those of all n m pairs, exactly.
    """
    x, y = coupling.x, coupling.y
    random = np.random.default_rng(seed)
    n = len(x)
    # Stratified twice: each x has its own part of [0, 1), and the parts are spread over the x.
    levels = (random.permuted(np.tile(np.arange(n), (draws, 1)), axis=1).T + 0.5) / n
    levels = (levels + np.arange(draws) / draws) % 1.0
    order = np.argsort(y.first_axis, kind="stable")
    both = zip(np.cumsum(coupling.matrix[:, order], axis=1), levels, strict=True)
    places = [np.searchsorted(row, level * row[-1]) for row, level in both]
    chosen = order[np.minimum(np.array(places), len(y) - 1)]
    atoms = (1 - lam) * x.atoms[:, None] + lam * y.atoms[chosen]
    atoms = atoms.reshape(n * draws, -1)
    cloud = Cloud(atoms, np.repeat(x.weights / draws, draws))
    mean = (1 - lam) * x.mean + lam * y.mean
    cross = coupling.cross
    covariance = (1 - lam) ** 2 * x.covariance + lam**2 * y.covariance
    covariance = covariance + lam * (1 - lam) * (cross + cross.T)
    return Between(cloud, mean, covariance)


def spline(
    before: Coupling | None, across: Coupling, after: Coupling | None, times: np.ndarray, at: float
) -> Cloud:
    """Cubic paths through up to four snapshots, chained by exact transport.

    times: (4,) of the snapshots k - 1, k, k + 1, k + 2 (NaN where there is none). A pair of atoms that
    transport joins across the interval moves on the cubic Hermite curve whose slopes at the ends are those
    of the parabola through three snapshots, the outer ones being where transport sends the pair on
    average; without an outer snapshot the slope is that of the chord.
    """
    i, j, weights = across.pairs.i, across.pairs.j, across.pairs.mass
    t0, t1 = times[1], times[2]
    x, y = across.x.atoms[i], across.y.atoms[j]
    chord = (y - x) / (t1 - t0)
    left = right = chord
    if before is not None:
        came = _means(before.pairs.j, before.x.atoms[before.pairs.i], before.pairs.mass)[i]
        earlier, past = t0 - times[0], (x - came) / (t0 - times[0])
        left = (past * (t1 - t0) + chord * earlier) / (t1 - t0 + earlier)
    if after is not None:
        goes = _means(after.pairs.i, after.y.atoms[after.pairs.j], after.pairs.mass)[j]
        later, future = times[3] - t1, (goes - y) / (times[3] - t1)
        right = (chord * later + future * (t1 - t0)) / (t1 - t0 + later)
    u, h = (at - t0) / (t1 - t0), t1 - t0
    atoms = (2 * u**3 - 3 * u**2 + 1) * x + (u**3 - 2 * u**2 + u) * h * left
    atoms = atoms + (3 * u**2 - 2 * u**3) * y + (u**3 - u**2) * h * right
    return Cloud(atoms, weights / weights.sum())


def _means(groups: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(g, d) the weighted means of the values (n, d) of each group."""
    mass = np.bincount(groups, weights)
    sums = [np.bincount(groups, weights * column) for column in values.T]
    return np.stack(sums, axis=1) / mass[:, None]
