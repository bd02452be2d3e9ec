"""Splits with seeds: by row or window, or leaving out a workload or a platform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle.errors import UnknownName, UsageError
from jostle.runs._runs import Runs


def split_rows(
    runs: Runs | int, fractions: Sequence[float], seed: int, by: str = "window"
) -> list[np.ndarray]:
    """Disjoint sorted index arrays that cover all runs, one per fraction.

    runs: the runs, or how many rows there are (then every row stands alone). fractions: not
    negative, summing to 1. by: `window` keeps rows that were measured together on one side, which
    an honest test needs; `together` keeps all runs of the same workloads on the same platform on one
    side; `row` keeps nothing together. Units are shared out separately for every number of
    co-runners, so that each part has its share of each. The same runs and seed give the same split.
    Raises UsageError.
    """
    if len(fractions) == 0 or min(fractions) < 0 or abs(sum(fractions) - 1) > 1e-9:
        raise UsageError(f"the fractions {list(fractions)} do not sum to 1")
    if isinstance(runs, int):
        if by not in ("window", "row"):
            raise UsageError(
                f"split by {by!r}", fix="Rows known by number alone are split one by one."
            )
        unit, degree = np.arange(runs), np.zeros(runs, np.int64)
    else:
        unit = runs.units(by)
        degree = runs.colocations.number_of_corunners
    random = np.random.default_rng(seed)
    cuts = np.cumsum(fractions)[:-1]
    # A window's degree is that of its first row: rows measured together have the same as a rule.
    units, first = np.unique(unit, return_index=True)
    of_unit = np.zeros(len(units), np.int64)
    for d in np.unique(degree[first]):
        here = np.flatnonzero(degree[first] == d)
        # A random start for the cut points shares out remainders fairly among the parts.
        place = (random.permutation(len(here)) + random.random()) / len(here)
        of_unit[here] = np.searchsorted(cuts, np.minimum(place, 1 - 1e-12), side="right")
    part = of_unit[np.searchsorted(units, unit)]
    return [np.flatnonzero(part == number) for number in range(len(fractions))]


def leave_out_workload(runs: Runs, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(rest, held) indices: held are the runs where `name` is the workload or a co-runner.

    Raises UnknownName.
    """
    colocations = runs.colocations
    code = _code(colocations.workload_names, "workload", name)
    held = colocations.workload == code
    row = np.repeat(np.arange(len(runs)), colocations.number_of_corunners)
    held = held.copy()
    held[row[colocations.corunner == code]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def leave_out_platform(runs: Runs, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(rest, held) indices: held are the runs on platform `name`. Raises UnknownName."""
    held = runs.colocations.platform == _code(runs.colocations.platform_names, "platform", name)
    return np.flatnonzero(~held), np.flatnonzero(held)


def _code(names: tuple[str, ...], kind: str, name: str) -> int:
    if name not in names:
        raise UnknownName(kind, name, names)
    return names.index(name)
