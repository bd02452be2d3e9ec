"""The beat harness: WebAssembly that repeats a workload and notes when each repetition ended.

It stores WASI's monotonic clock in its own memory after every repetition, which costs about 0.1
microseconds a beat, where a call from Python would cost 20. Beat times in nanoseconds, in the clock
of `time.monotonic_ns`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from jostle.measure.host._engines import make_engine
from jostle.measure.workloads.kernels import KERNEL_FOLDER

# One beat is eight bytes; the harness stops when its memory is full.
MEMORY_PAGES = 32
CAPACITY = MEMORY_PAGES * 65536 // 8 - 1

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


@dataclass(frozen=True)
class Beats:
    """times: (count + 1,) int64 little-endian bytes: the start, then the end of each repetition.

    Add clock_offset_ns to get `time.monotonic_ns`. count: repetitions.
    """

    times: bytes
    count: int
    clock_offset_ns: int
    # (count + 1,) int64: CPU time used by then, where others than this process used it.
    cpu_ns: bytes | None = None


class Harness:
    """Fresh instances of a workload under one engine; compiled modules are kept.

    prepare() makes and sets up an instance, beats() runs it; the next prepare() lets it go.
    """

    def __init__(self, engine: str) -> None:
        import wasmtime

        self._engine = make_engine(engine)
        self._linker = wasmtime.Linker(self._engine)
        self._linker.define_wasi()
        self._linker.allow_shadowing = True
        self._harness = wasmtime.Module(self._engine, _TEXT)
        self._modules: dict[str, Any] = {}
        self._store: Any = None
        self._parts: list[Any] = []
        self._kernels: list[Any] = []

    def prepare(self, module: str, digest: str, argument: int) -> None:
        """A fresh instance of the module at this path, its `setup(argument)` done.

        digest: identifies the module's bytes. Raises wasmtime's errors and traps.
        """
        self.close()
        self.add({"module": module, "digest": digest, "argument": argument})

    def add(self, part: dict[str, Any]) -> None:
        """One more instance beside those prepared before: the next phase of a program."""
        import wasmtime

        digest = part["digest"]
        if digest not in self._modules:
            self._modules[digest] = wasmtime.Module.from_file(self._engine, part["module"])
        if self._store is None:
            self._store = wasmtime.Store(self._engine)
            self._store.set_wasi(wasmtime.WasiConfig())
        store = self._store
        workload = self._linker.instantiate(store, self._modules[digest])
        self._linker.define_instance(store, "kernel", workload)
        self._parts.append(self._linker.instantiate(store, self._harness).exports(store))
        exports: Any = workload.exports(store)
        self._kernels.append(exports)
        exports["setup"](store, part["argument"])

    def beats(
        self, repeats: int, start_ns: int, until_ns: int, *, most: int = CAPACITY, part: int = 0
    ) -> Beats:
        """Sleep until start, then repeat `run(repeats)` until a repetition ends past until.

        Times in `time.monotonic_ns`. most: repetitions, at most CAPACITY. part: of the instances
        prepared. Raises traps.
        """
        exports = self._parts[part]
        offset_ns = self._clock_offset_ns(exports)
        while (early_ns := start_ns - time.monotonic_ns()) > 0:
            time.sleep(early_ns * 1e-9)
        until_ns -= offset_ns
        count = exports["beats"](self._store, repeats, until_ns, min(most, CAPACITY))
        times = exports["memory"].read(self._store, 0, 8 * (count + 1))
        return Beats(bytes(times), count, offset_ns)

    def close(self) -> None:
        """Let the instance and its memory go."""
        if self._store is not None:
            self._store.close()
        self._store, self._parts, self._kernels = None, [], []

    def checksum(self) -> int:
        """Of the first instance's result after one repetition; only shipped kernels have one."""
        self._kernels[0]["run"](self._store, 1)
        return self._kernels[0]["checksum"](self._store) % 2**64

    def _clock_offset_ns(self, exports: Any) -> int:
        """`time.monotonic_ns` less the harness's clock, from the tightest of five brackets."""
        brackets = []
        for _ in range(5):
            before = time.monotonic_ns()
            now = exports["now"](self._store)
            after = time.monotonic_ns()
            brackets.append((after - before, (before + after) // 2 - now))
        return min(brackets)[1]


class Probe:
    """Half a millisecond of hashing, always the same: how fast is this core at the moment?

    Neighbours that a guest cannot see (another guest on the core's other hardware thread) halve a
    core's speed for a tenth of a second at a time and leave no mark in any load figure; in this
    they show.
    """

    _MODULE = KERNEL_FOLDER / "sha256.wasm"
    _ARGUMENT, _REPEATS = 16384, 4

    def __init__(self) -> None:
        import wasmtime

        engine = make_engine("speed")
        self._store = wasmtime.Store(engine)
        module = wasmtime.Module.from_file(engine, str(self._MODULE))
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
