"""A model that learns new runs and new names without being fitted again, its bounds calibrated anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.version import VERSION
from jostle.conformal import Calibration, LeftOutRuns
from jostle.data import Colocations
from jostle.errors import UsageError
from jostle.learn import KeptRuns, one_thread
from jostle.models._drift_watch import in_order
from jostle.models._residual_baseline import ResidualBaseline
from jostle.models.updates._cross_conformal import fit_crossed
from jostle.models.updates._drift_correction import NameMoved, as_measured_now
from jostle.models.updates._refit import MOST_AGAIN, Again, learner_of
from jostle.models.updates._replay_buffer import ReplayBuffer

if TYPE_CHECKING:
    from jostle.data import Runs

HELD_SHARE = 0.2  # of new windows, on which bounds are calibrated
NAMES = ("workload", "platform")
KNOWN_WELL = 20  # runs of each name in a window, from which it may be spared for that
# Of each number of co-runners, the last ones; of groups ten times as many.
MOST_CALIBRATION = 10_000
MOST_UPDATES = 100  # that are remembered
AGAIN = "Fit it again with jostle fit."


@one_thread()
def updated(model: Any, runs: Runs, seed: int, chosen: bool, stamp: dict[str, Any]) -> Any:
    """See Model.update."""
    predictor, kept_runs = model.predictor, model.kept
    method = learner_of(model.metadata)
    if method is None:
        raise UsageError(
            f"the method {model.metadata.get('method')} does not learn new runs", fix=AGAIN
        )
    if kept_runs is None:
        raise UsageError(
            "the model keeps none of its runs, so it cannot learn more: an older Jostle fitted it, or "
            f"its method is fitted again and it has learned over {MOST_AGAIN} runs",
            fix=AGAIN,
        )
    unit = str(model.metadata.get("calibrated_by") or "window")
    given, runs = len(runs), kept_runs.unknown(in_order(runs))
    stamp = {"known": given - len(runs), **stamp}
    # What was chosen tells nothing of what is usual.
    moved = [] if chosen else NameMoved.all_of(model, runs)
    new = KeptRuns.of(runs, unit)
    _require_not_all_again(kept_runs, new)
    kept_runs = kept_runs.knowing(runs)
    new = as_measured_now(new, moved, np.flatnonzero(runs.is_ok))
    as_learned = kept_runs
    kept_runs = replace(
        kept_runs,
        learned=as_measured_now(kept_runs.learned, moved),
        calibration=as_measured_now(kept_runs.calibration, moved),
    )
    if model.calibration.is_cross_conformal:
        return _updated_crossed(model, kept_runs, runs, new, chosen, stamp)
    held = np.zeros(len(new), bool) if chosen else _held_out(model, new, seed)
    held &= ~np.isin(new.unit, new.unit[runs.ok().is_chosen])
    if isinstance(method, Again) and held.any():
        held &= ~method.never_held(new, kept_runs.learned)
    mine, others = new.take(np.flatnonzero(~held)), new.take(np.flatnonzero(held))
    # What was kept to be fitted again knows the seed of the fit.
    of_fit = int(model.metadata["seed"]) if kept_runs.is_whole else seed
    more = _changed(as_learned.learned, kept_runs.learned)
    learned = method.learned(predictor, mine, kept_runs.learned, seed=of_fit, **more)
    most = MOST_CALIBRATION * (1 if model.calibration.groups is None else 10)
    now = kept_runs.with_more(mine, others, seed, most)
    joined = _joined_names(predictor, learned)
    before = {
        f"{kind}s": {name: counts.get(name, 0) for name in getattr(learned, f"{kind}_names")}
        for kind, counts in ((kind, counts_of(predictor, kind)) for kind in NAMES)
    }
    unmet = {kinds: {name for name, n in some.items() if not n} for kinds, some in before.items()}
    bounds = _calibrated(model.calibration, learned, now, unmet)
    # Names that joined have some calibration runs of their own before these are enough for a bound.
    has_few = any(n < KNOWN_WELL for some in before.values() for n in some.values())
    if has_few and not bounds.runs.held_out.any():
        bounds = _with_names_taken_as_new(
            bounds, method.folded_again(learned, now.learned, seed=seed)
        )
    added = {"learned": int((~held).sum()), "calibration": int(held.sum())}
    metadata = _metadata(model, len(new), added, joined, len(now.calibration), stamp)
    updated_model = type(model)(learned, bounds, metadata, kept=now)
    updated_model.usual = ResidualBaseline.of(updated_model, now.calibration)
    return updated_model


def _updated_crossed(
    model: Any, kept: ReplayBuffer, runs: Runs, new: KeptRuns, chosen: bool, stamp: dict[str, Any]
) -> Any:
    """Update a model whose bounds rest on fits that leave runs out: all of them are made again."""
    again = learner_of(model.metadata)
    assert isinstance(again, Again)
    asked = _once(kept.calibration, model.calibration.runs.group[: len(kept.calibration)])
    # Of copies of one run the first is learned from: what calibrates comes before what does not.
    every = asked.joined(kept.learned).joined(new)
    free = np.repeat([True, False], [len(asked), len(kept.learned)])
    of_new = ~(runs.ok().is_chosen | chosen)
    crossed = fit_crossed(
        again.method,
        again.prepared(every),
        may_calibrate=np.append(free, of_new),
        unit=str(model.metadata.get("calibrated_by") or "window"),
        seed=int(model.metadata["seed"]),
        groups=model.calibration.groups,
    )
    if crossed is None:
        raise UsageError("no run of the model and of the new ones can be left out", fix=AGAIN)
    joined = _joined_names(model.predictor, crossed.fitted)
    calibrated = crossed.calibrated_on
    more = calibrated - int(model.metadata["runs"].get("calibration", 0))
    added = {"learned": len(new), "calibration": max(more, 0)}
    metadata = _metadata(model, len(new), added, joined, calibrated, stamp)
    crossed = replace(crossed, kept=replace(crossed.kept, ids=kept.ids))
    return crossed.model(type(model), metadata)


def _require_not_all_again(kept: ReplayBuffer, new: KeptRuns) -> None:
    """Refuse new runs that repeat all kept ones, each to the last digit, which is no chance: runs that count
    twice would make bounds too sure. Single repeats may be due to rounded times."""
    known = kept.learned.joined(kept.calibration)
    if not len(known) or len(new) < len(known):
        return
    _, at = _repeats(known.joined(new))
    if np.isin(at[: len(known)], at[len(known) :]).all():
        raise UsageError(
            "among the runs are all that the model has learned already, which would count twice",
            fix="Give those measured since: jostle.data.runs_since(dataset, version).",
        )


def _changed(before: KeptRuns, now: KeptRuns) -> dict[str, Any]:
    """Return what a method is told of kept runs of names that have drifted, if there are any."""
    changed = before.runtime_seconds != now.runtime_seconds
    return {"changed": changed} if changed.any() else {}


def _once(runs: KeptRuns, unit: np.ndarray) -> KeptRuns:
    """Drop runs that stand there as part of another unit (n,), too: a run may have been asked about twice, of
    its set and of its platform."""
    first, at = _repeats(runs)
    return runs.take(np.flatnonzero(unit == unit[first][at]))


def _repeats(runs: KeptRuns) -> tuple[np.ndarray, np.ndarray]:
    """Find runs that are equal to the last digit. Returns (the first of each kind, the kind of each (n,))."""
    key = np.stack([runs.colocations.group, np.asarray(runs.runtime_seconds).view(np.int64)])
    _, first, at = np.unique(key, axis=1, return_index=True, return_inverse=True)
    return first, at.reshape(-1)


def _metadata(
    model: Any,
    runs: int,
    added: dict[str, int],
    joined: dict[str, set[str]],
    calibrated: int,
    stamp: dict[str, Any],
) -> dict[str, Any]:
    """Make the metadata of a model that has learned so many runs more. added: how many were learned from, and
    how many came to those calibrated on. calibrated: how many are there now. joined: new names. stamp: what
    else is remembered of the update."""
    before = model.metadata
    record = {"runs": runs, **added, **{f"new_{k}": len(v) for k, v in joined.items()}, **stamp}
    counts = dict(before.get("runs", {}))
    fitted = int(counts.get("fitted", 0)) + added["learned"]
    return before | {
        "jostle_version": VERSION,
        "data_version": stamp["data_version"] or before.get("data_version"),
        "updates": [*before.get("updates", []), record][-MOST_UPDATES:],
        "runs": counts | {"fitted": fitted, "calibration": calibrated},
    }


def _held_out(model: Any, new: KeptRuns, seed: int) -> np.ndarray:
    """Mark the runs on which bounds are calibrated, drawn by unit, (n,) bool. A unit is learned from if
    one of its names has few runs but for the drawn ones."""
    c, (units, unit) = new.colocations, np.unique(new.unit, return_inverse=True)
    random = np.random.default_rng([seed, 41, len(model.metadata.get("updates", []))])
    drawn = (random.random(len(units)) < HELD_SHARE)[unit.reshape(-1)]
    row = c.corunner_row
    few = np.zeros(len(new), bool)
    for kind, names, rows, codes in (
        (
            "workload",
            c.workload_names,
            np.append(np.arange(len(new)), row),
            np.append(c.workload, c.corunner),
        ),
        ("platform", c.platform_names, np.arange(len(new)), c.platform),
    ):
        known = counts_of(model.predictor, kind)
        count = np.array([known.get(name, 0) for name in names])
        count += np.bincount(codes[~drawn[rows]], minlength=len(names))
        few[rows[count[codes] < KNOWN_WELL]] = True
    return drawn & ~np.isin(new.unit, new.unit[few])


def counts_of(predictor: Any, kind: str) -> dict[str, int]:
    """Count the runs of each name of a kind that the predictor knows."""
    names = getattr(predictor, f"{kind}_names")
    (other,) = (getattr(predictor, f"{one}_names")[:1] for one in NAMES if one != kind)
    if not len(names) or not len(other):
        return dict.fromkeys(names, 0)
    other_kind = "platform" if kind == "workload" else "workload"
    asked = Colocations.from_columns(**{kind: names, other_kind: other * len(names)})
    counts = np.asarray(getattr(predictor.evidence(asked), kind)).tolist()
    return dict(zip(names, counts, strict=True))


def _calibrated(
    before: Calibration, predictor: Any, kept: ReplayBuffer, unmet: dict[str, set[str]]
) -> Calibration:
    """Calibrate the new predictor on the same runs and some more; what names left out showed stays."""
    left = before.runs.take(np.flatnonzero(before.runs.held_out))
    own = LeftOutRuns.of(
        *(predictor, kept.calibration, kept.calibration.unit),
        name_groups=before.groups,
        most=before.most,
    )
    runs = own.scored(before.scale)
    c = kept.calibration.colocations
    drawn = {
        "workloads": {c.workload_names[k] for k in np.unique(np.append(c.workload, c.corunner))},
        "platforms": {c.platform_names[k] for k in np.unique(c.platform)},
    }
    added = {
        kind: frozenset((before.names_added_after_calibration[kind] | unmet[kind]) - names)
        for kind, names in drawn.items()
    }
    if len(left):
        runs = runs.followed_by(left)
    return replace(before, runs=runs, names_added_after_calibration=added, mix=None)


def _with_names_taken_as_new(
    bounds: Calibration, again: Sequence[tuple[Any, KeptRuns]]
) -> Calibration:
    """Add what known names show when they are taken as new ones."""
    if not again or bounds.groups is not None:
        return bounds
    parts = [
        # A name of one kind, with so many runs, is one group.
        LeftOutRuns.of(fitted, test, test.unit + 1_000_000 * k, held_out=True, most=bounds.most)
        for k, (fitted, test) in enumerate(again)
    ]
    return bounds.with_held_out(LeftOutRuns.concatenate(parts))


def _joined_names(before: Any, after: Any) -> dict[str, set[str]]:
    return {
        "workloads": set(after.workload_names) - set(before.workload_names),
        "platforms": set(after.platform_names) - set(before.platform_names),
    }
