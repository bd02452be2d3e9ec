"""The sum of independent distributions.

What co-location does to workloads must be in their own distributions. Cores of one workload are not
independent: forecast the workload's total, or take members together as they were measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.problem._clouds import Cloud
from jostle.bridge.problem._thin import systematic
from jostle.errors import BadData, UsageError

MOST = 4_000_000  # numbers of the sum's atoms
SIZE = 20_000


def total_demand(
    distributions: Sequence[Distribution], *, size: int = SIZE, seed: int = 0
) -> Distribution:
    """The law of the sum of independent distributions, all components jointly: exact where there are few
    atoms, else `size` equal ones. mean and covariance are exact. Raises BadData for different components,
    UsageError for none.
    """
    if not distributions:
        raise UsageError("no distributions to add")
    components = distributions[0].components
    for other in distributions[1:]:
        if other.components != components:
            raise BadData(
                f"components {', '.join(other.components)} and {', '.join(components)} "
                "cannot be added",
                fix="Forecast the same components of all.",
            )
    clouds = [one.cloud.merged for one in distributions]
    if np.prod([float(len(one)) for one in clouds]) * len(components) <= MOST:
        atoms, weights = np.zeros((1, len(components))), np.ones(1)
        for one in clouds:
            atoms = (atoms[:, None] + one.atoms).reshape(-1, len(components))
            weights = np.outer(weights, one.weights).ravel()
    else:
        random = np.random.default_rng(seed)
        drawn = [
            one.atoms[random.permutation(systematic(one.weights, size, random))] for one in clouds
        ]
        atoms, weights = np.sum(drawn, axis=0), np.full(size, 1 / size)
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
