"""The tour: measure this machine, hold out co-locations, learn from the rest, and check the answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import BadData, NotEnoughRuns, UnreadableFile
from jostle.evaluate import metrics_of
from jostle.models import Model, fit

if TYPE_CHECKING:
    from jostle.measure import Progress, Tolerance
    from jostle.runs import Runs

# Fast and slow, small and cache-sized, computing and streaming: neighbours that do and do not jostle.
WORKLOADS = (
    "matmul-m",
    "stencil-l",
    "fft-m",
    "sort-m",
    "bfs-l",
    "chase-m",
    "stream-l",
    "copy-l",
    "sha256-m",
    "disparity-m",
)
ENGINES = ("speed", "none", "checked")
HELD_OUT = 0.25


@dataclass(frozen=True)
class TourPlan:
    """What the tour measures. sets: random sets of 2 to 4 side by side in the first tour, and the number
    by which every further one grows. prior: whether it learns from the sample that comes with Jostle too."""

    workloads: tuple[str, ...] = WORKLOADS
    engines: tuple[str, ...] = ENGINES
    solo_repeats: int = 2
    sets: int = 210
    window_seconds: float = 0.2
    time_budget_seconds: float = 120.0
    confidence: float = 0.9
    seed: int = 0
    prior: bool = False


@dataclass(frozen=True)
class Tour:
    """What the tour found. held: the held-out runs; predicted, bound, solo: (n,) seconds for each, solo
    being the measured median alone. naive_solo_ratio, naive_share_ratio: MAPE of guessing the solo time,
    and the solo time times the number of workloads. bounded: how many have a finite bound."""

    held: Runs
    predicted: np.ndarray
    bound: np.ndarray
    solo: np.ndarray
    metrics: dict[str, float]
    model: Model
    measured: Any
    seconds_to_fit: float


def measure_tour(
    folder: Path,
    plan: TourPlan,
    *,
    tolerance: Tolerance | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Any:
    """Measure into `folder`/dataset; returns the campaign's Summary.

    A second tour of the same folder goes on: it finishes what was interrupted, or adds as many sets
    again.
    """
    summary = _measure(folder, plan, tolerance, progress, _asked_sets(folder) or plan.sets)
    if summary.finished and summary.already == summary.planned:
        more = (_asked_sets(folder) or 0) + plan.sets
        summary = _measure(folder, plan, tolerance, progress, more)
    return summary


def learn_tour(
    folder: Path,
    plan: TourPlan,
    measured: Any,
    *,
    progress: Callable[[int, int, float], None] | None = None,
    clock: Callable[[], float],
) -> Tour:
    """Fit on what was measured less a quarter of the sets, leave the model in `folder`/model, and check
    it on that quarter. Raises NotEnoughRuns where too little could be measured."""
    from jostle.runs import read_runs

    dataset = folder / "dataset"
    runs = read_runs(dataset).ok()
    held, rest = hold_out_sets(runs, HELD_OUT, plan.seed)
    if len(held) == 0 or len(rest) < 10:
        raise NotEnoughRuns(
            f"only {len(runs)} undisturbed runs could be measured",
            where=str(dataset),
            fix="Quieten the machine and run the tour again; it goes on from here.",
        )
    began = clock()
    known = prior_for(runs) if plan.prior else None
    method = tour_method(known is not None)
    model = fit(runs.take(rest), method, seed=plan.seed, prior=known, progress=progress)
    seconds = clock() - began
    model.save(folder / "model")
    return _check(runs.take(held), runs.take(rest), model, measured, seconds, plan.confidence)


def prior_for(runs: Runs) -> Runs | None:
    """The sample that comes with Jostle, where its workloads are the ones measured here; None where they
    are others of the same name."""
    from jostle.datasets import sample
    from jostle.runs import merge_features

    known = sample()
    tables = [("here", runs.workload_features), ("the sample", known.workload_features)]
    try:
        merge_features([(where, table) for where, table in tables if table is not None], "workload")
    except BadData:
        return None
    return known


def tour_method(prior: bool = False) -> Any:
    """The method of the tour: the defaults, several members since they are quick on so few runs, and as
    many again that learn from the prior, too."""
    from jostle.factorization import Factorization

    return Factorization(members=6 if prior else 3)


def hold_out_sets(runs: Runs, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(held, rest) indices: a share of the distinct sets with co-runners, all runs of a set together."""
    c = runs.colocations
    names = c.to_columns()
    key = [
        (platform, tuple(sorted([workload, *beside]))) if beside else None
        for workload, platform, beside in zip(*names.values(), strict=True)
    ]
    sets = sorted({k for k in key if k is not None})
    chosen = np.random.default_rng(seed).permutation(len(sets))[: round(share * len(sets))]
    held_sets = {sets[i] for i in chosen}
    held = np.array([k in held_sets for k in key], bool)
    return np.flatnonzero(held), np.flatnonzero(~held)


def solo_medians(runs: Runs, asked: Any) -> np.ndarray:
    """(n,) median seconds of the asked workload alone on the asked platform; NaN where not measured."""
    c = runs.colocations
    alone = np.flatnonzero(c.number_of_corunners == 0)
    found: dict[tuple[str, str], list[float]] = {}
    for index in alone:
        key = (c.workload_names[c.workload[index]], c.platform_names[c.platform[index]])
        found.setdefault(key, []).append(float(runs.runtime_seconds[index]))
    median = {key: float(np.median(values)) for key, values in found.items()}
    return np.array(
        [
            median.get((asked.workload_names[w], asked.platform_names[p]), np.nan)
            for w, p in zip(asked.workload, asked.platform, strict=True)
        ]
    )


def mape(predicted: np.ndarray, actual: np.ndarray) -> float:
    """mean |predicted - actual| / actual over the answered; NaN without any."""
    known = np.isfinite(predicted)
    if not known.any():
        return float("nan")
    return float(np.mean(np.abs(predicted[known] - actual[known]) / actual[known]))


def pick_examples(tour: Tour, count: int) -> Sequence[int]:
    """Held-out runs to show: a spread over slowdowns, deterministic, each workload before any again."""
    slowdown = tour.held.runtime_seconds / tour.solo
    order = np.argsort(-np.nan_to_num(slowdown), kind="stable")
    places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
    return [int(order[place]) for place in places]


def _asked_sets(folder: Path) -> int | None:
    """How many sets the last tour of the folder asked for; None for a first tour."""
    note = folder / "tour.json"
    try:
        return int(json.loads(note.read_text("utf-8"))["sets"]) if note.is_file() else None
    except (ValueError, KeyError, TypeError):
        raise UnreadableFile(
            "not a note of a tour",
            where=str(note),
            fix="Remove it: the next tour starts its count anew.",
        ) from None


def _measure(
    folder: Path,
    plan: TourPlan,
    tolerance: Tolerance | None,
    progress: Callable[[Progress], None] | None,
    sets: int,
) -> Any:
    from jostle.measure import Campaign, available_engines, measure

    available = available_engines()
    campaign = Campaign(
        workloads=plan.workloads,
        engines=tuple(engine for engine in plan.engines if engine in available),
        solo_repeats=plan.solo_repeats,
        sets=sets,
        window_seconds=plan.window_seconds,
        seed=plan.seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tour.json").write_text(json.dumps({"schema": "tour/v1", "sets": sets}) + "\n")
    return measure(
        campaign,
        folder / "dataset",
        time_budget_seconds=plan.time_budget_seconds,
        tolerance=tolerance,
        progress=progress,
    )


def _check(
    held: Runs, rest: Runs, model: Model, measured: Any, seconds: float, confidence: float
) -> Tour:
    predicted = model.predict(held.colocations)
    bound = model.bound(held.colocations, confidence).seconds
    solo = solo_medians(rest, held.colocations)
    workloads = held.colocations.number_of_corunners + 1
    actual = held.runtime_seconds
    metrics = metrics_of(held, predicted, {confidence: bound})
    metrics |= {
        "mape_naive_solo_ratio": mape(solo, actual),
        "mape_naive_share_ratio": mape(solo * workloads, actual),
        "held_out_runs": float(len(held)),
        "under_bound_runs": float((np.isfinite(bound) & (actual <= bound)).sum()),
        "bounded_runs": float(np.isfinite(bound).sum()),
        "confidence": confidence,
    }
    return Tour(held, predicted, bound, solo, metrics, model, measured, seconds)
