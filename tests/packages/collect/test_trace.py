"""Traces: progress is exact, everything else is there or null, and members stay beside each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from jostle.collect import (
    TracedProgram,
    TraceOptions,
    count_opcodes,
    find_workloads,
    probe_workloads,
    trace,
)
from jostle.collect.host._sampler import NAMES, PerfEvents, Sampler
from jostle.collect.tracing import _beat_progress as trace_progress
from jostle.data import read_traces
from jostle.errors import BadData, UnknownName, UsageError


def instructions(workload: str, repetitions: int) -> int:
    return repetitions * count_opcodes(find_workloads([workload])[0]).instructions


def test_a_program_is_followed_through_its_phases_to_its_end() -> None:
    found = trace(["two=edit-s*40+sort-s*60"], TraceOptions(device="here", interval_seconds=0.005))
    (one,) = found
    assert (one.workload, one.platform, one.solo) == ("two", "wasmtime-speed:here", True)
    # Beats split a repetition into calls of their own, so entering functions adds a little.
    expected = instructions("edit-s", 40) + instructions("sort-s", 60)
    assert one["instructions"].sum() == pytest.approx(expected, rel=1e-4)
    assert one["repetitions"].sum() == pytest.approx(100)
    # The second phase begins where the first one's repetitions are done.
    assert one["phases"].sum() == pytest.approx(2)
    done = np.cumsum(one["repetitions"])
    expected = np.interp(done, [0, 40, 100], [0, 1, 2])
    np.testing.assert_allclose(np.cumsum(one["phases"]), expected, atol=1e-6)
    assert one.runtime_seconds == pytest.approx(one.time_seconds[-1])
    assert one.interval_seconds.sum() == pytest.approx(one.runtime_seconds)
    assert 0 < np.nansum(one["cpu_seconds"]) < one.runtime_seconds + 0.02
    assert np.nanmax(one["resident_bytes"]) > 1e6
    # Every sample has the mix of the phases that it holds, whatever held the program up.
    done = np.concatenate([[0.0], np.cumsum(one["repetitions"])])
    executed = (np.diff(np.minimum(done, 40)), np.diff(np.maximum(done - 40, 0)))
    loads = [
        sum(n for name, n in count_opcodes(one).opcodes.items() if ".load" in name)
        for one in find_workloads(["edit-s", "sort-s"])
    ]
    expected = sum(times * each for times, each in zip(executed, loads, strict=True))
    np.testing.assert_allclose(one["loads"], expected, rtol=0.01, atol=0.01 * max(loads))


def test_bytes_are_counted_by_the_width_of_what_moves_them() -> None:
    widths = {"i32.load": 4, "i64.load32_s": 4, "f64.store": 8, "i64.store8": 1, "i32.load16_u": 2}
    assert {name: trace_progress._width(name) for name in widths} == widths
    (one,) = trace(["sort-s*60"], TraceOptions(device="here", interval_seconds=0.005))
    workload = find_workloads(["sort-s"])[0]
    opcodes = count_opcodes(workload).opcodes
    for kind in ("load", "store"):
        expected = 60 * sum(n * widths.get(name, 4) for name, n in opcodes.items() if kind in name)
        assert one["loaded_bytes" if kind == "load" else "stored_bytes"].sum() == pytest.approx(
            expected, rel=1e-3
        ), sorted(name for name in opcodes if kind in name)
    held, pieces = count_opcodes(workload).memory_bytes, one["working_set_byte_seconds"]
    assert pieces.sum() < 1.001 * held * one.runtime_seconds
    # A program works on all of it in every piece but those in which it begins and ends.
    inside = np.flatnonzero(one["loaded_bytes"] > 0)[1:-1]
    assert pieces[inside] == pytest.approx(held * one.interval_seconds[inside])


def test_instructions_do_not_depend_on_who_runs_beside() -> None:
    found = trace(
        ["edit-s*60", "sort-s*50"], TraceOptions(alone=True, runs=2, cores=[0], device="here")
    )
    assert len(found) == 2 * 4
    totals: dict[str, set[int]] = {}
    windows: dict[str | None, list[str]] = {}
    for one in found:
        totals.setdefault(one.workload, set()).add(round(one["instructions"].sum()))
        windows.setdefault(one.window_id, []).append(one.workload)
        assert one.corunners == () or one.corunners != (one.workload,)
    assert {len(counts) for counts in totals.values()} == {1}
    # Alone they have no window, together they share one.
    assert len(windows.pop(None)) == 4
    assert sorted(windows.values()) == [["edit-s*60", "sort-s*50"]] * 2


def test_endless_members_last_as_long_as_those_that_end() -> None:
    found = trace(["edit-s*80", "sort-s"], TraceOptions(device="here"))
    ends, endless = found
    assert np.isfinite(ends.runtime_seconds)
    assert np.isnan(endless.runtime_seconds)
    assert endless.time_seconds[-1] > 0.9 * ends.time_seconds[-1]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_probes_are_beside_every_member_and_alone() -> None:
    few = ("cache", "probe-core")
    options = TraceOptions(
        device="here", interval_seconds=0.005, probes=True, stressors=few, seconds=0.02
    )
    found = list(trace(["sort-s*20"], options))
    stressors = sorted(one.name for one in probe_workloads(few))
    assert stressors == ["probe-cache", "probe-core"]
    assert sorted(t.workload for t in found if t.solo) == [*stressors, "sort-s*20"]
    beside = [t for t in found if t.workload == "sort-s*20" and not t.solo]
    assert sorted(t.corunners[0] for t in beside) == stressors
    assert all(t.runtime_seconds > 0 for t in beside)
    windows = {t.window_id for t in beside}
    assert {t.window_id for t in found if t.workload in stressors and not t.solo} == windows
    with pytest.raises(UsageError, match="Set `probes`"):
        TraceOptions(stressors=("cache",))
    with pytest.raises(UnknownName, match="hog"):
        TraceOptions(probes=True, stressors=("hog",))
    with pytest.raises(UsageError, match="has no end"):
        trace(["sort-s"], options)


def test_without_an_end_seconds_say_how_long() -> None:
    (one,) = trace(["edit-s"], TraceOptions(seconds=0.1, device="here"))
    assert np.isnan(one.runtime_seconds)
    assert 0.09 < one.time_seconds[-1] < 0.5


def test_in_a_loop_the_first_pass_is_kept_and_the_member_stays() -> None:
    found = trace(["edit-s*150", "sort-s*5"], TraceOptions(loop=True, device="here"))
    long, short = found
    assert short["repetitions"].sum() == pytest.approx(5)
    assert short.runtime_seconds < long.runtime_seconds
    assert long["repetitions"].sum() == pytest.approx(150)


def test_a_module_that_cannot_be_counted_has_no_instructions(make_workload) -> None:
    workload = make_workload("typed", "(local (ref null 0))")  # what the counter refuses
    (one,) = trace([TracedProgram("typed", ((workload, 2000),))], TraceOptions(device="here"))
    assert np.isnan(one["instructions"]).all()
    assert one["repetitions"].sum() == pytest.approx(2000)


def test_members_that_fail_or_hang_are_named(make_workload) -> None:
    trap = make_workload("trap", "unreachable")
    with pytest.raises(BadData, match=r"trap: the run failed: .*unreachable"):
        trace(["edit-s*10", trap], TraceOptions(device="here"))
    hang = make_workload("hang", "(loop $l (br $l))", "(loop $l (br $l))")
    with pytest.raises(BadData, match="set-up failed: it took more than"):
        trace([hang], TraceOptions(seconds=0.1, timeout_seconds=0.5, device="here"))


@pytest.mark.parametrize(
    ("members", "options"),
    [
        ([], {}),
        (["edit-s"], {"runs": 0}),
        (["edit-s"], {"interval_seconds": 0.0001}),
        (["edit-s"], {"interval_seconds": float("nan")}),
        (["edit-s"], {"seconds": 9.0, "timeout_seconds": 1.0}),
        (["edit-s"], {"cores": [99999]}),
        (["edit-s+sort-s*5"], {}),
        (["edit-s*0"], {}),
        (["edit-*"], {}),
        (["=edit-s"], {}),
        (["edit-s**3"], {}),
        ([""], {}),
    ],
)
def test_what_makes_no_sense_is_refused(members: list[str], options: dict) -> None:
    with pytest.raises(UsageError):
        trace(members, TraceOptions(device="here", **options))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UnknownName):
        trace(["nothing-s*3"])
    with pytest.raises(UnknownName):
        trace(["edit-s*3"], TraceOptions(engine="nothing"))


def test_the_sampler_sees_the_process_work_and_tells_no_zero_for_what_is_missing() -> None:
    sampler = Sampler(os.getpid(), tree=True)
    before = sampler.read()
    until = time.process_time() + 0.05
    while time.process_time() < until:
        sum(range(1000))
    done = subprocess.run([sys.executable, "-c", "sum(range(10**6))"], check=True)
    assert done.returncode == 0
    after = sampler.read()
    assert set(after) <= set(NAMES)
    assert after["cpu_seconds"] - before["cpu_seconds"] > 0.045
    assert all(after[name] >= before[name] for name in before if name != "resident_bytes")
    sampler.close()


def test_a_peak_of_memory_between_two_looks_is_seen_once() -> None:
    words = [sys.executable, "-c", "input(); x = b'1' * 10**8; del x; print(flush=True); input()"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        sampler = Sampler(child.pid, tree=True)
        sampler.read()
        child.stdin.write(b"\n")
        child.stdin.flush()
        child.stdout.readline()
        assert sampler.read()["resident_bytes"] > 1e8
        assert sampler.read()["resident_bytes"] < 1e8
        sampler.close()
        child.communicate(b"\n")


def test_software_events_count_what_this_process_does() -> None:
    events = PerfEvents(os.getpid())
    if "perf_task_clock_ns" not in events.names:
        events.close()
        pytest.skip("this host lets us open no perf event")
    before = events.read()
    until = time.process_time() + 0.02
    while time.process_time() < until:
        pass
    after = events.read()
    assert after["perf_task_clock_ns"] - before["perf_task_clock_ns"] > 1.5e7
    events.close()


def test_the_command_writes_a_dataset_and_says_so(tmp_path: Path, capsys) -> None:
    from jostle.cli import exit_code

    data = tmp_path / "data"
    words = ["trace", "-o", str(data), "-w", "a=edit-s*20", "-w", "sort-s*20", "--alone"]
    assert exit_code([*words, "--device", "here", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "trace/v1"
    assert [row["workload"] for row in document["runs"]] == ["a", "sort-s*20"] * 2
    found = read_traces(data)
    assert list(found.run_ids) == [row["run_id"] for row in document["runs"]]
    assert found.of(found.run_ids[0])["instructions"].sum() == document["runs"][0]["instructions"]
    assert exit_code([*words, "--device", "here"]) == 0
    assert "a beside sort-s*20:" in capsys.readouterr().out
    assert len(read_traces(data)) == 8
    assert exit_code(["trace", "-o", str(data), "-w", "a=edit-s*"]) == 2
