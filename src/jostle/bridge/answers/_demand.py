"""The sum of independent distributions, and what few runs leave open about it.

What co-location does to workloads must be in their own distributions. Cores of one workload are not
independent: forecast the workload's total, or take members together as they were measured.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._thin import systematic
from jostle.errors import BadData, UsageError

MOST = 4_000_000  # numbers of the sum's atoms
SIZE = 20_000


def total_demand(
    distributions: Sequence[Distribution],
    *,
    same: Sequence[Hashable] | None = None,
    size: int = SIZE,
    seed: int = 0,
) -> Distribution:
    """The law of the sum of independent distributions, all components jointly.

    Exact for few atoms of laws that are known, else `size` draws. Of a law from few runs its mean, and how
    far it goes from that, are drawn anew as Student's law has them (Biometrika 6, 1908), alike for all that
    are of the `same` runs, by default the same distribution. mean and covariance are those of what was
    recorded. Raises BadData for different components, UsageError for none.
    """
    if not distributions:
        raise UsageError("no distributions to add")
    components = common_components([one.components for one in distributions])
    clouds = [one.cloud.merged for one in distributions]
    atoms, weights = np.zeros((1, len(components))), np.ones(1)
    is_known = not np.isfinite([one.runs for one in distributions]).any()
    if is_known and np.prod([float(len(one)) for one in clouds]) * len(components) <= MOST:
        for one in clouds:
            atoms = (atoms[:, None] + one.atoms).reshape(-1, len(components))
            weights = np.outer(weights, one.weights).ravel()
    else:
        random, doubts = np.random.default_rng(seed), {}
        weights = np.full(size, 1 / size)
        for law, one, key in zip(
            distributions, clouds, same or [id(law) for law in distributions], strict=True
        ):
            drawn = one.atoms[random.permutation(systematic(one.weights, size, random))]
            if np.isfinite(law.runs) and len(one) > 1:
                n = max(law.runs, 2.0)
                if key not in doubts:
                    normal = random.standard_normal((size, len(components)))
                    doubts[key] = normal, np.sqrt(n / random.chisquare(n - 1, (size, 1)))
                drawn = _opened(one, drawn, n, *doubts[key])
            atoms = atoms + drawn
    total = Cloud.of(atoms, weights)
    return Distribution(
        components,
        total.atoms,
        total.weights,
        np.sum([one.mean for one in distributions], axis=0),
        np.sum([one.covariance for one in distributions], axis=0),
        "total",
        distributions[0].time_seconds,
        warnings=tuple(dict.fromkeys(text for one in distributions for text in one.warnings)),
    )


def common_components(every: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Of all that are to be added. Raises BadData where they differ."""
    for other in every[1:]:
        if other != every[0]:
            raise BadData(
                f"components {', '.join(other)} and {', '.join(every[0])} cannot be added",
                fix="Forecast the same components of all.",
            )
    return every[0]


def _opened(
    law: Cloud, drawn: np.ndarray, runs: float, normal: np.ndarray, factor: np.ndarray
) -> np.ndarray:
    """(size, d) the drawn atoms (size, d) about means that so many runs leave open, and as many times further
    from them; none below 0 where the law has none. normal: (size, d), factor: (size, 1)."""
    values, axes = np.linalg.eigh(law.covariance / runs)
    shift = normal @ (axes * np.sqrt(np.maximum(values, 0.0))).T
    floor = np.minimum(law.atoms.min(axis=0), 0.0)
    return np.maximum(law.mean + factor * (shift + drawn - law.mean), floor)
