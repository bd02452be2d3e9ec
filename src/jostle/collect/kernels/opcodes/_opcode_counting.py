"""What one repetition of a module executes, on whatever machine: exact instruction counts.

A module from elsewhere may sleep for ever, need all memory, or keep a compiler busy: it is counted in a
process of its own, which is waited for for a limited time and can be given up. Run as a program, that reads
one line of JSON and answers with one.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jostle.collect.kernels._child import child_environment, die_with
from jostle.collect.kernels._engines import limited_store, make_engine, reason_of, silent_wasi
from jostle.collect.kernels._shipped_kernels import KERNEL_FOLDER
from jostle.collect.kernels.opcodes._opcodes import COUNTED
from jostle.collect.kernels.opcodes._rewrite import rewrite
from jostle.errors import BadData


@dataclass(frozen=True)
class OpcodeCounts:
    """Counts of executed instructions by name.

    opcodes: executions by instruction name, and `function_entry`; a missing name counts 0.

    bulk_bytes: what memory.copy, memory.fill and memory.init moved. bulk_other: pages and table
    elements moved or grown. memory_bytes: the module's memory after set-up.
    """

    opcodes: dict[str, int]
    bulk_bytes: int
    bulk_other: int
    memory_bytes: int

    @property
    def instructions(self) -> int:
        """All that was executed; function entries count as instructions, as in wasmtime's fuel."""
        return sum(self.opcodes.values())

    @property
    def fuel(self) -> int:
        """The count of wasmtime's own counter."""
        return self.instructions + self.bulk_bytes + self.bulk_other

    def columns(self) -> dict[str, int]:
        """Return int64 features; of each instruction `opcode_i32_add`-like, 0 where not executed."""
        values = [self.instructions, self.bulk_bytes, self.memory_bytes]
        values += [self.opcodes.get(name, 0) for name in COUNTED]
        return dict(zip(self.column_names(), values, strict=True))

    @staticmethod
    def column_names() -> list[str]:
        """Return the names in columns(), always the same."""
        opcodes = [f"opcode_{name.replace('.', '_')}" for name in COUNTED]
        return ["instructions", "bulk_bytes", "memory_bytes", *opcodes]


# Of set-up and one repetition: a few seconds' worth.
_MOST_INSTRUCTIONS = 5_000_000_000


def counted(
    module: bytes, kind: str, words: Sequence[str], argument: int, repeats: int
) -> dict[str, Any]:
    """Return the fields of OpcodeCounts. Raises BadData."""
    import wasmtime

    counting = rewrite(module)
    engine = make_engine("speed", fuel=True)
    try:
        compiled = wasmtime.Module(engine, counting.module)
        store = limited_store(engine)
        # A workload that never ends must not hang whoever asks what it executes.
        store.set_fuel(_MOST_INSTRUCTIONS)
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        store.set_wasi(silent_wasi(words))
        exports: Any = linker.instantiate(store, compiled).exports(store)
        before = counting.read(store, exports)
        if kind == "wasi":
            repetitions = repeats
            try:
                exports["_start"](store)
            except wasmtime.ExitTrap as ended:
                if ended.code:
                    raise BadData(f"it ended with exit code {ended.code}") from None
        else:
            repetitions = 1
            exports["setup"](store, argument)
            before = counting.read(store, exports)
            exports["run"](store, repeats)
        after = counting.read(store, exports)
        memories = [exports[name] for name in exports if isinstance(exports[name], wasmtime.Memory)]
    except (wasmtime.WasmtimeError, wasmtime.Trap, KeyError, TypeError, ValueError) as error:
        raise BadData(f"its instructions cannot be counted: {reason_of(error)}") from error
    executions, bulk_bytes, bulk_other = (
        [repetitions * (b - a) for a, b in zip(start, end, strict=True)]
        for start, end in zip(before, after, strict=True)
    )
    memory_bytes = sum(memory.data_len(store) for memory in memories)
    return {
        "opcodes": counting.histogram(executions),
        "bulk_bytes": bulk_bytes[0],
        "bulk_other": bulk_other[0],
        "memory_bytes": memory_bytes,
    }


DEFAULT_TIMEOUT_SECONDS = 120.0
# Of data: a compiler of a large module needs some hundred megabytes, a module's memory has its own limit.
_MOST_BYTES = 6 << 30
_BETWEEN_LOOKS_SECONDS = 0.1


@dataclass(frozen=True)
class CountedModule:
    """A module's file, its digest, and what is done with it: kind (kernel or wasi), words (of a program),
    argument and repeats (of a kernel)."""

    module: str
    digest: str
    kind: str
    words: tuple[str, ...]
    argument: int
    repeats: int


_apart: dict[CountedModule, OpcodeCounts] = {}


def module_counts(
    question: CountedModule,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    stopped: Callable[[], bool] = lambda: False,
) -> OpcodeCounts:
    """Return counts of one repetition, after set-up, computed once. A module that does not come with Jostle
    is validated and run in a process of its own, for so long and with so much memory at most. stopped: asked
    ten times a second whether to give up. Raises BadData where it cannot be counted, fails or takes too long.
    """
    if Path(question.module).parent == KERNEL_FOLDER:
        return _here(question)
    if question not in _apart:
        _apart[question] = OpcodeCounts(**_counted_apart(question, timeout_seconds, stopped))
    return _apart[question]


@lru_cache(maxsize=1024)
def _here(question: CountedModule) -> OpcodeCounts:
    return OpcodeCounts(**_answer(question))


def _answer(asked: CountedModule) -> dict[str, Any]:
    content = Path(asked.module).read_bytes()
    return counted(content, asked.kind, asked.words, asked.argument, asked.repeats)


def _counted_apart(
    question: CountedModule, timeout_seconds: float, stopped: Callable[[], bool]
) -> dict[str, Any]:
    """Return the fields of OpcodeCounts."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jostle.collect.kernels.opcodes._opcode_counting", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=child_environment(),
        start_new_session=True,  # an interrupt typed at the terminal is this process's to handle
    )
    until = time.monotonic() + timeout_seconds
    asked: bytes | None = json.dumps(asdict(question)).encode()
    try:
        while True:
            try:
                told, errors = process.communicate(asked, timeout=_BETWEEN_LOOKS_SECONDS)
                break
            except subprocess.TimeoutExpired:
                asked = None  # it has been sent
                if stopped():
                    raise BadData("its instructions were not counted: interrupted") from None
                if time.monotonic() >= until:
                    raise BadData(
                        f"its instructions could not be counted in {timeout_seconds:g} s",
                        fix="Does it end at all? Allow it more time, or measure it without counts.",
                    ) from None
    finally:
        process.kill()
        process.wait()
    if not told:
        last = " ".join(errors.decode("utf-8", "replace").split())[-300:]
        text = f"what counts its instructions ended with exit code {process.returncode}: {last}"
        raise BadData(text.rstrip(": "))
    answer: dict[str, Any] = json.loads(told)
    if "failed" in answer:
        raise BadData(answer["failed"])
    return answer


def main() -> None:
    """Answer one question."""
    die_with(int(sys.argv[1]))
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _MOST_BYTES if hard == resource.RLIM_INFINITY else min(hard, _MOST_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        answer = _answer(CountedModule(**json.loads(sys.stdin.readline())))
    except BadData as error:
        answer = {"failed": error.what}
    except Exception as error:
        text = f"its instructions cannot be counted: {type(error).__name__}: {error}"
        answer = {"failed": text[:300]}
    json.dump(answer, answers)
    answers.flush()


if __name__ == "__main__":
    main()
