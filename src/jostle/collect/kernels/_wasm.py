"""Workloads on WebAssembly engines: kernels and WASI programs on wasmtime, kernels on wasm3.

Around a kernel on wasmtime there is WebAssembly that stores WASI's monotonic clock in its own memory after
every repetition, which costs about 0.1 microseconds a beat. The others are called from Python, some tens of
microseconds a call: little beside a program's start or an interpreted kernel. Beat times are nanoseconds,
in the clock of `time.monotonic_ns`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jostle.collect.kernels._beats import MEMORY_PAGES, Beats, Part, repeated, sleep_until
from jostle.collect.kernels._engines import limited_store, make_engine, silent_wasi

_TEXT = f"""
(module
  (import "wasi_snapshot_preview1" "clock_time_get"
    (func $clock (param i32 i64 i32) (result i32)))
  (import "kernel" "run" (func $run (param i32)))
  (memory (export "memory") {MEMORY_PAGES})
  (func $stamp (param $at i32) (result i64)
    (drop (call $clock (i32.const 1) (i64.const 0) (local.get $at)))
    (i64.load (local.get $at)))
  (func (export "now") (result i64) (call $stamp (i32.const 0)))
  (func (export "beats") (param $repeats i32) (param $until i64) (param $most i32) (result i32)
    (local $at i32)
    (drop (call $stamp (i32.const 0)))
    (loop $next
      (call $run (local.get $repeats))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $next (i32.and
        (i64.lt_s (call $stamp (local.get $at)) (local.get $until))
        (i32.lt_u (local.get $at) (i32.shl (local.get $most) (i32.const 3))))))
    (i32.shr_u (local.get $at) (i32.const 3))))
"""


def kernels_on(engine: str) -> Callable[[dict[str, Any]], KernelInstance]:
    """Set up kernels under one of wasmtime's engines; compiled modules are kept."""
    import wasmtime

    compiler = make_engine(engine)
    linker = wasmtime.Linker(compiler)
    linker.define_wasi()
    linker.allow_shadowing = True
    harness = wasmtime.Module(compiler, _TEXT)
    modules: dict[str, Any] = {}

    def make(part: dict[str, Any]) -> KernelInstance:
        if part["digest"] not in modules:
            modules[part["digest"]] = wasmtime.Module.from_file(compiler, part["module"])
        store = limited_store(compiler)
        store.set_wasi(wasmtime.WasiConfig())
        kernel = linker.instantiate(store, modules[part["digest"]])
        linker.define_instance(store, "kernel", kernel)
        instance = KernelInstance(
            store, kernel.exports(store), linker.instantiate(store, harness).exports(store)
        )
        instance.kernel["setup"](store, part["argument"])
        return instance

    return make


class KernelInstance(Part):
    """An instance of a kernel, and of the harness around it."""

    def __init__(self, store: Any, kernel: Any, harness: Any) -> None:
        self.store, self.kernel, self._harness = store, kernel, harness

    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Beats:
        offset_ns = self._clock_offset_ns()
        sleep_until(start_ns)
        count = self._harness["beats"](self.store, repeats, until_ns - offset_ns, most)
        times = self._harness["memory"].read(self.store, 0, 8 * (count + 1))
        return Beats(bytes(times), count, offset_ns)

    def checksum(self) -> int:
        self.kernel["run"](self.store, 1)
        return self.kernel["checksum"](self.store)

    def close(self) -> None:
        self.store.close()

    def _clock_offset_ns(self) -> int:
        """`time.monotonic_ns` less the harness's clock, from the tightest of five brackets."""
        brackets = []
        for _ in range(5):
            before = time.monotonic_ns()
            now = self._harness["now"](self.store)
            after = time.monotonic_ns()
            brackets.append((after - before, (before + after) // 2 - now))
        return min(brackets)[1]


_STACK_BYTES = 1 << 20


@dataclass(frozen=True)
class Called(Part):
    """A WebAssembly function that repeats a workload. call: repeats so many times. result: the checksum's
    function, where there is one."""

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
    """Set up WASI commands: every repetition is a fresh instance that runs `_start` to its end.

    Its arguments are the workload's; it sees no files and no environment, and what it prints is
    thrown away. A module that ends with another exit code than 0 fails.
    """
    import wasmtime

    compiler = make_engine(engine)
    linker = wasmtime.Linker(compiler)
    linker.define_wasi()
    modules: dict[str, Any] = {}

    def make(part: dict[str, Any]) -> Called:
        if part["digest"] not in modules:
            modules[part["digest"]] = wasmtime.Module.from_file(compiler, part["module"])
        module, words = modules[part["digest"]], [Path(part["module"]).name, *part["arguments"]]

        def call(repeats: int) -> None:
            for _ in range(repeats):
                store = limited_store(compiler)
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
    """Return kernels in the wasm3 interpreter, through the Python package pywasm3."""
    import wasm3  # pyright: ignore[reportMissingImports]

    environment = wasm3.Environment()

    def make(part: dict[str, Any]) -> Called:
        runtime = environment.new_runtime(_STACK_BYTES)
        runtime.load(environment.parse_module(Path(part["module"]).read_bytes()))
        runtime.find_function("setup")(part["argument"])
        return Called(runtime.find_function("run"), runtime.find_function("checksum"))

    return make
