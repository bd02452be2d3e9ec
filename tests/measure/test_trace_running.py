"""What runs already is followed by its number or its control group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from jostle.cli.collect import _trace
from jostle.errors import UnreadableFile, UsageError
from jostle.measure import TraceOptions, trace_running
from jostle.traces import read_traces

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
    app = typer.Typer()
    _trace.register(app)
    words = ["-o", str(tmp_path), "--pid", str(running.pid), "--seconds", "0.2", "--device", "here"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    name = Path(f"/proc/{running.pid}/comm").read_text().strip()
    assert [one.workload for one in read_traces(tmp_path)] == [name]
    assert isinstance(CliRunner().invoke(app, [*words, "-w", "sort-s"]).exception, UsageError)
    assert isinstance(CliRunner().invoke(app, words[:2]).exception, UsageError)


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
