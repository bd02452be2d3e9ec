"""Measuring for the tour, into a dataset that every further tour adds to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from jostle.collect import (
    Campaign,
    CampaignProgress,
    MeasureOptions,
    Summary,
    available_engines,
    measure,
)
from jostle.errors import MissingExtra, UnreadableFile
from jostle.operations.tour._tour_plan import TourPlan

NEEDED = (("wasmtime", "measure"), ("jax", "fit"), ("optax", "fit"), ("scipy", "fit"))


def check_tour() -> None:
    """Before minutes are spent: whether all that the tour needs is installed. Raises MissingExtra."""
    from importlib.util import find_spec

    for module, extra in NEEDED:
        if find_spec(module) is None:
            raise MissingExtra(module, extra)


def measure_tour(
    folder: Path,
    plan: TourPlan,
    *,
    progress: Callable[[CampaignProgress], None] | None = None,
) -> Summary:
    """Measure into `folder`/dataset; returns the campaign's Summary.

    A second tour of the same folder goes on: it finishes what was interrupted, or adds as many sets
    again.
    """
    summary = _measure(folder, plan, progress, _sets_before(folder) or plan.sets)
    if summary.finished and summary.already == summary.planned:
        more = (_sets_before(folder) or 0) + plan.sets
        summary = _measure(folder, plan, progress, more)
    return summary


def _sets_before(folder: Path) -> int | None:
    """The number of sets of the last tour of the folder; None for a first tour."""
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
    progress: Callable[[CampaignProgress], None] | None,
    sets: int,
) -> Summary:
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
        MeasureOptions(time_budget_seconds=plan.time_budget_seconds),
        progress=progress,
    )
