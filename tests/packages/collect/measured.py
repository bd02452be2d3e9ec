"""Small campaigns of command lines and services, and what came out of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jostle.collect import Campaign, MeasureOptions, Workload, measure
from jostle.data import Dataset


def rows(dataset: Path) -> list[dict[str, Any]]:
    return Dataset(dataset).read().table.to_pylist()


def measured(
    path: Path,
    *workloads: Workload,
    sets: int = 0,
    window_seconds: float = 0.05,
    timeout_seconds: float | None = 60.0,
) -> list[dict[str, Any]]:
    """Each once alone, and in sets of two different ones, whatever else the machine does."""

    def campaign(seed: int) -> Campaign:
        return Campaign(
            workloads=list(workloads),
            engines=["native"],
            solo_repeats=1,
            sets=sets,
            set_sizes=(2, 2),
            window_seconds=window_seconds,
            device="here",
            seed=seed,
        )

    def differ(one: Campaign) -> bool:
        return all(len({m.name for m in w.members}) == len(w.members) for w in one.plan())

    chosen = next(one for one in map(campaign, range(100)) if differ(one))
    options = MeasureOptions(timeout_seconds=timeout_seconds)
    measure(chosen, path / "data", options)
    return rows(path / "data")
