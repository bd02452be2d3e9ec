"""Counting what a module executes, and a process of its own for modules from elsewhere.

A module may sleep for ever, need all memory, or keep a compiler busy: whoever asks waits for a limited time,
and can give up. Run with the number of its parent, it reads lines of JSON and answers each with one.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jostle.errors import BadData
from jostle.measure.host._engines import limited_store, make_engine, reason_of, silent_wasi
from jostle.measure.slots._slots import Slot, die_with, gather
from jostle.measure.wasm._rewrite import rewrite

# Of set-up and one repetition: a few seconds' worth.
_MOST_INSTRUCTIONS = 5_000_000_000


def counted(
    module: bytes, kind: str, words: Sequence[str], argument: int, repeats: int
) -> dict[str, Any]:
    """The fields of OpcodeCounts. Raises BadData."""
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

_lock = threading.Lock()
_process: Slot | None = None


def counts_apart(
    module: Path,
    asked: tuple[str, tuple[str, ...], int, int],
    timeout_seconds: float,
    stopped: Callable[[], bool],
) -> dict[str, Any]:
    """The fields of OpcodeCounts of a module's file. asked: kind, words, argument, repeats.

    Raises BadData, also where it took too long or its process died.
    """
    kind, words, argument, repeats = asked
    message = {
        "module": str(module),
        "kind": kind,
        "words": list(words),
        "argument": argument,
        "repeats": repeats,
    }
    with _lock:
        slot = _slot()
        slot.send(message)
        try:
            answers = gather([slot], time.monotonic() + timeout_seconds, stopped)
        except BaseException:
            slot.kill()
            raise
    if answers is None:
        raise BadData("its instructions were not counted: interrupted")
    (answer,) = answers
    if answer.get("timeout"):
        text = f"its instructions could not be counted in {timeout_seconds:g} s"
        raise BadData(
            text, fix="Does it end at all? Allow it more time, or measure it without counts."
        )
    if "failed" in answer:
        raise BadData(str(answer["failed"]))
    return answer


def _slot() -> Slot:
    """The process, fresh where there is none; one that its starting thread took with it is replaced."""
    global _process
    if _process is None:
        _process = Slot(program="jostle.measure.counting._counter_process")
        atexit.register(_process.kill)
    if not _process.is_alive():
        _process.kill()
        _ = _process.pid
    return _process


def main() -> None:
    """Serve until the input ends."""
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _MOST_BYTES if hard == resource.RLIM_INFINITY else min(hard, _MOST_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        message = json.loads(line)
        try:
            content = Path(message.pop("module")).read_bytes()
            answer = counted(content, **message)
        except BadData as error:
            answer = {"failed": error.what}
        except Exception as error:
            text = f"its instructions cannot be counted: {type(error).__name__}: {error}"
            answer = {"failed": text[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
