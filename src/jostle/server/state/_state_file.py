"""Whether the files of a SQLite state are still those that a service opened, and hold what they held."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

_CYCLE = 1 << 31  # numbers, from a random one on
_FORWARD = 1 << 24  # steps at most between two looks
_HEAD = 64  # bytes of SQLite's files that are looked at


class _Mark(NamedTuple):
    """A file, and the number in its head, which only rises; None where it has not begun."""

    device: int
    inode: int
    number: int | None

    def follows(self, before: _Mark) -> bool:
        same = (self.device, self.inode) == (before.device, before.inode)
        if self.number is None or before.number is None:
            return same
        return same and (self.number - before.number) % _CYCLE <= _FORWARD


class StateFile:
    """The database and its write-ahead log. Another file, or an older copy, has another number:
    `user_version` of the database, which `count` raises with each write, and the salt of the log, which
    SQLite raises whenever it starts the log anew.

    The database stays open until `close`: a process that closes any descriptor of a file gives up its locks
    on it, and whoever opens and closes the database then removes the log that is in use.
    """

    def __init__(self, path: Path) -> None:
        """path: of a database that is in use. Raises OSError."""
        self.path, self._held = path, path.open("rb", buffering=0)
        self._marks = self._look()
        self._number, self._stamps = -1, list[tuple[int, int]]()

    def close(self) -> None:
        """Let go of the database, once SQLite has."""
        self._held.close()

    def count(self, connection: sa.Connection) -> None:
        """Raise the number of the database, in the transaction that writes."""
        (number,) = connection.exec_driver_sql("PRAGMA user_version").one()
        self._number = (number + 1) % _CYCLE
        connection.exec_driver_sql(f"PRAGMA user_version = {self._number}")

    def leave(self) -> None:
        """Remember the files as they are once the transaction that was counted is on the disk."""
        self._stamps = self._stamps_now()

    def require_whole(self) -> None:
        """Look whether everything can be read, if another hand than SQLite's has touched the files since
        `leave`. What a replica has written is counted, and needs no look.

        A log that is damaged in its middle would lose what is written behind it, so it is begun anew.
        Raises sqlite3.Error.
        """
        now, before = self._stamps_now(), self._stamps
        if now == before:
            return
        with closing(sqlite3.connect(self.path, isolation_level=None)) as fresh:
            (number,) = fresh.execute("PRAGMA user_version").fetchone()
            is_log_odd = number == self._number and now[1:] != before[1:]
            if is_log_odd or now[:1] != before[:1]:
                self._stamps = []
                if is_log_odd and fresh.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0]:
                    raise sqlite3.OperationalError("it is busy")
                (found,) = fresh.execute("PRAGMA quick_check(1)").fetchone()
                if found != "ok":
                    raise sqlite3.DatabaseError(found.replace("\n", " "))
                now, self._marks = self._stamps_now(), self._look()
        self._number, self._stamps = number, now

    def _stamps_now(self) -> list[tuple[int, int]]:
        """Return size and time of the last write of database and log. Raises OSError."""
        both = (os.stat(f"{self.path}{end}") for end in ("", "-wal"))
        return [(one.st_size, one.st_mtime_ns) for one in both]

    def is_same(self) -> bool:
        """Return whether the files are those that were opened, and were neither emptied nor written over."""
        found, kept = self._look(), list[_Mark | None]()
        for mark, before in zip(found, self._marks, strict=True):
            if mark is None or before is None or not mark.follows(before):
                return False
            kept.append(before if mark.number is None else mark)
        self._marks = kept
        return True

    def _look(self) -> list[_Mark | None]:
        """Return the marks of database and log; None for one that is not there, or was emptied."""
        found: list[_Mark | None] = [None, None]
        try:
            status, head = os.stat(self.path), os.pread(self._held.fileno(), _HEAD, 0)
            if head.startswith(b"SQLite format 3\0"):
                number = int.from_bytes(head[60:64], "big") or None
                found[0] = _Mark(status.st_dev, status.st_ino, number)
            with open(f"{self.path}-wal", "rb") as file:
                status, head = os.fstat(file.fileno()), file.read(_HEAD)
            if head.startswith(b"\x37\x7f\x06") or not head:
                number = int.from_bytes(head[16:20], "big") if head else None
                found[1] = _Mark(status.st_dev, status.st_ino, number)
        except (OSError, ValueError):  # gone, or closed here
            pass
        return found
