"""Counting what a module executes, in this process: see `_counter_process` for modules from elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jostle.errors import BadData
from jostle.measure.host._engines import make_engine, reason_of, silent_wasi
from jostle.measure.wasm._limits import limited_store
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
