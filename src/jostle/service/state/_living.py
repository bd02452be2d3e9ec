"""What the runs that come in tell of the model that answers: which names drift, and what it learns of them.

A run belongs to the model that answered when it came, whose version is stored with it. A model that was
fitted later knows of it by its data, or never will; one that learned while serving says up to which run.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from jostle.models import save_over
from jostle.service.state._archive import as_runs
from jostle.service.state._served import ModelFolder, Served
from jostle.service.state._store import Store

if TYPE_CHECKING:
    from jostle.models import DriftWatch

# In the model's last update: the number of the last run that it learned.
LEARNED_TO = "observed_run"
_AT_ONCE = 5_000


class DriftsNow:
    """Observed runs as the watch of the served model sees them. Asked by one thread at a time."""

    def __init__(self, store: Store, confidence: float) -> None:
        self.store, self.confidence = store, confidence
        self._version: str | None = None
        self._watch: DriftWatch | None = None
        self._last = 0

    def document(self, served: Served) -> dict[str, Any]:
        """What drifts, up to the last run that came. Raises NotPermitted without the database."""
        if self._watch is None or self._version != served.version:
            self._watch, self._version = served.model.watch(self.confidence), served.version
            self._last = 0
        for rows in _after(self.store, self._last):
            mine = [row for row in rows if row["model_version"] == served.version]
            if mine:
                self._watch.update(as_runs(mine))
            self._last = rows[-1]["number"]
        return {
            "schema": "drift/v1",
            "runs": self._watch.runs,
            "checked": self._watch.checked,
            "unknown_names": self._watch.unknown,
            "drifts": [one.to_row() for one in self._watch.drifts],
        }


class Learning:
    """The model in the folder learns observed runs once `every` of them are there; 0: never."""

    def __init__(self, folder: ModelFolder, store: Store, every: int) -> None:
        self.folder, self.store, self.every = folder, store, every
        self.trouble: str | None = None
        self._looked_to = 0
        self._waiting: list[dict[str, Any]] = []
        self._of: str | None = None
        self._lock = Lock()

    def learn(self, now: float) -> bool:
        """Whether it has learned some: the new model is then in the folder, the one of before beside it.

        Raises what the model, the database and the disk raise.
        """
        served = self.folder.served
        if not self.every or served is None or not self._lock.acquire(blocking=False):
            return False
        try:
            waiting = self._those_of(served)
            if len(waiting) < self.every:
                return False
            when = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
            learned = served.model.update(as_runs(waiting), updated_at=when)
            learned.metadata["updates"][-1][LEARNED_TO] = waiting[-1]["number"]
            save_over(learned, self.folder.path)
            return self.folder.look()
        finally:
            self._lock.release()

    def _those_of(self, served: Served) -> list[dict[str, Any]]:
        """Runs that it has not learned yet, as stored."""
        updates = served.model.metadata.get("updates") or [{}]
        learned_to = updates[-1].get(LEARNED_TO)
        if self._of != served.version:
            self._of, self._waiting, self._looked_to = served.version, [], int(learned_to or 0)
        for rows in _after(self.store, self._looked_to):
            self._looked_to = rows[-1]["number"]
            self._waiting += [
                row
                for row in rows
                if learned_to is not None or row["model_version"] == served.version
            ]
        return self._waiting


def _after(store: Store, number: int) -> Iterator[list[dict[str, Any]]]:
    while rows := store.runs_after(number, _AT_ONCE):
        yield rows
        number = rows[-1]["number"]
