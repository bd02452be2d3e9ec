"""Fit any method and calibrate it on runs that it did not learn from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle._base.progress import Progress, share_of
from jostle._base.version import VERSION
from jostle.conformal import Calibration
from jostle.data import Runs
from jostle.errors import require_choice, require_whole
from jostle.learn import (
    Data,
    HeldOut,
    Method,
    Prepared,
    default_method,
    held_out_again,
    method_of,
    one_thread,
    without_inputs,
)
from jostle.models._grouped_names import groups_of
from jostle.models._model import Model
from jostle.models._new_names import runs_of_names_left_out
from jostle.models._residual_baseline import ResidualBaseline
from jostle.models._training_recipe import WayToLearn
from jostle.models.timelines._timeline_training import OverTime
from jostle.models.updates._cross_conformal import CrossConformalFit, fit_crossed
from jostle.models.updates._refit import MOST_AGAIN
from jostle.models.updates._replay_buffer import ReplayBuffer

UNITS = ("window", "row", "together")


@one_thread()
def fit(
    data: Any,
    method: Method[Any] | type[Method[Any]] | str | None = None,
    *,
    seed: int = 0,
    validation: Runs | None = None,
    calibration: Runs | None = None,
    calibrate_by: str | None = None,
    prior: Runs | None = None,
    new_names: bool = False,
    by: str | None = None,
    fitted_at: str | None = None,
    progress: Progress | None = None,
) -> Model:
    """Fit a method and calibrate it on runs that it did not learn from.

    The same data, method and seed give the same model. A run whose co-runners changed counts as one of its
    longest stretch.

    Parameters
    ----------
    data :
        What :func:`read` gives, the path of a folder, a Dataset, runs, traces, or a table that
        :meth:`Runs.from_table` takes.
    method :
        Settings such as ``Factorization(rank=64)``, a class, or a name. None: all base learners that the data
        allow (`ensemble`), and `factorization` from a million runs on.
    seed :
        Of what is drawn: runs held out, and starts of the fit.
    validation, calibration :
        Runs held out already. None: the method leaves runs out by itself, or they are drawn with the seed.
    calibrate_by :
        What was drawn as one: `window`, `row`, or `together` for a guarantee over sets of workloads that were
        never measured together. None: what the method says.
    prior :
        Runs measured elsewhere, which are learned from but never calibrated on.
    new_names :
        Fit ten to twenty times more, each time without some names, so that names without runs have finite
        bounds
        (outcome `held_out_names`).
    by :
        `platform`, `workload` or a feature of either, for a guarantee within each of its groups.
    fitted_at :
        Time that is stored with the model.
    progress :
        Called with (done, total, loss).

    Returns
    -------
    Model
        Predicts, bounds and explains.

    Raises
    ------
    NotEnoughRuns, UsageError
    """
    require_whole("seed", seed)
    source = Data.of(data)
    method = method_of(default_method(source) if method is None else method)
    over_time = OverTime.of(source, method.needs, seed)
    if over_time is not None:
        validation, calibration, prior = (
            None if one is None else over_time.of_longest(one)
            for one in (validation, calibration, prior)
        )
    prepared = method.prepare(source if over_time is None else over_time.data)
    drawn = calibrate_by or prepared.calibrate_by
    require_choice("unit to calibrate by", drawn, UNITS)
    more = {"fitted_at": fitted_at, "calibrated_by": drawn, "by": by, "new_names": new_names}
    metadata = _about(method, source, seed) | more
    held = _held(method, prepared, seed, drawn, (validation, calibration), by)
    groups = None if by is None else groups_of(prepared.runs, by)
    is_held_out = validation is not None and calibration is not None
    may_cross = prior is None and not (is_held_out or calibrate_by or new_names)
    if may_cross and hasattr(method, "fit_left_out"):
        crossed = fit_crossed(
            method,
            prepared,
            unit=drawn,
            seed=seed,
            groups=groups,
            taken_by=None if over_time is None else over_time.taken_by,
            progress=progress,
        )
        if crossed is not None:
            return _crossed_model(crossed, metadata, prepared, over_time)
    number = 1 + new_names
    parts = iter([share_of(progress, k, number) for k in range(number)])
    learning = WayToLearn(method, drawn, seed, prior)
    fitted, selection = learning.from_rest(held, next(parts))
    acts = None
    if over_time is not None:
        acts = over_time.acts(held.calibration, [(fitted, np.arange(len(held.calibration)))], seed)
        held = over_time.calibrated(held, fitted)
    # What has no answer is another kind of question, not late.
    known = np.isfinite(fitted.predict(held.calibration.colocations))
    held = replace(held, calibration=held.calibration.take(np.flatnonzero(known)))
    calibrated = Calibration.fit(
        *(fitted, selection, held.calibration),
        unit=drawn,
        groups=groups,
        has_changing_corunners=over_time is not None,
    )
    if new_names:
        left_out = runs_of_names_left_out(learning, prepared, groups, next(parts))
        calibrated = calibrated.with_held_out(left_out)
    chosen = int(held.learn.runs.is_chosen.sum())
    counts = len(held.learn.runs), len(held.validation), len(held.calibration)
    metadata["runs"] = _counts(*counts, prior, chosen, over_time)
    kept = _kept(method, held, drawn, seed)
    model = Model(fitted, calibrated, metadata, kept=kept, acts=acts)
    if hasattr(fitted, "platform_names"):  # what only answers has no names to tell what is usual of
        model.usual = ResidualBaseline.of(model, held.calibration)
    return model


def _about(method: Method[Any], source: Data, seed: int) -> dict[str, Any]:
    return {
        "method": method.name,
        "settings": dict(vars(method)),
        "seed": seed,
        "jostle_version": VERSION,
        "data_version": source.version,
    }


def _crossed_model(
    crossed: CrossConformalFit,
    metadata: dict[str, Any],
    prepared: Prepared,
    over_time: OverTime | None,
) -> Model:
    runs = prepared.runs
    counts = len(runs), 0, crossed.calibrated_on
    metadata["runs"] = _counts(*counts, None, int(runs.is_chosen.sum()), over_time)
    if over_time is None:
        return crossed.model(Model, metadata)
    acts = over_time.acts(runs, crossed.without, int(metadata["seed"]))
    reckoned = replace(crossed.calibration, has_changing_corunners=True)
    return replace(crossed, calibration=reckoned).model(Model, metadata, acts)


def _counts(
    fitted: int, validation: int, calibration: int, prior: Runs | None, chosen: int, over_time: Any
) -> dict[str, int]:
    more = 0 if prior is None else len(prior.ok())
    return {
        "fitted": fitted + more,
        "validation": validation,
        "calibration": calibration,
        "prior": more,
        **({"chosen": chosen} if chosen else {}),
        **({} if over_time is None else {"changing": over_time.changing}),
    }


def _kept(method: Method[Any], held: HeldOut, unit: str, seed: int) -> ReplayBuffer | None:
    """Keep the runs that the model needs to learn more; None if it cannot."""
    if hasattr(method, "learned"):
        kept = ReplayBuffer.of(held.learn.runs, held.calibration, unit, seed)
        return kept.knowing(held.validation)
    whole = Runs.concatenate([held.learn.runs, held.validation])
    if getattr(method, "fits_again", False) and len(whole) <= MOST_AGAIN:
        return ReplayBuffer.all_of(whole, held.calibration, unit)
    return None


def _held(
    method: Method[Any],
    prepared: Prepared,
    seed: int,
    drawn: str,
    own: tuple[Runs | None, Runs | None],
    by: str | None,
) -> HeldOut:
    """Split the runs to learn from, to validate on and to calibrate on."""
    validation, calibration = own
    if validation is None or calibration is None:
        return held_out_again(prepared, seed, drawn, grouped=by is not None)
    return HeldOut(
        prepared,
        without_inputs(method, prepared, validation),
        without_inputs(method, prepared, calibration),
    )
