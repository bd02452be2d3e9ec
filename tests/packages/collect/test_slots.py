"""The harness counts what it runs, and slots say how they ended and never outlive their parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import wasmtime

from jostle.collect import CAPACITY, KernelInstance, child_environment, find_workloads, kernels_on
from jostle.collect.slots._harness import Harness
from jostle.collect.slots._slots import Slot, gather
from tests.waiting import HANGS_SECONDS, wait_for

COUNTING = """
  (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (local.get 0)))"""


@pytest.mark.parametrize("engine", ["speed", "pulley"])
def test_beats_rise_and_are_as_many_as_repetitions(engine: str, make_workload) -> None:
    workload = make_workload("counting", COUNTING)
    harness = Harness(kernels_on(engine))
    harness.prepare([workload.part()])
    start_ns = time.monotonic_ns() + 2_000_000
    beats = harness.beats(3, start_ns, start_ns + 5_000_000)
    times = np.frombuffer(beats.times, "<i8") + beats.clock_offset_ns
    assert len(times) == beats.count + 1 <= CAPACITY + 1
    assert np.all(np.diff(times) >= 0)
    assert times[0] >= start_ns - 100_000
    full = beats.count == CAPACITY
    # On a busy machine the start itself may be that late.
    assert full or beats.count == 1 or times[-2] < start_ns + 5_000_000 <= times[-1] + 100_000
    assert times[-1] <= time.monotonic_ns() + 100_000


def test_every_repetition_is_run_with_its_argument() -> None:
    workload = find_workloads(["chase-s"])[0]
    harness = Harness(kernels_on("speed"))
    harness.prepare([replace(workload, argument=1 << 20).part()])
    now_ns = time.monotonic_ns()
    beats = harness.beats(2, now_ns, now_ns + 1_000_000)
    store = wasmtime.Store()
    exports = wasmtime.Instance(
        store, wasmtime.Module(store.engine, workload.module_bytes), []
    ).exports(store)
    exports["setup"](store, 1 << 20)  # pyright: ignore[reportCallIssue]
    exports["run"](store, 2 * beats.count)  # pyright: ignore[reportCallIssue]
    (instance,) = harness.parts
    assert isinstance(instance, KernelInstance)
    there = instance.kernel["checksum"](instance.store)  # where its chase has come to
    assert there == exports["checksum"](store)  # pyright: ignore[reportCallIssue]


def test_a_fresh_instance_forgets_the_last(make_workload) -> None:
    run = COUNTING + "(if (i32.gt_u (i32.load (i32.const 0)) (i32.const 5)) (then unreachable))"
    workload = make_workload("forgetful", run)
    harness = Harness(kernels_on("speed"))
    for _ in range(3):
        harness.prepare([workload.part()])
        assert harness.beats(5, 0, 0).count == 1
    with pytest.raises(wasmtime.Trap):
        harness.beats(5, 0, 0)


def alive(pid: int) -> bool:
    """Whether the process runs; one that is dead but not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_slot_that_dies_says_how_and_is_started_again() -> None:
    slot = Slot()
    first = slot.pid
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: not alive(first))
    slot.send({"do": "checksum"})
    answers = gather([slot], time.monotonic() + HANGS_SECONDS, lambda: False)
    assert answers is not None
    assert "signal SIGKILL" in answers[0]["failed"]
    slot.pin([min(os.sched_getaffinity(0))])
    assert slot.pid != first
    slot.kill()
    slot.kill()


def test_silence_ends_at_the_deadline_and_waiting_when_told_to_stop() -> None:
    slot = Slot()
    _ = slot.pid
    assert gather([slot], time.monotonic() + 0.2, lambda: False) == [{"timeout": True}]
    _ = slot.pid
    assert gather([slot], time.monotonic() + HANGS_SECONDS, lambda: True) is None
    slot.kill()


PARENT = """
import sys, time
from jostle.collect.slots._slots import Slot
slot = Slot()
print(slot.pid, flush=True)
if sys.argv[1] == "busy":
    loop = sys.argv[2]
    slot.send({"do": "prepare", "engine": "speed", "module": loop, "digest": "", "argument": 1})
    slot.send({"do": "go", "start_ns": 0, "until_ns": 2**62, "repeats": 1})
time.sleep(3600)
"""


@pytest.mark.parametrize("state", ["idle", "busy"])
def test_slots_die_with_a_parent_that_is_killed(state: str, make_workload) -> None:
    forever = make_workload("forever", "(loop $l (br $l))")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, state, str(forever.module)],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.5)
    assert alive(child)
    parent.kill()
    parent.wait()
    wait_for(lambda: not alive(child))
    parent.stdout.close()
