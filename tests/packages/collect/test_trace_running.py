"""What runs already is followed by its number or its control group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from jostle.collect import TraceOptions, trace_running
from jostle.collect.host._proc import group_totals
from jostle.data import cut_traces, read_traces
from jostle.errors import BadData, UnreadableFile, UsageError
from tests.command_line import jostle as command

BURN = "import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'while True: pass'])"


@pytest.fixture
def running():
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", BURN], start_new_session=True, stdin=subprocess.DEVNULL
    )
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_process_with_all_it_started(running, tmp_path: Path) -> None:
    options = TraceOptions(seconds=0.6, interval_seconds=0.05, device="here")
    (one,) = trace_running(running.pid, options=options, name="burn")
    assert (one.workload, one.platform, one.corunners) == ("burn", "native:here", ())
    assert np.isnan(one.runtime_seconds)
    assert one["cpu_seconds"].sum() > 0.02  # of its child: it only waits itself
    assert 0.5 < one.interval_seconds.sum() < 5
    words = [
        "trace",
        "-o",
        str(tmp_path),
        "--follow",
        str(running.pid),
        "--seconds",
        "0.2",
        "--device",
        "here",
    ]
    done = command(*words)
    assert done.exit_code == 0, done.output
    name = Path(f"/proc/{running.pid}/comm").read_text().strip()
    assert [one.workload for one in read_traces(tmp_path)] == [name]
    assert command(*words, "-w", "sort-s").exit_code == UsageError.exit_code
    assert command(*words[:3]).exit_code == UsageError.exit_code


def test_what_ends_while_it_is_followed_has_a_run_time() -> None:
    process = subprocess.Popen(["sleep", "0.4"], stdin=subprocess.DEVNULL)
    options = TraceOptions(seconds=30.0, interval_seconds=0.02, device="here")
    (one,) = trace_running(process.pid, options=options, name="nap")
    process.wait()
    assert one.time_seconds[-1] <= one.runtime_seconds < 30


def test_a_control_group(running, tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "cgroup.procs").write_text("")
    children = Path(f"/proc/{running.pid}/task/{running.pid}/children").read_text()
    (tmp_path / "inner" / "cgroup.procs").write_text(f"{running.pid}\n{children}")
    options = TraceOptions(seconds=0.3, interval_seconds=0.05, device="here")
    (one,) = trace_running(cgroup=tmp_path, options=options)
    assert one.workload == tmp_path.name
    assert one["timeslices"].sum() >= 0
    assert not any(name.startswith("perf_") for name in one.counters)


def test_the_files_of_a_control_group(running, tmp_path: Path) -> None:
    """Its own totals and levels, also where its processes are not seen from here."""
    told = {
        "cpu.stat": "usage_usec 2500000\nnr_throttled 3\nthrottled_usec 1000",
        "memory.current": "4096",
        "memory.stat": "anon 5\npgmajfault 7",
        "io.stat": "8:0 rbytes=10 wbytes=20 rios=1 wios=2\n8:16 rbytes=5",
        "cpu.pressure": "some avg10=0.00 total=300\nfull avg10=0.00 total=100",
        "memory.swap.current": "max",
    }
    for name, text in told.items():
        (tmp_path / name).write_text(text)
    assert group_totals(tmp_path) == pytest.approx(
        {
            "cgroup_cpu_seconds": 2.5,
            "cgroup_throttled_periods": 3,
            "cgroup_throttled_seconds": 0.001,
            "cgroup_memory_bytes_level": 4096,
            "cgroup_major_faults": 7,
            "cgroup_read_bytes": 15,
            "cgroup_written_bytes": 20,
            "cgroup_reads": 1,
            "cgroup_writes": 2,
            "cgroup_pressure_cpu_some_seconds": 3e-4,
            "cgroup_pressure_cpu_full_seconds": 1e-4,
        }
    )
    (tmp_path / "cgroup.procs").write_text("")
    (tmp_path / "cgroup.events").write_text("populated 1\nfrozen 0")
    options = TraceOptions(seconds=1.0, interval_seconds=0.02, device="here")
    found = trace_running(cgroup=tmp_path, options=options, name="box")
    (one,) = found
    assert set(one["cgroup_memory_bytes_level"]) == {4096}
    assert one["cgroup_cpu_seconds"].sum() == 0
    assert "cgroup_swap_bytes_level" not in one.counters
    pieces = cut_traces(found, 0.05)
    # However late a busy machine sampled: a piece for each stretch sampled beyond its half, and the first.
    ends = {int(np.ceil(t / 0.05 - 1e-6)) - 1: t for t in one.time_seconds}
    assert len(pieces) == sum(not k or t - k * 0.05 >= 0.025 for k, t in ends.items())
    for piece in pieces:
        assert piece.time_seconds[0] > 0
        assert piece.time_seconds[-1] <= 0.05 * (1 + 1e-6)
    with pytest.raises(BadData, match="shorter than two runs"):
        cut_traces(found, 100.0)


def test_what_is_not_there() -> None:
    with pytest.raises(UnreadableFile, match="no such process"):
        trace_running(2**22 + 5)
    with pytest.raises(UnreadableFile, match="no such control group"):
        trace_running(cgroup="no/such/group")
    with pytest.raises(UsageError):
        trace_running()
    with pytest.raises(UsageError):
        trace_running(1, "x")
    ended = subprocess.Popen(["true"])
    ended.wait()
    with pytest.raises(UnreadableFile):
        trace_running(ended.pid)
