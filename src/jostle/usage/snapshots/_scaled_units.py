"""Between the counters' own units and the scaled ones in which distances are taken and atoms move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.errors import UsageError, require_known
from jostle.usage.snapshots._clouds import Cloud, scale_of

TINY = 1e-12  # stands for a scale of 0


@dataclass(frozen=True, eq=False)
class Units:
    """scale: (d,) what components are multiplied by, 0 for those that do not count in distances. limits:
    pairs of columns, of which the first cannot exceed the second. floors: (d,) what a component cannot be
    below: 0, or nothing where it was."""

    scale: np.ndarray
    limits: tuple[tuple[int, int], ...]
    floors: np.ndarray

    @classmethod
    def of(
        cls,
        components: Sequence[str],
        clouds: Sequence[Cloud],
        scale: Mapping[str, float] | np.ndarray | None = None,
    ) -> Units:
        """Choose units for clouds of running runs. scale: an array (d,) is taken as it is, names overrule the
        default.

        Raises UnknownName, UsageError for a scale below 0 or not finite.
        """
        limits = tuple(
            (components.index(a), components.index(b))
            for a, b in paired_counters(components).items()
        )
        d = len(components)
        lows = np.min([cloud.atoms.min(axis=0) for cloud in clouds] or [np.zeros(d)], axis=0)
        floors = np.where(lows < 0, -np.inf, 0.0)
        if isinstance(scale, np.ndarray):
            return cls(scale, limits, floors)
        factors = scale_of(clouds) if clouds else np.ones(d)
        for name, factor in (scale or {}).items():
            require_known("component", name, components)
            if not (factor >= 0 and np.isfinite(factor)):
                raise UsageError(f"the scale of {name!r} is {factor}")
            factors[components.index(name)] = factor
        return cls(factors, limits, floors)

    @property
    def _factor(self) -> np.ndarray:
        """A component of scale 0 does not count in distances, but must still be interpolated."""
        return np.where(self.scale > 0, self.scale, TINY)

    def cloud_in(self, cloud: Cloud) -> Cloud:
        """Scaled."""
        return cloud.scaled(self._factor)

    def cloud_out(self, cloud: Cloud) -> Cloud:
        """Back from scaled units; what was never below 0 is not, and misses are not more than requests."""
        atoms = np.maximum(cloud.atoms / self._factor, self.floors)
        for low, high in self.limits:
            atoms[:, low] = np.minimum(atoms[:, low], atoms[:, high])
        return Cloud(atoms, cloud.weights)


def paired_counters(components: Sequence[str]) -> dict[str, str]:
    """Return {misses: requests} by how counters are named: `x_misses` with `x_requests`, `x_references`,
    `xs`."""
    pairs = {}
    for name in components:
        if "misses" not in name:
            continue
        for word in ("requests", "references", "loads", "accesses"):
            for other in (name.replace("misses", word), name.replace("load-misses", "loads")):
                if other != name and other in components:
                    pairs[name] = other
    return pairs
