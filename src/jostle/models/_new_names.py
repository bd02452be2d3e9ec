"""Calibration for names that were never or hardly measured: further fits that leave names out whole.

A fit knows nothing of how far off it is for a new name. So the method is fitted again on runs from which
some of the names have been taken, as targets, platforms and co-runners: some entirely, some but for their
runs alone, some but for a few runs. What it then predicts of the runs that were taken away tells how far off
such predictions are. Each name weighs the same, however many runs it has, because the next new name is one
name. These scores are those of other fits on fewer names, not of the model itself: there is no exact
theorem, and bounds that rest on them have an outcome of their own, `held_out_names`.

Related: leave-one-group-out and CV+ (Barber et al. 2021, Predictive inference with the jackknife+).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._base.progress import Progress, share_of
from jostle.conformal import Groups, LeftOutRuns
from jostle.errors import NotEnoughRuns
from jostle.learn import Prepared, hold_out, turns_of
from jostle.models._training_recipe import WayToLearn

FOLDS = 5
NOTHING, ALONE = 0, -1  # kept of a name that is left out: nothing, or only its runs alone
FEW_RUNS = (1, 3, 10, 30)  # or so many runs
ENOUGH_NAMES = 32  # for each amount kept: not far from where more would hardly narrow the bounds
MOST_ROUNDS = 3
FEWEST_NAMES = 4
RUNS_PER_NAME = 100  # scored of one name in one fit


WHOLE = np.iinfo(np.int64).max  # of a name that is not left out


def runs_of_names_left_out(
    learning: WayToLearn,
    prepared: Prepared,
    groups: Groups | None = None,
    progress: Progress | None = None,
) -> LeftOutRuns:
    """Return the errors about runs by fits that had left out their names.

    learning: by which each fit holds out, too, for its own choices. Raises NotEnoughRuns where there are too
    few names, or where no fit could be made.
    """
    c = prepared.runs.colocations
    random = np.random.default_rng([learning.seed, 7])
    beside = bool((c.number_of_corunners > 0).any())
    few = (ALONE, *FEW_RUNS) if beside else FEW_RUNS
    workloads = _Plan.drawn(_met(c.workload_names, c.workload, c.corunner), few, random)
    if (prepared.inputs & (c.number_of_corunners > 0)).any():
        # A new name comes with its inputs, which are beside others: each name is left out but for these.
        workloads = workloads.and_alone(random)
    platforms = _Plan.drawn(_met(c.platform_names, c.platform), FEW_RUNS, random)
    fits = FOLDS * max(workloads.rounds, platforms.rounds)
    parts = []
    for number in range(fits):
        left = _LeftOut.of(prepared, workloads, platforms, number, random)
        rest = prepared.take(np.flatnonzero(left.kept))
        try:
            this = replace(learning, seed=learning.seed + number)
            held = hold_out(rest, this.seed, this.unit)
            fitted, _ = this.from_rest(held, share_of(progress, number, fits))
        except NotEnoughRuns:
            continue
        parts.append(_scored(fitted, prepared, left, groups))
    if not any(len(part) for part in parts):
        raise NotEnoughRuns(
            f"{len(workloads.names)} workloads and {len(platforms.names)} platforms are too few to leave "
            "names out and calibrate on what is left",
            fix="Measure more names, or fit without bounds for new names.",
        )
    # A name is one unit in all fits.
    return LeftOutRuns.concatenate(parts)


@dataclass(frozen=True)
class _Plan:
    """What each round does to the names of one kind. kept: (rounds, names) what is left of each when it is
    left out. fold: (rounds, names) by which fit of the round."""

    names: tuple[str, ...]
    kept: np.ndarray
    fold: np.ndarray

    @property
    def rounds(self) -> int:
        return len(self.kept)

    @classmethod
    def drawn(cls, names: tuple[str, ...], few: tuple[int, ...], random: Any) -> _Plan:
        """Draw folds that leave out each name once a round: in the first entirely, then but for one of the
        amounts `few`, in as many rounds as each amount needs for enough names."""
        n, m = len(names), len(few)
        rounds = int(np.clip(-(-m * ENOUGH_NAMES // n), 1, MOST_ROUNDS)) if n else 0
        turn = random.permutation(n)
        left_out = np.array(few)[(turn + np.arange(rounds)[:, None]) % m]
        left_out = np.concatenate([np.full((1, n), NOTHING), left_out])
        if n < FEWEST_NAMES:
            left_out = left_out[:0]
        fold = np.array([random.permutation(n) % FOLDS for _ in left_out]).reshape(len(left_out), n)
        return cls(names, left_out, fold)

    def and_alone(self, random: Any) -> _Plan:
        """Add a round in which each name is left out but for its runs alone."""
        n = len(self.names)
        if not self.rounds:
            return self
        kept, fold = np.full((1, n), ALONE), random.permutation(n)[None] % FOLDS
        return _Plan(
            self.names, np.concatenate([self.kept, kept]), np.concatenate([self.fold, fold])
        )

    def of(self, number: int) -> np.ndarray:
        """Return how many runs of each name the fit of this number keeps, (names,)."""
        turn, fold = number // FOLDS, number % FOLDS
        if turn >= self.rounds:
            return np.full(len(self.names), WHOLE)
        return np.where(self.fold[turn] == fold, self.kept[turn], WHOLE)


def _met(names: tuple[str, ...], *codes: np.ndarray) -> tuple[str, ...]:
    """Return the names with a run."""
    return tuple(names[code] for code in np.unique(np.concatenate(codes)))


@dataclass(frozen=True)
class _LeftOut:
    """What one fit sees. kept: (n,) bool, the runs it may learn from. asked: (n,) bool, those it is asked
    about. unit: (n,) the name that such a run stands for."""

    kept: np.ndarray
    asked: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(
        cls, prepared: Prepared, workloads: _Plan, platforms: _Plan, number: int, random: Any
    ) -> _LeftOut:
        c = prepared.runs.colocations
        w, p, k = c.recode(workloads.names, platforms.names)
        left_w, left_p = workloads.of(number), platforms.of(number)
        workload, platform = left_w[w], left_p[p]
        row = c.corunner_row
        missing = left_w[k] < WHOLE
        beside_missing = np.zeros(len(w), bool)
        beside_missing[row[missing]] = True
        old_w, old_p = workload == WHOLE, platform == WHOLE
        learned = old_w & old_p & ~beside_missing
        place = random.permutation(len(w))
        for codes, left, mine in ((w, workload, ~old_w & old_p), (p, platform, old_w & ~old_p)):
            learned |= _drawn(mine & ~beside_missing, codes, np.maximum(left, 0), place)
        learned |= (workload == ALONE) & (c.number_of_corunners == 0) & old_p
        # Inputs of the method come with names that are there at all.
        beside_nothing = np.zeros(len(w), bool)
        beside_nothing[row[left_w[k] == NOTHING]] = True
        there = (workload != NOTHING) & (platform != NOTHING)
        learned |= prepared.required & ~beside_missing & there
        learned |= prepared.inputs & ~beside_nothing & there
        unit = np.full(len(w), -1)
        unit[row[missing][::-1]] = k[missing][::-1]
        unit = np.where(old_w, unit, w)
        # A run with both names new stands for the name of which there are fewer.
        is_place = ~old_p & (old_w | (len(platforms.names) < len(workloads.names)))
        unit = np.where(is_place, len(workloads.names) + p, unit)
        no_sample = prepared.inputs | prepared.runs.is_chosen
        tested = ~learned & ~no_sample & (~old_w | ~old_p | beside_missing)
        most = np.full(len(w), RUNS_PER_NAME)
        return cls(learned, _drawn(tested, unit, most, place), unit)


def _drawn(among: np.ndarray, codes: np.ndarray, most: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Mark (n,) bool at most so many (n,) runs of each code among those of a mask, in the order of place."""
    free = np.flatnonzero(among)
    order = free[np.argsort(place[free], kind="stable")]
    is_drawn = np.zeros(len(among), bool)
    is_drawn[order[turns_of(codes[order]) < most[order]]] = True
    return is_drawn


def _scored(fitted: Any, prepared: Prepared, left: _LeftOut, groups: Groups | None) -> LeftOutRuns:
    """Collect the runs that the fit was asked about and has an answer for: one without an answer has no bound
    in the model, either."""
    runs = prepared.runs
    known = runs.colocations.known_in(fitted.workload_names, fitted.platform_names)
    at = np.flatnonzero(left.asked & known)
    options: Any = {"name_groups": groups, "held_out": True}
    return LeftOutRuns.of(fitted, runs.take(at), left.unit[at], **options)
