"""Slowdown of sets of workloads never measured together, after a share of the others.

All runs alone are known. Of the sets of workloads (both sides of a pair and its repeats are one set) a share
is observed, drawn with the seed; the rest is the test. The error is that of a model fitted on everything
observed; bounds come from a second fit that keeps a part of the observed sets to calibrate on.
With `platform`, all sets of the other platforms are observed and a share of those there; then only sets
there calibrate, because only they are like the test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jostle.bounds import margin
from jostle.errors import MissingExtra, NotEnoughRuns, UsageError, require_known
from jostle.evaluate._fields import picked
from jostle.evaluate._measures import coverage_of_sets
from jostle.methods import learn
from jostle.progress import Progress, no_progress
from jostle.runs import Runs, split_rows

CONFIDENCE = 0.9
CALIBRATED = 0.25  # share of the observed sets that calibrates, or as many as a bound needs
FEWEST_SETS = 12  # that calibrate, where there are so many; 9 are needed for a bound at 90%


@dataclass
class PairsEvaluation:
    """metrics: by documented name. notes: methods that did not fit, and why."""

    metrics: dict[str, float]
    notes: list[str] = field(default_factory=list)


def pair_methods(target: str, names: Sequence[str] | None = None) -> dict[str, Any]:
    """The methods by name, of `names` or else all, those that fit the target.

    target: `slowdown` for steady work, `extra` for finite jobs. Raises UnknownName, UsageError.
    """
    from jostle.bag import Bag
    from jostle.ensemble import Ensemble
    from jostle.evaluate.rivals._effects import AdditiveEffects
    from jostle.evaluate.rivals._encoded import EncodedBoosting
    from jostle.evaluate.rivals._own_pairs import OwnPairs
    from jostle.evaluate.rivals._solo import SoloTime
    from jostle.factorization import Factorization
    from jostle.slowdown import Slowdown

    if target not in ("slowdown", "extra"):
        raise UsageError(f"unknown target {target!r}", fix="One of slowdown, extra.")
    depth = 5 if target == "slowdown" else None
    known: dict[str, Any] = {
        "solo": SoloTime("solo"),
        "solo_constant": SoloTime("times" if target == "slowdown" else "plus"),
        "additive": AdditiveEffects(),
        "additive_low_rank": AdditiveEffects(rank=2),
        "boosting": EncodedBoosting(),
        "own_worst": OwnPairs("worst"),
        "own_sum": OwnPairs("sum"),
        "own_product": OwnPairs("product"),
        "bag_tree": Bag(learner="tree", target=target),
        "bag": Bag(target=target, depth=depth),
        "slowdown": Slowdown(),
        "factorization": Factorization(),
        "ensemble": Ensemble(),
    }
    return picked(known, names)


@dataclass(frozen=True)
class PairDraw:
    """The sets of a seed that are observed: a share of all, or of those on one platform. bounds: whether to
    fit once more for coverage."""

    observed: float
    seed: int
    platform: str | None = None
    bounds: bool = True


def evaluate_pairs(
    runs: Runs,
    observed: float,
    methods: dict[str, Any],
    *,
    seeds: Sequence[int],
    platform: str | None = None,
    bounds: bool = True,
    progress: Progress = no_progress,
) -> PairsEvaluation:
    """Errors and coverage of every method, means over the seeds.

    platform: the platform whose sets are drawn from, or None for all. bounds: whether to fit once more for
    coverage. Metrics, with METHOD a name of `methods`: `slowdown_mape_METHOD_ratio`,
    `slowdown_mape_METHOD_PLATFORM_ratio`, its standard deviation over seeds `slowdown_mape_sd_METHOD_ratio`;
    `coverage_90_METHOD_ratio` (every set weighs the same), `coverage_90_standard_error_METHOD_ratio`,
    `margin_90_METHOD_ratio`, `no_bound_90_METHOD_ratio`. Raises UsageError, UnknownName, NotEnoughRuns.
    """
    runs = runs.ok()
    if not 0 < observed < 1:
        raise UsageError(f"observed {observed} is not between 0 and 1")
    require_known("platform", platform, runs.colocations.platform_names)
    by_method: dict[str, dict[str, list[float]]] = {}
    notes: list[str] = []
    fits = [(seed, name) for seed in seeds for name in methods]
    for done, (seed, name) in enumerate(fits):
        progress(done, len(fits), float("nan"))
        try:
            measures = _measures(runs, methods[name], PairDraw(observed, seed, platform, bounds))
        except (NotEnoughRuns, MissingExtra) as error:
            notes.append(f"{name}, seed {seed}: {error}")
            continue
        for key, value in measures.items():
            by_method.setdefault(name, {}).setdefault(key, []).append(value)
    progress(len(fits), len(fits), float("nan"))
    if not by_method:
        raise NotEnoughRuns("no method could be fitted: " + "; ".join(notes[:3]))
    metrics: dict[str, float] = {"seeds": float(len(seeds))}
    for name, values in by_method.items():
        metrics |= _metrics(name, values)
    main = next(name for name in ("ensemble", "slowdown", *by_method) if name in by_method)
    metrics["slowdown_mape_ratio"] = metrics[f"slowdown_mape_{main}_ratio"]
    return PairsEvaluation(metrics, notes)


def _measures(runs: Runs, method: Any, draw: PairDraw) -> dict[str, float]:
    parts = _split(runs, draw)
    errors = _errors(runs, method, parts, draw.seed)
    return errors | (_bounds(runs, method, parts, draw) if draw.bounds else {})


@dataclass(frozen=True)
class _Parts:
    """Indices: runs alone, observed runs beside others, test runs."""

    alone: np.ndarray
    observed: np.ndarray
    test: np.ndarray


def _split(runs: Runs, draw: PairDraw) -> _Parts:
    c = runs.colocations
    alone = np.flatnonzero(c.number_of_corunners == 0)
    beside = np.flatnonzero(c.number_of_corunners > 0)
    if draw.platform is None:
        drawn, rest = beside, beside[:0]
    else:
        there = c.platform[beside] == c.platform_names.index(draw.platform)
        drawn, rest = beside[there], beside[~there]
    if not len(drawn) or not len(alone):
        raise NotEnoughRuns("there must be runs alone and runs beside others")
    shares = [draw.observed, 1 - draw.observed]
    train, test = split_rows(runs.take(drawn), shares, draw.seed, by="together")
    if not len(train) or not len(test):
        raise NotEnoughRuns(
            f"{draw.observed:.0%} of {len(drawn)} runs with co-runners leave one part empty",
            fix="Observe another share, or measure more.",
        )
    return _Parts(alone, np.sort(np.concatenate([rest, drawn[train]])), drawn[test])


def _errors(runs: Runs, method: Any, parts: _Parts, seed: int) -> dict[str, float]:
    test = runs.take(parts.test)
    train = runs.take(np.concatenate([parts.alone, parts.observed]))
    fitted = learn(method, train, seed=seed)
    error = np.abs(fitted.predict(test.colocations) / test.runtime_seconds - 1)
    known = np.isfinite(error)
    measures = {"mape": float(error[known].mean()), "unanswered": float(1 - known.mean())}
    names = test.colocations.platform_names
    if len(names) > 1:
        for place, name in enumerate(names):
            here = known & (test.colocations.platform == place)
            measures[f"mape {name}"] = float(error[here].mean())
    return measures


def _bounds(runs: Runs, method: Any, parts: _Parts, draw: PairDraw) -> dict[str, float]:
    from jostle.models import fit

    test, observed = runs.take(parts.test), runs.take(parts.observed)
    may = np.arange(len(observed))
    if draw.platform is not None:
        c = observed.colocations
        may = np.flatnonzero(c.platform == c.platform_names.index(draw.platform))
    unit = observed.units("together")
    share = float(np.clip(FEWEST_SETS / max(len(np.unique(unit[may])), 1), CALIBRATED, 0.8))
    fewer = 0.4 * (1 - share) if draw.platform is None else 0.0
    shares = [1 - share - fewer / 4, fewer / 4, share]
    learned, watched, held = split_rows(observed.take(may), shares, draw.seed, by="together")
    rest = np.setdiff1d(np.arange(len(observed)), may)
    train = np.concatenate([parts.alone, parts.observed[np.sort(np.r_[rest, may[learned]])]])
    model = fit(
        runs.take(train),
        method,
        seed=draw.seed,
        validation=runs.take(parts.observed[may[watched]]),
        calibration=runs.take(parts.observed[may[held]]),
        calibrate_by="together",
    )
    bound = model.bound(test.colocations, CONFIDENCE).seconds
    sets = len(np.unique(unit[may[held]]))
    covered, variance = coverage_of_sets(test, bound, CONFIDENCE, sets)
    valid = np.isfinite(bound)
    return {
        "coverage": covered,
        "coverage variance": variance,
        "margin": margin(bound[valid], test.runtime_seconds[valid]),
        "no bound": float(1 - valid.mean()),
    }


def _metrics(name: str, values: dict[str, list[float]]) -> dict[str, float]:
    out = {
        f"slowdown_mape_{name}_ratio": float(np.mean(values["mape"])),
        f"slowdown_mape_sd_{name}_ratio": float(np.std(values["mape"])),
        f"unanswered_{name}_ratio": float(np.mean(values["unanswered"])),
    }
    for key in values:
        if key.startswith("mape "):
            out[f"slowdown_mape_{name}_{key[5:]}_ratio"] = float(np.nanmean(values[key]))
    if "coverage" in values:
        seeds = len(values["coverage"])
        variance = max(
            float(np.mean(values["coverage variance"])) / seeds,
            float(np.var(values["coverage"])) / max(seeds - 1, 1),
        )
        out[f"coverage_90_{name}_ratio"] = float(np.mean(values["coverage"]))
        out[f"coverage_90_standard_error_{name}_ratio"] = float(np.sqrt(variance))
        out[f"margin_90_{name}_ratio"] = float(np.nanmean(values["margin"]))
        out[f"no_bound_90_{name}_ratio"] = float(np.mean(values["no bound"]))
    return out
