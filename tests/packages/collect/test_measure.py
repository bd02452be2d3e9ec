"""Whole campaigns on this machine: complete, resumable, and honest about what went wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.collect import CampaignProgress, MeasureOptions, child_environment, measure
from jostle.data import Colocations, Dataset, read_runs
from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError
from tests.command_line import jostle as jostle_command
from tests.waiting import HANGS_SECONDS, wait_for


def rows(dataset: Path) -> list[dict[str, Any]]:
    return Dataset(dataset).read().table.to_pylist()


def test_a_campaign_fills_a_dataset_once(tmp_path: Path, quick) -> None:
    seen: list[CampaignProgress] = []
    campaign = quick()
    summary = measure(campaign, tmp_path, MeasureOptions(), progress=seen.append)
    assert summary.finished
    assert (summary.planned, summary.ok, summary.remaining) == (10, 10, 0)
    # On a busy machine a window in which a member did nothing is measured again, and stands there too.
    found = [row for row in rows(tmp_path) if row["status"] == "ok"]
    assert len(found) == sum(len(planned.members) for planned in campaign.plan())
    assert len({row["run_id"] for row in found}) == len(found)
    assert all(0 < row["runtime_seconds"] < 1 for row in found)
    cores = os.cpu_count() or 1
    assert all(0 <= row["cpu_seconds"] <= cores * row["window_seconds"] + 0.02 for row in found)
    assert any(row["cpu_seconds"] > 0 for row in found)
    assert {row["platform"] for row in found} == {"wasmtime-speed:here", "wasmtime-none:here"}
    windows = Counter(row["window_id"] for row in found)
    for row in found:
        assert len(row["corunners"]) == windows[row["window_id"]] - 1
    assert sorted({progress.done for progress in seen}) == list(range(10))
    assert all(progress.total == 10 and progress.remaining_seconds >= 0 for progress in seen)

    before = Dataset(tmp_path).version()
    again = measure(campaign, tmp_path, MeasureOptions())
    assert (again.already, again.ok, again.finished) == (10, 0, True)
    assert Dataset(tmp_path).version() == before


def test_asking_for_more_measures_only_what_is_new(tmp_path: Path, quick) -> None:
    measure(quick(sets=2), tmp_path, MeasureOptions())
    summary = measure(quick(sets=4), tmp_path, MeasureOptions())
    assert (summary.already, summary.ok) == (6, 2)


def test_features_say_what_a_workload_executes_and_where(tmp_path: Path, quick) -> None:
    measure(quick(sets=0), tmp_path, MeasureOptions())
    runs = Dataset(tmp_path).read()
    assert runs.workload_features is not None
    assert runs.platform_features is not None
    workloads = {row["workload"]: row for row in runs.workload_features.to_pylist()}
    assert set(workloads) == {"sort-s", "edit-s"}
    sort = workloads["sort-s"]
    assert (sort["family"], sort["size"], sort["kernel"]) == ("sorting_graphs_strings", "s", "sort")
    opcodes = {name: value for name, value in sort.items() if name.startswith("opcode_")}
    assert sum(opcodes.values()) == sort["instructions"] > 1e6
    assert opcodes["opcode_i32_load"] > 0 == opcodes["opcode_f64_mul"]
    platforms = {row["platform"]: row for row in runs.platform_features.to_pylist()}
    assert set(platforms) == {"wasmtime-speed:here", "wasmtime-none:here"}
    speed = platforms["wasmtime-speed:here"]
    assert speed["engine_optimizes"] is True
    assert platforms["wasmtime-none:here"]["engine_optimizes"] is False
    assert speed["cores"] >= 1
    assert -20 <= speed.pop("niceness") <= 19
    numbers = [value for value in speed.values() if type(value) in (int, float)]
    assert 0 not in numbers  # what is not known is null


def test_a_workload_that_traps_fails_and_the_campaign_goes_on(
    tmp_path: Path, quick, make_workload
) -> None:
    trap = make_workload("trap", "(drop (i32.div_u (i32.const 1) (i32.const 0)))")
    campaign = quick(workloads=["sort-s", "edit-s", trap], engines=["speed"], sets=12)
    data = tmp_path / "data"
    summary = measure(campaign, data, MeasureOptions())
    assert summary.finished
    assert summary.failed > 0 < summary.ok
    assert any("trap" in warning for warning in summary.warnings)  # its counts are unknown
    found = rows(data)
    alone = [row for row in found if row["workload"] == "trap" and not row["corunners"]]
    assert [(row["status"], row["runtime_seconds"]) for row in alone] == [("failed", None)]
    assert "divide by zero" in alone[0]["reason"]
    beside = [row for row in found if "trap" in row["corunners"]]
    assert beside
    assert {row["status"] for row in beside} == {"failed"}
    assert all("trap alone ended as failed" in row["reason"] for row in beside)
    assert any(row["status"] == "ok" and row["corunners"] for row in found)


def test_a_co_runner_that_fails_is_named(tmp_path: Path, quick, make_workload) -> None:
    trap = make_workload("trap", "unreachable")
    campaign = quick(workloads=["sort-s", trap], engines=["speed"], solo_repeats=0, sets=4)
    measure(campaign, tmp_path / "data", MeasureOptions())
    reasons = {row["workload"]: row["reason"] for row in rows(tmp_path / "data") if row["reason"]}
    assert "unreachable" in reasons["trap"]
    assert reasons["sort-s"] == "a co-runner failed: trap"


def test_a_workload_that_hangs_times_out(tmp_path: Path, quick, make_workload) -> None:
    hang = make_workload("hang", "(loop $l (br $l))")
    slow = make_workload("slow", "", "(loop $l (br $l))")
    campaign = quick(workloads=["sort-s", hang, slow], engines=["speed"], sets=0)
    # What hangs cannot be counted either; that is given up after some billion instructions.
    summary = measure(campaign, tmp_path / "data", MeasureOptions(timeout_seconds=1.5))
    assert (summary.timeout, summary.ok, summary.finished) == (2, 1, True)
    reasons = {row["workload"]: row["reason"] for row in rows(tmp_path / "data")}
    assert reasons["hang"] == "a repetition took more than 1.5 s"
    assert reasons["slow"] == "set-up took more than 1.5 s"


def test_disturbed_windows_are_kept_repeated_and_given_up(tmp_path: Path, quick) -> None:
    nothing = -1.0  # more is lost than that by whoever loses nothing
    campaign = quick(workloads=["sort-s"], engines=["speed"], sets=1)
    summary = measure(campaign, tmp_path, MeasureOptions(most_disturbed_ratio=nothing, attempts=2))
    assert (summary.contaminated, summary.given_up, summary.finished) == (4, 2, True)
    found = rows(tmp_path)
    assert {row["status"] for row in found} == {"contaminated"}
    assert all(row["runtime_seconds"] is None and row["beats"] > 0 for row in found)
    assert all(re.match("a member lost [0-9]+% of its time", row["reason"]) for row in found)
    assert {row["attempt"] for row in found} == {0, 1}
    # More attempts go on where the last ones ended.
    summary = measure(campaign, tmp_path, MeasureOptions(attempts=9))
    assert (summary.already, summary.ok) == (0, 2)
    summary = measure(campaign, tmp_path, MeasureOptions(most_disturbed_ratio=nothing, attempts=9))
    assert (summary.already, summary.ok) == (2, 0)


def test_no_window_begins_that_time_does_not_allow(tmp_path: Path, quick) -> None:
    summary = measure(quick(), tmp_path, MeasureOptions(time_budget_seconds=0.0))
    assert (summary.ok, summary.remaining, summary.finished) == (0, 10, False)
    assert summary.elapsed_seconds < 5


RUN = """
import sys
from jostle.collect import Campaign, Interrupted, MeasureOptions, measure
from jostle.collect import CampaignProgress
campaign = Campaign(workloads=["sort-s", "edit-s"], engines=["speed", "none"], solo_repeats=1,
                    sets=int(sys.argv[2]), window_seconds=0.03, device="here")
def say(progress):
    print(progress.done, flush=True)
try:
    measure(campaign, sys.argv[1], MeasureOptions(attempts=9), progress=say)
except Interrupted as interrupted:
    print("interrupted", interrupted.summary.ok, flush=True)
    sys.exit(130)
"""


def started(dataset: Path, sets: int) -> subprocess.Popen[str]:
    """A campaign in another process, once it has measured some windows."""
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, str(dataset), str(sets)],
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 6:
            break
    return process


def test_killed_in_the_middle_it_resumes_without_loss_or_double(tmp_path: Path, quick) -> None:
    process = started(tmp_path, 12)
    process.kill()
    rest = process.communicate()[0].split()
    reported = int(rest[-1]) if rest else 6
    campaign = quick(sets=12)
    summary = measure(campaign, tmp_path, MeasureOptions(attempts=9))
    # The window in flight is lost and nothing else.
    assert summary.already in (reported, reported + 1)
    assert summary.finished
    found = rows(tmp_path)
    assert len({row["run_id"] for row in found}) == len(found)
    expected = {campaign.window_id(planned, 0) for planned in campaign.plan()}
    usable = [row for row in found if row["status"] == "ok"]
    assert {row["window_id"].rsplit("-", 1)[0] + "-0" for row in usable} == expected


def test_interrupted_it_writes_what_it_has_and_can_be_read_all_the_time(
    tmp_path: Path, quick
) -> None:
    process = started(tmp_path, 3000)
    wait_for(lambda: Dataset(tmp_path).exists)
    for _ in range(50):
        Dataset(tmp_path).read()
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out = process.communicate(timeout=HANGS_SECONDS)[0].split()
    assert process.returncode == 130
    measured = len({row["window_id"] for row in rows(tmp_path) if row["status"] == "ok"})
    assert out[-2:] == ["interrupted", str(measured)]
    assert 6 <= measured < 3004
    assert (tmp_path / "journal").is_dir()
    assert all(file.stat().st_size == 0 for file in (tmp_path / "journal").iterdir())


@pytest.fixture
def command():
    return lambda *arguments: jostle_command("measure", *arguments)


def test_the_command_measures_and_says_so_in_json(tmp_path: Path, command) -> None:
    options = ["-w", "sort-s", "-e", "speed", "--solo", 1, "--sets", 1, "--window", 0.03]
    done = command("-o", tmp_path, *options, "--device", "here", "--json")
    assert done.exit_code == 0, done.output
    printed = json.loads(done.stdout)
    assert printed["schema"] == "measure/v1"
    assert (printed["planned"], printed["ok"], printed["finished"]) == (2, 2, True)
    assert printed["platforms"] == ["wasmtime-speed:here"]
    again = command("-o", tmp_path, *options, "--device", "here")
    assert "2 of 2 windows" in again.stdout


def test_the_command_lists_its_plan(tmp_path: Path, command) -> None:
    options = ["-w", "sort-*", "-e", "speed", "--sets", 3, "--solo", 1, "--device", "here"]
    printed = json.loads(command("-o", tmp_path / "none", *options, "--plan", "--json").stdout)
    assert printed["schema"] == "measure-plan/v1"
    assert len(printed["windows"]) == 6
    lines = command("-o", tmp_path / "none", *options, "--plan").stdout.splitlines()
    assert lines[-1].startswith(
        "# 3 windows alone and 3 of sets, 1.5 s or more in all, on wasmtime"
    )
    assert 'workload = ["sort-l", "sort-m", "sort-s"]' in lines
    assert not (tmp_path / "none").exists()


def test_a_campaign_as_a_file_is_the_same_campaign(tmp_path: Path, command) -> None:
    copied = tmp_path / 'b\t\\" c'
    copied.write_text("x")
    given = [
        "-w",
        "sort-*",
        "-e",
        "speed",
        "-e",
        "native",
        "--sets",
        3,
        "--seed",
        7,
        "--device",
        "here",
    ]
    given += [
        "-c",
        "sleep 0.01",
        "--name",
        "one",
        "--input",
        copied,
    ]
    words = ["--", "sh", "-c", "sleep 0.02; true"]
    file = tmp_path / "campaign.toml"
    file.write_text(command(*given, "--plan", *words).stdout)
    by_flags = json.loads(command(*given, "--plan", "--json", *words).stdout)
    assert json.loads(command(file, "--plan", "--json").stdout) == by_flags
    assert command(file, "--plan").stdout == file.read_text()
    # What the command line says stands over the file.
    more = json.loads(command(file, "--sets", 5, "--plan", "--json").stdout)
    assert more["campaign"] == by_flags["campaign"]
    assert len(more["windows"]) == len(by_flags["windows"]) + 2
    own = json.loads(command(file, "-w", "edit-s", "--plan", "--json").stdout)
    assert {"edit-s", "sort-s", "one"} <= {
        name for one in own["windows"] for name in one["members"]
    }


@pytest.mark.parametrize(
    "file", sorted(Path(__file__).parents[3].glob("studies/collect/*.toml")), ids=lambda p: p.stem
)
def test_campaigns_of_the_clone_can_be_measured(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command
) -> None:
    (tmp_path / "text.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    printed = json.loads(command(file, "--plan", "--json").stdout)
    assert len(printed["windows"]) > 50


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sets = 3\nsettings = 2", "no option is called 'settings'"),
        ("sets = 'many'", "sets: 'many' is no int"),
        ("solo = true", "solo: True is no int"),
        ("sets =", "not a campaign"),
        ("workload = 'a'", "a list of names"),
        ("[[job]]\ncommand = 'true'\nfolder = 'x'", "no option of a job is called 'folder'"),
        ("[[job]]\ncommand = 'a \"'", "cannot be split"),
        ("[[job]]\ncommand = 3", "cannot be split"),
    ],
)
def test_what_is_no_campaign_says_where(tmp_path: Path, command, text: str, words: str) -> None:
    file = tmp_path / "campaign.toml"
    file.write_text(text)
    done = command(file, "--plan")
    assert done.exit_code == UsageError.exit_code
    assert words in done.output
    assert str(file) in done.output
    file.unlink()
    assert command(file, "--plan").exit_code == UnreadableFile.exit_code


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_beside_two_stressors_only_and_on_to_an_answer(tmp_path: Path, command) -> None:
    """Measured, learned from, and asked about a pair that never ran: what was left out is met nowhere."""
    folder = tmp_path / "fleet"
    options = ["-o", folder, "-w", "edit-s", "-e", "speed", "--sets", 0, "--solo", 1]
    options += ["--stressors", "core", "--stressors", "probe-cache", "--device", "here"]
    done = command(*options, "--window", 0.02, "--json")
    assert done.exit_code == 0, done.output
    # All three alone, the workload beside each stressor, and stressors beside each other.
    assert json.loads(done.stdout)["ok"] == 3 + 2 + 3
    model = jostle.fit(str(folder), jostle.Probes())
    runs = read_runs(folder)
    assert set(runs.colocations.workload_names) == {"edit-s", "probe-cache", "probe-core"}
    asked = Colocations.from_columns(
        workload=["edit-s"], platform=["wasmtime-speed:here"], corunners=[["edit-s"]]
    )
    assert 0 < model.predict(asked)[0] < np.inf
    unknown = command(*options, "--stressors", "hog", "--plan")
    assert unknown.exit_code == UnknownName.exit_code


def test_the_command_measures_what_was_suggested_here_and_nothing_else(
    tmp_path: Path, command
) -> None:
    table = tmp_path / "next.csv"
    here, rows = "wasmtime-speed:here", "workload,platform,corunners\n"
    table.write_text(
        rows
        + f"sort-s,{here},chase-s\nsort-s,far:away,\nedit-s,{here},\nmine,{here},\nedit-s,{here},\n"
    )
    options = ["-o", tmp_path / "d", "--suggested", table, "--device", "here", "-e", "speed"]
    listed = command(*options, "--plan", "--json")
    assert [w["members"] for w in json.loads(listed.stdout)["windows"]] == [
        ["chase-s", "sort-s"],
        ["edit-s"],
        ["edit-s"],
    ]
    assert "far:away" in listed.stderr
    assert "mine" in listed.stderr
    done = command(*options, "--window", 0.03, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ok"] == 3
    assert len(read_runs(tmp_path / "d").ok()) == 4
    assert read_runs(tmp_path / "d").is_chosen.all()
    # The same table again has nothing left to measure.
    again = json.loads(command(*options, "--window", 0.03, "--json").stdout)
    assert (again["ok"], again["finished"]) == (0, True)
    assert len(read_runs(tmp_path / "d").ok()) == 4
    for text, error in (
        (rows + "sort-s,far:away,\n", UsageError),
        (rows, UsageError),
        (rows + f",{here},\n", UsageError),
        ("workload,place\nsort-s,x\n", UsageError),
    ):
        table.write_text(text)
        assert command(*options, "--plan").exit_code in (error.exit_code, BadData.exit_code)
    for more in (["--probes"], ["--stressors", "cache"]):
        assert command(*options, *more, "--plan").exit_code == UsageError.exit_code
