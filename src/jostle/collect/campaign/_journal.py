"""Windows on their way into a dataset: first a line in a journal, soon part of a file.

A window's line is on disk before the next window starts, so a crash loses at most the window in
flight. Every half minute all lines become one immutable file of the dataset and the journal begins
anew. After a crash the next campaign on the dataset, or `recover`, moves what the journal still
holds; window identities make sure that nothing is written twice. One campaign at a time holds a
journal; different campaigns have different ones. Each line begins with a checksum of the rest.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from jostle.errors import JostleError, NotPermitted, UnreadableFile, UsageError

# Rows become a file when the oldest has waited so long; in long campaigns a minute, so that files stay few.
_SHORTEST_WAIT_SECONDS = 30.0
_LONGEST_WAIT_SECONDS = 60.0
_WAIT_RATIO = 0.02

_REMOVE = "Restore it from a copy, or remove the line and measure its window again."

Row = dict[str, Any]


class Journal:
    """The journal of a campaign in a dataset. As a context, it writes what is pending at the end.

    write: turns rows into a file of the dataset. known: window identities that the dataset holds. Raises
    UsageError where another process is measuring the same campaign, NotPermitted or UnreadableFile where the
    disk takes nothing.
    """

    def __init__(
        self,
        dataset: Path,
        campaign: str,
        *,
        write: Callable[[list[Row]], None],
        known: Callable[[], set[str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = dataset / "journal" / f"{campaign}.jsonl"
        self._write, self._clock = write, clock
        try:
            from jostle._base.files import make_folder, sync_folder

            make_folder(self._path.parent)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            sync_folder(self._path.parent)
        except OSError as error:
            raise _cannot_write(error, self._path) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._file)
            raise UsageError(
                "this campaign is being measured by another process",
                where=str(dataset),
                fix="Wait for it, or measure with another `seed`.",
            ) from None
        self._began = clock()
        self._oldest: float | None = None
        self.pending: list[Row] = []
        try:
            if self._path.stat().st_size:
                there = known()
                self.pending = [row for row in _rows(self._path) if row["window_id"] not in there]
                self.flush()
        except BaseException:
            os.close(self._file)  # and with it the lock: nobody else would look at it otherwise
            raise

    def append(self, rows: Iterable[Row]) -> None:
        """Put a window's rows on disk, and into the dataset when it is time."""
        rows = list(rows)
        text = json.dumps({"rows": rows}, default=_encoded).encode()
        line = _checksum(text) + b" " + text + b"\n"
        try:
            if os.write(self._file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self._file)
        except OSError as error:
            raise _cannot_write(error, self._path) from error
        self.pending += rows
        now = self._clock()
        self._oldest = now if self._oldest is None else self._oldest
        age = _WAIT_RATIO * (now - self._began)
        if now - self._oldest >= min(_LONGEST_WAIT_SECONDS, max(_SHORTEST_WAIT_SECONDS, age)):
            self.flush()

    def flush(self) -> None:
        """Write what is pending as one file of the dataset and begin the journal anew."""
        if self.pending:
            self._write(self.pending)
        self.pending, self._oldest = [], None
        # Emptied, not removed: the lock is on this file.
        try:
            os.ftruncate(self._file, 0)
            os.fsync(self._file)
        except OSError as error:  # its rows are known by their windows when they are read again
            raise _cannot_write(error, self._path) from error

    def close(self) -> None:
        """Write what is pending and let the journal go."""
        try:
            self.flush()
        finally:
            os.close(self._file)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def campaigns_with_journal(dataset: Path) -> list[str]:
    """Return campaigns whose journal holds windows that may not be in the dataset yet."""
    return sorted(
        path.stem for path in (dataset / "journal").glob("*.jsonl") if path.stat().st_size
    )


def _rows(path: Path) -> list[Row]:
    """Return all rows of the complete lines; what a crash cut off at the end is the window in flight.

    Raises UnreadableFile for any other line that is not the one that was written.
    """
    rows: list[Row] = []
    *lines, last = path.read_bytes().split(b"\n")
    if _is_whole(last):
        lines.append(last)
    for number, line in enumerate(lines, start=1):
        if not _is_whole(line):
            raise UnreadableFile(
                f"line {number} is not the one that was written", where=str(path), fix=_REMOVE
            )
        try:
            rows += _window(line.partition(b" ")[2])
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise UnreadableFile(
                f"line {number} is no window: {error or type(error).__name__}",
                where=str(path),
                fix=_REMOVE,
            ) from None
    return rows


def _window(text: bytes) -> list[Row]:
    """Return the rows of a window's line. Raises ValueError, TypeError, KeyError, AttributeError,
    RecursionError for what is none."""
    rows = []
    for row in json.loads(text)["rows"]:
        row["measured_at"] = datetime.fromisoformat(row["measured_at"])
        if not isinstance(row["window_id"], str):
            raise TypeError("its window_id is no text")
        rows.append(row)
    return rows


def _is_whole(line: bytes) -> bool:
    checksum, _, text = line.partition(b" ")
    return checksum == _checksum(text)


def _checksum(text: bytes) -> bytes:
    return hashlib.sha256(text).hexdigest()[:16].encode()


def _cannot_write(error: OSError, path: Path) -> JostleError:
    reason = error.strerror or str(error)
    if isinstance(error, PermissionError):
        return NotPermitted(reason, where=str(path), fix="Choose a folder you may write to.")
    return UnreadableFile(
        f"could not write: {reason}",
        where=str(path),
        fix="What was measured before is kept; make room, and the same command goes on.",
    )


def _encoded(value: Any) -> str:
    return value.isoformat()
