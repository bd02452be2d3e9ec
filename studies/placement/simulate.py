"""One fit, and every policy on the sets that it did not see."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.models import fit
from studies.placement.packing import drawn_limits, pack_measured
from studies.placement.policies import policies
from studies.placement.sets import measured_sets

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Runs


@dataclass(frozen=True)
class Draw:
    """How sets and limits are drawn. held_out: share of the sets. ratios: limits over times alone. among: the
    share that may be late among the chosen. repeats: draws of limits for each fit."""

    held_out: float
    ratios: np.ndarray
    among: float
    repeats: int


@dataclass(frozen=True)
class Tally:
    """One policy in one draw of sets and limits. placed, violated: sets after packing; saved: platforms.
    asked, late: workloads asked about, and of those accepted and late, without packing."""

    policy: str
    seed: int
    aim: float
    placed: int
    violated: int
    saved: int
    asked: int
    late: int
    seconds: float
    note: str = ""


def held_out_sets(runs: Runs, share: float, seed: int) -> tuple[Runs, Runs]:
    """(rest, held out): a share of the sets of several workloads, each set on one side. Runs alone stay.

    Raises NotEnoughRuns.
    """
    beside = runs.colocations.number_of_corunners > 0
    units = np.unique(runs.colocations.together[beside])
    held = np.random.default_rng(seed).permutation(units)[: round(share * len(units))]
    out = np.isin(runs.colocations.together, held) & beside
    if not out.any():
        raise NotEnoughRuns(
            f"{len(units)} sets with co-runners are too few to hold some out",
            fix="Measure or import more.",
        )
    return runs.take(~out), runs.take(out)


def simulate_policies(
    runs: Runs,
    method: Any,
    draw: Draw,
    seed: int,
    progress: Progress | None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Tally]:
    """Let every policy accept sets that were held out, and pack those. Raises NotEnoughRuns."""
    learned, held = held_out_sets(runs, draw.held_out, seed)
    model = fit(learned, method, seed=seed, progress=progress)
    parts = measured_sets(held, model, runs, fewest=2)
    if not parts:
        raise NotEnoughRuns("no set that was held out has only names that the model has met")
    every = policies(model, learned, draw.ratios, draw.among, seed)
    random = np.random.default_rng((seed, 1))
    results = []
    for _ in range(draw.repeats):
        limits = drawn_limits(parts, draw.ratios, random)
        asked = sum(int(np.isfinite(limit).sum()) for limit in limits)
        for policy in every:
            began = clock()
            takes = [policy.accepts(part, limit) for part, limit in zip(parts, limits, strict=True)]
            seconds = clock() - began
            placed = pack_measured(parts, takes)
            violated = saved = late = 0
            for part, limit, take, some in zip(parts, limits, takes, placed, strict=True):
                violated += int((some & part.late(limit)).sum())
                saved += int(some.sum()) * (part.members.shape[1] - 1)
                with np.errstate(invalid="ignore"):
                    late += int((take[:, None] & (part.seconds > limit)).sum())
            number = sum(int(some.sum()) for some in placed)
            results.append(
                Tally(
                    policy.name,
                    seed,
                    draw.among,
                    number,
                    violated,
                    saved,
                    asked,
                    late,
                    seconds / max(1, sum(len(part) for part in parts)),
                    policy.note,
                )
            )
    return results


def summed(tallies: Sequence[Tally]) -> list[dict[str, Any]]:
    """A row for each policy, over all draws. Errors are standard errors over the draws of sets."""
    rows = []
    most = sum(one.saved for one in tallies if one.policy == "clairvoyant")
    for name in dict.fromkeys(one.policy for one in tallies):
        mine = [one for one in tallies if one.policy == name]
        placed, late = sum(one.placed for one in mine), sum(one.late for one in mine)
        asked = sum(one.asked for one in mine)
        seeds = sorted({one.seed for one in mine})
        each = [
            sum(one.late for one in mine if one.seed == seed)
            / max(1, sum(one.asked for one in mine if one.seed == seed))
            for seed in seeds
        ]
        spread = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else float("nan")
        rows.append(
            {
                "policy": name,
                "aim_ratio": mine[0].aim,
                "placed_sets": placed / len(mine),
                "violated_sets": sum(one.violated for one in mine) / len(mine),
                "violated_ratio": sum(one.violated for one in mine) / placed if placed else 0.0,
                "saved_platforms": sum(one.saved for one in mine) / len(mine),
                "saved_of_clairvoyant_ratio": sum(one.saved for one in mine) / most
                if most
                else 0.0,
                "accepted_late_ratio": late / asked if asked else 0.0,
                "accepted_late_error_ratio": float(spread),
                "decisions_per_second": 1 / max(1e-9, float(np.mean([o.seconds for o in mine]))),
            }
        )
    return rows
