"""Sets that were measured: who was beside whom, and how long each took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.data import solo_medians

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models import Model


@dataclass(frozen=True)
class MeasuredSets:
    """n sets of k workloads each, as codes of a model's names.

    platform: (n,). members: (n, k) ascending. seconds: (n, k) measured, NaN for a member whose own time was
    not measured. solo: (n, k) seconds alone, the measured median; NaN where it is not known.
    """

    platform: np.ndarray
    members: np.ndarray
    seconds: np.ndarray
    solo: np.ndarray

    def __len__(self) -> int:
        return len(self.platform)

    def take(self, at: Any) -> MeasuredSets:
        return MeasuredSets(self.platform[at], self.members[at], self.seconds[at], self.solo[at])

    def late(self, limit: np.ndarray) -> np.ndarray:
        """(n,) whether anybody measured took longer than its limit, (n, k)."""
        with np.errstate(invalid="ignore"):
            return np.asarray(np.any(self.seconds > limit, axis=1))


def measured_sets(
    runs: Runs, model: Model, solo_runs: Runs | None = None, *, fewest: int = 1
) -> list[MeasuredSets]:
    """The different sets in the runs that the model knows all names of, by their number of workloads.

    Of several windows of one set the first counts. solo_runs: where times alone come from; by default the
    runs. fewest: workloads of a set at least.
    """
    runs = runs.ok()
    names = tuple(model.predictor.workload_names), tuple(model.predictor.platform_names)
    solo = np.exp(solo_medians(runs if solo_runs is None else solo_runs.ok(), *names))
    c = runs.colocations
    workload, platform, corunner = c.recode(*names)
    known = (workload >= 0) & (platform >= 0)
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    known[row[corunner < 0]] = False
    sets: dict[int, list[tuple[int, np.ndarray, np.ndarray]]] = {}
    order = np.lexsort((np.arange(len(c)), c.together))
    order = order[known[order]]
    starts = np.flatnonzero(np.diff(c.together[order], prepend=-1))
    for group in np.split(order, starts[1:]) if len(order) else []:
        first = group[0]
        beside = corunner[c.corunner_offsets[first] : c.corunner_offsets[first + 1]]
        members = np.sort(np.append(beside, workload[first]))
        if len(members) < fewest:
            continue
        window = runs.window[group]
        # One window where it measured all; else each member's first time, wherever it was.
        same = group[window == window[0]]
        rows = same if len(same) >= len(members) else group
        seconds, free = np.full(len(members), np.nan), list(rows)
        for place, member in enumerate(members):
            mine = next((r for r in free if workload[r] == member), None)
            if mine is not None:
                seconds[place] = runs.runtime_seconds[mine]
                free.remove(mine)
        sets.setdefault(len(members), []).append((int(platform[first]), members, seconds))
    return [_stacked(sets[k], solo) for k in sorted(sets)]


def _stacked(rows: Sequence[tuple[int, np.ndarray, np.ndarray]], solo: np.ndarray) -> MeasuredSets:
    platform = np.array([row[0] for row in rows], int)
    members = np.array([row[1] for row in rows], int)
    seconds = np.array([row[2] for row in rows])
    return MeasuredSets(platform, members, seconds, solo[platform[:, None], members])
