"""What the runs that come in tell of the model that answers: which names drift, and what it learns of them.

A run belongs to the model that answered when it came, whose version is stored with it. A model that was
fitted later knows of it by its data, or never will; one that learned while serving says so in its metadata:
`observed`: the number of the last run, and the versions that it had before, the last one first.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jostle.errors import NotPermitted, UsageError
from jostle.models import DriftWatch, Model, fit, save_over
from jostle.operations import Drifts
from jostle.server.state._archive import as_runs
from jostle.server.state._served_model import ModelFolder, Served, checksum_of
from jostle.server.state._state_store import Store

MOST_WATCHED = 20_000  # runs that a service looks at once more when it starts
MOST_AGAIN = 2_000  # and after it has learned
MOST_FIRST = 100_000  # runs, the last ones, that a first model is fitted to
MOST_VERSIONS = 100
FROM_NOTHING = ""  # the version before the first, of a model that was fitted to observed runs alone
_AT_ONCE = 500


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
        """Say what drifts, by all observed runs, of the model that answers. Raises NotPermitted without the
        database."""
        while self.follow():
            pass
        served, watch = self.folder.served, self._watch
        if served is None or watch is None or served.version != self._version:
            raise NotPermitted("the model changes at this moment", fix="Ask again.")
        return Drifts.of(watch, served.label)

    def _begin(self, served: Served) -> None:
        """Show a model that learned while serving the last runs once more: what drifts, and what it has not
        learned of that, is known at once."""
        versions, learned_to = _since_fitted(served)
        most = MOST_WATCHED if learned_to is None else MOST_AGAIN
        self._last = self.store.last_number(versions, learned_to, most)
        self._versions, self._version = versions, served.version
        self._watch = DriftWatch(served.model, self.confidence)


def _since_fitted(served: Served) -> tuple[list[str], int | None]:
    """Read (versions that the model had since it was fitted, the last one first; the number of the last
    observed run that it learned, None if it learned none)."""
    observed: list[Any] = served.model.metadata.get("observed") or [None]
    last, *before = observed
    return [served.version, *before], last


class Learning:
    """The model in the folder learns observed runs once `every` of them are there; 0: never. Where there is
    no model at all, one is fitted to them. trouble: why it does not learn, if so."""

    def __init__(self, folder: ModelFolder, store: Store, every: int) -> None:
        self.folder, self.store, self.every = folder, store, every
        self.trouble: str | None = None
        self._of: str | None = ""
        self._looked_to = self._waiting = 0

    def is_due(self) -> bool:
        """Check whether `every` runs have come since the model last learned, or last could not."""
        served = self.folder.served
        if not self.every or (served is None and not self.folder.is_empty):
            return False
        versions, last = ([], 0) if served is None else _since_fitted(served)
        if self._of != (version := versions[0] if versions else None):
            self._of, self._looked_to, self._waiting = version, last or 0, 0
        newest, start = self.store.last_number(), self._looked_to
        own = versions if last is None else None
        self._waiting += self.store.count_runs(start, newest, own) if newest > start else 0
        self._looked_to = newest
        return self._waiting >= self.every

    def learn(self, now: float) -> bool:
        """Learn the new runs, if it is time to. Returns whether some were learned: the new model is then in
        the folder, and those of before beside it.

        A model that came into the folder meanwhile stays, and is the one that learns from then on. Raises
        what the model, the database and the disk raise.
        """
        if not self.is_due():
            return False
        self.wait()
        served = self.folder.served
        when = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        if served is None:
            over, before = "", [FROM_NOTHING]
            rows, learned = self._fit(when)
        else:
            over, (before, last) = served.checksum, _since_fitted(served)
            rows = self._rows(last, before)
            try:
                learned = served.model.update(as_runs(rows), updated_at=when)
            except UsageError:  # it keeps too many runs to be fitted to them once more
                if FROM_NOTHING not in before:
                    raise
                rows, learned = self._fit(when)
        learned.metadata["observed"] = [rows[-1]["number"], *before[:MOST_VERSIONS]]
        is_there = checksum_of(self.folder.path) == over
        if is_there:
            save_over(learned, self.folder.path, only_over=over)
        self.folder.look()
        return is_there

    def wait(self) -> None:
        """Wait until as many have come once more."""
        self._waiting = 0

    def _fit(self, when: str) -> tuple[list[dict[str, Any]], Model]:
        rows = self.store.runs_after(self.store.last_number(skipped=MOST_FIRST), MOST_FIRST)
        return rows, fit(as_runs(rows), seed=0, fitted_at=when)

    def _rows(self, last: int | None, versions: list[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        own = versions if last is None else None
        number = last or 0
        while part := self.store.runs_after(number, _AT_ONCE, versions=own):
            rows, number = rows + part, part[-1]["number"]
        return rows


def learn_apart(path: Path, state: str, every: int, now: float) -> bool:
    """Learn in a process of its own. Raises what Learning.learn raises."""
    folder, store = ModelFolder(path), Store(state, lambda: now)
    try:
        folder.look()
        return Learning(folder, store, every).learn(now)
    finally:
        store.close()
