"""Observed runs into a dataset, in batches: files are not made for every run."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import JostleError
from jostle.service.state._store import Store

if TYPE_CHECKING:
    from jostle.runs import Runs

_LOG = logging.getLogger("jostle.service")
_EVERY_SECONDS = 30.0
_MOST = 20_000  # runs in one file


async def archive(store: Store, dataset: Path, seconds: float = _EVERY_SECONDS) -> None:
    """Every now and then, and once more at the end."""
    try:
        while True:
            await asyncio.sleep(seconds)
            await asyncio.to_thread(_try, store, dataset)
    finally:
        _try(store, dataset)


def _try(store: Store, dataset: Path) -> None:
    try:
        while add_to_dataset(store, dataset) == _MOST:
            pass
    except JostleError as error:
        _LOG.warning("observed runs stay in the state for now: %s", error)


def add_to_dataset(store: Store, dataset: Path) -> int:
    """Write those that are not there yet; says how many. Twice does no harm: a run has its id.

    Raises what the dataset raises.
    """
    from jostle.runs import Dataset, add_runs

    rows = store.runs_after(0, _MOST, in_dataset=False)
    if not rows:
        return 0
    there: set[Any] = set()
    if Dataset(dataset).exists:  # by a service that ended before it could remember
        there = set(Dataset(dataset).read().table.column("run_id").to_pylist())
    new = [row for row in rows if row["id"] not in there]
    if new:
        add_runs(dataset, as_runs(new), "observed runs")
    store.put_in_dataset([row["number"] for row in rows])
    return len(rows)


def as_runs(rows: list[dict[str, Any]]) -> Runs:
    """Observed runs as they are stored."""
    from jostle.runs import Runs

    runs = [row["run"] for row in rows]
    stretches = [run.get("stretches") for run in runs]
    more = {"stretches": stretches} if any(stretches) else {}
    return Runs.from_columns(
        workload=[run["workload"] for run in runs],
        platform=[run["platform"] for run in runs],
        corunners=[run["corunners"] for run in runs],
        runtime_seconds=[run["runtime_seconds"] for run in runs],
        run_id=[row["id"] for row in rows],
        window_id=[run.get("window_id", row["id"]) for run, row in zip(runs, rows, strict=True)],
        measured_at=[_time(run.get("measured_at")) for run in runs],
        **more,
    )


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
    except OverflowError:  # before the year 1 or after 9999 elsewhere: taken by older services
        return None
