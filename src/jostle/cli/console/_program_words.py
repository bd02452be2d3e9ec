"""Command lines that a person gives: their words, and what they follow."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jostle.errors import UsageError


def words_of(line: Any, where: str | None = None) -> list[str]:
    """Split a command line into words. where: what the error names, the line itself by default. Raises
    UsageError."""
    try:
        return shlex.split(line)
    except (ValueError, AttributeError) as error:
        where = where or f"{line!r:.80}"
        raise UsageError(f"cannot be split into words: {error}", where=where) from None


def program_of(line: str) -> list[str]:
    """Split a command into words, the first of which can be started. Raises UsageError."""
    words = words_of(line)
    if not words or shutil.which(words[0]) is None:
        raise UsageError("the command cannot be started: no such program", where=line)
    return words


def running(text: str) -> tuple[int | None, str | None]:
    """Find the process or control group that is already running and to be followed, (process, group); both
    None for a command."""
    if text.isdecimal():
        return int(text), None
    places = (Path(text), Path("/sys/fs/cgroup") / text.lstrip("/")) if text else ()
    return None, text if any((one / "cgroup.procs").exists() for one in places) else None


@contextmanager
def followed(text: str) -> Iterator[tuple[int | None, str | None]]:
    """Find the process or control group to follow, (process, group); a command is started, and ended with it.
    Raises UsageError."""
    if any(there := running(text)):
        yield there
        return
    words = program_of(text)
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise UsageError(f"the command cannot be started: {error}", where=text) from None
    try:
        yield process.pid, None
    finally:
        process.terminate()
        process.wait()
