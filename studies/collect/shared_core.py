"""Programs that take turns on one core: some compute all the time, others wait for a part of it.

A program is text such as `lu-m*40+6(sort-m*8+wait-12)`: 40 repetitions of one kernel, then six times eight of
another and 12 ms (and what waking takes) of waiting, as for a disk or a peer. `wait-…` is a module of its own
that sleeps; what it executes is next to nothing.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.measure.workloads._program import TracedProgram

# Some 0.2 seconds alone each, of which between a tenth and all on the core; half of them with data past the
# private caches.
PROGRAMS = {
    "hash": "sha256-m*170+crc32-m*100",
    "requests": "16(aes-m*3+wait-11)",
    "triad": "stream-l*200+copy-l*170",
    "picture": "8(mandelbrot-m*24+wait-11)",
    "graph": "bfs-l*85+chase-l*130",
    "columns": "4(stream-l*75+wait-14)",
    "query": "12(bfs-l*4+wait-12)",
    "matrix": "6(matmul-m*55+wait-6)",
    "sort": "sort-l*60+radix-l*28",
    "journal": "14(lz-m*3+wait-12)",
    "copies": "4(copy-l*42+wait-23)",
    "pages": "pagerank-l*22+gemv-l*35",
    "feed": "7(sha256-m*18+wait-14)",
    "video": "8(disparity-m*48+wait-9)",
    "solve": "lu-m*200+stencil-l*140",
    "pointers": "4(chase-l*24+wait-32)",
    "index": "9(sort-m*8+wait-12)",
    "heat": "5(heat-l*26+wait-3)",
    "words": "24(edit-m*9+wait-2)",
    "spectrum": "fft-l*100+6(fft-l*6+wait-14)",
}
_POLL = """
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (global $ns (mut i64) (i64.const 0))
  (func $wait
    (i32.store8 (i32.const 8) (i32.const 0))
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (global.get $ns))
    (i64.store (i32.const 32) (i64.const 0))
    (i32.store16 (i32.const 40) (i32.const 0))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128))))
  (func (export "setup") (param $us i32)
    (global.set $ns (i64.mul (i64.extend_i32_u (local.get $us)) (i64.const 1000))))
  (func (export "checksum") (result i64) (global.get $ns))
"""
_WAIT = f"""(module {_POLL}
  (func (export "run") (param $times i32)
    (loop $next
      (call $wait)
      (br_if $next (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))))
"""
# Computes for some three milliseconds, then waits.
_TURNS = f"""(module {_POLL}
  (func (export "run") (param $times i32)
    (local $left i32) (local $x i64)
    (loop $next
      (local.set $left (i32.const 2000000))
      (loop $step
        (local.set $x (i64.add (i64.mul (local.get $x) (i64.const 6364136223846793005)) (i64.const 1)))
        (br_if $step (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
      (i64.store (i32.const 64) (local.get $x))
      (call $wait)
      (br_if $next (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))))
"""
TURNS = "probe-turns"
TURNS_WAITS_US = 5_000


def shared_core_program(name: str, text: str, folder: Path) -> TracedProgram:
    """folder: where modules that wait are written."""
    from jostle.measure.workloads._program import TracedProgram
    from jostle.measure.workloads._workloads import Workload, find_workloads

    phases: list[tuple[Workload, int | None]] = []
    for times, group, plain in re.findall(r"([0-9]+)\(([^)]*)\)|([^+()]+)", text):
        for part in (group or plain).split("+") * int(times or 1):
            called, _, count = part.partition("*")
            if called.startswith("wait-"):
                module = _module("wait", _WAIT, folder)
                us = 1000 * int(called.removeprefix("wait-"))
                phases.append((Workload(called, module, us, 1, "waiting"), 1))
            else:
                (kernel,) = find_workloads([called])
                phases.append((kernel, int(count)))
    return TracedProgram(name, tuple(phases))


def turns(folder: Path) -> TracedProgram:
    """A stressor that has the core three eighths of the time, in turns."""
    from jostle.measure.workloads._program import TracedProgram
    from jostle.measure.workloads._workloads import Workload

    module = _module("turns", _TURNS, folder)
    return TracedProgram(TURNS, ((Workload(TURNS, module, TURNS_WAITS_US, 1, "stressors"), None),))


def _module(name: str, text: str, folder: Path) -> Path:
    import wasmtime

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.wasm"
    path.write_bytes(bytes(wasmtime.wat2wasm(text)))
    return path
