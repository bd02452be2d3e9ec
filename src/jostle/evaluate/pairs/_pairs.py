"""Slowdown of sets of workloads never measured together, after a share of the others.

All runs alone are known. Of the sets of workloads (both sides of a pair and its repeats are one set) a share
is observed, drawn with the seed; the rest is the test. The error is that of a model fitted on everything
observed; bounds come from a second fit that keeps a part of the observed sets to calibrate on.
With `platform`, all sets of the other platforms are observed and a share of those there; then only sets
there calibrate, because only they are like the test.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.bounds import margin
from jostle.errors import MissingExtra, NotEnoughRuns, UnknownName, UsageError
from jostle.methods import learn

if TYPE_CHECKING:
    from jostle.runs import Runs

CONFIDENCE = 0.9
CALIBRATED = 0.25  # share of the observed sets that calibrates, or as many as a bound needs
FEWEST_SETS = 12  # that calibrate, where there are so many; 9 are needed for a bound at 90%
METHODS = (
    "solo",
    "solo_constant",
    "bag_tree",
    "bag",
    "slowdown",
    "slowdown_process",
    "factorization",
)


@dataclass
class PairsEvaluation:
    """metrics: by documented name. notes: methods that did not fit, and why."""

    metrics: dict[str, float]
    notes: list[str] = field(default_factory=list)


def pair_methods(target: str, names: Sequence[str] = METHODS) -> dict[str, Any]:
    """The methods by name, of `names` those that fit the target. target: `slowdown` for steady work, `extra`
    for finite jobs.

    Raises UnknownName, UsageError.
    """
    from jostle.bag import Bag
    from jostle.evaluate.rivals._solo import SoloTime
    from jostle.factorization import Factorization
    from jostle.slowdown import Slowdown

    if target not in ("slowdown", "extra"):
        raise UsageError(f"unknown target {target!r}", fix="One of slowdown, extra.")
    depth = 5 if target == "slowdown" else None
    known: dict[str, Any] = {
        "solo": SoloTime("solo"),
        "solo_constant": SoloTime("times" if target == "slowdown" else "plus"),
        "bag_tree": Bag(learner="tree", target=target),
        "bag": Bag(target=target, depth=depth),
        "slowdown": Slowdown(target=target),
        "slowdown_process": Slowdown(process=True),
        "factorization": Factorization(),
    }
    for name in names:
        if name not in known:
            raise UnknownName("method", name, list(known))
    fits = [name for name in names if name != "slowdown_process" or target == "slowdown"]
    return {name: known[name] for name in fits}


def evaluate_pairs(
    runs: Runs,
    observed: float,
    methods: dict[str, Any],
    *,
    seeds: Sequence[int],
    platform: str | None = None,
    bounds: bool = True,
    progress: Callable[[int, int, float], None] | None = None,
) -> PairsEvaluation:
    """Errors and coverage of every method, means over the seeds.

    platform: the platform whose sets are drawn from, or None for all. bounds: whether to fit once more for
    coverage. Metrics, with METHOD a name of `methods`: `slowdown_mape_METHOD_ratio`,
    `slowdown_mape_METHOD_PLATFORM_ratio`, its standard deviation over seeds `slowdown_mape_sd_METHOD_ratio`;
    `coverage_90_METHOD_ratio` (every set weighs the same), `coverage_90_standard_error_METHOD_ratio`,
    `margin_90_METHOD_ratio`, `no_bound_90_METHOD_ratio`. Raises UsageError, UnknownName, NotEnoughRuns.
    """
    runs = runs.ok()
    c = runs.colocations
    if not 0 < observed < 1:
        raise UsageError(f"observed {observed} is not between 0 and 1")
    if platform is not None and platform not in c.platform_names:
        raise UnknownName("platform", platform, c.platform_names)
    found: dict[str, dict[str, list[Any]]] = {}
    notes: list[str] = []
    done, total = 0, len(seeds) * len(methods)
    for seed in seeds:
        split = _split(runs, observed, seed, platform)
        for name, method in methods.items():
            try:
                one = _one(runs, method, split, seed, bounds, platform)
                for key, value in one.items():
                    found.setdefault(name, {}).setdefault(key, []).append(value)
            except (NotEnoughRuns, MissingExtra) as error:
                notes.append(f"{name}, seed {seed}: {error}")
            done += 1
            if progress:
                progress(done, total, float("nan"))
    if not found:
        raise NotEnoughRuns("no method could be fitted: " + "; ".join(notes[:3]))
    metrics: dict[str, float] = {"seeds": float(len(seeds))}
    for name, values in found.items():
        metrics |= _metrics(name, values)
    main = "slowdown" if "slowdown" in found else next(iter(found))
    metrics["slowdown_mape_ratio"] = metrics[f"slowdown_mape_{main}_ratio"]
    return PairsEvaluation(metrics, notes)


@dataclass(frozen=True)
class _Parts:
    """Indices: runs alone, observed runs beside others, test runs."""

    alone: np.ndarray
    observed: np.ndarray
    test: np.ndarray


def _split(runs: Runs, observed: float, seed: int, platform: str | None) -> _Parts:
    from jostle.runs import split_rows

    c = runs.colocations
    alone = np.flatnonzero(c.number_of_corunners == 0)
    beside = np.flatnonzero(c.number_of_corunners > 0)
    if platform is None:
        drawn, rest = beside, beside[:0]
    else:
        there = c.platform[beside] == c.platform_names.index(platform)
        drawn, rest = beside[there], beside[~there]
    if not len(drawn) or not len(alone):
        raise NotEnoughRuns("there must be runs alone and runs beside others")
    kept, test = split_rows(runs.take(drawn), [observed, 1 - observed], seed, by="together")
    if not len(kept) or not len(test):
        raise NotEnoughRuns(
            f"{observed:.0%} of {len(drawn)} runs with co-runners leave one part empty",
            fix="Observe another share, or measure more.",
        )
    return _Parts(alone, np.sort(np.concatenate([rest, drawn[kept]])), drawn[test])


def _one(
    runs: Runs, method: Any, split: _Parts, seed: int, bounds: bool, platform: str | None
) -> dict[str, Any]:
    test = runs.take(split.test)
    actual = test.runtime_seconds
    train = runs.take(np.concatenate([split.alone, split.observed]))
    fitted = learn(method, train, seed=seed)
    error = np.abs(fitted.predict(test.colocations) / actual - 1)
    known = np.isfinite(error)
    out: dict[str, Any] = {"mape": float(error[known].mean()), "unanswered": 1 - known.mean()}
    names = test.colocations.platform_names
    if len(names) > 1:
        for place, name in enumerate(names):
            here = known & (test.colocations.platform == place)
            out[f"mape {name}"] = float(error[here].mean())
    if bounds:
        out |= _bounds(runs, method, split, seed, platform, test)
    return out


def _bounds(
    runs: Runs, method: Any, split: _Parts, seed: int, platform: str | None, test: Runs
) -> dict[str, Any]:
    from jostle.models import fit
    from jostle.runs import split_rows

    seen = runs.take(split.observed)
    may = np.arange(len(seen))
    if platform is not None:
        c = seen.colocations
        may = np.flatnonzero(c.platform == c.platform_names.index(platform))
    sets = len(np.unique(seen.units("together")[may]))
    share = float(np.clip(FEWEST_SETS / max(sets, 1), CALIBRATED, 0.8))
    fewer = 0.4 * (1 - share) if platform is None else 0.0
    kept, watched, held = split_rows(
        seen.take(may), [1 - share - fewer / 4, fewer / 4, share], seed, by="together"
    )
    rest = np.setdiff1d(np.arange(len(seen)), may)
    train = np.concatenate([split.alone, split.observed[np.sort(np.r_[rest, may[kept]])]])
    model = fit(
        runs.take(train),
        method,
        seed=seed,
        validation=runs.take(split.observed[may[watched]]),
        calibration=runs.take(split.observed[may[held]]),
        calibrate_by="together",
    )
    bound = model.bound(test.colocations, CONFIDENCE).seconds
    under = (test.runtime_seconds <= bound).astype(float)
    unit = np.unique(test.units("together"), return_inverse=True)[1].reshape(-1)
    by_set = np.bincount(unit, under) / np.bincount(unit)
    valid = np.isfinite(bound)
    return {
        "coverage": float(by_set.mean()),
        "coverage variance": float(by_set.var() / len(by_set))
        + CONFIDENCE * (1 - CONFIDENCE) / (len(np.unique(seen.units("together")[may[held]])) + 2),
        "margin": margin(bound[valid], test.runtime_seconds[valid]),
        "no bound": float(1 - valid.mean()),
    }


def _metrics(name: str, values: dict[str, list[Any]]) -> dict[str, float]:
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
