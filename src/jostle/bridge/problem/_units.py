"""Between the counters' own units and the scaled ones in which distances are taken and atoms move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.problem._clouds import Cloud, scale_of
from jostle.errors import UnknownName, UsageError

TINY = 1e-12  # stands for a scale of 0


@dataclass(frozen=True, eq=False)
class Units:
    """scale: (d,) what components are multiplied by, 0 for those that do not count in distances.
    logs: (d,) which move as log(1 + rate). limits: pairs of columns, of which the first cannot exceed the
    second. floors: (d,) what a component cannot be below: 0, or nothing where it was."""

    scale: np.ndarray
    logs: np.ndarray
    limits: tuple[tuple[int, int], ...]
    floors: np.ndarray

    @classmethod
    def of(
        cls,
        components: Sequence[str],
        clouds: Sequence[Cloud],
        *,
        scale: Mapping[str, float] | np.ndarray | None = None,
        log1p: Sequence[str] = (),
        at_most: Mapping[str, str] | None = None,
    ) -> Units:
        """For clouds of running runs; scale: an array (d,) is taken as it is, names overrule the default.

        Raises UnknownName, UsageError for a scale below 0 or not finite, or log1p of what is below 0.
        """
        factors = scale if isinstance(scale, Mapping) else {}
        for name in (*log1p, *factors, *(at_most or {}), *(at_most or {}).values()):
            if name not in components:
                raise UnknownName("component", name, list(components))
        bounded = paired_counters(components) if at_most is None else at_most
        limits = tuple((components.index(a), components.index(b)) for a, b in bounded.items())
        logs = np.array([name in log1p for name in components])
        lows = np.zeros(len(components))
        if clouds:
            lows = np.min([cloud.atoms.min(axis=0) for cloud in clouds], axis=0)
        floors = np.where(lows < 0, -np.inf, 0.0)
        for name in [name for name in log1p if lows[components.index(name)] < 0]:
            raise UsageError(
                f"component {name!r} is below 0 in the data and cannot move as log(1 + rate)",
                fix="Leave it out of log1p.",
            )
        if isinstance(scale, np.ndarray):
            return cls(scale, logs, limits, floors)
        units = cls(np.ones(len(components)), logs, limits, floors)
        if clouds:
            logged = [Cloud(units.logged(cloud.atoms), cloud.weights) for cloud in clouds]
            units = cls(scale_of(logged), logs, limits, floors)
        for name, factor in factors.items():
            if not (factor >= 0 and np.isfinite(factor)):
                raise UsageError(f"the scale of {name!r} is {factor}")
            units.scale[components.index(name)] = factor
        return units

    @property
    def linear(self) -> bool:
        """Whether moments in scaled units are those of the counters but for a factor."""
        return not self.logs.any() and bool((self.scale > 0).all())

    def logged(self, atoms: np.ndarray) -> np.ndarray:
        if not self.logs.any():
            return atoms
        return np.where(self.logs, np.log1p(np.maximum(atoms, 0)), atoms)

    def cloud_in(self, cloud: Cloud) -> Cloud:
        """Scaled. A component of scale 0 does not count in distances, but must still be interpolated."""
        factor = np.where(self.scale > 0, self.scale, TINY)
        return Cloud(self.logged(cloud.atoms) * factor, cloud.weights)

    def cloud_out(self, cloud: Cloud) -> Cloud:
        """Back from scaled units; what was never below 0 is not, and misses are not more than requests."""
        atoms = cloud.atoms / np.where(self.scale > 0, self.scale, TINY)
        if self.logs.any():
            atoms = np.where(self.logs, np.expm1(np.minimum(atoms, 700)), atoms)
        atoms = np.maximum(atoms, self.floors)
        for low, high in self.limits:
            atoms[:, low] = np.minimum(atoms[:, low], atoms[:, high])
        return Cloud(atoms, cloud.weights)


def paired_counters(components: Sequence[str]) -> dict[str, str]:
    """{misses: requests} by how counters are named: `x_misses` with `x_requests`, `x_references`, `xs`."""
    pairs = {}
    for name in components:
        if "misses" not in name:
            continue
        for word in ("requests", "references", "loads", "accesses"):
            for other in (name.replace("misses", word), name.replace("load-misses", "loads")):
                if other != name and other in components:
                    pairs[name] = other
    return pairs
