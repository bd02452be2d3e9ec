"""What surrounds a command line: its folder, inputs and environment."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.errors import UnreadableFile, UsageError


@dataclass(frozen=True)
class JobSettings:
    """Describe what surrounds every execution of a command line.

    directory: where it runs; None is where this process stands, or, with fresh_folder or inputs, a new folder
    for each execution, removed after it.
    inputs: files and folders copied there before; those of a relative path to the same path.
    environment: variables beside those of this process.
    before, after: command lines run before and after each execution, in the same place, not counted.
    expected: SHA-256 of what it must write to standard output; None throws that away.
    stdin: file that it reads as standard input; None is nothing.
    """

    directory: Path | None = None
    inputs: tuple[Path, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    expected: str | None = None
    fresh_folder: bool = False
    stdin: Path | None = None

    @property
    def has_own_folder(self) -> bool:
        """True if each execution has a new folder."""
        return self.directory is None and bool(self.fresh_folder or self.inputs)

    def to_message(self) -> dict[str, Any]:
        """Return the message that a slot gets."""
        return {
            "fresh_folder": self.has_own_folder,
            "stdin": None if self.stdin is None else str(self.stdin),
            "directory": None if self.directory is None else str(self.directory),
            "inputs": [str(path) for path in self.inputs],
            "environment": dict(self.environment),
            "before": list(self.before),
            "after": list(self.after),
            "expected": self.expected,
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all of it, the inputs' content included."""
        total = hashlib.sha256(repr(self.to_message()).encode("utf-8", "surrogatepass"))
        for path in (*self.inputs, *([] if self.stdin is None else [self.stdin])):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    with file.open("rb") as content:
                        total.update(hashlib.file_digest(content, "sha256").digest())
        return total.hexdigest()


def job_of(
    *,
    directory: str | os.PathLike[str] | None = None,
    inputs: Sequence[str | os.PathLike[str]] = (),
    environment: Mapping[str, str] | None = None,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    expected: str | os.PathLike[str] | None = None,
    fresh_folder: bool = False,
    stdin: str | os.PathLike[str] | None = None,
) -> JobSettings:
    """Return a job by what people say: expected is a file that holds what standard output must be.

    Raises UnreadableFile for a folder or file that is not there, UsageError for an impossible variable.
    """
    where = None if directory is None else Path(directory).resolve()
    if where is not None and not where.is_dir():
        raise UnreadableFile("there is no such folder to run in", where=str(where))
    files = tuple(Path(path).resolve() for path in inputs)
    source = None if stdin is None else Path(stdin).resolve()
    for path in (*files, *([] if source is None else [source])):
        if not path.exists():
            raise UnreadableFile("there is no such input", where=str(path))
    if where is not None and fresh_folder:
        raise UsageError("either a folder to run in, or a fresh one each time", where=str(where))
    if len({path.name for path in files}) < len(files):
        raise UsageError("two inputs have one name, and they are copied into one folder")
    variables = tuple(sorted((environment or {}).items()))
    for name, value in variables:
        if not name or "=" in name or "\0" in name + value:
            raise UsageError(f"{name!r} cannot name a variable of the environment")
    digest = None
    if expected is not None:
        try:
            with open(expected, "rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise UnreadableFile(f"cannot be read: {error.strerror}", where=str(expected)) from None
    around = tuple(before), tuple(after), digest
    return JobSettings(where, files, variables, *around, fresh_folder, source)
