"""Between two snapshots: one function per way to interpolate, each from clouds to atoms.

All take the clouds in scaled units and lam, the share of the interval that has passed, and give atoms in
scaled units. The bridge's own law at lam, given the coupling P, is that of (1 - lam) x + lam y plus Gaussian
noise of variance lam (1 - lam) eps / 2 per component, for the kernel exp(-|x - y|^2 / eps). The paper
leaves the noise out, and so is it here: data with zeros, heavy tails or glitches are no Gaussians.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.solvers._coupling import EXACT, Coupling

METHODS = ("nearest", "mixture", "ot", "bridge", "spline")
# Pairs longer than LONG times the length that this share stays below go over.
USUAL, LONG = 0.8, 3.0


def product(x: Cloud, y: Cloud) -> Coupling:
    """The independent coupling, the limit of large eps."""
    joint = np.log(x.weights)[:, None] + np.log(y.weights)
    return Coupling(x, y, joint, 0.0, EXACT)


def displace(coupling: Coupling, lam: float) -> Cloud:
    """(1 - lam) x + lam y for every pair that has mass: for sparse couplings."""
    pairs = coupling.pairs
    atoms = (1 - lam) * coupling.x.atoms[pairs.i] + lam * coupling.y.atoms[pairs.j]
    return Cloud(atoms, pairs.mass / pairs.mass.sum())


def bridge(
    coupling: Coupling, lam: float, *, draws: int, seed: int | list[int]
) -> tuple[Cloud, np.ndarray, np.ndarray]:
    """(atoms of the bridge's law at lam, (d,) its mean, (d, d) its covariance).

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


def spline(
    before: Coupling | None,
    across: Coupling,
    after: Coupling | None,
    times: Sequence[float],
    at: float,
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


def moved(coupling: Coupling, x: Cloud, y: Cloud, lam: float, stay: float = 0.0) -> Cloud:
    """Displaced by exact transport, with each component's quantiles between those of the snapshots x and y,
    of which the coupling may know a part only.

    A few pairs that are much longer than the others are no motion, but runs that went over from one group of
    states to another, or glitches: of them a share 1 - lam is still at its x, the others at their y already.
    stay: how far all other pairs are along the geodesic to the same, the mixture of both snapshots.
    """
    pairs = coupling.pairs
    starts, ends = coupling.x.atoms[pairs.i], coupling.y.atoms[pairs.j]
    length = ((starts - ends) ** 2).sum(axis=1) ** 0.5
    order = np.argsort(length, kind="stable")
    usual = length[order[np.searchsorted(np.cumsum(pairs.mass[order]), USUAL * (1 - 1e-9))]]
    goes_over = length > LONG * usual
    near = ~goes_over
    mass = pairs.mass
    if goes_over.any():
        x, y = Cloud.of(starts[near], mass[near]), Cloud.of(ends[near], mass[near])
    atoms = [starts[goes_over], ends[goes_over]]
    weights = [(1 - lam) * mass[goes_over], lam * mass[goes_over]]
    places = [(1.0, lam)]
    if stay > 0:
        places = [(1 - lam, (1 - stay) * lam), (lam, stay + (1 - stay) * lam)]
    for share, place in places:
        atoms.append(_displaced(starts[near], ends[near], mass[near], place, (x, y)))
        weights.append(share * mass[near])
    return Cloud.of(np.concatenate(atoms), np.concatenate(weights))


def _displaced(
    starts: np.ndarray,
    ends: np.ndarray,
    mass: np.ndarray,
    place: float,
    clouds: tuple[Cloud, Cloud],
) -> np.ndarray:
    """(n, d) part of the way from starts to ends, with the quantiles between those of the clouds."""
    atoms = (1 - place) * starts + place * ends
    displaced = np.empty_like(atoms)
    total = mass.sum()
    for column in range(atoms.shape[1]):
        order = np.lexsort((ends[:, column], atoms[:, column]))
        level = (np.cumsum(mass[order]) - 0.5 * mass[order]) / total
        low, high = (cloud.quantiles(column, level) for cloud in clouds)
        displaced[order, column] = (1 - place) * low + place * high
    return displaced
