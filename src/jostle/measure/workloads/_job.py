"""What surrounds a command line: its folder, inputs and environment, its container, the load on a server."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jostle.errors import UnreadableFile, UsageError


@dataclass(frozen=True)
class ContainerSettings:
    """image: by name or number, as the program knows it. options: further ones of its `run`. is_child:
    whether what runs in it is started by the program itself (podman) and not by a service (docker)."""

    image: str
    options: tuple[str, ...] = ()
    is_child: bool = True


@dataclass(frozen=True)
class JobSettings:
    """Around every execution of a command line.

    directory: where it runs; None is where this process stands, or, where fresh_folder is so, there are
    inputs or it runs in a container, a new folder for each execution, removed after it. inputs: files and
    folders copied there before, those of a relative path to the same path. environment: variables beside
    those of this process. stdin: what it reads as standard input; None is nothing. before, after: command
    lines run before and after each execution, in the same place, not counted. expected: SHA-256 of what it
    must write to standard output; None throws that away. container: what it runs in, None for none.
    """

    directory: Path | None = None
    inputs: tuple[Path, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    expected: str | None = None
    container: ContainerSettings | None = None
    fresh_folder: bool = False
    stdin: Path | None = None

    @property
    def has_own_folder(self) -> bool:
        """Whether each execution has a new folder."""
        asked = self.fresh_folder or self.inputs or self.container is not None
        return self.directory is None and bool(asked)

    def to_message(self) -> dict[str, Any]:
        """As a slot is told it."""
        inside = {} if self.container is None else {"container": asdict(self.container)}
        return {
            **inside,
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
    """A job by what people say: expected is a file that holds what standard output must be.

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
    around = tuple(before), tuple(after), digest, None
    return JobSettings(where, files, variables, *around, fresh_folder, source)


@dataclass(frozen=True)
class LoadSettings:
    """rate: requests per second, sent at that rate whatever the answers take. url: what is requested, and
    what says that the server is ready, by any answer below 500. ready: instead of that a command line that
    ends with 0 when it is. load: a command line instead of requests, which prints seconds of latency, one a
    line, and is started again when it ends. quantile: of the latencies, what a run's time is. directory,
    environment: of all command lines. `{port}` in words and url is a free port, `{rate}` the rate.
    """

    rate: float
    url: str = ""
    ready: tuple[str, ...] = ()
    load: tuple[str, ...] = ()
    quantile: float = 0.99
    directory: str = ""
    environment: tuple[tuple[str, str], ...] = ()

    def to_message(self) -> dict[str, Any]:
        """As a slot is told it."""
        return {
            "rate": self.rate,
            "url": self.url,
            "ready": list(self.ready),
            "load": list(self.load),
            "quantile": self.quantile,
            "directory": self.directory or None,
            "environment": dict(self.environment),
        }

    @property
    def digest(self) -> str:
        """SHA-256 of all of it."""
        return hashlib.sha256(repr(self.to_message()).encode("utf-8", "surrogatepass")).hexdigest()
