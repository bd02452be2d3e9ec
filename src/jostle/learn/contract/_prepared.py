"""What a method learns from, and how some of it is held out to calibrate on.

Arrow comes with runs, so it is imported where it is used: loading a model needs the names here, but no runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import NotEnoughRuns

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.learn.contract._data import Data

# Of all runs: trained on, used to pick checkpoint and spread of the errors, and calibrated on.
SHARES = (0.78, 0.1, 0.12)
# Units (windows as a rule), alone and beside others: enough for a valid bound at 90%.
FEWEST_CALIBRATION = 16
# Units calibrated on that answer 99% with a few to spare, and of how many they may be taken.
CALIBRATION_FOR_99 = 105
FEWEST_FOR_99 = 500
# Calibration runs past this many per number of co-runners would be better spent on training.
MOST_CALIBRATION = 5_000


@dataclass(frozen=True)
class Prepared:
    """Runs to learn from, as a method's `prepare` gives them.

    runs: n runs with status ok. inputs: (n,) bool, runs that the method makes features
    of: learned from, never held out, never calibrated on. required: (n,) bool, runs without which nothing
    could be answered about others, such as the only solo run of a workload. validation: runs held out for
    the method's own choices; it may learn from them in the end. data: where traces and profiles are.
    calibrate_by: the unit that is held out unless the caller says another: `window`, or `together` for
    all runs of the same workloads on the same platform.
    """

    runs: Runs
    data: Data
    inputs: np.ndarray
    required: np.ndarray
    validation: Runs
    calibrate_by: str = "window"

    @classmethod
    def of(
        cls,
        data: Data,
        runs: Runs | None = None,
        *,
        inputs: np.ndarray | None = None,
        required: np.ndarray | None = None,
        calibrate_by: str = "window",
        keep_unknown: bool = False,
    ) -> Prepared:
        """Make the input of a fit from data.

        runs: by default those of the data. What is left out of inputs and required is nothing.

        inputs and required are about the runs as given; those whose status is not ok are dropped here, and
        unless `keep_unknown` those with co-runners that are not known.
        """
        runs = data.runs if runs is None else runs
        ok = runs.is_ok & (keep_unknown | ~runs.unknown_corunners)
        marked, mask = (
            np.zeros(int(ok.sum()), bool) if mark is None else np.asarray(mark, bool)[ok]
            for mark in (inputs, required)
        )
        runs = runs if ok.all() else runs.take(ok)
        return cls(runs, data, marked, mask, runs.take([]), calibrate_by)

    def take(self, index: np.ndarray) -> Prepared:
        """Keep only these of the runs."""
        return replace(
            self,
            runs=self.runs.take(index),
            inputs=self.inputs[index],
            required=self.required[index],
        )

    def with_validation(self, validation: Runs) -> Prepared:
        """Replace the runs for the method's own choices."""
        return replace(self, validation=validation)

    def together(self) -> Runs:
        """Return all runs to learn from, those for the method's own choices included."""
        from jostle.data import Runs

        return Runs.concatenate([self.runs, self.validation.ok()])


@dataclass(frozen=True)
class HeldOut:
    """Runs to fit on, and runs to calibrate on.

    learn: what to fit on; its validation are runs for choices, of which none calibrates.
    """

    learn: Prepared
    validation: Runs
    calibration: Runs


def first_solo_runs(runs: Runs) -> np.ndarray:
    """Mark the first run alone of every workload on every platform, (n,) bool, for methods whose answers are
    relative to it."""
    c = runs.colocations
    is_alone = (c.number_of_corunners == 0) & ~runs.unknown_corunners
    alone = np.flatnonzero(is_alone & runs.is_ok)
    cell = c.platform[alone].astype(np.int64) * len(c.workload_names) + c.workload[alone]
    marked = np.zeros(len(runs), bool)
    marked[alone[np.unique(cell, return_index=True)[1]]] = True
    return marked


def hold_out(prepared: Prepared, seed: int, unit: str, *, most: int = MOST_CALIBRATION) -> HeldOut:
    """Split runs to fit, to validate and to calibrate, by window or another unit, drawn with the seed.

    Inputs are never held out, nor is what is required, nor runs that were chosen, as by Model.suggest: those
    are a random sample of nothing. A unit with the only appearance of a workload or
    platform stays with the runs to fit: a name that the model never met cannot be answered at all. The
    guarantee is then for co-locations of names that were met elsewhere, which are the only ones a finite
    bound is given for. Raises NotEnoughRuns.
    """
    runs = prepared.runs
    if len(runs) < 3:
        raise NotEnoughRuns(
            f"{len(runs)} runs are too few to fit and hold some out",
            fix="Measure or import more; a few dozen give first predictions.",
        )
    codes = runs.units(unit)
    kept_back = prepared.inputs | prepared.required | runs.is_chosen
    needed = np.isin(codes, _only_units(runs, unit)) | np.isin(codes, codes[kept_back])
    free = runs.take(~needed)
    if len(free) == 0:
        return HeldOut(prepared, free, free)
    learned, validation, calibration = _split(free, seed, unit, most)
    fitted = np.union1d(np.flatnonzero(needed), np.flatnonzero(~needed)[learned])
    return HeldOut(prepared.take(fitted), free.take(validation), free.take(calibration))


def held_out_again(prepared: Prepared, seed: int, unit: str, *, grouped: bool = False) -> HeldOut:
    """Choose what a fit with these settings holds out, unless its caller brings that.

    unit: `row` for calibration runs that were drawn row by row; then windows are. grouped: for a guarantee
    within groups, each of which is calibrated by its own runs alone, so of many none are too many. Raises
    NotEnoughRuns.
    """
    most = len(prepared.runs) if grouped else MOST_CALIBRATION
    return hold_out(prepared, seed, "window" if unit == "row" else unit, most=most)


def without_inputs(method: Any, prepared: Prepared, runs: Runs) -> Runs:
    """Take the runs that a caller has held out, without those that are inputs of the method."""
    runs = runs.ok()
    if len(runs) == 0:
        return runs
    mine = method.prepare(prepared.data.with_runs(runs))
    ids = mine.runs.table.column("run_id").to_pylist()
    inputs = {run_id for run_id, mark in zip(ids, mine.inputs, strict=True) if mark}
    if not inputs:
        return runs
    every = runs.table.column("run_id").to_pylist()
    return runs.take(np.array([run_id not in inputs for run_id in every]))


def halves(runs: Runs, seed: int, unit: str) -> tuple[Runs, Runs]:
    """Split into two parts, with no group in both."""
    from jostle.data import split_rows

    first, second = split_rows(runs, (0.5, 0.5), seed, "window" if unit == "row" else unit)
    return runs.take(first), runs.take(second)


def _split(runs: Runs, seed: int, unit: str, most: int) -> list[np.ndarray]:
    """Return (to fit, to validate, to calibrate), indices, apart for every number of co-runners."""
    from jostle.data import split_rows

    codes, validated = runs.units(unit), SHARES[1]
    degree = _degree_of_units(runs, codes)
    shares = _calibration_shares(codes, degree, most)
    if len(set(shares.values())) == 1:
        share = next(iter(shares.values()))
        return split_rows(runs, (1 - validated - share, validated, share), seed, unit)
    parts: list[list[np.ndarray]] = [[], [], []]
    for d, share in shares.items():
        at = np.flatnonzero(degree == d)
        fractions = (1 - validated - share, validated, share)
        for part, rows in zip(parts, split_rows(runs.take(at), fractions, seed, unit), strict=True):
            part.append(at[rows])
    return [np.sort(np.concatenate(part)) for part in parts]


def _degree_of_units(runs: Runs, unit: np.ndarray) -> np.ndarray:
    """Return (n,) the number of co-runners in the first row of each row's unit, by which units are drawn."""
    _, first, inverse = np.unique(unit, return_index=True, return_inverse=True)
    return runs.colocations.number_of_corunners[first][inverse.reshape(-1)]


def _calibration_shares(unit: np.ndarray, degree: np.ndarray, most: int) -> dict[int, float]:
    """Choose the share of units to calibrate on, by number of co-runners: more if otherwise no bound at the
    usual confidence, or with some 500 units none at 99%, would be valid, and so few that hardly more than
    `most` runs are drawn."""
    numbers = [len(np.unique(unit[group])) for group in (degree == 0, degree > 0)]
    available = min((n for n in numbers if n), default=0)
    least = float(np.clip(FEWEST_CALIBRATION / max(available, 1), SHARES[2], 0.4))
    shares = {}
    for d in np.unique(degree):
        units = len(np.unique(unit[degree == d]))
        needed = CALIBRATION_FOR_99 / units if units >= FEWEST_FOR_99 else 0.0
        shares[int(d)] = float(min(max(least, needed), most / np.sum(degree == d)))
    return shares


def _only_units(runs: Runs, unit: str) -> np.ndarray:
    """Return units that hold the only appearance of some workload, co-runner or platform."""
    c = runs.colocations
    drawn = runs.units(unit)
    row = c.corunner_row
    units_of_names = []
    for codes, units in (
        (np.concatenate([c.workload, c.corunner]), np.concatenate([drawn, drawn[row]])),
        (c.workload, drawn),
        (c.platform, drawn),
    ):
        pairs = np.unique(np.stack([codes, units]), axis=1)
        names, counts = np.unique(pairs[0], return_counts=True)
        units_of_names.append(pairs[1][np.isin(pairs[0], names[counts == 1])])
    return np.unique(np.concatenate(units_of_names))
