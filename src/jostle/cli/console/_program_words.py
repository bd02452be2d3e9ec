"""Command lines that a person gives: their words, and the process of one."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jostle.errors import UsageError


def words_of(line: Any, where: str | None = None) -> list[str]:
    """Of a command line. where: it stands in, the line itself by default. Raises UsageError."""
    try:
        return shlex.split(line)
    except (ValueError, AttributeError) as error:
        where = where or f"{line!r:.80}"
        raise UsageError(f"cannot be split into words: {error}", where=where) from None


def program_of(line: str) -> list[str]:
    """The words of a command that can be started. Raises UsageError."""
    words = words_of(line)
    if not words or shutil.which(words[0]) is None:
        raise UsageError("the command cannot be started: no such program", where=line)
    return words


@contextmanager
def started(line: str) -> Iterator[int]:
    """The process of a command, which is ended with it. Raises UsageError."""
    words = program_of(line)
    try:
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    except OSError as error:
        raise UsageError(f"the command cannot be started: {error}", where=line) from None
    try:
        yield process.pid
    finally:
        process.terminate()
        process.wait()
