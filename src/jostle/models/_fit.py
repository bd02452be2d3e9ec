"""Fit any method and calibrate it on runs that it did not learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.bounds import Calibration
from jostle.errors import UsageError
from jostle.methods import (
    Data,
    HeldOut,
    Learner,
    LearnsFromDisk,
    OffersChoice,
    Prepared,
    TakesPrior,
    halves,
    hold_out,
    without_inputs,
)
from jostle.models._model import Model
from jostle.runs import Runs, StoredRuns

if TYPE_CHECKING:
    from jostle.progress import Progress

UNITS = ("window", "row", "together")


def fit(
    data: Any,
    method: Learner[Any],
    *,
    seed: int = 0,
    validation: Runs | None = None,
    calibration: Runs | None = None,
    calibrate_by: str | None = None,
    prior: Runs | None = None,
    progress: Progress | None = None,
) -> Model:
    """Fit a method and calibrate it on runs that it holds out itself.

    data: what jostle.read gives, the path of a folder, runs, or traces. method: a value object such as
    Factorization(). validation, calibration: runs held out already, of which inputs of the method are not
    used; by default both are drawn from the runs, with the seed. calibrate_by: `window`, `row` where the
    calibration runs were drawn row by row, or `together` for a guarantee over sets of workloads that were
    never measured together (both sides of a pair and its repeats are then drawn as one); by default what
    the method says. prior: runs measured elsewhere, which are learned from but never calibrated on, so
    that bounds speak about the data's own runs alone. progress: called with (done, total, loss).
    Runs on disk (StoredRuns) bring what they hold out, by window, and are learned from where they lie; not
    every method can.
    The same data, method and seed give the same model. Raises NotEnoughRuns, UsageError.
    """
    prepared = method.prepare(Data.of(data))
    by = calibrate_by or prepared.calibrate_by
    if by not in UNITS:
        raise UsageError(f"calibrate by {by!r}", fix=f"Known: {', '.join(UNITS)}.")
    if isinstance(prepared.runs, StoredRuns):
        _require_stored(method, by, prior)
        held = HeldOut(prepared, prepared.runs.validation, prepared.runs.calibration)
    elif validation is None or calibration is None:
        held = hold_out(prepared, seed, "window" if by == "row" else by)
    else:
        held = HeldOut(
            prepared,
            without_inputs(method, prepared, validation),
            without_inputs(method, prepared, calibration),
        )
    watched, selection = held.validation, held.validation.take([])
    if not isinstance(method, OffersChoice) or method.offers_choice:
        # What bounds a pool is chosen on runs that the candidates were not learned from.
        watched, selection = halves(held.validation, seed, by)
    learn = held.learn.with_validation(watched)
    if prior is None:
        fitted = method.fit(learn, seed=seed, progress=progress)
    elif isinstance(method, TakesPrior):
        fitted = method.fit_with_prior(learn, prior.ok(), seed=seed, progress=progress)
    else:
        fitted = method.fit(_joined(method, learn, prior.ok()), seed=seed, progress=progress)
    metadata = {
        "method": method.name,
        "settings": dict(vars(method)),
        "seed": seed,
        "calibrated_by": by,
        "runs": {
            "fitted": len(learn.runs) + (0 if prior is None else len(prior.ok())),
            "validation": len(held.validation),
            "calibration": len(held.calibration),
            "prior": 0 if prior is None else len(prior.ok()),
        },
    }
    return Model(fitted, Calibration.fit(fitted, selection, held.calibration, by=by), metadata)


def _joined(method: Learner[Any], learn: Prepared, prior: Runs) -> Prepared:
    """Prepared anew from both: a method that does not tell them apart learns from them together."""
    whole = method.prepare(learn.data.with_runs(Runs.concatenate([learn.in_memory, prior])))
    return whole.with_validation(learn.validation)


def _require_stored(method: Learner[Any], by: str, prior: Runs | None) -> None:
    if not isinstance(method, LearnsFromDisk):
        raise UsageError(
            f"the method {method.name} does not learn from runs on disk", fix="Use read_runs."
        )
    if by != "window" or prior is not None:
        raise UsageError("runs on disk are held out by window, and without a prior")
