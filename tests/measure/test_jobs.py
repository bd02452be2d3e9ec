"""Any finished job: whole executions, however long, in a place of their own, beside others that go on."""

from __future__ import annotations

import base64
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from jostle.cli.collect import _measure
from jostle.errors import UnreadableFile, UsageError
from jostle.measure import Campaign, MeasureOptions, Tolerance, command_workload, job_of, measure
from jostle.measure.window._assess import Window
from jostle.measure.window._jobs import _assessed, _Seen
from jostle.runs import Dataset


def rows(path: Path) -> list[dict[str, Any]]:
    return Dataset(path).read().table.to_pylist()


def _seed(members: int) -> int:
    """One by which the first set drawn has two different members."""
    for seed in range(100):
        draw = random.Random(f"jostle-sets/1/{seed}")
        draw.randint(2, 2)
        if len(set(draw.choices(range(members), k=2))) == 2:
            return seed
    raise AssertionError


def measured(path: Path, anything, *workloads: Any, sets: int = 0, **options: Any) -> list[dict]:
    campaign = Campaign(
        workloads=list(workloads),
        engines=["native"],
        solo_repeats=1,
        sets=sets,
        set_sizes=(2, 2),
        window_seconds=0.05,
        device="here",
        seed=_seed(len(workloads)) if sets else 0,
    )
    measure(campaign, path / "data", MeasureOptions(tolerance=anything, **options))
    return rows(path / "data")


def test_a_job_longer_than_any_window_and_one_that_only_waits(tmp_path: Path, anything) -> None:
    long = command_workload(["sleep", "1.2"], "long")
    short = command_workload(["sleep", "0.05"], "short")
    found = measured(tmp_path, anything, long, short, sets=1)
    assert {row["status"] for row in found} == {"ok"}
    assert [len(row["corunners"]) for row in found].count(1) == 2
    for row in found:
        own = 1.2 if row["workload"] == "long" else 0.05
        assert own <= row["runtime_seconds"] < own + 1.0
        assert row["cpu_seconds"] < 0.8 * row["window_seconds"]  # no CPU time passes for waiting
        beside = {row["workload"], *row["corunners"]}
        assert row["window_seconds"] >= (1.2 if "long" in beside else 1.0)
        if (row["workload"], row["corunners"]) == ("short", ["long"]):
            assert row["repetitions"] >= 2  # it went on until the long one had ended


def seen(busy: float, job_cpu: float, seconds: float = 1.0) -> _Seen:
    times = np.array([0, 50_000_000], "<i8")
    answer = {
        "starts": base64.b64encode(times[:1].tobytes()).decode(),
        "ends": base64.b64encode(times[1:].tobytes()).decode(),
        "cpu_ns_used": int(job_cpu * 1e9),
        "run_delay_seconds": 0.0,
        "involuntary_switches": 0,
    }
    return _Seen([answer], 0, int(seconds * 1e9), np.zeros(1, np.int64), busy, 0.0)


@pytest.mark.parametrize(
    ("busy", "own", "reason"),
    [
        (0.02, 0.01, None),  # a job that waits, on a machine that is idle
        (1.0, 0.99, None),  # one that computes
        (0.26, 0.01, "other processes held 25% of a core, at most 15% allowed"),
        (1.25, 1.0, "other processes held 25% of a core"),
        (1.0, 0.0, "other processes held 100% of a core"),
    ],
)
def test_waiting_is_told_from_a_core_that_was_taken(
    busy: float, own: float, reason: str | None
) -> None:
    job = command_workload(["true"])
    window = Window((job,), "native", ((0,),), (0, 1), 1.0, 10.0, Tolerance())
    found = _assessed(window, seen(busy, own), datetime.now(UTC), (), None)
    if reason is None:
        assert found.members[0].runtime_seconds == pytest.approx(0.05)
    else:
        assert found.status == "contaminated"
        assert reason in str(found.members[0].reason)


def test_where_a_job_runs_and_what_surrounds_it(tmp_path: Path, anything) -> None:
    (tmp_path / "in.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "x").write_text("y")
    log = tmp_path / "log"
    code = (
        "import os,sys;"
        "assert sorted(os.listdir()) == ['folder', 'in.txt', 'made'], os.listdir();"
        "assert open('folder/x').read() == 'y';"
        f"open({str(log)!r}, 'a').write(os.getcwd() + chr(10));"
        "print(open('in.txt').read() + os.environ['WHO'])"
    )
    (tmp_path / "expected").write_text("hello world\n")
    job = job_of(
        inputs=[tmp_path / "in.txt", tmp_path / "folder"],
        environment={"WHO": " world"},
        before=["touch made"],
        after=["ls made in.txt", f"{sys.executable} -c pass"],
        expected=tmp_path / "expected",
    )
    (row,) = measured(
        tmp_path, anything, command_workload([sys.executable, "-S", "-c", code], "mine", job)
    )
    assert (row["workload"], row["status"], row["reason"]) == ("mine", "ok", None)
    places = log.read_text().splitlines()
    assert len(set(places)) == len(places) >= row["repetitions"]
    assert not any(Path(place).exists() for place in places)


def test_what_goes_wrong_around_a_job_is_said(tmp_path: Path, anything) -> None:
    (tmp_path / "expected").write_text("other")
    cases = {
        "output": (job_of(expected=tmp_path / "expected"), "standard output is not what was"),
        "before": (
            job_of(before=["ls /nowhere"]),
            "the command before it (ls /nowhere) ended with",
        ),
        "after": (job_of(after=["false"]), "the command after it (false) ended with exit code 1"),
        "missing": (job_of(before=["no-such-program"]), "no-such-program"),
    }
    jobs = [command_workload(["echo", name], name, job) for name, (job, _) in cases.items()]
    for row in measured(tmp_path, anything, *jobs):
        assert row["status"] == "failed"
        assert cases[row["workload"]][1] in row["reason"]
    with pytest.raises(UnreadableFile):
        job_of(inputs=[tmp_path / "nowhere"])
    with pytest.raises(UnreadableFile):
        job_of(directory=tmp_path / "nowhere")
    with pytest.raises(UnreadableFile):
        job_of(expected=tmp_path / "nowhere")
    with pytest.raises(UsageError):
        job_of(environment={"": "x"})


def test_all_that_a_job_started_ends_with_it(tmp_path: Path, anything) -> None:
    mark = f"97{time.monotonic_ns() % 10**6}"
    job = command_workload(["sh", "-c", f"sleep {mark} & sleep {mark}; true"], "tree")
    (row,) = measured(tmp_path, anything, job, timeout_seconds=1.2)
    assert (row["status"], "an execution took more than 1.2 s" in row["reason"]) == (
        "timeout",
        True,
    )
    until = time.monotonic() + 5
    while time.monotonic() < until and mark in _command_lines():
        time.sleep(0.05)
    assert mark not in _command_lines()


def _command_lines() -> str:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(entry.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


def test_on_the_command_line(tmp_path: Path) -> None:
    app = typer.Typer()
    _measure.register(app)
    words = ["-o", str(tmp_path / "d"), "--device", "here", "--solo", "1", "--sets", "0"]
    words += ["--accept-all", "--name", "mine", "--env", "A=b", "--before", "touch x"]
    done = CliRunner().invoke(app, [*words, "--", "sh", "-c", 'test -e x -a "$A" = b'])
    assert done.exit_code == 0, done.output
    (row,) = rows(tmp_path / "d")
    assert (row["workload"], row["status"]) == ("mine", "ok")
    failing = ["-o", str(tmp_path / "e"), "--device", "here", "--sets", "0", "--", "false"]
    assert CliRunner().invoke(app, failing).exit_code == 1
    for wrong in (["--env", "A"], ["--name", "x"]):
        command = ["--", "true"] if "--env" in wrong else []
        bad = CliRunner().invoke(app, [*words[:8], *wrong, *command])
        assert isinstance(bad.exception, UsageError)
