"""Observed runs into a dataset, in batches: files are not made for every run."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jostle.data import Dataset, Runs, add_runs
from jostle.errors import JostleError
from jostle.server.state._state_store import Store

_LOG = logging.getLogger("jostle.server")
_EVERY_SECONDS = 30.0
_MOST = 20_000  # runs in one file


class Archive:
    """Dataset to which observed runs are written in batches. dataset: where observed runs go, if they do.
    keep_days: after which the state forgets them, if it does; never before they are in the dataset."""

    def __init__(self, store: Store, dataset: Path | None, keep_days: int | None) -> None:
        self.store, self.dataset, self.keep_days = store, dataset, keep_days
        self._is_sure = False  # of what the dataset holds

    async def go_on(self, seconds: float = _EVERY_SECONDS) -> None:
        """Archive every now and then, and once more at the end."""
        try:
            while True:
                await asyncio.sleep(seconds)
                await asyncio.to_thread(self._try)
        finally:
            self._try()

    def _try(self) -> None:
        try:
            while self.dataset is not None and self.add_to_dataset() == _MOST:
                pass
            if self.keep_days is not None:
                up_to = None if self.dataset is None else self.store.archived()
                self.store.forget_runs(self.store.clock() - 86_400 * self.keep_days, up_to)
        except JostleError as error:
            _LOG.warning("observed runs stay in the state for now: %s", error)

    def add_to_dataset(self) -> int:
        """Write those that are not there yet; says how many. Twice does no harm: a run has its id.

        Raises what the dataset raises.
        """
        assert self.dataset is not None
        rows = self.store.runs_after(self.store.archived(), _MOST)
        if not rows:
            return 0
        there, folder = set[Any](), Dataset(self.dataset)
        if not self._is_sure and folder.exists:  # one may have ended before it could remember
            there = set(folder.read().table.column("run_id").to_pylist())
        self._is_sure = False
        if new := [row for row in rows if row["id"] not in there]:
            add_runs(self.dataset, as_runs(new), "observed runs")
        self.store.put_in_dataset(rows[-1]["number"])
        self._is_sure = True
        return len(rows)


def as_runs(rows: list[dict[str, Any]]) -> Runs:
    """Return observed runs as they are stored."""
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
