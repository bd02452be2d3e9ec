"""Weighted point clouds: what was measured at one time, on one core, over the runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.errors import BadData

MIDDLES = (0.1, 0.01)  # shares below and above the middle of a cloud
REACH = 5.0
SAMPLED = 4_000_000  # costs of which the median is taken; of more, as many of evenly spread atoms
FLOOR = 1e-3  # of a component's range: no component counts for more than a thousand times its noise


@dataclass(frozen=True, eq=False)
class Cloud:
    """Weighted atoms of a distribution.

    atoms: (n, d). weights: (n,) above 0, sum 1. Made by :meth:`of`, which checks.
    """

    atoms: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(
        cls, atoms: np.ndarray, weights: np.ndarray | None = None, *, where: str | None = None
    ) -> Cloud:
        """Return a checked cloud; atoms of weight 0 are dropped, weights are divided by their sum.

        weights: None for equal ones. Raises BadData for no atoms, NaN or infinite atoms, negative
        weights, or weights that are all 0.
        """
        atoms = np.asarray(atoms, np.float64)
        if atoms.ndim == 1:
            atoms = atoms[:, None]
        if atoms.ndim != 2 or 0 in atoms.shape:
            raise BadData(f"a cloud needs (n, d) atoms, not {atoms.shape}", where=where)
        if not np.isfinite(atoms).all():
            row = int(np.flatnonzero(~np.isfinite(atoms).all(axis=1))[0])
            raise BadData(f"atom {row} is not finite: {atoms[row]}", where=where)
        n = len(atoms)
        weights = np.full(n, 1 / n) if weights is None else np.asarray(weights, np.float64)
        if weights.shape != (n,):
            raise BadData(f"{weights.size} weights for {n} atoms", where=where)
        if not (np.isfinite(weights).all() and weights.min() >= 0 and weights.sum() > 0):
            raise BadData("weights must be finite, not negative, and not all 0", where=where)
        has_mass = weights > 0
        return cls(atoms[has_mass], weights[has_mass] / weights[has_mass].sum())

    @classmethod
    def pooled(cls, clouds: Iterable[Cloud], shares: Iterable[float]) -> Cloud:
        """Return the mixture of clouds with these shares."""
        parts = list(zip(clouds, shares, strict=True))
        atoms = np.concatenate([cloud.atoms for cloud, _ in parts])
        return cls.of(atoms, np.concatenate([share * cloud.weights for cloud, share in parts]))

    def __len__(self) -> int:
        return len(self.atoms)

    @property
    def mean(self) -> np.ndarray:
        """Return the weighted mean of the atoms, (d,)."""
        return self.weights @ self.atoms

    @property
    def covariance(self) -> np.ndarray:
        """Return the weighted covariance of the atoms, (d, d)."""
        around = self.atoms - self.mean
        return (self.weights[:, None] * around).T @ around

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation of each component, (d,)."""
        return np.sqrt(self.weights @ (self.atoms - self.mean) ** 2)

    def quantiles(self, column: int, levels: np.ndarray) -> np.ndarray:
        """Return (n,) the least values of a component not exceeded with these probabilities (n,)."""
        order = np.argsort(self.atoms[:, column], kind="stable")
        place = np.searchsorted(np.cumsum(self.weights[order]), levels)
        return self.atoms[order[np.minimum(place, len(order) - 1)], column]

    @cached_property
    def typical_deviation(self) -> np.ndarray:
        """Standard deviation of each component without what a few wild samples add, (d,): values further than
        REACH times the range of the middle 80% outside it count as if they were there."""
        deviation = self.deviation
        for column in np.flatnonzero(deviation > 0).tolist():
            values = self.atoms[:, column]
            for part in MIDDLES:
                low, high = self.quantiles(column, np.array([part, 1 - part]))
                if high > low:
                    room = REACH * (high - low)
                    near = np.clip(values, low - room, high + room)
                    deviation[column] = (self.weights @ (near - self.weights @ near) ** 2) ** 0.5
                    break
        return deviation

    @property
    def spread(self) -> float:
        """Mean squared distance to the centroid, glitches apart (`typical_deviation`)."""
        return float((self.typical_deviation**2).sum())

    @property
    def first_axis(self) -> np.ndarray:
        """Positions of the atoms along the direction of largest variance, (n,)."""
        _, vectors = np.linalg.eigh(self.covariance)
        axis = vectors[:, -1]
        return (self.atoms - self.mean) @ (axis * np.sign(axis[np.abs(axis).argmax()]))

    def scaled(self, scale: np.ndarray) -> Cloud:
        """Return every component times its scale (d,)."""
        return Cloud(self.atoms * scale, self.weights)

    @cached_property
    def merged(self) -> Cloud:
        """The same distribution with every atom once (idle cores give many equal ones)."""
        atoms, inverse = np.unique(self.atoms, axis=0, return_inverse=True)
        if len(atoms) == len(self.atoms):
            return self
        return Cloud(atoms, np.bincount(inverse.ravel(), self.weights, len(atoms)))

    def take(self, rows: np.ndarray) -> Cloud:
        """Keep only these atoms, with their weights in proportion."""
        weights = self.weights[rows]
        return Cloud(self.atoms[rows], weights / weights.sum())


def scale_of(clouds: Sequence[Cloud]) -> np.ndarray:
    """Return (d,) what to multiply components of different units with before distances are taken.

    1 / the median over the clouds of the standard deviation within a cloud: the noise of one time, not
    the drift over time, is the unit. Clouds in which the component hardly varies do not count, so that one
    that is used in few phases only has the noise of those; where there is none, the unit is a thousandth of
    the component's range. Both are taken without what a few wild samples add. A component that never changes
    gets 0.
    """
    everything = np.concatenate([cloud.atoms for cloud in clouds])
    low, high = np.quantile(everything, (MIDDLES[1], 1 - MIDDLES[1]), axis=0)
    unit = FLOOR * np.where(high > low, high - low, np.ptp(everything, axis=0))
    for column in range(len(unit)):
        inside = [float(cloud.typical_deviation[column]) for cloud in clouds if len(cloud) > 1]
        inside = [value for value in inside if value > unit[column]]
        if inside:
            unit[column] = np.median(inside)
    return np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)


def median_cost(x: Cloud, y: Cloud) -> float:
    """Return the median of the squared distances between their atoms."""
    atoms = [cloud.atoms for cloud in (x, y)]
    if len(x) * len(y) > SAMPLED:
        most = int(SAMPLED**0.5)
        atoms = [part[np.linspace(0, len(part) - 1, most).astype(int)] for part in atoms]
    return float(np.median(squared_distances(*atoms)))


def squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return (n, m) squared Euclidean distances, by differences: exact for near points far out."""
    squared = np.zeros((len(x), len(y)))
    for component in range(x.shape[1]):
        squared += (x[:, component, None] - y[None, :, component]) ** 2
    return squared
