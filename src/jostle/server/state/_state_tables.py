"""The tables of the state, and the engine that holds them: SQLite with a write-ahead log, or PostgreSQL."""

from __future__ import annotations

import errno
import os
import secrets
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from jostle._base.untrusted import require_regular
from jostle.errors import NotPermitted, UsageError, needing_extras

VERSION = 2
PLACEMENTS, ARCHIVED = 1, 2  # rows of `changes`
_metadata = sa.MetaData()

# A row that every change of placements locks and counts: so changes come one after the other, in either
# database and from any number of replicas, and a reader asks for those after the last it has seen. Another
# one holds the number of the last observed run that is in the dataset.
changes = sa.Table(
    "jostle_changes",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("changed", sa.BigInteger, nullable=False),
)

placements = sa.Table(
    "jostle_placements",
    _metadata,
    sa.Column("id", sa.String(253), primary_key=True),
    sa.Column("node", sa.String(253)),  # null once it is let go
    sa.Column("request", sa.Text, nullable=False),  # JSON, as a row of a table of requests
    sa.Column("held", sa.Boolean, nullable=False),  # not yet confirmed
    sa.Column("expires_at", sa.Float(53), nullable=False),  # seconds since 1970
    sa.Column("changed", sa.BigInteger, nullable=False, index=True),
)

runs = sa.Table(
    "jostle_runs",
    _metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("id", sa.String(253), nullable=False, unique=True),
    sa.Column("run", sa.Text, nullable=False),  # JSON, as it was taken
    sa.Column("received_at", sa.Float(53), nullable=False),
    sa.Column("day", sa.Integer, nullable=False, index=True),  # since 1970, UTC
    sa.Column("confidence", sa.Float(53), nullable=False),
    sa.Column("runtime_seconds", sa.Float(53), nullable=False),
    sa.Column("bound_seconds", sa.Float(53)),  # of the model of that moment
    sa.Column("model_version", sa.String(64)),
    sa.Column("in_dataset", sa.Boolean, nullable=False),  # no longer read
)

# Running sums, so that nobody counts a million runs to say how many there are.
days = sa.Table(
    "jostle_days",
    _metadata,
    sa.Column("day", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("runs", sa.BigInteger, nullable=False),
    sa.Column("with_bound", sa.BigInteger, nullable=False),
    sa.Column("within_bound", sa.BigInteger, nullable=False),
)


def open_engine(state: str) -> sa.Engine:
    """Open the database, and make its tables. state: a path of a SQLite file, or a postgresql:// address.

    Raises MissingExtra, UsageError, NotPermitted if it cannot be opened.
    """
    try:
        engine = _postgresql(state) if "://" in state else _sqlite(state)
        _make(engine)
    except (exc.SQLAlchemyError, OSError) as error:
        reason = getattr(error, "strerror", None) or getattr(error, "orig", None) or error
        reason = str(reason).strip().splitlines()[0]
        raise NotPermitted(
            f"the state cannot be opened: {reason}",
            where=_without_password(state),
            fix="See that it is there, may be written and has room.",
        ) from None
    return engine


def _sqlite(path: str) -> sa.Engine:
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    for end in ("", "-wal", "-shm", "-journal"):
        require_regular(path + end)
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=os.path.abspath(path)),
        # A write waits for other processes on this file at most so long.
        connect_args={"timeout": 10.0, "check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun below, not by the driver
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")  # fsync before a commit returns

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgresql(address: str) -> sa.Engine:
    kind, _, rest = address.partition("://")
    if kind not in ("postgresql", "postgres"):
        raise UsageError(
            f"a state of the kind {kind!r}", fix="Give a SQLite file or postgresql://…"
        )
    with needing_extras():
        import psycopg  # noqa: F401
    try:
        return sa.create_engine(
            f"postgresql+psycopg://{rest}",
            pool_pre_ping=True,  # a connection that a restart of the server cut is made anew
            pool_size=4,
            connect_args={"connect_timeout": 5},
        )
    except (exc.SQLAlchemyError, ValueError) as error:
        raise UsageError(f"not an address of a database: {error}", where=kind) from None


def _make(engine: sa.Engine) -> None:
    """Make the tables, which the first replica to come does."""
    for attempt in range(5):
        try:
            with engine.execution_options(writes=True).begin() as connection:
                _metadata.create_all(connection)
                version = connection.execute(sa.select(changes.c.version)).scalar()
                if version is None:
                    connection.execute(changes.insert(), [_row(PLACEMENTS, 0), _row(ARCHIVED, 0)])
                    if engine.dialect.name == "sqlite":  # by which a file is known, see StateFile
                        number = secrets.randbelow(1 << 31)
                        connection.exec_driver_sql(f"PRAGMA user_version = {number}")
            break
        except (exc.IntegrityError, exc.ProgrammingError):  # another replica just did
            if attempt == 4:
                raise
    with engine.connect() as connection:
        version = connection.execute(sa.select(changes.c.version)).scalar()
        if engine.dialect.name == "sqlite":
            connection.rollback()
            connection.exec_driver_sql("PRAGMA wal_checkpoint")
    if version != VERSION:
        raise UsageError(
            f"the state is of version {version}, not {VERSION}",
            fix="Give another file or database.",
        )


def _row(id: int, changed: int) -> dict[str, int]:
    return {"id": id, "version": VERSION, "changed": changed}


def _without_password(state: str) -> str:
    head, at, tail = state.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at and "://" in head else state
