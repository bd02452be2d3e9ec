"""What one repetition of a workload executes, on whatever machine: exact instruction counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from jostle.errors import BadData, JostleError
from jostle.measure.counting._counter_process import DEFAULT_TIMEOUT_SECONDS, counted, counts_apart
from jostle.measure.wasm._opcodes import COUNTED
from jostle.measure.workloads._workloads import Workload
from jostle.measure.workloads.kernels import KERNEL_FOLDER


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


def count_opcodes(
    workload: Workload,
    *,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    stopped: Callable[[], bool] = lambda: False,
) -> OpcodeCounts:
    """Counts of one repetition, after set-up. Computed once per module and arguments.

    A module that does not come with Jostle is validated and run in a process of its own, for so long and with
    so much memory at most (`_counter`). stopped: asked ten times a second whether to give up.
    Raises BadData where the module cannot be counted, fails or takes too long, and for a command line.
    """
    if workload.kind in ("command", "service"):
        raise BadData(
            "a command line has no WebAssembly instructions",
            where=f"workload {workload.name!r}",
            fix="Its native instructions: jostle.measure.native_mix.",
        )
    words = (workload.module.name, *workload.arguments)
    query = (workload.kind, words, workload.argument, workload.repeats)
    try:
        if workload.module.parent == KERNEL_FOLDER:
            return _own(workload.module_bytes, *query)
        key = (workload.digest, *query)
        if key not in _foreign:
            answer = counts_apart(workload.module, query, timeout_seconds, stopped)
            _foreign[key] = OpcodeCounts(**answer)
        return _foreign[key]
    except JostleError as error:
        raise BadData(error.what, where=f"workload {workload.name!r}", fix=error.fix) from error


_foreign: dict[tuple[object, ...], OpcodeCounts] = {}


@lru_cache(maxsize=1024)
def _own(
    module: bytes, kind: str, words: tuple[str, ...], argument: int, repeats: int
) -> OpcodeCounts:
    return OpcodeCounts(**counted(module, kind, words, argument, repeats))
