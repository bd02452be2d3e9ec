"""Bags larger than any that was learned from: a tree would answer them as the largest it knows.

Each set of as many co-runners as known (in a circle, by name) adds its own time; the sum, each co-runner
counted once, is what all of them add, and never less than what one of the sets adds alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jostle.runs import Colocations


def larger_bags(
    asked: Colocations, most: int, log_slowdown: Callable[[Colocations], np.ndarray]
) -> np.ndarray:
    """(n,) log slowdowns of co-locations with more than `most` co-runners. log_slowdown: of co-locations with
    `most` of them."""
    from jostle.runs import Colocations

    columns = asked.to_columns()
    workload, platform, sets, row = [], [], [], []
    for number, (own, place, others) in enumerate(
        zip(columns["workload"], columns["platform"], columns["corunners"], strict=True)
    ):
        circle = [*sorted(others), *sorted(others)]
        sets += [circle[at : at + most] for at in range(len(others))]
        workload += [own] * len(others)
        platform += [place] * len(others)
        row += [number] * len(others)
    part = Colocations.from_columns(workload=workload, platform=platform, corunners=sets)
    more = np.expm1(log_slowdown(part))
    total = np.bincount(row, more, len(asked)) / most
    largest = np.full(len(asked), -np.inf)
    np.maximum.at(largest, row, more)
    return np.log1p(np.maximum(total, largest))
