"""The tour: measure into a dataset that every further tour adds to, learn, and check what was held out."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jostle._base.progress import Progress
from jostle.collect import (
    Campaign,
    CampaignProgress,
    MeasureOptions,
    Summary,
    available_engines,
    measure,
)
from jostle.data import Runs, read_runs, solo_seconds
from jostle.errors import MissingExtra, NotEnoughRuns, UnreadableFile
from jostle.models import Model, fit
from jostle.operations.evaluation._error_measures import error_measures, metrics_of
from jostle.operations.evaluation._left_out_runs import left_out_runs
from jostle.operations.tour._tour_plan import TourPlan

HELD_OUT = 0.25
NEEDED = {"wasmtime": "measure", "jax": "fit", "optax": "fit", "scipy": "fit"}


def check_tour() -> None:
    """Check before minutes are spent that all that the tour needs is installed. Raises MissingExtra."""
    from importlib.util import find_spec

    for module, extra in NEEDED.items():
        if find_spec(module) is None:
            raise MissingExtra(module, extra)


def measure_tour(
    folder: Path, plan: TourPlan, *, progress: Callable[[CampaignProgress], None] | None = None
) -> Summary:
    """Measure into `folder`/dataset; returns the campaign's Summary.

    A second tour of the same folder goes on: it finishes what was interrupted, or adds as many sets
    again.
    """
    note, options = folder / "tour.json", MeasureOptions(plan.time_budget_seconds)
    try:
        before = int(json.loads(note.read_text("utf-8"))["sets"]) if note.is_file() else 0
    except (ValueError, KeyError, TypeError):
        raise UnreadableFile(
            "not a note of a tour",
            where=str(note),
            fix="Remove it: the next tour starts its count anew.",
        ) from None

    def measured(sets: int) -> Summary:
        campaign = Campaign(
            workloads=plan.workloads,
            engines=tuple(engine for engine in plan.engines if engine in available_engines()),
            solo_repeats=plan.solo_repeats,
            sets=sets,
            window_seconds=plan.window_seconds,
            seed=plan.seed,
        )
        folder.mkdir(parents=True, exist_ok=True)
        note.write_text(json.dumps({"schema": "tour/v1", "sets": sets}) + "\n")
        return measure(campaign, folder / "dataset", options, progress=progress)

    summary = measured(before or plan.sets)
    is_old = summary.finished and summary.already == summary.planned
    return measured((before or plan.sets) + plan.sets) if is_old else summary


@dataclass(frozen=True)
class Tour:
    """Results of a tour. held: the held-out runs; predicted, bound, solo: (n,) seconds for each, solo
    being the measured median alone. metrics: by names with units; naive_solo and naive_share are guessing
    the solo time, and the solo time times the number of workloads."""

    held: Runs
    predicted: np.ndarray
    bound: np.ndarray
    solo: np.ndarray
    metrics: dict[str, float]
    model: Model
    measured: Summary
    seconds_to_fit: float

    def examples(self, count: int) -> Sequence[int]:
        """Choose held-out runs to show: a spread over slowdowns, always the same ones."""
        slowdown = self.held.runtime_seconds / self.solo
        order = np.argsort(-np.nan_to_num(slowdown), kind="stable")
        places = np.linspace(0, len(order) - 1, min(count, len(order))).round().astype(int)
        return [int(order[place]) for place in places]


def learn_tour(
    folder: Path,
    plan: TourPlan,
    measured: Summary,
    *,
    progress: Progress | None = None,
    clock: Callable[[], float],
) -> Tour:
    """Fit on what was measured less a quarter of the sets, leave the model in `folder`/model, and check
    it on that quarter. Raises NotEnoughRuns where too little could be measured."""
    dataset = folder / "dataset"
    runs = read_runs(dataset).ok()
    if (runs.colocations.number_of_corunners > 0).sum() < 10:
        raise NotEnoughRuns(
            f"only {len(runs)} runs could be measured",
            where=str(dataset),
            fix="Run the tour again; it goes on from here. `jostle runs` says why others did not come out.",
        )
    rest, asked = left_out_runs(runs, "set", HELD_OUT, plan.seed)
    began = clock()
    model = fit(rest, tour_method(), seed=plan.seed, progress=progress)
    seconds = clock() - began
    model.save(folder / "model")
    confidence = plan.confidence
    predicted = model.predict(asked.colocations)
    bound = model.bound(asked.colocations, confidence).seconds
    solo = solo_seconds(rest, asked.colocations)
    naive = {"solo": solo, "share": solo * (asked.colocations.number_of_corunners + 1)}
    actual, metrics = asked.runtime_seconds, metrics_of(asked, predicted, {confidence: bound})
    for name, guess in naive.items():
        metrics[f"mape_naive_{name}_ratio"] = error_measures(guess, actual).get("mape", np.nan)
    metrics |= {
        "held_out_runs": float(len(asked)),
        "under_bound_runs": float((np.isfinite(bound) & (actual <= bound)).sum()),
        "bounded_runs": float(np.isfinite(bound).sum()),
        "confidence": confidence,
    }
    return Tour(asked, predicted, bound, solo, metrics, model, measured, seconds)


def tour_method() -> Any:
    """Make the method of the tour: the defaults, with several members since they are quick on so few runs."""
    from jostle.learn.learners.network import Factorization

    return Factorization(members=3)
