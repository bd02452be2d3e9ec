"""Any finished job: whole executions, however long, in a place of their own, beside others that go on."""

from __future__ import annotations

import base64
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.collect import child_environment, command_workload, job_of
from jostle.collect.host._proc import CoreTimes
from jostle.collect.slots._slots import LastWords, ended
from jostle.collect.window._assess import Window, WindowResult
from jostle.collect.window._foreign_load import Elapsed, Moment, foreign_to_kernels
from jostle.collect.window._job_window import JobRecord, _assessed
from jostle.collect.workloads._trial import with_own_copies
from jostle.data import Dataset, Runs
from jostle.errors import UnreadableFile, UsageError
from jostle.operations import dataset_report
from tests.command_line import jostle as command
from tests.packages.collect.measured import measured, rows
from tests.waiting import wait_for


def failures(folder: Path) -> list[dict[str, Any]]:
    """What `jostle runs` says of a dataset's."""
    return dataset_report(Dataset(folder), ()).document["failures"]


def test_a_job_longer_than_any_window_and_one_that_only_waits(tmp_path: Path) -> None:
    long = command_workload(["sleep", "1.2"], "long")
    short = command_workload(["sleep", "0.05"], "short")
    found = measured(tmp_path, long, short, sets=1)
    assert {row["status"] for row in found} == {"ok"}
    assert [len(row["corunners"]) for row in found].count(1) == 2
    for row in found:
        own = 1.2 if row["workload"] == "long" else 0.05
        # A clock that is being set right may run slower than the one of the sleep, by 500 in a million.
        assert 0.999 * own <= row["runtime_seconds"] < own + 1.0
        assert row["cpu_seconds"] < 0.8 * row["window_seconds"]  # no CPU time passes for waiting
        beside = {row["workload"], *row["corunners"]}
        assert row["window_seconds"] >= (1.2 if "long" in beside else 1.0)
        if (row["workload"], row["corunners"]) == ("short", ["long"]):
            assert row["repetitions"] >= 2  # it went on until the long one had ended


def answer(job_cpu: float, waited: float = 0.0) -> dict[str, Any]:
    times = np.array([0, 50_000_000], "<i8")
    lost = np.array([waited * 1e9], "<i8")
    return {
        "waited": base64.b64encode(lost.tobytes()).decode(),
        "unseen": base64.b64encode(np.zeros(1, "<i8").tobytes()).decode(),
        "used": base64.b64encode(np.zeros(1, "<i8").tobytes()).decode(),
        "starts": base64.b64encode(times[:1].tobytes()).decode(),
        "ends": base64.b64encode(times[1:].tobytes()).decode(),
        "cpu_ns_used": int(job_cpu * 1e9),
        "run_delay_seconds": 0.0,
        "involuntary_switches": 0,
    }


def elapsed(busy: dict[int, float], stolen: float = 0.0, kernel: float = 0.0) -> Elapsed:
    """A second of a machine with two cores and one that is not measured on; busy: seconds by core."""

    def moment(share: float) -> Moment:
        cores = {
            core: CoreTimes(share * (1 - busy.get(core, 0.0) - stolen), share * stolen, 0.0)
            for core in (0, 1, 2)
        }
        return Moment(int(share * 1e9), cores, 0.0, share * kernel, {})

    return Elapsed(moment(0.0), moment(1.0))


@pytest.mark.parametrize(
    ("busy", "own", "waited", "seconds", "cores"),
    [
        ({0: 0.02}, 0.01, 0.0, 0.05, 0.01),  # a job that waits, on a machine that is idle
        ({0: 1.0}, 0.99, 0.0, 0.05, 0.01),  # one that computes
        ({0: 0.26}, 0.01, 0.0, 0.05, 0.25),  # another process was there while it waited by itself
        ({0: 1.0}, 0.5, 0.025, 0.025, 0.5),  # it waited for the other process
        ({0: 1.0, 1: 0.27}, 1.0, 0.0, 0.05, 0.25),
        ({0: 0.1, 2: 0.27}, 0.1, 0.0, 0.05, 0.0),
    ],
)
def test_waiting_is_told_from_a_core_that_was_taken(
    busy: dict[int, float], own: float, waited: float, seconds: float, cores: float
) -> None:
    found = job_beside(elapsed(busy), own, waited)
    assert found.status == "ok"
    assert found.members[0].runtime_seconds == pytest.approx(seconds)
    assert found.members[0].raw_runtime_seconds == pytest.approx(0.05)
    assert found.members[0].disturbance_ratio == pytest.approx(waited / 0.05)
    assert found.foreign is not None
    assert found.foreign.foreign_cores == pytest.approx(cores, abs=0.02)


def job_beside(
    between: Elapsed, own: float, waited: float = 0.0, most: float = 1.0
) -> WindowResult:
    job = command_workload(["true"])
    window = Window((job,), "native", ((0,),), (0, 1), 1.0, 10.0, most)
    seen = JobRecord([answer(own, waited)], 0, 10**9, np.zeros(1, np.int64), between)
    return _assessed(window, seen, datetime.now(UTC))


def test_a_hypervisor_is_no_other_process_and_what_it_took_is_taken_off() -> None:
    found = job_beside(elapsed({0: 0.5}, stolen=0.1), 0.5)
    assert found.foreign is not None
    assert found.foreign.stolen_ratio == pytest.approx(0.1)
    assert found.members[0].disturbance_ratio == pytest.approx(0.1)
    all_of_it = job_beside(elapsed({0: 0.5}, stolen=7.0), 0.5).foreign
    assert all_of_it is not None
    assert all_of_it.stolen_ratio == 1.0
    rejected = job_beside(elapsed({0: 1.0}), 0.5, 0.025, most=0.4)
    assert "a member lost 50% of its time to others" in str(rejected.members[0].reason)


@pytest.mark.parametrize(
    ("cpu", "delay", "busy_beside", "cores_of_others"),
    [
        (1.0, 0.0, 0.0, 0.0),
        (0.75, 0.25, 0.0, 0.24),  # waited for its core: another process held it
        (0.75, 0.0, 0.0, 0.0),  # did not wait and yet lost it: to the hypervisor
        (0.75, None, 0.0, 0.24),
        (1.0, 0.0, 0.27, 0.25),
    ],
)
def test_a_kernels_core_was_taken_for_as_long_as_it_waited_in_the_queue(
    cpu: float, delay: float | None, busy_beside: float, cores_of_others: float
) -> None:
    found = foreign_to_kernels(
        elapsed({0: 1.0, 1: busy_beside}),
        (0, 1),
        {0},
        cpu_seconds=[cpu],
        delay_seconds=[delay],
        entitled_cores=None,
    )
    assert found.foreign_cores == pytest.approx(cores_of_others, abs=0.005)


def test_where_a_job_runs_and_what_surrounds_it(tmp_path: Path) -> None:
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
    (row,) = measured(tmp_path, command_workload([sys.executable, "-S", "-c", code], "mine", job))
    assert (row["workload"], row["status"], row["reason"]) == ("mine", "ok", None)
    places = log.read_text().splitlines()
    assert len(set(places)) == len(places) >= row["repetitions"]
    assert not any(Path(place).exists() for place in places)


def test_what_goes_wrong_around_a_job_is_said(tmp_path: Path) -> None:
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
    for row in measured(tmp_path, *jobs):
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


def test_all_that_a_job_started_ends_with_it(tmp_path: Path) -> None:
    mark = f"97{time.monotonic_ns() % 10**6}"
    job = command_workload(["sh", "-c", f"sleep {mark} & sleep {mark}; true"], "tree")
    (row,) = measured(tmp_path, job, timeout_seconds=1.2)
    assert (row["status"], "an execution took more than 1.2 s" in row["reason"]) == (
        "timeout",
        True,
    )
    wait_for(lambda: mark not in _command_lines())


LEAVES = "setsid sleep {mark} & sleep {mark} & {act}; sleep {mark}"
ENDS = {
    "terminated": ("true", signal.SIGTERM),
    "killed": ("true", signal.SIGKILL),
    "interrupted": ("true", signal.SIGINT),
    "slot killed by its program": ("kill -9 $PPID", None),
    "both killed by their program": ("kill -9 $(ps -o ppid= -p $PPID) $PPID", None),
    "slot stopped by its program": ("kill -STOP $PPID", signal.SIGTERM),
}


@pytest.mark.parametrize("how", ENDS)
def test_nothing_outlives_a_campaign(tmp_path: Path, how: str) -> None:
    act, by = ENDS[how]
    mark = f"98{time.monotonic_ns() % 10**6}"
    words = ["measure", "-o", str(tmp_path / "d"), "--device", "here", "--sets", "0", "--solo", "1"]
    line = LEAVES.format(mark=mark, act=act)
    process = subprocess.Popen(
        [sys.executable, "-m", "jostle", *words, "--", "sh", "-c", line],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=child_environment(),
    )
    try:
        wait_for(lambda: _command_lines().count(f"sleep {mark}\n") >= 2 or by is None)
        if by is not None:
            process.send_signal(by)
        process.wait(120)
    finally:
        process.kill()
    wait_for(lambda: f"sleep {mark}\n" not in _command_lines())


def test_nothing_outlives_the_trial_whether_files_are_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mark = f"96{time.monotonic_ns() % 10**6}"
    for changes, act in ((False, "cat file"), (True, "rm file")):
        (tmp_path / "file").write_text("kept")
        line = LEAVES.format(mark=mark, act=act).rpartition(";")[0]
        one = command_workload(["sh", "-c", line, "file"], "leaves")
        assert (with_own_copies(one) != one) == changes
        assert (tmp_path / "file").read_text() == "kept"
    wait_for(lambda: f"sleep {mark}\n" not in _command_lines())


def test_what_programs_say_is_not_kept() -> None:
    errors = LastWords()
    line = "head -c 30000000 /dev/zero | tr '\\0' x >&2; echo the end of it >&2"
    process = subprocess.Popen(["sh", "-c", line], stderr=errors.file)
    assert ended(process.pid, errors)
    assert process.wait() == 0
    assert errors.take().endswith(b"xthe end of it\n")
    assert len(errors.take()) == 1000
    errors.close()


def _command_lines() -> str:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().rstrip(b"\0").replace(b"\0", b" ")
            found.append(words.decode(errors="replace") + "\n")
        except OSError:
            continue
    return "".join(found)


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["measure", "-o", str(tmp_path / "d"), "--device", "here", "--solo", "1", "--sets", "0"]
    job = """
        [[job]]
        command = "sh -c 'test -e x -a \\"$A\\" = b'"
        name = "mine"
        env = {A = "b"}
        before = "touch x"
    """
    (tmp_path / "campaign.toml").write_text(job)
    done = command(*words, "campaign.toml")
    assert done.exit_code == 0, done.output
    (row,) = rows(tmp_path / "d")
    assert (row["workload"], row["status"]) == ("mine", "ok")
    failing = [
        "measure",
        "-o",
        str(tmp_path / "e"),
        "--device",
        "here",
        "--sets",
        "0",
        "--",
        "false",
    ]
    assert command(*failing).exit_code == 1
    assert command(*words, "--name", "x").exit_code == UsageError.exit_code
    (tmp_path / "campaign.toml").write_text(job.replace('{A = "b"}', '"A"'))
    assert command(*words, "campaign.toml").exit_code == UsageError.exit_code


def test_programs_run_where_the_user_stands_and_their_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / "sub").mkdir(parents=True)
    (here / "sub" / "f.txt").write_text("hello " * 1000)
    (here / "note").write_text("beside")
    monkeypatch.chdir(here)
    gzip = command_workload(["gzip", "sub/f.txt"], "gzip")  # which uses its file up
    # the last of its repeats may be stopped at any instant: a whole file takes the place of the one before
    line = "test $(cat note) = beside && pwd > place.$$ && mv place.$$ place"
    reads = command_workload(["sh", "-c", line], "reads")
    fresh = command_workload(["sh", "-c", "test ! -e note"], "fresh", job_of(fresh_folder=True))
    fed = command_workload(["grep", "-q", "beside"], "fed", job_of(stdin=here / "note"))
    found = measured(tmp_path, gzip, reads, fresh, fed)
    assert {(row["workload"], row["status"], row["reason"]) for row in found} == {
        (name, "ok", None) for name in ("gzip", "reads", "fresh", "fed")
    }
    beside = measured(tmp_path / "pair", gzip, command_workload(["gzip", "sub/f.txt"], "b"), sets=1)
    assert {row["status"] for row in beside} == {"ok"}
    assert sorted(path.name for path in (here / "sub").iterdir()) == ["f.txt"]
    assert (here / "sub" / "f.txt").read_text() == "hello " * 1000
    assert (here / "place").read_text().strip() == str(here)


def test_a_program_that_fails_now_and_then_keeps_its_good_runs(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = (
        f"c=$(cat {count} 2>/dev/null || echo 0); echo $((c+1)) > {count};"
        " if [ $((c % 3)) = 1 ]; then echo one >&2; echo two >&2; exit 7; fi"
    )
    (row,) = measured(tmp_path, command_workload(["sh", "-c", code], "flaky"))
    assert (row["status"], row["reason"]) == ("ok", None)
    assert row["failure"] == "it ended with exit code 7: one | two"
    done = row["failed_executions"] + row["repetitions"]
    assert row["failure_ratio"] == row["failed_executions"] / done
    assert abs(row["failed_executions"] - done / 3) < 1
    always = command_workload(["sh", "-c", "echo $$ is wrong >&2; exit 3"], "always")
    (bad,) = measured(tmp_path / "always", always)
    assert bad["status"] == "failed"
    told = failures(tmp_path / "always" / "data")
    assert [(one["workload"], one["status"], one["count"]) for one in told] == [
        ("always", "failed", 1)
    ]
    assert "exit code 3" in told[0]["reason"]
    (flaky,) = failures(tmp_path / "data")
    assert flaky["ratio"] == row["failure_ratio"]


def test_reasons_that_differ_in_numbers_are_told_once_and_what_follows_from_them_is_not(
    tmp_path: Path,
) -> None:
    reasons = ["took 3.1 s", "took 4 s", "a co-runner failed: w", "not started: w alone", None]
    runs = Runs.from_columns(
        workload=["w"] * 5,
        platform=["p"] * 5,
        corunners=[[]] * 5,
        runtime_seconds=[None, None, None, None, 1.0],
        status=["timeout", "timeout", "failed", "failed", "ok"],
        reason=reasons,
    )
    Dataset(tmp_path / "runs").write(runs)
    assert [(o["status"], o["count"], o["reason"]) for o in failures(tmp_path / "runs")] == [
        ("timeout", 2, "took 4 s")
    ]
    Dataset(tmp_path / "ok").write(runs.ok())
    assert failures(tmp_path / "ok") == []
    # What a scheduler ended is no fault of the program.
    ends = ["CANCELLED by 1001", "NODE_FAIL", "FAILED", "TIMEOUT"]
    log = Runs.from_columns(
        workload=["w"] * 4,
        platform=["p"] * 4,
        corunners=[[]] * 4,
        runtime_seconds=[None] * 4,
        status=["failed", "failed", "failed", "timeout"],
        reason=ends,
    )
    Dataset(tmp_path / "log").write(log)
    advice = {one["reason"]: one["fix"] for one in failures(tmp_path / "log")}
    assert advice["CANCELLED by 1001"] == advice["NODE_FAIL"] != advice["FAILED"]
    assert "predict --future" in advice["TIMEOUT"]
