"""Kernels on wasmtime: WebAssembly that repeats a workload and notes when each repetition ended.

It stores WASI's monotonic clock in its own memory after every repetition, which costs about 0.1
microseconds a beat, where a call from Python would cost 20. Beat times in nanoseconds, in the clock
of `time.monotonic_ns`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from jostle.measure.host._engines import make_engine
from jostle.measure.slots._beats import MEMORY_PAGES, Beats, sleep_until
from jostle.measure.slots._harness import Part
from jostle.measure.wasm._limits import limited_store
from jostle.measure.workloads.kernels import KERNEL_FOLDER

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
    """Sets up kernels under one of wasmtime's engines; compiled modules are kept."""
    import wasmtime

    made = make_engine(engine)
    linker = wasmtime.Linker(made)
    linker.define_wasi()
    linker.allow_shadowing = True
    harness = wasmtime.Module(made, _TEXT)
    modules: dict[str, Any] = {}

    def make(part: dict[str, Any]) -> KernelInstance:
        if part["digest"] not in modules:
            modules[part["digest"]] = wasmtime.Module.from_file(made, part["module"])
        store = limited_store(made)
        store.set_wasi(wasmtime.WasiConfig())
        kernel = linker.instantiate(store, modules[part["digest"]])
        linker.define_instance(store, "kernel", kernel)
        found = KernelInstance(
            store, kernel.exports(store), linker.instantiate(store, harness).exports(store)
        )
        found.kernel["setup"](store, part["argument"])
        return found

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


class Probe:
    """Half a millisecond of hashing, always the same: how fast is this core at the moment?

    Neighbours that a guest cannot see (another guest on the core's other hardware thread) halve a
    core's speed for a tenth of a second at a time and leave no mark in any load figure; in this
    they show.
    """

    _ARGUMENT, _REPEATS = 16384, 4

    def __init__(self) -> None:
        import wasmtime

        engine = make_engine("speed")
        self._store = wasmtime.Store(engine)
        module = wasmtime.Module.from_file(engine, str(KERNEL_FOLDER / "sha256.wasm"))
        exports: Any = wasmtime.Instance(self._store, module, []).exports(self._store)
        exports["setup"](self._store, self._ARGUMENT)
        self._run = exports["run"]
        self._run(self._store, self._REPEATS)

    def run(self) -> int:
        """Nanoseconds for the probe's work, after a short warm-up."""
        self._run(self._store, 1)
        before = time.monotonic_ns()
        self._run(self._store, self._REPEATS)
        return time.monotonic_ns() - before
