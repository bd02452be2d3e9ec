"""A calibrated model: a predictor of any method with the bounds fitted to it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import Bounds, Calibration
from jostle.errors import NotEnoughRuns, UsageError

if TYPE_CHECKING:
    from jostle.runs import Colocations, Runs, StoredRuns

# Of all runs: trained on, used to pick checkpoint and spread of the errors, and calibrated on.
SHARES = (0.78, 0.1, 0.12)
# Units (windows as a rule), alone and beside others: enough for a valid bound at 90%.
FEWEST_CALIBRATION = 16
# Calibration runs past this many per number of co-runners would be better spent on training.
MOST_CALIBRATION = 5_000


class Model:
    """What `fit` and `load` return. said: provenance, kept with the model (method, seed, counts)."""

    def __init__(self, predictor: Any, calibration: Calibration, said: dict[str, Any]) -> None:
        self.predictor = predictor
        self.calibration = calibration
        self.said = said

    def predict(self, colocations: Colocations) -> np.ndarray:
        """(n,) seconds, aligned with the input; NaN where there is no answer.

        Raises UnknownName for a name the model has never met.
        """
        return self.predictor.predict(colocations)

    def bound(self, colocations: Colocations, confidence: float = 0.99) -> Bounds:
        """Seconds not exceeded with probability `confidence`, and what stands behind each."""
        return self.calibration.bound(self.predictor, colocations, confidence)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the fit wants its user to know."""
        return tuple(getattr(self.predictor, "notes", ()))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `model.safetensors` and `model.json` into folder `path`, replacing a model there."""
        from jostle.models._saved import save

        save(self, path)


def fit(
    runs: Runs | StoredRuns,
    method: Any,
    *,
    seed: int = 0,
    validation: Runs | None = None,
    calibration: Runs | None = None,
    calibrate_by: str = "window",
    prior: Runs | None = None,
    progress: Any = None,
) -> Model:
    """Fit a method and calibrate it on runs that it holds out itself.

    method: a value object such as Factorization(). validation, calibration: runs held out already;
    by default both are drawn from `runs` by window, with the seed. calibrate_by: `window`, `row` where
    the calibration runs were drawn row by row, or `together` for a guarantee over sets of workloads that
    were never measured together (both sides of a pair and its repeats are then drawn as one).
    prior: runs measured elsewhere, which are learned from but never calibrated on, so that bounds speak
    about `runs` alone. progress: called with (done, total, loss).
    StoredRuns bring what they hold out, by window, and are learned from where they lie; not every
    method can.
    The same runs, method and seed give the same model. Raises NotEnoughRuns.
    """
    from jostle.runs import Runs, StoredRuns

    if isinstance(runs, StoredRuns):
        _require_stored(method, calibrate_by, prior)
        validation, calibration = runs.validation, runs.calibration
    else:
        runs = runs.ok()
        if validation is None or calibration is None:
            drawn_by = "together" if calibrate_by == "together" else "window"
            needs_alone = bool(getattr(method, "needs_alone", False))
            inputs = method.inputs(runs) if hasattr(method, "inputs") else None
            runs, validation, calibration = _hold_out(runs, seed, drawn_by, needs_alone, inputs)
    watched, selection = validation, validation.take([])
    if getattr(method, "offers_choice", True):
        # What bounds a pool is chosen on runs that the candidates were not learned from.
        watched, selection = _halves(validation, seed, calibrate_by)
    prior = None if prior is None else prior.ok()
    apart = {}
    if prior is not None and getattr(method, "tells_prior_apart", False):
        apart["prior"] = prior
    elif prior is not None and not isinstance(runs, StoredRuns):
        runs = Runs.concatenate([runs, prior])
    predictor = method.fit(runs, watched, seed=seed, progress=progress, **apart)
    said = {
        "method": method.name,
        "settings": dict(getattr(method, "settings", vars(method))),
        "seed": seed,
        "calibrated_by": calibrate_by,
        "runs": {
            "fitted": len(runs) + sum(map(len, apart.values())),
            "validation": len(validation),
            "calibration": len(calibration),
            "prior": 0 if prior is None else len(prior),
        },
    }
    return Model(
        predictor, Calibration.fit(predictor, selection, calibration, by=calibrate_by), said
    )


def _require_stored(method: Any, calibrate_by: str, prior: Runs | None) -> None:
    if not getattr(method, "learns_from_disk", False):
        raise UsageError(
            f"the method {method.name} does not learn from runs on disk", fix="Use read_runs."
        )
    if calibrate_by != "window" or prior is not None:
        raise UsageError("runs on disk are held out by window, and without a prior")


def _halves(runs: Runs, seed: int, by: str) -> tuple[Runs, Runs]:
    from jostle.runs import split_rows

    first, second = split_rows(runs, (0.5, 0.5), seed, "window" if by == "row" else by)
    return runs.take(first), runs.take(second)


def _hold_out(
    runs: Runs, seed: int, by: str, needs_alone: bool = False, inputs: np.ndarray | None = None
) -> tuple[Runs, Runs, Runs]:
    """(to fit, to validate, to calibrate), by window or another unit. inputs: (n,) bool, runs that are never
    held out, because the method answers nothing about them.

    A unit with the only appearance of a workload or platform stays with the runs to fit: a name that
    the model never met cannot be answered at all. The guarantee is then for co-locations of names that
    were met elsewhere, which are the only ones a finite bound is given for.
    """
    from jostle.runs import split_rows

    if len(runs) < 3:
        raise NotEnoughRuns(
            f"{len(runs)} runs are too few to fit and hold some out",
            fix="Measure or import more; a few dozen give first predictions.",
        )
    unit = runs.units(by)
    needed = np.isin(unit, _only_units(runs, by))
    if inputs is not None:
        needed |= inputs
    if needs_alone:
        c = runs.colocations
        alone = np.flatnonzero(c.number_of_corunners == 0)
        cell = c.platform[alone].astype(np.int64) * len(c.workload_names) + c.workload[alone]
        first = np.unique(cell, return_index=True)[1]
        needed |= np.isin(unit, unit[alone[first]])
    free = runs.take(~needed)
    if len(free) == 0:
        return runs, free, free
    kept, validation, calibration = split_rows(free, _shares(free, by), seed, by)
    degree = free.colocations.number_of_corunners[calibration]
    extra = [np.flatnonzero(degree == d)[MOST_CALIBRATION:] for d in np.unique(degree)]
    surplus = calibration[np.sort(np.concatenate(extra))]
    # Whole units only: one cut by the cap stays where most of it is.
    unit = free.units(by)
    surplus = surplus[~np.isin(unit[surplus], unit[np.setdiff1d(calibration, surplus)])]
    back = np.union1d(kept, surplus)
    fitted = np.union1d(np.flatnonzero(needed), np.flatnonzero(~needed)[back])
    return runs.take(fitted), free.take(validation), free.take(np.setdiff1d(calibration, surplus))


def _shares(runs: Runs, by: str) -> tuple[float, float, float]:
    """SHARES, with more calibrated on where otherwise no bound would be valid: the model is then a little
    worse, but it can say at most how long."""
    degree = runs.colocations.number_of_corunners
    units = [len(np.unique(runs.units(by)[group])) for group in (degree == 0, degree > 0)]
    fewest = min((n for n in units if n), default=0)
    _, validated, calibrated = SHARES
    calibrated = float(np.clip(FEWEST_CALIBRATION / max(fewest, 1), calibrated, 0.4))
    return 1 - validated - calibrated, validated, calibrated


def _only_units(runs: Runs, by: str) -> np.ndarray:
    """Units that hold the only appearance of some workload, co-runner or platform."""
    c = runs.colocations
    unit = runs.units(by)
    row = np.repeat(np.arange(len(runs)), c.number_of_corunners)
    found = []
    for codes, units in (
        (np.concatenate([c.workload, c.corunner]), np.concatenate([unit, unit[row]])),
        (c.workload, unit),
        (c.platform, unit),
    ):
        pairs = np.unique(np.stack([codes, units]), axis=1)
        names, counts = np.unique(pairs[0], return_counts=True)
        found.append(pairs[1][np.isin(pairs[0], names[counts == 1])])
    return np.unique(np.concatenate(found))
