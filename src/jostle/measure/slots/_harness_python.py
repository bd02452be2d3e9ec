"""Workloads whose repetitions are called from Python: WASI programs on wasmtime, kernels on wasm3.

A call costs some tens of microseconds, little beside a program's start or an interpreted kernel.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.measure.host._engines import make_engine
from jostle.measure.slots._harness import CAPACITY, Beats

_PAGE = 65536
_STACK_BYTES = 1 << 20


class CalledHarness:
    """Phases that are called over and over; `make` sets one up: (part) -> (call, checksum)."""

    def __init__(self, make: Callable[[dict[str, Any]], tuple[Callable[[int], None], Any]]) -> None:
        self._make = make
        self._parts: list[tuple[Callable[[int], None], Any]] = []

    def add(self, part: dict[str, Any]) -> None:
        """A fresh one, set up."""
        self._parts.append(self._make(part))

    def beats(
        self, repeats: int, start_ns: int, until_ns: int, *, most: int = CAPACITY, part: int = 0
    ) -> Beats:
        """Sleep until start, then repeat until a repetition ends past until."""
        call, clock, most = self._parts[part][0], time.monotonic_ns, min(most, CAPACITY)
        while (early_ns := start_ns - clock()) > 0:
            time.sleep(early_ns * 1e-9)
        times = [clock()]
        while True:
            call(repeats)
            times.append(clock())
            if times[-1] >= until_ns or len(times) > most:
                break
        return Beats(bytes((ctypes.c_int64 * len(times))(*times)), len(times) - 1, 0)

    def checksum(self) -> int:
        """Of the first part's result after one repetition."""
        call, checksum = self._parts[0]
        call(1)
        return checksum() % 2**64

    def close(self) -> None:
        """Let all instances go."""
        self._parts = []


def wasi_harness(engine: str) -> CalledHarness:
    """WASI commands: every repetition is a fresh instance that runs `_start` to its end.

    Its arguments are the workload's; it sees no files and no environment, and what it prints is
    thrown away. A module that ends with another exit code than 0 fails.
    """
    import wasmtime

    built = make_engine(engine)
    linker = wasmtime.Linker(built)
    linker.define_wasi()
    modules: dict[str, Any] = {}

    def make(part: dict[str, Any]) -> tuple[Callable[[int], None], Any]:
        if part["digest"] not in modules:
            modules[part["digest"]] = wasmtime.Module.from_file(built, part["module"])
        module, words = modules[part["digest"]], [Path(part["module"]).name, *part["arguments"]]

        def call(repeats: int) -> None:
            for _ in range(repeats):
                store = wasmtime.Store(built)
                wasi = wasmtime.WasiConfig()
                wasi.argv = words
                wasi.stdout_file = os.devnull
                wasi.stderr_file = os.devnull
                store.set_wasi(wasi)
                try:
                    start: Any = linker.instantiate(store, module).exports(store)["_start"]
                    start(store)
                except wasmtime.ExitTrap as ended:
                    if ended.code:
                        raise RuntimeError(f"it ended with exit code {ended.code}") from None
                finally:
                    store.close()

        return call, None

    return CalledHarness(make)


def wasm3_harness() -> CalledHarness:
    """Kernels in the wasm3 interpreter, through the Python package pywasm3."""
    import wasm3  # pyright: ignore[reportMissingImports]

    environment = wasm3.Environment()

    def make(part: dict[str, Any]) -> tuple[Callable[[int], None], Any]:
        runtime = environment.new_runtime(_STACK_BYTES)
        runtime.load(environment.parse_module(Path(part["module"]).read_bytes()))
        runtime.find_function("setup")(part["argument"])
        return runtime.find_function("run"), runtime.find_function("checksum")

    return CalledHarness(make)
