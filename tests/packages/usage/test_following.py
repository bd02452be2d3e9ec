"""A program that runs is followed by a command, one line a step."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.collect import TraceOptions, follow_running
from jostle.data import Traces, read_traces, write_traces
from tests.packages.usage.conftest import a_trace

BURN = "import time; list(iter(lambda: time.time() < 0, True))"


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Runs of 30 samples of 0.1 s in which half use the processor all the time, and half hardly; too few for
    regressions, which take longer to learn than what is tested here."""
    random = np.random.default_rng(0)
    made = []
    for number in range(6):
        use = 0.1 * (1.0 if number % 2 else 0.02)
        counts = use * random.uniform(0.9, 1.1, 30)
        made.append(a_trace(number, {"cpu_seconds": counts.tolist()}, seconds=0.1))
    write_traces(tmp_path / "past", Traces.from_traces([replace(t, workload="burn") for t in made]))
    return tmp_path / "past"


def test_a_command_is_followed(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = shlex.join([sys.executable, "-S", "-c", BURN])
    words = ["forecast", str(recorded), "--follow", command, "--limit", "cpu_seconds=0.2"]
    assert exit_code([*words, "--steps", "4", "--within", "0.5", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(lines) == 4
    assert {line["schema"] for line in lines} == {"forecast_step/v1"}
    moments = [line["now_seconds"] for line in lines]
    assert moments == sorted(moments)
    for line in lines:
        assert line["time_seconds"] == pytest.approx(line["now_seconds"] + 0.5)
        assert 0 <= line["exceedance_ratio"] <= 1
        assert line["exceedance_within_ratio"] >= 0
    assert exit_code([*words, "--steps", "2"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2
    assert "P(over limit)" in printed[0]


def test_another_program_is_said_to_be_unlike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Recorded runs that use the processor all the time, and one that sleeps; few counters are shown."""
    random, made = np.random.default_rng(0), []
    for number in range(19):
        counters = {"cpu_seconds": (0.08 * random.uniform(0.9, 1.1, 10)).tolist()}
        counters |= {f"other_{n}": [1.0] * 10 for n in range(12)}
        made.append(a_trace(number, counters, seconds=0.08))
    write_traces(tmp_path / "past", Traces.from_traces(made))
    sleep = shlex.join([sys.executable, "-S", "-c", "import time; time.sleep(9)"])
    words = ["forecast", str(tmp_path / "past"), "--component", "cpu_seconds", "--ran", "0.2"]
    words += ["--ahead", "0.08", "--follow", sleep, "--limit", "cpu_seconds=0.5", "--steps", "4"]
    assert exit_code([*words, "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "unlike the 19 recorded runs" in lines[-1]["unlike"]
    assert exit_code(words) == 0
    assert "warning: the run so far is unlike" in capsys.readouterr().err
    assert exit_code(["forecast", str(tmp_path / "past"), "--at", "0.5"]) == 0
    printed = capsys.readouterr().out
    assert "cpu_seconds" in printed
    assert "other_3" not in printed
    assert "and 12 further counters" in printed
    assert (
        exit_code(["forecast", str(tmp_path / "past"), "--at", "0.5", "--limit", "other_3=2"]) == 0
    )
    printed = capsys.readouterr().out
    assert "other_3" in printed
    assert "cpu_seconds" not in printed


def test_it_stops_where_the_recorded_runs_end(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = subprocess.Popen([sys.executable, "-S", "-c", BURN])
    try:
        words = ["forecast", str(recorded), "--follow", str(running.pid), "--ran", "2.75"]
        assert exit_code([*words, "--ahead", "0.1"]) == 0
    finally:
        running.kill()
        running.wait()
    assert "the recorded runs reach to 3 s" in capsys.readouterr().err


def test_odd_questions_are_refused(recorded: Path, tmp_path: Path) -> None:
    words = ["forecast", str(recorded), "--json"]
    assert exit_code(words) == 2
    assert exit_code([*words, "--follow", "/no/such/program"]) == 2
    assert exit_code([*words, "--follow", "'"]) == 2
    assert exit_code([*words, "--follow", "1", "--within", "1"]) == 2
    assert exit_code([*words, "--follow", "4194305"]) == 4
    assert exit_code([*words, "--follow", str(tmp_path / "no")]) == 2


def test_a_command_is_traced_from_its_start(tmp_path: Path) -> None:
    words = ["trace", "-o", str(tmp_path / "own"), "--follow", "sleep 0.3", "--name", "nap"]
    assert exit_code([*words, "--runs", "2", "--interval", "0.02"]) == 0
    runs = list(read_traces(tmp_path / "own"))
    assert len({run.run_id for run in runs}) == 2
    for run in runs:
        assert (run.workload, run.core, run.corunners) == ("nap", 0, ())
        assert run.runtime_seconds > 0.25
    assert exit_code([*words, "-w", "sort-s"]) == 2
    assert exit_code(["trace", "-o", str(tmp_path), "--follow", "/no/such/program"]) == 2


def test_samples_come_one_by_one() -> None:
    running = subprocess.Popen([sys.executable, "-S", "-c", BURN])
    try:
        options = TraceOptions(seconds=0.2, interval_seconds=0.02)
        samples = list(follow_running(running.pid, options=options))
    finally:
        running.kill()
        running.wait()
    times = [one.time_seconds for one in samples]
    np.testing.assert_allclose(np.cumsum([one.interval_seconds for one in samples]), times)
    assert all(one.counters["cpu_seconds"] >= 0 for one in samples)
