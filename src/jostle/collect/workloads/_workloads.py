"""Workloads: a kernel, the size it is set up with, and how often it repeats to make one repetition.

A *repetition* is what a run's `runtime_seconds` means: one call of `run(repeats)`. `repeats`
belongs to the workload, so a repetition is the same work on every platform and beside anyone; the
shipped ones take about 0.5 to 3 ms on an optimising engine and 5 to 50 times that in an
interpreter.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from jostle.collect.kernels._shipped_kernels import KERNEL_FOLDER, SHIPPED
from jostle.collect.kernels.opcodes._binary import exported_functions
from jostle.collect.workloads._job import JobSettings
from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError

KINDS = ("kernel", "wasi", "command")


@dataclass(frozen=True)
class Workload:
    """A program to repeat: a kernel, a WASI program or a command line.

    name: unique in a dataset. kind: a `kernel` is a WebAssembly module that exports `setup(i32)`,
    given `argument` once in every window, and `run(i32)`, given `repeats`. A `wasi` program is a
    module whose `_start` is run to its end by a fresh instance, `repeats` times; `arguments` are
    its words after the first. A `command` is an executable started with `arguments`; job: what
    surrounds it.
    module: the path of the .wasm file or executable. family and size: labels kept as
    features. Raises UsageError for an empty name or numbers outside 0 .. 2^31 - 1.
    """

    name: str
    module: Path
    argument: int = 0
    repeats: int = 1
    family: str = "custom"
    size: str = ""
    kind: str = "kernel"
    arguments: tuple[str, ...] = ()
    job: JobSettings | None = None

    def __post_init__(self) -> None:
        if not self.name.strip() or "+" in self.name or not self.name.isprintable():
            raise UsageError(f"{self.name!r} cannot name a workload", fix="Use letters and digits.")
        if not 0 <= self.argument < 2**31 or not 1 <= self.repeats < 2**31:
            raise UsageError("argument or repeats out of range", where=self.name)
        if self.kind not in KINDS:
            raise UsageError(f"{self.kind!r} is none of {', '.join(KINDS)}", where=self.name)

    def part(self) -> dict[str, Any]:
        """Return what a slot must know to set it up."""
        return {
            "kind": self.kind,
            "module": str(self.module),
            "digest": self.digest,
            "argument": self.argument,
            "arguments": list(self.arguments),
            **({} if self.job is None else {"job": self.job.to_message()}),
        }

    @property
    def kernel(self) -> str:
        """The module's name without its ending."""
        return Path(self.module).stem

    @cached_property
    def module_bytes(self) -> bytes:
        """The module itself. Raises UnreadableFile."""
        try:
            return Path(self.module).read_bytes()
        except OSError as error:
            raise UnreadableFile(
                f"cannot read the module of workload {self.name!r}: {error.strerror}",
                where=str(self.module),
            ) from error

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the module, hexadecimal: with the arguments it says what is executed."""
        return hashlib.sha256(self.module_bytes).hexdigest()


def shipped_workloads() -> tuple[Workload, ...]:
    """Return all workloads that come with Jostle, by name: every kernel in sizes s, m and l."""
    return tuple(
        Workload(
            f"{kernel}-{size}", KERNEL_FOLDER / f"{kernel}.wasm", argument, repeats, family, size
        )
        for kernel, family, sizes in sorted(
            (kernel, family, sizes)
            for family, kernels in SHIPPED.items()
            for kernel, sizes in kernels.items()
        )
        for size, (argument, repeats) in zip("sml", sizes, strict=True)
    )


def spelled(words: Sequence[str], most: int = 80) -> str:
    """Return a name of a command line, with - for what cannot be in one."""
    return re.sub(r"[^\w.=]+", "-", " ".join(words))[:most].strip("-")


def command_workload(
    words: Sequence[str], name: str | None = None, job: JobSettings | None = None
) -> Workload:
    """Return a command line as a workload; its words are not seen by a shell.

    name: by default the program's and what follows, with - for what cannot be in a name. job: where it
    runs, on what, and what it must print (`job_of`). Raises UsageError for no words, UnreadableFile for a
    program that is not found or not executable.
    """
    if not words or not words[0]:
        raise UsageError("a command line has at least one word")
    program = shutil.which(words[0])
    if program is None:
        raise UnreadableFile(
            "no such program, or not executable", where=words[0], fix="Give its path."
        )
    # Not resolved: what a link is called may be what decides how the program behaves.
    path = Path(program).absolute()
    return Workload(
        name or spelled([Path(words[0]).name, *words[1:]]),
        path,
        kind="command",
        family="command",
        arguments=tuple(words[1:]),
        job=job,
    )


def module_workload(
    path: str | Path, arguments: Sequence[str] = (), name: str | None = None
) -> Workload:
    """Return a user's WebAssembly module as a workload, as what it exports says.

    One that exports `setup` and `run` is a kernel; arguments: setup's, and how often run repeats
    (0 and 1 where not given). One that exports `_start` is a WASI program. Raises UnreadableFile,
    BadData, UsageError.
    """
    module = Path(path)
    words = tuple(arguments)
    called = name or "-".join([module.stem, *words])
    one = Workload(called, module, kind="wasi", arguments=words)
    exports = exported_functions(one.module_bytes, str(module))
    if {"setup", "run"} <= exports:
        try:
            numbers = [int(word) for word in words]
            argument, repeats = [*numbers, 0, 1][:2] if len(numbers) != 1 else (numbers[0], 1)
        except ValueError:
            raise UsageError(
                f"a kernel takes two whole numbers, not {' '.join(words)!r}", where=str(module)
            ) from None
        return Workload(called, module, argument, repeats)
    if "_start" in exports:
        return one
    raise BadData(
        "the module exports neither setup and run nor _start",
        where=str(module),
        fix="Build it as a WASI command, or export setup(i32) and run(i32).",
    )


def find_workloads(wanted: Iterable[str | Workload] | None) -> tuple[Workload, ...]:
    """Return the workloads of these names or shell patterns (`chase-*`), sorted by name; None means all.

    The path of a .wasm file, with arguments after it, is a module of the user's. Workload objects
    pass through. Raises UnknownName where nothing fits, UsageError where two
    different workloads have one name.
    """
    shipped = shipped_workloads()
    if wanted is None:
        return shipped
    workloads: dict[str, Workload] = {}
    for want in wanted:
        if isinstance(want, Workload):
            matches = [want]
        elif (words := want.split()) and words[0].endswith(".wasm"):
            matches = [module_workload(words[0], words[1:])]
        else:
            matches = [workload for workload in shipped if fnmatchcase(workload.name, want)]
        if not matches:
            raise UnknownName("workload", str(want), [workload.name for workload in shipped])
        for match in matches:
            if workloads.setdefault(match.name, match) != match:
                raise UsageError("two different workloads have one name", where=match.name)
    return tuple(workloads[name] for name in sorted(workloads))
