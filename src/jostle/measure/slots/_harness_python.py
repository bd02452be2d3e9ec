"""Workloads whose repetitions are called from Python: WASI programs on wasmtime, kernels on wasm3.

A call costs some tens of microseconds, little beside a program's start or an interpreted kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.measure.host._engines import make_engine, silent_wasi
from jostle.measure.slots._beats import Beats, repeated, sleep_until
from jostle.measure.slots._harness import Part
from jostle.measure.wasm._limits import limited_store

_STACK_BYTES = 1 << 20


@dataclass(frozen=True)
class Called(Part):
    """call: repeats so many times. result: the checksum's function, where there is one."""

    call: Callable[[int], object]
    result: Callable[[], int] | None = None

    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Beats:
        sleep_until(start_ns)
        return repeated(self.call, repeats, until_ns, most)

    def checksum(self) -> int:
        if self.result is None:
            return super().checksum()
        self.call(1)
        return self.result()


def wasi_programs_on(engine: str) -> Callable[[dict[str, Any]], Called]:
    """WASI commands: every repetition is a fresh instance that runs `_start` to its end.

    Its arguments are the workload's; it sees no files and no environment, and what it prints is
    thrown away. A module that ends with another exit code than 0 fails.
    """
    import wasmtime

    made = make_engine(engine)
    linker = wasmtime.Linker(made)
    linker.define_wasi()
    modules: dict[str, Any] = {}

    def make(part: dict[str, Any]) -> Called:
        if part["digest"] not in modules:
            modules[part["digest"]] = wasmtime.Module.from_file(made, part["module"])
        module, words = modules[part["digest"]], [Path(part["module"]).name, *part["arguments"]]

        def call(repeats: int) -> None:
            for _ in range(repeats):
                store = limited_store(made)
                store.set_wasi(silent_wasi(words))
                try:
                    start: Any = linker.instantiate(store, module).exports(store)["_start"]
                    start(store)
                except wasmtime.ExitTrap as ended:
                    if ended.code:
                        raise RuntimeError(f"it ended with exit code {ended.code}") from None
                finally:
                    store.close()

        return Called(call)

    return make


def kernels_on_wasm3() -> Callable[[dict[str, Any]], Called]:
    """Kernels in the wasm3 interpreter, through the Python package pywasm3."""
    import wasm3  # pyright: ignore[reportMissingImports]

    environment = wasm3.Environment()

    def make(part: dict[str, Any]) -> Called:
        runtime = environment.new_runtime(_STACK_BYTES)
        runtime.load(environment.parse_module(Path(part["module"]).read_bytes()))
        runtime.find_function("setup")(part["argument"])
        return Called(runtime.find_function("run"), runtime.find_function("checksum"))

    return make
