"""What one repetition of a workload executes, on whatever machine: exact instruction counts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jostle.errors import BadData, JostleError
from jostle.measure.host._engines import make_engine, reason_of, silent_wasi
from jostle.measure.wasm._opcodes import COUNTED
from jostle.measure.wasm._rewrite import rewrite
from jostle.measure.workloads._workloads import Workload

# Of set-up and one repetition: a few seconds' worth.
_MOST_INSTRUCTIONS = 5_000_000_000


@dataclass(frozen=True)
class OpcodeCounts:
    """opcodes: executions by instruction name, and `function_entry`; a missing name counts 0.

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
        """What wasmtime's own counter would say."""
        return self.instructions + self.bulk_bytes + self.bulk_other

    def columns(self) -> dict[str, int]:
        """int64 features; of each instruction `opcode_i32_add`-like, 0 where not executed."""
        values = [self.instructions, self.bulk_bytes, self.memory_bytes]
        values += [self.opcodes.get(name, 0) for name in COUNTED]
        return dict(zip(self.column_names(), values, strict=True))

    @staticmethod
    def column_names() -> list[str]:
        """The names in columns(), always the same."""
        opcodes = [f"opcode_{name.replace('.', '_')}" for name in COUNTED]
        return ["instructions", "bulk_bytes", "memory_bytes", *opcodes]


def count_opcodes(workload: Workload) -> OpcodeCounts:
    """Counts of one repetition, after set-up. Computed once per module and arguments.

    Raises BadData where the module cannot be counted or fails, and for a command line.
    """
    if workload.kind == "command":
        raise BadData(
            "a command line has no WebAssembly instructions",
            where=f"workload {workload.name!r}",
            fix="Its native instructions: jostle.measure.native_mix.",
        )
    try:
        return _counted(
            workload.module_bytes,
            workload.kind,
            (workload.module.name, *workload.arguments),
            workload.argument,
            workload.repeats,
        )
    except JostleError as error:
        raise BadData(error.what, where=f"workload {workload.name!r}", fix=error.fix) from error


@lru_cache(maxsize=1024)
def _counted(
    module: bytes, kind: str, words: tuple[str, ...], argument: int, repeats: int
) -> OpcodeCounts:
    import wasmtime

    counting = rewrite(module)
    engine = make_engine("speed", fuel=True)
    try:
        compiled = wasmtime.Module(engine, counting.module)
        store = wasmtime.Store(engine)
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
    except (wasmtime.WasmtimeError, wasmtime.Trap, KeyError) as error:
        raise BadData(f"its instructions cannot be counted: {reason_of(error)}") from error
    executions, bulk_bytes, bulk_other = (
        [repetitions * (b - a) for a, b in zip(start, end, strict=True)]
        for start, end in zip(before, after, strict=True)
    )
    memory_bytes = sum(memory.data_len(store) for memory in memories)
    return OpcodeCounts(counting.histogram(executions), bulk_bytes[0], bulk_other[0], memory_bytes)
