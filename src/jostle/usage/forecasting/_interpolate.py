"""Between two snapshots: one function per way to interpolate, each from clouds to atoms.

All take the clouds in scaled units and lam, the share of the interval that has passed, and give atoms in
scaled units. The bridge's own law at lam, given the coupling P, is that of (1 - lam) x + lam y plus Gaussian
noise of variance lam (1 - lam) eps / 2 per component, for the kernel exp(-|x - y|^2 / eps). The paper
leaves the noise out, and so is it here: data with zeros, heavy tails or glitches are no Gaussians.
"""

from __future__ import annotations

import numpy as np

from jostle.usage.snapshots._clouds import Cloud
from jostle.usage.solvers._coupling import EXACT, Coupling

METHODS = ("bridge", "ot", "mixture")


def product(x: Cloud, y: Cloud) -> Coupling:
    """Return the independent coupling, the limit of large eps."""
    joint = np.log(x.weights)[:, None] + np.log(y.weights)
    return Coupling(x, y, joint, 0.0, EXACT)


def displace(coupling: Coupling, lam: float) -> Cloud:
    """Return (1 - lam) x + lam y for every pair that has mass: for sparse couplings."""
    pairs = coupling.pairs
    atoms = (1 - lam) * coupling.x.atoms[pairs.i] + lam * coupling.y.atoms[pairs.j]
    return Cloud(atoms, pairs.mass / pairs.mass.sum())


def bridge(
    coupling: Coupling, lam: float, *, draws: int, seed: int | list[int]
) -> tuple[Cloud, np.ndarray, np.ndarray]:
    """Return (atoms of the bridge's law at lam, (d,) its mean, (d, d) its covariance).

    A stratified draw: for every x, `draws` of its y. Moments are those of all n m pairs, exactly.
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
    return cloud, mean, covariance
