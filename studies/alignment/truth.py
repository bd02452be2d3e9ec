"""What was measured, once for each set of workloads: repeats of a window make one quiet run time.

A recorded run time holds what the machine's unseen neighbours took besides what the co-runners did. Where a
window was recorded several times the truth is put together of the quiet stretches of its repeats (see
`jostle.learn.learners.counters.quiet_seconds`), and how far the truths of two halves of the repeats are
apart says how well it is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jostle.data import Runs, Trace


STEADY = 0.25


@dataclass(frozen=True, eq=False)
class Member:
    """One workload of a set. runs: its repeats that ended. seconds: the quiet run time, NaN where it never
    ended. apart_ratio: between the two halves of its repeats, over `seconds`; NaN for fewer than four."""

    slot: int
    workload: str
    platform: str
    corunners: tuple[str, ...]
    runs: tuple[Trace, ...]
    seconds: float
    apart_ratio: float

    @property
    def single_error(self) -> float:
        """Mean |one repeat / the median of the others - 1|: what one measurement is worth; NaN for fewer than
        three."""
        singles = self.singles_seconds
        if len(singles) < 3:
            return float("nan")
        others = [np.median(np.delete(singles, k)) for k in range(len(singles))]
        return float(np.mean(np.abs(singles / np.array(others) - 1)))

    @property
    def singles_seconds(self) -> np.ndarray:
        """(repeats,) run times as measured."""
        return np.array([run.runtime_seconds for run in self.runs])


@dataclass(frozen=True, eq=False)
class MeasuredSet:
    """All windows of the same workloads on the same slots."""

    windows: dict[str, Sequence[Trace]]
    members: tuple[Member, ...]

    @property
    def name(self) -> str:
        """The least of its window_ids."""
        return min(self.windows)

    @property
    def quietest(self) -> Sequence[Trace]:
        """The window that took the least time."""
        return min(self.windows.values(), key=lambda runs: sum(_ended(r) for r in runs))


def measured_sets(
    windows: Mapping[str, Sequence[Trace]], period_seconds: float, repeats: int | None = None
) -> list[MeasuredSet]:
    """Windows of {window_id: runs}, by set. repeats: see `member_of`."""
    from jostle.learn.learners.counters import slots_of

    sets: dict[tuple, dict[str, Sequence[Trace]]] = {}
    for name, runs in windows.items():
        slots = slots_of(runs)
        key = tuple(
            sorted((run.platform, s, run.workload) for s, run in zip(slots, runs, strict=True))
        )
        sets.setdefault(key, {})[name] = sorted(
            runs, key=lambda run: (run.core, run.workload, run.run_id)
        )
    return [
        MeasuredSet(
            same,
            tuple(
                member_of(
                    [runs[i] for runs in same.values()], slots_of(first)[i], period_seconds, repeats
                )
                for i in range(len(first))
            ),
        )
        for same in sets.values()
        for first in [next(iter(same.values()))]
    ]


def member_of(
    runs: Sequence[Trace], slot: int, period_seconds: float, repeats: int | None = None
) -> Member:
    """Of repeats of one workload, alone or beside the same others. repeats: the number at which times are
    compared, by default all (see `jostle.learn.learners.counters.equal_repeats`)."""
    from jostle.learn.learners.counters import quiet_seconds

    ended = sorted((r for r in runs if not np.isnan(r.runtime_seconds)), key=lambda r: r.run_id)
    seconds = quiet_seconds(ended, period_seconds, repeats) if ended else np.nan
    apart = np.nan
    if len(ended) >= 4:
        halves = [quiet_seconds(ended[k::2], period_seconds) for k in (0, 1)]
        apart = abs(halves[0] - halves[1]) / seconds
    one = runs[0]
    return Member(slot, one.workload, one.platform, one.corunners, tuple(ended), seconds, apart)


def noise_metrics(members: Sequence[Member], prefix: str = "") -> dict[str, float]:
    """Metrics of how well run times are known; empty where nothing was repeated."""
    single = [np.abs(m.singles_seconds / m.seconds - 1) for m in members if len(m.runs) > 1]
    apart = np.array([m.apart_ratio for m in members if not np.isnan(m.apart_ratio)])
    results = {}
    if single:
        results[f"{prefix}single_run_difference_mean_ratio"] = float(np.concatenate(single).mean())
    if len(apart):
        # Each half knows it from half of the repeats: the whole is about half as far off as they are apart.
        results[f"{prefix}noise_floor_mean_ratio"] = float(apart.mean() / 2)
        results[f"{prefix}noise_floor_max_ratio"] = float(apart.max() / 2)
    return results


def spread_metrics(sets: Sequence[MeasuredSet]) -> dict[str, float]:
    """How much there is to tell apart, by an analysis of variance of log run times over each target's sets:
    `repeat_spread_ratio`, the standard deviation of repeats of one set, and `interference_spread_ratio`, that
    of one target's sets beyond what repeats explain, 0 where it is not more than that. Empty without targets
    of two sets that were repeated."""
    by_target: dict[tuple[str, str, int], list[np.ndarray]] = {}
    for one in sets:
        for m in one.members:
            if len(m.runs) > 1:
                key = m.platform, m.workload, m.slot
                by_target.setdefault(key, []).append(np.log(m.singles_seconds))
    within, between = [], []
    for each in by_target.values():
        if len(each) < 2:
            continue
        counts = np.array([len(logs) for logs in each])
        inside = sum(float(((logs - logs.mean()) ** 2).sum()) for logs in each)
        within.append(inside / (counts.sum() - len(each)))
        means = np.var([logs.mean() for logs in each], ddof=1)
        between.append(float(means) - within[-1] * float(np.mean(1 / counts)))
    if not within:
        return {}
    return {
        "repeat_spread_ratio": float(np.sqrt(np.mean(within))),
        "interference_spread_ratio": float(np.sqrt(max(np.mean(between), 0.0))),
    }


def unsteady_of(alone: Sequence[Member]) -> tuple[str, ...]:
    """Workloads whose usual run alone takes over a quarter longer than their quiet run time: what happens to
    them alone is as large as what others may do to them, and the two cannot be told apart."""
    results = {
        m.workload
        for m in alone
        if len(m.runs) > 2 and np.median(m.singles_seconds) > (1 + STEADY) * m.seconds
    }
    return tuple(sorted(results))


def quiet_runs(sets: Sequence[MeasuredSet], alone: Sequence[Member] = ()) -> Runs:
    """One run for each member of each set, and for each of those alone, with the quiet run time."""
    from jostle.data import Runs

    rows = [(m, one.name) for one in sets for m in one.members if not np.isnan(m.seconds)]
    rows += [(m, m.runs[0].run_id) for m in alone if not np.isnan(m.seconds)]
    return Runs.from_columns(
        workload=[m.workload for m, _ in rows],
        platform=[m.platform for m, _ in rows],
        corunners=[list(m.corunners) for m, _ in rows],
        runtime_seconds=[m.seconds for m, _ in rows],
        run_id=[m.runs[0].run_id for m, _ in rows],
        window_id=[window for _, window in rows],
    )


def _ended(run: Trace) -> float:
    return 0.0 if np.isnan(run.runtime_seconds) else run.runtime_seconds
