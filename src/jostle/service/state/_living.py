"""What the runs that come in tell of the model that answers: which names drift, and what it learns of them.

A run belongs to the model that answered when it came, whose version is stored with it. A model that was
fitted later knows of it by its data, or never will; one that learned while serving says up to which run.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any

from jostle.answers import Drifts
from jostle.errors import NotPermitted
from jostle.models import save_over
from jostle.service.state._archive import as_runs
from jostle.service.state._served import ModelFolder, Served
from jostle.service.state._store import Store

if TYPE_CHECKING:
    from jostle.models import DriftWatch

# In the model's last update: the number of the last run that it learned.
LEARNED_TO = "observed_run"
LEARNED_BY = "observed_by"  # the version of the model that answered until then
MOST_WATCHED = 100_000  # runs that a service looks at once more when it starts
MOST_AGAIN = 2_000  # and after it has learned
_AT_ONCE = 2_000


class DriftsNow:
    """Observed runs as the watch of the served model sees them, whose answers follow. Used by one thread at a
    time."""

    def __init__(self, folder: ModelFolder, store: Store, confidence: float) -> None:
        self.folder, self.store, self.confidence = folder, store, confidence
        self._version: str | None = None
        self._versions: list[str] = []
        self._watch: DriftWatch | None = None
        self._last = 0

    def follow(self) -> bool:
        """Look at runs that came since, and let the served model follow; says whether there are more.

        Raises NotPermitted without the database.
        """
        served = self.folder.served
        if served is None:
            return False
        if self._watch is None or self._version != served.version:
            self._begin(served)
        watch, newest = self._watch, self.store.last_number()
        assert watch is not None
        rows = self.store.runs_after(self._last, _AT_ONCE, versions=self._versions)
        if rows:
            watch.update(as_runs(rows))
            if watch.changes:
                told = len(watch.drifts), watch.changes
                self.folder.follow(served.version, watch.following(), *told)
        is_full = len(rows) == _AT_ONCE
        self._last = rows[-1]["number"] if is_full else max(newest, *(r["number"] for r in rows), 0)
        return is_full

    def answer(self) -> Drifts:
        """What drifts, up to the last run that came, of the model that answers. Raises NotPermitted without
        the database."""
        while self.follow():
            pass
        served, watch = self.folder.served, self._watch
        if served is None or watch is None or served.version != self._version:
            raise NotPermitted("the model changes at this moment", fix="Ask again.")
        return Drifts.of(watch, served.label)

    def _begin(self, served: Served) -> None:
        """A model that learned while serving is told the last runs once more: what drifts, and what it has
        not learned of that, is known at once."""
        versions, learned_to = _since_fitted(served)
        most = MOST_WATCHED if learned_to is None else MOST_AGAIN
        self._last = self.store.last_number(versions, learned_to, most)
        self._versions, self._version = versions, served.version
        self._watch = served.model.watch(self.confidence)


def _since_fitted(served: Served) -> tuple[list[str], int | None]:
    """(versions that the model had since it was fitted, the last one first; the number of the last observed
    run that it learned, None where it learned none)."""
    versions, learned_to = [served.version], None
    for record in reversed(served.model.metadata.get("updates") or []):
        if record.get(LEARNED_TO) is None or record.get(LEARNED_BY) is None:
            break
        learned_to = record[LEARNED_TO] if learned_to is None else learned_to
        versions.append(record[LEARNED_BY])
    return versions, learned_to


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
        """Whether it has learned some: the new model is then in the folder, the one of before beside it. A
        model that came into the folder meanwhile stays, and is the one that learns from then on.

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
            self.folder.look()
            if self.folder.served is None or self.folder.served.version != served.version:
                return False
            about = {LEARNED_TO: waiting[-1]["number"], LEARNED_BY: served.version}
            learned.metadata["updates"][-1] |= about
            save_over(learned, self.folder.path)
            self.folder.look()  # which another thread may have done a moment before
            return self.folder.served is not None and self.folder.served.version != served.version
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
