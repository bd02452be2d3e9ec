"""Clouds of fewer atoms: drawn, for comparisons, and centroids of k-means, for summaries and terminals."""

from __future__ import annotations

import numpy as np

from jostle.errors import UsageError
from jostle.usage.snapshots._clouds import Cloud, squared_distances


def few(cloud: Cloud, atoms: int, seed: int) -> Cloud:
    """Draw at most so many atoms, systematically with their weights."""
    if len(cloud) <= atoms:
        return cloud
    random = np.random.default_rng(seed)
    order = random.permutation(len(cloud))
    return Cloud.of(cloud.atoms[order[systematic(cloud.weights[order], atoms, random)]])


def systematic(weights: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Return (size,) which are drawn, in their order: each as often as its weight says, to within one."""
    levels = (np.arange(size) + random.random()) / size
    below = np.cumsum(weights)
    picked = np.searchsorted(below, levels * below[-1] * (1 - 1e-12))
    return np.minimum(picked, len(weights) - 1)


def evenly_few(cloud: Cloud, atoms: int, seed: int = 0) -> Cloud:
    """Draw at most so many atoms of equal weight, systematically along a curve that fills space (Morton's, of
    the components' ranks): every region keeps its share better than by a draw at random."""
    if len(cloud) <= atoms:
        return cloud
    bits = max(1, 60 // cloud.atoms.shape[1])
    place = np.zeros(len(cloud), np.int64)
    ranks = cloud.atoms.argsort(axis=0, kind="stable").argsort(axis=0, kind="stable")
    cells = (ranks * (2 ** min(bits, 16)) // len(cloud)).astype(np.int64)
    for bit in range(min(bits, 16) - 1, -1, -1):
        for column in range(min(cells.shape[1], 60)):
            place = (place << 1) | ((cells[:, column] >> bit) & 1)
    order = np.argsort(place, kind="stable")
    drawn = systematic(cloud.weights[order], atoms, np.random.default_rng(seed))
    return Cloud.of(cloud.atoms[order[drawn]])


def thinned(cloud: Cloud, atoms: int, seed: int = 0) -> Cloud:
    """Return a cloud of at most `atoms` atoms: centroids of k-means, with the weights of what they stand
    for."""
    if atoms < 1:
        raise UsageError(f"a cloud cannot have {atoms} atoms")
    cloud = cloud.merged
    if len(cloud) <= atoms:
        return cloud
    random = np.random.default_rng(seed)
    centres = cloud.atoms[random.choice(len(cloud), atoms, replace=False, p=cloud.weights)]
    label = np.full(len(cloud), -1)
    for _ in range(50):
        new = squared_distances(cloud.atoms, centres).argmin(axis=1)
        if (new == label).all():
            break
        label = new
        mass = np.bincount(label, cloud.weights, atoms)
        full = mass > 0
        for d in range(cloud.atoms.shape[1]):
            sums = np.bincount(label, cloud.weights * cloud.atoms[:, d], atoms)
            centres[full, d] = sums[full] / mass[full]
    mass = np.bincount(label, cloud.weights, atoms)
    return Cloud.of(centres[mass > 0], mass[mass > 0])
