"""What a user knows, and what is asked: sets left out everywhere, on a platform, by size or by name."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from jostle.data import Runs, all_names, solo_medians
from jostle.errors import UsageError
from studies.one_model.campaigns import KnownData

# The co-runners that are known at most, and those that are asked about, fewest and most.
LARGER = {"pairs-to-more": (1, 2, 4), "triples-to-more": (2, 3, 4), "five-to-more": (4, 5, 7)}
NEW = "new-names"  # beside others; how long they take alone is known
NEW_PLATFORM = "new-platforms"  # where everybody ran alone only
WAYS = ("everywhere", "per-platform", NEW, NEW_PLATFORM, *LARGER)
MOST_KNOWN = 3  # co-runners in cells that are not about larger sets
USUAL_SHARE = (
    0.8  # of the sets that are small enough, where larger ones are asked about; of the names
)
MOST_ASKED = 3000  # rows, drawn


@dataclass(frozen=True)
class SetsLeftOut:
    """How rows are left out. name: of WAYS. share: of the sets beside others, or of the names, that is
    known."""

    name: str
    share: float

    def __post_init__(self) -> None:
        if self.name not in WAYS:
            raise UsageError(
                f"unknown way to leave out {self.name!r}", fix=f"Of {', '.join(WAYS)}."
            )
        if not 0 < self.share < 1:
            raise UsageError(f"a share known of {self.share} is not between 0 and 1")

    def rows(self, campaign: KnownData, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """(known, asked): indices. What is `always` known is not asked about; what is asked about ran alone
        there. Both are empty where the campaign has no such sets."""
        runs, nothing = campaign.runs, np.zeros(0, np.int64)
        c = runs.colocations
        degree = c.number_of_corunners
        always = campaign.always
        if self.name in ("per-platform", NEW_PLATFORM) and len(c.platform_names) == 1:
            return nothing, nothing
        unit = c.together
        if self.name != "per-platform":
            unit = replace(c, platform_names=("",), platform=np.zeros(len(c), int)).together
        smaller, fewest, most = LARGER.get(self.name, (MOST_KNOWN, 1, MOST_KNOWN))
        if self.name == NEW:
            drawn = ~_with_new_names(runs, self.share, seed)
        elif self.name == NEW_PLATFORM:
            drawn = ~_on_new_platforms(runs, self.share, seed)
        else:
            drawn = _drawn(unit, degree, self.share, seed)
        known = (always | drawn) & (degree <= smaller)
        asked = ~always & (degree >= fewest) & (degree <= most) & ~known
        asked &= np.isfinite(_solo(runs.take(known), runs))
        if not asked.any() or not known[degree > 0].any():
            return nothing, nothing
        rows = np.flatnonzero(asked)
        if len(rows) > MOST_ASKED:
            rows = np.sort(np.random.default_rng(seed).permutation(rows)[:MOST_ASKED])
        return np.flatnonzero(known), rows


def _with_new_names(runs: Runs, share: float, seed: int) -> np.ndarray:
    """(n,) bool: whether one of the workloads is none of the share that is known beside others."""
    c = runs.colocations
    order = np.random.default_rng(seed).permutation(len(c.workload_names))
    new = np.ones(len(order), bool)
    new[order[: round(share * len(order))]] = False
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    return new[c.workload] | (np.bincount(row, new[c.corunner], len(c)) > 0)


def _on_new_platforms(runs: Runs, share: float, seed: int) -> np.ndarray:
    """(n,) bool: whether it ran on a platform that is none of the share that is known, one at least."""
    c = runs.colocations
    order = np.random.default_rng(seed).permutation(len(c.platform_names))
    return np.isin(c.platform, order[min(round(share * len(order)), len(order) - 1) :])


def _drawn(unit: np.ndarray, degree: np.ndarray, share: float, seed: int) -> np.ndarray:
    """(n,) bool: whether its unit is among the share drawn; of every degree as large a share."""
    random = np.random.default_rng(seed)
    units, first = np.unique(unit, return_index=True)
    chosen = np.zeros(len(units), bool)
    for d in np.unique(degree[first]):
        here = np.flatnonzero(degree[first] == d)
        chosen[random.permutation(here)[: max(1, round(share * len(here)))]] = True
    return chosen[np.searchsorted(units, unit)]


def _solo(known: Runs, runs: Runs) -> np.ndarray:
    """(n,) log of the time alone of each run's workload on its platform, by the runs known; else NaN."""
    workload, platform, _ = runs.colocations.recode(*all_names(runs))
    return solo_medians(known, *all_names(runs))[platform, workload]
