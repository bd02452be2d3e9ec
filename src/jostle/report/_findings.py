"""What a report says, as values: quality of data, errors and coverage, pairs, a map, what to measure next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle.bounds import CALIBRATED
from jostle.errors import JostleError
from jostle.methods import HasInputPlatforms
from jostle.models import Model
from jostle.report._held_out import GroupRow, HeldOutRuns, group_row, held_out
from jostle.runs import Colocations, Dataset, Runs, RunsSummary, solo_medians, summarise

MOST_ROWS = 15


@dataclass(frozen=True)
class DisturbedPair:
    """A workload beside one other: slowdown, the geometric mean over platforms where both were measured."""

    workload: str
    corunner: str
    slowdown: float
    platforms: int
    runs: int


@dataclass(frozen=True)
class WorstError:
    """A run that was predicted badly. reason: what may have made it so."""

    workload: str
    platform: str
    corunners: tuple[str, ...]
    runtime_seconds: float
    predicted_seconds: float
    reason: str


@dataclass(frozen=True)
class ModelFindings:
    """groups: {kind of group: rows}. map_points: (workload, x, y), near where they behave alike. to_measure:
    (what, why). notes: what is to be known of the rest."""

    dataset: str
    dataset_version: str
    metadata: dict[str, Any]
    summary: RunsSummary
    confidence: float
    overall: GroupRow | None
    groups: dict[str, tuple[GroupRow, ...]]
    pairs: tuple[DisturbedPair, ...]
    map_points: tuple[tuple[str, float, float], ...]
    worst: tuple[WorstError, ...]
    to_measure: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]

    def to_document(self) -> dict[str, Any]:
        return {"schema": "report/v1", **asdict(self)}


def find(
    dataset: Dataset, model: Model, *, confidence: float = DEFAULT_CONFIDENCE, seed: int = 0
) -> ModelFindings:
    """What there is to say of a model and the data that it was fitted to.

    seed: of the folds that coverage is counted over. Raises what reading the dataset raises.
    """
    confidence = float(exact_confidence(confidence))
    every, notes = dataset.read(), []
    runs = every.ok()
    version = str(dataset.version())
    try:
        test = held_out(model, every, confidence, seed)
    except JostleError as error:
        test = None
        notes.append(f"Errors and coverage are missing: {error}")
    if version != str(model.metadata.get("data_version")):
        notes.append(
            "The dataset is not of the version that the model was fitted to: runs taken as not learned from "
            "may have been learned from. Fit it again to be sure."
        )
    if test is not None and not test.bounded.any():
        notes.append(
            "No bound could be checked: too few calibration runs, or not those of this data."
        )
    overall = None if test is None else group_row("all", test, np.arange(len(test.error)))
    return ModelFindings(
        str(dataset.path),
        version,
        model.metadata,
        summarise(every),
        confidence,
        overall,
        {} if test is None else _groups(test),
        _pairs(runs),
        _map(model),
        () if test is None else _worst(test, model, runs),
        _to_measure(model, confidence),
        tuple(notes),
    )


def _groups(test: HeldOutRuns) -> dict[str, tuple[GroupRow, ...]]:
    c = test.runs.colocations
    kinds = {
        "co-runners": [str(n) for n in c.number_of_corunners.tolist()],
        "platform": [c.platform_names[p] for p in c.platform.tolist()],
        "workload": [c.workload_names[w] for w in c.workload.tolist()],
    }
    by_group = {}
    for kind, labels in kinds.items():
        names = np.array(labels, dtype=object)
        rows = [
            group_row(str(n), test, np.flatnonzero(names == n))
            for n in dict.fromkeys(sorted(labels))
        ]
        if kind != "co-runners":  # those that matter most: many runs, large errors
            rows.sort(key=lambda row: -row.mean_error * np.sqrt(row.runs))
        by_group[kind] = tuple(rows[:MOST_ROWS])
    return by_group


def _pairs(runs: Runs) -> tuple[DisturbedPair, ...]:
    c = runs.colocations
    solo = solo_medians(runs, c.workload_names, c.platform_names)
    at = np.flatnonzero(c.number_of_corunners == 1)
    if not len(at):
        return ()
    other = c.corunner[c.corunner_offsets[at]]
    log_slow = np.log(runs.runtime_seconds[at]) - solo[c.platform[at], c.workload[at]]
    ok = np.isfinite(log_slow)
    at, other, log_slow = at[ok], other[ok], log_slow[ok]
    key = c.workload[at].astype(np.int64) * len(c.workload_names) + other
    pairs = []
    for code in np.unique(key):
        mine = key == code
        places = c.platform[at][mine]
        means = [log_slow[mine][places == p].mean() for p in np.unique(places)]
        w, o = divmod(int(code), len(c.workload_names))
        slow = float(np.exp(np.mean(means)))
        names = c.workload_names[w], c.workload_names[o]
        pairs.append(DisturbedPair(*names, slow, len(means), int(mine.sum())))
    return tuple(sorted(pairs, key=lambda pair: -pair.slowdown)[:MOST_ROWS])


def _alone(model: Model) -> tuple[tuple[str, ...], tuple[str, ...], Colocations]:
    predictor = model.predictor
    inputs = predictor.input_platforms if isinstance(predictor, HasInputPlatforms) else ()
    workloads = tuple(model.predictor.workload_names)
    platforms = tuple(name for name in model.predictor.platform_names if name not in inputs)
    query = Colocations.from_columns(
        workload=[w for w in workloads for _ in platforms],
        platform=[p for _ in workloads for p in platforms],
    )
    return workloads, platforms, query


def _map(model: Model) -> tuple[tuple[str, float, float], ...]:
    """The two directions in which workloads differ most over platforms, size apart."""
    workloads, platforms, query = _alone(model)
    if len(workloads) < 3 or len(platforms) < 3:
        return ()
    seconds = np.asarray(model.predict(query), np.float64).reshape(len(workloads), len(platforms))
    good = np.array(np.isfinite(seconds).all(1) & (seconds > 0).all(1))
    if good.sum() < 3:
        return ()
    table = np.log(seconds[good])
    table = table - table.mean(1, keepdims=True)
    left, size, _ = np.linalg.svd(table - table.mean(0), full_matrices=False)
    points = left[:, :2] * size[:2]
    names = [name for name, is_good in zip(workloads, good, strict=True) if is_good]
    return tuple((n, float(x), float(y)) for n, (x, y) in zip(names, points, strict=True))


def _worst(test: HeldOutRuns, model: Model, runs: Runs) -> tuple[WorstError, ...]:
    size = np.where(np.isfinite(test.error), np.abs(test.error), 0.0)
    at = np.argsort(-size, kind="stable")[:MOST_ROWS]
    query = test.runs.colocations.take(at)
    bounds = model.bound(query, test.confidence)
    predicted = test.runs.runtime_seconds[at] / np.exp(test.error[at])
    worst = []
    for row, place in enumerate(at.tolist()):
        workload, platform, beside = query.row(row)
        seconds = float(test.runs.runtime_seconds[place])
        spread = _spread(runs, query.take([row]))
        if spread is not None and spread > 0.5 * size[place]:
            reason = f"it varies by itself: repeats differ by {100 * np.expm1(spread):.0f}%"
        elif str(bounds.outcome[row]) not in CALIBRATED:
            reason = f"little was measured: {bounds.evidence[row]}"
        else:
            reason = _likely(test, place)
            if spread is None and reason is None:
                times = size[place] / max(float(np.median(size)), 1e-12)
                reason = (
                    f"{times:.2g} times the usual error, shared by no other run of its window, names or "
                    "co-runners: it may be this run, which was not repeated"
                )
            reason = reason or f"the method misses what happens there; {bounds.evidence[row]}"
        worst.append(WorstError(workload, platform, beside, seconds, float(predicted[row]), reason))
    return tuple(worst)


def _likely(test: HeldOutRuns, place: int) -> str | None:
    """What an error has in common with others: the window, a co-runner, the workload or the platform whose
    other runs are off the same way, by the median of at least three; None where nothing is."""
    c, own = test.runs.colocations, test.error[place]
    other = np.isfinite(test.error)
    other[place] = False
    offsets, beside = c.corunner_offsets, c.corunner
    kinds = [("its window", test.runs.window == test.runs.window[place])]
    for name in np.unique(beside[offsets[place] : offsets[place + 1]]).tolist():
        has = np.zeros(len(c), bool)
        has[np.repeat(np.arange(len(c)), np.diff(offsets))[beside == name]] = True
        kinds.append((f"runs beside {c.workload_names[name]}", has))
    workload, platform = c.workload[place], c.platform[place]
    kinds += [
        (
            f"{c.workload_names[workload]} there",
            (c.workload == workload) & (c.platform == platform),
        ),
        (f"{c.workload_names[workload]} anywhere", c.workload == workload),
        (f"all on {c.platform_names[platform]}", c.platform == platform),
    ]
    usual = float(np.median(np.abs(test.error[other]))) if other.any() else 0.0
    shared = []
    for what, mask in kinds:
        errors = test.error[mask & other]
        if len(errors) >= (1 if what == "its window" else 3):
            median = float(np.median(errors))
            if np.sign(median) == np.sign(own) and abs(median) > max(2 * usual, 0.25 * abs(own)):
                shared.append((abs(median), what, len(errors), median))
    if not shared:
        return None
    _, what, count, median = max(shared)
    way = "longer" if median > 0 else "shorter"
    return f"shared: {count} more of {what} took {way}, by {100 * abs(np.expm1(median)):.0f}% in the median"


def _spread(runs: Runs, one: Colocations) -> float | None:
    """How much repeats of a co-location differ, as the standard deviation of logs; None without repeats."""
    both = Colocations.concatenate([one, runs.colocations])
    same = np.flatnonzero(both.group[1:] == both.group[0])
    logs = np.log(runs.runtime_seconds[same])
    return float(np.std(logs, ddof=1)) if len(logs) > 1 else None


def _to_measure(model: Model, confidence: float) -> tuple[tuple[str, str], ...]:
    """Where no bound is guaranteed: the names that stand in most of such places first."""
    workloads, platforms, query = _alone(model)
    shape = len(workloads), len(platforms)
    open_ = ~model.bound(query, confidence).is_calibrated.reshape(shape)
    if open_.all():
        return (
            (
                f"more runs alone: none of {open_.size} places has a guaranteed bound",
                "too few runs",
            ),
        )
    advice = []
    for kind, names, share in (
        ("workload", workloads, open_.mean(1)),
        ("platform", platforms, open_.mean(0)),
    ):
        for place in np.argsort(-share, kind="stable")[:MOST_ROWS]:
            if share[place] > 0:
                why = f"no guaranteed bound alone in {100 * share[place]:.0f}% of its places"
                advice.append((float(share[place]), f"the {kind} {names[place]}, alone", why))
    for pool in model.calibration.summary():
        if pool.highest < confidence:
            why = f"{pool.n} calibration runs allow a confidence up to {pool.highest:.3g}"
            advice.append((0.5, f"{pool.pool}: {pool.evidence}", why))
    advice.sort(key=lambda row: -row[0])
    if not advice:
        why = (
            f"every place alone, and every number of co-runners met, has a bound at {confidence:g}"
        )
        return (("nothing has to be", f"{why}: jostle suggest names what narrows answers most"),)
    return tuple((what, why) for _, what, why in advice[:MOST_ROWS])
