"""From counters to decisions: the demand of several workloads together, and P(it exceeds a capacity).

Workloads are taken as independent of one another; what their co-location does to them must be in their
own forecasts (traced beside such co-runners, or interpolated over contexts). Cores of one workload are not
independent: forecast the workload's total, or pass cores as one distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.bridge.answers._distribution import Distribution
from jostle.bridge.problem._thin import systematic
from jostle.errors import BadData, UsageError

BINS = 1 << 14
PAIRS = 4_000_000  # sums that are taken one by one


@dataclass(frozen=True)
class Exceedance:
    """P(total demand > capacity). ratio lies between low_ratio and high_ratio for certain, given the
    distributions; they are the same where the sum was taken exactly."""

    ratio: float
    low_ratio: float
    high_ratio: float


def exceedance(
    distributions: Sequence[Distribution], component: str, capacity: float
) -> Exceedance:
    """P(sum of one component over independent distributions > capacity).

    Two are summed exactly, and more as long as there are few atoms; beyond, all but the last are summed on
    a grid twice, rounded down and rounded up, which encloses the truth.
    """
    if not distributions:
        raise UsageError("no distributions to add")
    if np.isnan(capacity):
        raise UsageError("the capacity is NaN")
    parts = [_sorted(d.atoms[:, d.column(component)], d.weights) for d in distributions]
    parts.sort(key=lambda part: len(part[0]))
    *few, last = parts
    total = _sorted(np.zeros(1), np.ones(1))
    for number, part in enumerate(few):
        if len(total[0]) * len(part[0]) > PAIRS:
            low, high = _on_grid(total, few[number:])
            p_low, p_high = _tail(low, last, capacity), _tail(high, last, capacity)
            return Exceedance((p_low + p_high) / 2, p_low, p_high)
        sums = (total[0][:, None] + part[0]).ravel()
        total = _sorted(sums, (total[1][:, None] * part[1]).ravel())
    exact = _tail(total, last, capacity)
    return Exceedance(exact, exact, exact)


def total_demand(
    distributions: Sequence[Distribution], *, size: int = 20_000, seed: int = 0
) -> Distribution:
    """The law of the sum of independent distributions, all components jointly, as `size` equal atoms.

    mean and covariance are exact. Raises BadData for different components, UsageError for none.
    """
    if not distributions:
        raise UsageError("no distributions to add")
    first = distributions[0]
    for other in distributions[1:]:
        if other.components != first.components:
            raise BadData(
                f"components {', '.join(other.components)} and {', '.join(first.components)} "
                "cannot be added",
                fix="Forecast the same components of all.",
            )
    random = np.random.default_rng(seed)
    atoms = np.zeros((size, len(first.components)))
    for one in distributions:
        atoms += one.atoms[random.permutation(systematic(one.weights, size, random))]
    return Distribution(
        first.components,
        atoms,
        np.full(size, 1 / size),
        np.sum([one.mean for one in distributions], axis=0),
        np.sum([one.covariance for one in distributions], axis=0),
        "total",
        first.time_seconds,
        warnings=tuple(dict.fromkeys(text for one in distributions for text in one.warnings)),
    )


def exceedance_of_any(
    distributions: Sequence[Distribution],
    capacities: Mapping[str, float],
    *,
    size: int = 20_000,
    seed: int = 0,
) -> float:
    """P(any component's sum > its capacity), from a joint sample of the sum."""
    return total_demand(distributions, size=size, seed=seed).exceedance_ratio(capacities)


Law = tuple[np.ndarray, np.ndarray]


def _sorted(values: np.ndarray, weights: np.ndarray) -> Law:
    order = np.argsort(values, kind="stable")
    return values[order], weights[order] / weights.sum()


def _tail(one: Law, other: Law, capacity: float) -> float:
    """P(X + Y > capacity), exactly."""
    values, weights = other
    above = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    place = np.searchsorted(values, capacity - one[0], side="right")
    return float(np.clip(one[1] @ above[place], 0.0, 1.0))


def _on_grid(start: Law, parts: Sequence[Law]) -> tuple[Law, Law]:
    """The sum of all parts with every atom rounded down, and rounded up, to a grid."""
    laws = [start, *parts]
    base = sum(float(values[0]) for values, _ in laws)
    extent = sum(float(values[-1] - values[0]) for values, _ in laws)
    step = extent / (BINS - 1 - len(laws)) or 1.0
    grids = []
    for rounded in (np.floor, np.ceil):
        product = np.ones(BINS // 2 + 1, complex)
        for values, weights in laws:
            place = rounded((values - values[0]) / step).astype(int)
            product = product * np.fft.rfft(np.bincount(place, weights, BINS))
        mass = np.maximum(np.fft.irfft(product, BINS), 0)
        grids.append((base + step * np.arange(BINS), mass / mass.sum()))
    return grids[0], grids[1]
