"""What changes while serving: placements and observed runs, on the disk before anybody is told so."""

from __future__ import annotations

import errno
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from threading import Lock
from typing import Any

import sqlalchemy as sa
from sqlalchemy import exc

from jostle.errors import NotPermitted
from jostle.server.state import _state_tables as tables
from jostle.server.state._state_file import StateFile
from jostle.server.state._state_tables import open_engine

# How long it is kept that a placement was let go, for replicas to hear of it.
FORGOTTEN_AFTER_SECONDS = 900.0
_SWEEP_EVERY = 256  # changes
_EPOCH = date(1970, 1, 1).toordinal()
_MOST_FORGOTTEN = 5000  # runs in one change
_PROBE_SECONDS = 1.0
_ROOM_BYTES = 1 << 18
_DAMAGED = (
    "Put it back; or stop the service, put a copy there with no -wal and -shm beside it, and start it "
    "again. Nothing is acknowledged until then."
)


@dataclass(frozen=True)
class PlacementRow:
    """A stored placement: what runs, or is about to run, on a node. node: None once it was let go. request: a
    row as in a table of requests. held: not confirmed. expires_at: seconds since 1970. changed: the number of
    the change."""

    id: str
    node: str | None
    request: dict[str, Any]
    held: bool
    expires_at: float
    changed: int


@dataclass(frozen=True)
class ObservedRun:
    """A run that was observed. run: as it was taken. bound_seconds: the one of the model of that moment, None
    without a valid bound."""

    id: str
    run: dict[str, Any]
    received_at: float
    confidence: float
    runtime_seconds: float
    bound_seconds: float | None
    model_version: str | None


class Store:
    """Database of placements and observed runs. clock: seconds since 1970."""

    def __init__(self, state: str, clock: Callable[[], float]) -> None:
        self.engine = open_engine(state)
        self.clock = clock
        self._file = None if "://" in state else StateFile(Path(state))
        # Fair, where SQLite would let one thread sleep while another goes on.
        self._writing = Lock()
        self._probed = -_PROBE_SECONDS

    def close(self) -> None:
        self.engine.dispose()
        if self._file is not None:
            self._file.close()

    def require_file(self) -> None:
        """Refuse to go on where what is written would be gone after a restart: SQLite goes on writing into
        files that were removed, replaced or emptied. Raises NotPermitted."""
        if self._file is not None and not self._file.is_same():
            raise NotPermitted(
                "the file of the state was removed, replaced or written over while it is used",
                where=str(self._file.path),
                fix=_DAMAGED,
            )

    def probe(self) -> None:
        """Write something, unless this succeeded within a second. Raises NotPermitted where nothing could be
        stored."""
        self.require_file()
        if time.monotonic() - self._probed < _PROBE_SECONDS:
            return
        with self._writes() as connection:
            _lock(connection)
        self._require_room()
        self._probed = time.monotonic()

    def _require_room(self) -> None:
        """Raises NotPermitted where the disk is full, though what SQLite has allocated may take a little."""
        if self._file is None:
            return
        folder = self._file.path.parent
        try:
            with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
                file.write(bytes(_ROOM_BYTES))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                text = f"there is no room for the state: {error.strerror}"
                raise NotPermitted(text, where=str(folder), fix="Make room.") from None

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Raises NotPermitted where the database does not answer."""
        self.require_file()  # or a connection that is opened now would be to another file
        with _explained(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def _writes(self) -> Iterator[sa.Connection]:
        """On the disk when this ends well. Raises NotPermitted where the database does not answer."""
        writing = self.engine.execution_options(writes=True)
        self.require_file()
        with _explained(), self._writing:
            if self._file is not None:
                self._file.require_whole()
            with writing.begin() as connection:
                yield connection
                if self._file is not None:
                    self._file.count(connection)
            self.require_file()
            if self._file is not None:
                self._file.leave()

    @contextmanager
    def changing(self) -> Iterator[PlacementChange]:
        """A change of placements: nobody else makes one meanwhile; on the disk when this ends well."""
        with self._writes() as connection:
            t = tables.changes
            mine = t.c.id == tables.PLACEMENTS
            connection.execute(t.update().where(mine).values(changed=t.c.changed + 1))
            (number,) = connection.execute(sa.select(t.c.changed).where(mine)).one()
            if number % _SWEEP_EVERY == 0:
                old = self.clock() - FORGOTTEN_AFTER_SECONDS
                connection.execute(
                    tables.placements.delete().where(tables.placements.c.expires_at < old)
                )
            yield PlacementChange(connection, number, self.clock())

    def placements_since(
        self, changed: int, connection: sa.Connection | None = None
    ) -> list[PlacementRow]:
        """List the placements that changed after that change, in any order; also those that ended."""
        if connection is None:
            with self.reading() as own:
                return self.placements_since(changed, own)
        t = tables.placements
        columns = (t.c.id, t.c.node, t.c.request, t.c.held, t.c.expires_at, t.c.changed)
        rows = connection.execute(sa.select(*columns).where(t.c.changed > changed))
        return [PlacementRow(i, n, json.loads(r), h, float(e), c) for i, n, r, h, e, c in rows]

    def add_runs(self, observed: Sequence[ObservedRun]) -> list[str]:
        """Store runs. Returns for each `stored`, `already_stored`, or `conflict` for another run under the
        same id; on the disk after."""
        t, statuses = tables.runs, []
        with self._writes() as connection:
            _lock(connection)
            ids, there = list({one.id for one in observed}), {}
            for start in range(0, len(ids), 500):
                part = t.c.id.in_(ids[start : start + 500])
                there |= dict(connection.execute(sa.select(t.c.id, t.c.run).where(part)).all())
            new = []
            for one in observed:
                text = json.dumps(one.run, sort_keys=True)
                if one.id in there:
                    statuses.append("already_stored" if there[one.id] == text else "conflict")
                    continue
                there[one.id] = text
                row = {**vars(one), "run": text, "in_dataset": False}
                row["day"] = int(one.received_at // 86_400)
                new.append(row)
                statuses.append("stored")
            if new:
                connection.execute(t.insert(), new)
            for day in {row["day"] for row in new}:
                _add_to_day(connection, day, [row for row in new if row["day"] == day])
        return statuses

    def runs_after(
        self, number: int, most: int, *, versions: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return observed runs in the order in which they came. number: of the last one known, 0 for all.
        versions: only runs that a model of these answered when they came."""
        t = tables.runs
        query = sa.select(t).where(t.c.number > number).order_by(t.c.number).limit(most)
        if versions is not None:
            query = query.where(t.c.model_version.in_(versions))
        with self.reading() as connection:
            rows = connection.execute(query).mappings().all()
        return [{**row, "run": json.loads(row["run"])} for row in rows]

    def last_number(
        self, versions: Sequence[str] | None = None, up_to: int | None = None, skipped: int = 0
    ) -> int:
        """Return the number of the last observed run, 0 without one. versions: as in runs_after. up_to: the
        largest number that counts. skipped: how many to skip, from the last one on."""
        t = tables.runs
        query = sa.select(t.c.number).order_by(t.c.number.desc()).offset(skipped).limit(1)
        if versions is not None:
            query = query.where(t.c.model_version.in_(versions))
        if up_to is not None:
            query = query.where(t.c.number <= up_to)
        with self.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def count_runs(self, after: int, up_to: int, versions: Sequence[str] | None) -> int:
        """Count observed runs with numbers above `after` and up to `up_to`. versions: as in runs_after."""
        t = tables.runs
        query = sa.select(sa.func.count()).where(t.c.number > after, t.c.number <= up_to)
        if versions is not None:
            query = query.where(t.c.model_version.in_(versions))
        with self.reading() as connection:
            return int(connection.execute(query).scalar() or 0)

    def archived(self) -> int:
        """Return the number of the last run that is in the dataset, with all before it."""
        t = tables.changes
        with self.reading() as connection:
            query = sa.select(t.c.changed).where(t.c.id == tables.ARCHIVED)
            return int(connection.execute(query).scalar() or 0)

    def put_in_dataset(self, number: int) -> None:
        """Remember that this one and all before it are in the dataset."""
        t = tables.changes
        with self._writes() as connection:
            of_it = t.update().where(t.c.id == tables.ARCHIVED)
            connection.execute(of_it.values(changed=number))

    def forget_runs(self, before: float, up_to: int | None) -> int:
        """Delete some of those that came on days before that time; says how many. up_to: their numbers at
        most. Sums by day stay."""
        t = tables.runs
        old = sa.select(t.c.number).where(t.c.day < int(before // 86_400)).order_by(t.c.number)
        old = old if up_to is None else old.where(t.c.number <= up_to)
        with self._writes() as connection:
            numbers = list(connection.execute(old.limit(_MOST_FORGOTTEN)).scalars())
            for start in range(0, len(numbers), 500):
                part = t.c.number.in_(numbers[start : start + 500])
                connection.execute(t.delete().where(part))
        return len(numbers)

    def seen_coverage(self) -> tuple[int, int, int]:
        """Count (observed runs, those with a bound, those at or under it)."""
        t = tables.days.c
        query = sa.select(*(sa.func.sum(one) for one in (t.runs, t.with_bound, t.within_bound)))
        with self.reading() as connection:
            every, bounded, inside = (int(n or 0) for n in connection.execute(query).one())
        return every, bounded, inside

    def coverage_by_day(self, most: int = 400) -> list[dict[str, Any]]:
        """Count for each day (UTC) with observed runs how many there are, with a bound, and at or under it;
        the last `most` days."""
        t = tables.days
        with self.reading() as connection:
            rows = connection.execute(sa.select(t).order_by(t.c.day.desc()).limit(most)).all()
        return [
            {"day": date.fromordinal(_EPOCH + day).isoformat()}
            | dict(zip(("runs", "with_bound", "within_bound"), counts, strict=True))
            for day, *counts in reversed(rows)
        ]


def _lock(connection: sa.Connection) -> None:
    """Wait for every other change, in either database."""
    t = tables.changes
    connection.execute(t.update().values(version=t.c.version))


def _add_to_day(connection: sa.Connection, day: int, new: list[dict[str, Any]]) -> None:
    """Under the lock of a change."""
    bounded = [row for row in new if row["bound_seconds"] is not None]
    inside = sum(row["runtime_seconds"] <= row["bound_seconds"] for row in bounded)
    counts = {"runs": len(new), "with_bound": len(bounded), "within_bound": inside}
    t = tables.days
    more = {name: t.c[name] + n for name, n in counts.items()}
    if not connection.execute(t.update().where(t.c.day == day).values(**more)).rowcount:
        connection.execute(t.insert().values(day=day, **counts))


class PlacementChange:
    """A change of placements that is under way. number: its number. now: seconds since 1970."""

    def __init__(self, connection: sa.Connection, number: int, now: float) -> None:
        self.connection, self.number, self.now = connection, number, now

    def put(self, row: PlacementRow) -> None:
        """Make or replace."""
        t = tables.placements
        values = {k: getattr(row, k) for k in ("node", "held", "expires_at")}
        values |= {"request": json.dumps(row.request), "changed": self.number}
        done = self.connection.execute(t.update().where(t.c.id == row.id).values(**values))
        if done.rowcount == 0:
            self.connection.execute(t.insert().values(id=row.id, **values))

    def let_go(self, id: str) -> bool:
        """End a placement. Returns whether there was one that was alive."""
        t = tables.placements
        alive = sa.and_(t.c.id == id, t.c.node.is_not(None), t.c.expires_at > self.now)
        gone = {"node": None, "expires_at": self.now, "changed": self.number}
        return self.connection.execute(t.update().where(alive).values(**gone)).rowcount > 0


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except (exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
        cause = getattr(error, "orig", None) or error
        reason = str(cause).strip().splitlines()[0]
        is_damaged = type(cause) is sqlite3.DatabaseError  # what is busy or full is a kind of it
        raise NotPermitted(
            f"the database of the state does not answer: {reason}",
            fix=_DAMAGED if is_damaged else "Nothing was changed; try again.",
        ) from error
