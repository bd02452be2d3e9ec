"""Commands and WASI programs are measured like kernels; failures say why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import wasmtime

from jostle.collect import (
    Campaign,
    MeasureOptions,
    TraceOptions,
    Workload,
    check_machine,
    command_workload,
    count_opcodes,
    find_workloads,
    measure,
    module_workload,
    trace,
)
from jostle.data import Dataset
from jostle.errors import BadData, NotPermitted, UnreadableFile, UsageError

PYTHON = sys.executable
BURN = "import time; u = time.process_time() + {}\nwhile time.process_time() < u: pass"


def rows(dataset: Path) -> list[dict[str, Any]]:
    return Dataset(dataset).read().table.to_pylist()


def wasi_module(folder: Path, name: str, body: str) -> Path:
    """A WASI command: what its `_start` does."""
    text = f"""(module
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start") {body}))"""
    path = folder / f"{name}.wasm"
    path.write_bytes(bytes(wasmtime.wat2wasm(text)))
    return path


LOOP = """(local $i i32) (loop $l (local.set $i (i32.add (local.get $i) (i32.const 1)))
  (br_if $l (i32.lt_u (local.get $i) (i32.const 20000))))"""


def test_a_command_is_measured_with_its_own_cpu_time(tmp_path: Path) -> None:
    burn = command_workload([PYTHON, "-S", "-c", BURN.format(0.03)], "burn")
    campaign = Campaign(
        workloads=[burn, "sort-s"],
        engines=["native"],
        solo_repeats=1,
        sets=2,
        window_seconds=0.3,
        device="here",
    )
    summary = measure(campaign, tmp_path, MeasureOptions())
    assert (summary.ok, summary.finished, summary.warnings) == (summary.planned, True, ())
    found = rows(tmp_path)
    assert {row["platform"] for row in found} == {"native:here"}
    (alone,) = [row for row in found if row["workload"] == "burn" and not row["corunners"]]
    assert alone["runtime_seconds"] > 0.03
    assert 0.03 * 0.5 < alone["cpu_seconds"] / alone["repetitions"] < 0.2
    features = Dataset(tmp_path).read().workload_features
    assert features is not None
    by_name = {row["workload"]: row for row in features.to_pylist()}
    assert by_name["burn"]["instructions"] is None
    assert by_name["burn"]["kind"] == "command"
    assert by_name["sort-s"]["instructions"] > 0


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import sys; sys.exit('no luck today')", "it ended with exit code 1: no luck today"),
        ("import os; os.kill(os.getpid(), 11)", "it ended with signal SIGSEGV"),
    ],
)
def test_a_command_that_fails_says_why(tmp_path: Path, code: str, message: str) -> None:
    bad = command_workload([PYTHON, "-S", "-c", code], "bad")
    campaign = Campaign(workloads=[bad], solo_repeats=1, sets=0, device="here")
    assert campaign.engine_names == ("native",)
    assert measure(campaign, tmp_path, MeasureOptions()).failed == 1
    assert rows(tmp_path)[0]["reason"] == message


def test_commands_are_found_or_refused(tmp_path: Path) -> None:
    assert command_workload(["sh", "-c", "exit 0"]).name == "sh-c-exit-0"
    with pytest.raises(UnreadableFile, match="no such program"):
        command_workload(["no-such-program-here"])
    with pytest.raises(UsageError):
        command_workload([])
    (tmp_path / "text").write_text("x")
    with pytest.raises(UnreadableFile):
        command_workload([str(tmp_path / "text")])


def test_a_wasi_program_is_run_to_its_end_over_and_over(tmp_path: Path) -> None:
    path = wasi_module(tmp_path, "loop", LOOP)
    campaign = Campaign(
        workloads=[f"{path} 3 more", "sort-s"],
        engines=["speed", "pulley"],
        solo_repeats=1,
        sets=2,
        window_seconds=0.05,
        device="here",
    )
    summary = measure(campaign, tmp_path / "data", MeasureOptions())
    assert (summary.ok, summary.warnings) == (6, ())
    features = Dataset(tmp_path / "data").read().workload_features
    assert features is not None
    (loop,) = [row for row in features.to_pylist() if row["kind"] == "wasi"]
    assert (loop["workload"], loop["arguments"]) == ("loop-3-more", "3 more")
    assert loop["instructions"] == 20000 * 8 + 1


def test_a_wasi_program_that_ends_badly_fails(tmp_path: Path) -> None:
    path = wasi_module(tmp_path, "three", "(call $exit (i32.const 3))")
    one = module_workload(path)
    with pytest.raises(BadData, match="exit code 3"):
        count_opcodes(one)
    fine = module_workload(wasi_module(tmp_path, "zero", f"{LOOP} (call $exit (i32.const 0))"))
    assert count_opcodes(fine).instructions > 20000
    campaign = Campaign(workloads=[one], engines=["speed"], solo_repeats=1, sets=0, device="here")
    assert measure(campaign, tmp_path / "data", MeasureOptions()).failed == 1
    assert rows(tmp_path / "data")[0]["reason"] == "it ended with exit code 3"


def test_modules_of_the_user_are_told_apart_by_their_exports(tmp_path: Path, make_workload) -> None:
    kernel = make_workload("mine", "")
    (found,) = find_workloads([f"{kernel.module} 7 3"])
    assert (found.kind, found.name, found.argument, found.repeats) == ("kernel", "mine-7-3", 7, 3)
    assert module_workload(kernel.module, ["7"]).repeats == 1
    with pytest.raises(UsageError, match="two whole numbers"):
        module_workload(kernel.module, ["x"])
    empty = tmp_path / "empty.wasm"
    empty.write_bytes(b"\0asm\1\0\0\0")
    with pytest.raises(BadData, match="neither setup and run nor _start"):
        module_workload(empty)
    empty.write_bytes(b"not a module")
    with pytest.raises(BadData, match=r"empty\.wasm"):
        module_workload(empty)
    with pytest.raises(UnreadableFile):
        module_workload(tmp_path / "none.wasm")


def test_what_an_engine_cannot_run_is_not_planned_or_refused(tmp_path: Path) -> None:
    command = command_workload(["true"])
    plan = Campaign(workloads=[command, "sort-s"], engines=["speed", "native"], sets=30).plan()
    assert all(m.kind == "kernel" for w in plan if w.engine == "speed" for m in w.members)
    assert any(len({m.kind for m in w.members}) == 2 for w in plan)
    with pytest.raises(UsageError, match="can run none"):
        Campaign(workloads=[command], engines=["speed"])
    wasi = module_workload(wasi_module(tmp_path, "loop", LOOP))
    with pytest.raises(UsageError, match="no engine chosen can run it"):
        Campaign(workloads=[command, wasi], engines=["native"])
    # Kernels run on native beside command lines only.
    with pytest.raises(UsageError, match="can run none"):
        Campaign(workloads=["sort-s"], engines=["native"])
    assert "native" not in Campaign(workloads=["sort-s"]).engine_names


def test_commands_can_be_traced() -> None:
    burn = command_workload([PYTHON, "-S", "-c", BURN.format(0.01)], "burn")
    (one,) = trace([burn], TraceOptions(engine="native", seconds=1.0, device="here"))
    assert one.platform == "native:here"
    assert np.isnan(one["instructions"]).all()
    assert np.nansum(one["cpu_seconds"]) > 0.005
    with pytest.raises(UsageError, match="cannot run"):
        trace([burn], TraceOptions(engine="speed"))


def test_the_check_says_what_disturbs() -> None:
    found = check_machine(seconds=0.6, cores=[0])
    assert found.cores == (0,)
    assert 0 <= found.foreign_load_ratio[0] <= found.foreign_load_ratio[1] <= 1
    burner = subprocess.Popen(
        [PYTHON, "-c", "import os; os.sched_setaffinity(0, {0})\nwhile True: pass"]
    )
    try:
        time.sleep(0.3)
        busy = check_machine(seconds=1.0, cores=[0])
    finally:
        burner.kill()
        burner.wait()
    assert not busy.quiet
    assert busy.foreign_load_ratio[0] > 0.5
    assert any("python" in message for message in busy.disturbances)
    json.dumps(busy.to_json())


def test_a_full_disk_leaves_a_readable_dataset(tmp_path: Path, quick) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount")
    done = mounted and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        capture_output=True,
        check=False,
    )
    if not done or done.returncode:
        pytest.skip("a small disk cannot be mounted here: this needs root")
    try:
        measure(quick(sets=2), disk / "data", MeasureOptions())
        before = rows(disk / "data")
        free = os.statvfs(disk)
        (disk / "ballast").write_bytes(bytes(free.f_bavail * free.f_frsize - 12288))
        with pytest.raises((UnreadableFile, NotPermitted), match=r"(?i)space|disk is full"):
            measure(quick(sets=24), disk / "data", MeasureOptions())
        assert rows(disk / "data") == before
        (disk / "ballast").unlink()
        summary = measure(quick(sets=24), disk / "data", MeasureOptions())
        # What the journal held when the disk was full is not measured again.
        assert summary.finished
        assert summary.already >= len({r["window_id"] for r in before if r["status"] == "ok"}) > 0
        found = rows(disk / "data")
        assert len({row["run_id"] for row in found}) == len(found)
        measured = {row["window_id"] for row in found if row["status"] == "ok"}
        assert len(measured) == summary.planned
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_workloads_of_an_unknown_kind_are_refused() -> None:
    with pytest.raises(UsageError, match="none of kernel, wasi, command"):
        Workload("x", Path("x.wasm"), kind="docker")
