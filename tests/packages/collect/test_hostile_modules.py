"""Modules from elsewhere that want all time or memory: refused or ended within their limit."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import wasmtime

from jostle.collect import (
    Campaign,
    MeasureOptions,
    Workload,
    child_environment,
    count_opcodes,
    find_workloads,
    measure,
)
from jostle.data import Dataset
from jostle.errors import BadData, JostleError
from tests.waiting import HANGS_SECONDS, wait_for

SLEEP = """(module
  (import "wasi_snapshot_preview1" "poll_oneoff"
    (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (func (export "_start")
    (i32.store8 (i32.const 8) (i32.const 0))
    (i32.store (i32.const 16) (i32.const 1))
    (i64.store (i32.const 24) (i64.const 1000000000000))
    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))"""
FOREVER = "(loop $l (br $l))"
START = f'(module (func $s {FOREVER}) (start $s) (func (export "_start")))'
HOSTILE = {
    "sleep": SLEEP,
    "start": START,
    "recursion": """(module (func $f (export "_start") (call $f)))""",
    "memory": """(module (memory (export "memory") 65536) (func (export "_start")
        (memory.fill (i32.const 0) (i32.const 1) (i32.const -1))))""",
    "growth": """(module (memory (export "memory") 1) (func (export "_start")
        (loop $l (br_if $l (i32.ne (memory.grow (i32.const 1024)) (i32.const -1))))
        (unreachable)))""",
    "types": """(module (func (export "setup") (result i64) (i64.const 0))
        (func (export "run") (param f64)))""",
    "no_function": """(module (global (export "_start") i32 (i32.const 1))
        (func (export "setup") (param i32)))""",
}


def module(folder: Path, name: str) -> str:
    path = folder / f"{name}.wasm"
    path.write_bytes(wasmtime.wat2wasm(HOSTILE[name]))
    return str(path)


def unsigned(value: int) -> bytes:
    """In LEB128: seven bits a byte, the last without the eighth."""
    low, rest = value & 0x7F, value >> 7
    return bytes([low | 0x80]) + unsigned(rest) if rest else bytes([low])


def section(number: int, content: bytes) -> bytes:
    return bytes([number]) + unsigned(len(content)) + content


def large(functions: int, body: bytes) -> bytes:
    """A module of so many functions with this body; the first is _start."""
    types = section(1, b"\x01\x60\0\0")
    declared = section(3, unsigned(functions) + b"\0" * functions)
    exports = section(7, b"\x01\x06_start\0\0")
    one = unsigned(len(body) + 2) + b"\0" + body + b"\x0b"
    code = section(10, unsigned(functions) + one * functions)
    return b"\0asm\1\0\0\0" + types + declared + exports + code


@pytest.mark.parametrize("name", HOSTILE)
def test_counting_ends(tmp_path: Path, name: str) -> None:
    with pytest.raises(JostleError) as caught:
        count_opcodes(find_workloads([module(tmp_path, name)])[0], timeout_seconds=2.0)
    assert isinstance(caught.value, BadData)
    # Whatever became of the process, the next module is counted.
    fine = tmp_path / "fine.wasm"
    fine.write_bytes(wasmtime.wat2wasm('(module (func (export "_start") (nop)))'))
    assert count_opcodes(find_workloads([str(fine)])[0], timeout_seconds=60.0).instructions == 1


@pytest.mark.parametrize(
    ("functions", "body"), [(150_000, b"\x01"), (1, b"\x41\x01\x1a" * 3_000_000)]
)
def test_counting_large_code_ends(tmp_path: Path, functions: int, body: bytes) -> None:
    path = tmp_path / "large.wasm"
    path.write_bytes(large(functions, body))
    with pytest.raises(BadData, match="could not be counted in 1 s"):
        count_opcodes(find_workloads([str(path)])[0], timeout_seconds=1.0)


@pytest.mark.parametrize(
    ("names", "seconds", "status"),
    [(["sleep", "start"], 1.0, "timeout"), (["recursion", "memory", "growth"], 120.0, "failed")],
)
def test_measuring_ends(tmp_path: Path, names: list[str], seconds: float, status: str) -> None:
    campaign = Campaign(
        workloads=[module(tmp_path, name) for name in names],
        engines=["speed"],
        solo_repeats=1,
        sets=0,
        window_seconds=0.05,
        device="here",
    )
    options = MeasureOptions(timeout_seconds=seconds)
    summary = measure(campaign, tmp_path / "d", options)
    assert summary.finished
    assert summary.ok == 0
    statuses = {
        row["workload"]: row["status"] for row in Dataset(tmp_path / "d").read().table.to_pylist()
    }
    assert len(statuses) == len(names)
    assert set(statuses.values()) == {status}


def test_interrupting_works_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jostle", "measure", "-o", str(tmp_path / "d"), "-e", "speed"]
    command += ["-w", module(tmp_path, "sleep"), "--solo", "1", "--sets", "0", "--timeout", "86400"]
    process = subprocess.Popen(
        command, env=child_environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_for(lambda: _children(process.pid, "_opcode_counting"))
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=HANGS_SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130


def _children(pid: int, program: str) -> bool:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(program in Path(f"/proc/{c}/cmdline").read_text() for c in children)
    except OSError:
        return False


def test_counting_can_be_given_up(tmp_path: Path) -> None:
    workload = find_workloads([module(tmp_path, "sleep")])[0]
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    with pytest.raises(BadData, match="interrupted"):
        count_opcodes(workload, timeout_seconds=100.0, stopped=stop.is_set)


def test_a_shipped_name_elsewhere_is_not_trusted(tmp_path: Path) -> None:
    path = tmp_path / "sleep.wasm"
    path.write_bytes(wasmtime.wat2wasm(SLEEP))
    with pytest.raises(BadData, match="could not be counted"):
        count_opcodes(Workload("sort-s", path, kind="wasi"), timeout_seconds=0.5)
