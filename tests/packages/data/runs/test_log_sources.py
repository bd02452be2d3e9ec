"""Logs as their sources write them: one log in every shape is the same runs, and what it lacks is unknown."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.data import JobsImport, KubernetesImport, Runs, SacctImport, kind_of, read_runs
from jostle.errors import BadData, UnknownName, UnreadableFile, UsageError
from tests.command_line import assert_fails
from tests.command_line import jostle as run
from tests.packages.data.runs import log_sources_samples
from tests.packages.data.runs.log_sources_samples import (
    COLUMNS,
    EDGES,
    SHAPES,
    condor,
    fixed,
    lsf,
    made_jobs,
    nextflow,
    pbs,
    plain,
    qacct,
    sacct,
    sacct_json,
    sge,
)

PACKED: dict[str, Callable[[str], bytes]] = {
    "utf-8": str.encode,
    "a mark": lambda text: text.encode("utf-8-sig"),
    "crlf": lambda text: text.replace("\n", "\r\n").encode(),
    "utf-16": lambda text: text.encode("utf-16"),
    "gzip": lambda text: gzip.compress(text.encode()),
}


def read(
    folder: Path,
    text: str,
    kind: type[JobsImport] = JobsImport,
    packed: str = "utf-8",
    **options: Any,
) -> Runs:
    file = folder / "log.txt"
    file.write_bytes(PACKED[packed](text))
    return kind(file, **EDGES | options).read().runs()


def told(runs: Runs) -> list[Any]:
    parts = runs.stretches
    companies = parts.colocations.to_columns()["corunners"]
    rows = []
    for row, one in enumerate(runs.table.to_pylist()):
        at = np.flatnonzero(parts.row == row)
        rows.append((
            one["workload"], one["platform"], one["measured_at"], round(one["runtime_seconds"]),
            [(round(parts.seconds[i]), companies[i]) for i in at],
        ))  # fmt: skip
    return sorted(rows, key=repr)


@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), packed=st.sampled_from([*PACKED]))
def test_a_log_is_the_same_in_every_shape(
    shape: str, seed: int, packed: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made, options, has_memory = SHAPES[shape]
    jobs = made_jobs(seed)
    folder = tmp_path_factory.mktemp("logs")
    expected = read(folder, sacct(jobs), SacctImport)
    runs = read(folder, made(jobs), packed=packed, **options)
    assert told(runs) == told(expected)
    if has_memory:
        assert sorted(runs.peak_memory_bytes) == sorted(float(job[-1]) for job in jobs)
    if shape not in ("sge", "qacct", "lsf", "bjobs-json", "scontrol", "airflow"):
        assert set(runs.requested_memory_bytes) == {2.0**33}


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize(
    "form", ["%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p", "%Y/%m/%d %H:%M:%S", "%d.%m.%Y %H:%M:%S"]
)
def test_columns_are_named_and_days_are_read_as_the_column_tells(
    form: str, separator: str, tmp_path: Path
) -> None:
    jobs = made_jobs(5)
    expected = told(read(tmp_path, sacct(jobs)))
    assert told(read(tmp_path, plain(form, separator)(jobs), column=COLUMNS)) == expected


@pytest.mark.parametrize("role", [text.partition("=")[0] for text in COLUMNS])
def test_a_column_that_is_named_and_not_there_is_told(role: str, tmp_path: Path) -> None:
    named = {text.partition("=")[0]: text for text in COLUMNS} | {role: f"{role}=nowhere"}
    with pytest.raises(UnknownName, match="nowhere"):
        read(tmp_path, plain("%Y/%m/%d %H:%M:%S", ",")(made_jobs(5)), column=tuple(named.values()))


def test_a_day_that_may_be_two_is_asked_about(tmp_path: Path) -> None:
    text = "job,node,start,end,workload\n1,n,01/02/2026 08:00,01/02/2026 09:00,a\n"
    with pytest.raises(
        BadData, match=r"row 1 of jobs: the start '01/02/2026 08:00' is not a valid time"
    ):
        read(tmp_path, text)


def test_a_day_of_qacct_begins_with_the_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Univa's Grid Engine, which says -/- of what never was."""
    monkeypatch.setattr(log_sources_samples, "DAY", datetime(2026, 2, 1, tzinfo=UTC))
    jobs = made_jobs(5)
    never = qacct(jobs[:1]).replace("jobnumber    1000", "jobnumber    7")
    never = re.sub(r"(_time +).*", r"\1-/-", never).replace("exit_status  0", "exit_status  1")
    text = qacct(jobs, "%m/%d/%Y %H:%M:%S.000") + never
    path = tmp_path / "jobs.txt"
    path.write_text(text)
    log = JobsImport(path, **EDGES).read()
    assert told(log.runs()) == told(read(tmp_path, sacct(jobs), SacctImport))
    assert log.left_aside["they never started"] == 1


def test_covariates_are_read_by_one_rule(tmp_path: Path) -> None:
    jobs = made_jobs(3)
    for raw in (False, True):
        runs = read(
            tmp_path, nextflow(jobs, raw=raw), covariate=("input_bytes=rchar", "host=hostname")
        )
        assert sorted(runs.covariates["input_bytes"]) == [float(job[0]) for job in jobs]
        assert runs.covariates["host"].tolist() == runs.table.column("platform").to_pylist()
    text = nextflow(jobs).replace("\t1003\n", "\t1.5 GB\n").replace("\t1005\n", "\t-\n")
    for job in jobs:
        text = text.replace(f"\t{job[0]}\n", f"\t{job[0]} KB\n")
    values = read(tmp_path, text, covariate=("rchar",)).covariates["rchar"]
    assert sum(np.isnan(values)) == 1
    assert 1.5 * 2**30 in values
    assert 1004 * 1024.0 in values


def test_a_task_of_nextflow_stages_its_files_between_start_and_complete(tmp_path: Path) -> None:
    """What it ran for is less than that; what it read stands for its input where no covariate is named."""
    jobs = made_jobs(3)
    lines = nextflow(jobs, raw=True).splitlines()
    cells = [line.split("\t") for line in lines]
    for row in cells[1:]:
        row[6] = str(int(row[6]) // 2)
    runs = read(tmp_path, "\n".join("\t".join(row) for row in cells) + "\n")
    assert len(runs) == len(read(tmp_path, "\n".join(lines) + "\n"))
    assert sorted(runs.covariates["input_bytes"]) == [float(job[0]) for job in jobs]


def test_the_jobs_of_one_user_leave_their_co_runners_unknown(tmp_path: Path) -> None:
    jobs = [job for job in made_jobs(1, 30) if job[1] == "ada"]
    for made in (sacct, sacct_json, pbs, sge, lsf, condor):
        assert read(tmp_path, made(jobs)).unknown_corunners.all()
    assert not read(tmp_path, sacct(jobs), all_jobs=True).unknown_corunners.any()
    log = SacctImport(tmp_path / "log.txt").read()
    assert any("all jobs are of one user, 'ada': printed without -a" in note for note in log.notes)


HEAD = "JobID|User|JobName|NodeList|Start|End|State|ElapsedRaw"


@pytest.mark.parametrize(
    "lost",
    [
        "9|bo|x|c01|{0}T08:10:00|Unknown|COMPLETED|600",
        "9|bo|x|c01|{0}T08:10:00|{0}T08:20:00|COMPLETED|60",
        "9|bo|x|c01|{0}T08:20:00|{0}T08:10:00|COMPLETED|",
        "9|bo|x|c01|2026-01-32T08:10:00|{0}T08:20:00|COMPLETED|600",
        "9|bo|c01|{0}T08:10:00|{0}T08:20:00|COMPLETED|600",
    ],
)
def test_who_was_beside_a_job_whose_times_are_lost_is_unknown(lost: str, tmp_path: Path) -> None:
    rows = [
        "1|ada|a|c01|{0}T08:00:00|{0}T08:30:00|COMPLETED|1800",
        "2|bo|b|c02|{0}T08:00:00|{0}T08:30:00|COMPLETED|1800",
        "3|bo|b|c01|{0}T07:00:00|{0}T07:30:00|COMPLETED|1800",
        lost,
    ]
    text = "\n".join([HEAD, *(row.format("2026-01-27") for row in rows)]) + "\n"
    runs = read(tmp_path, text, SacctImport)
    ids = [name.split(":")[1] for name in runs.table.column("run_id").to_pylist()]
    unknown = dict(zip(ids, runs.unknown_corunners.tolist(), strict=True))
    assert unknown["1"]
    assert not unknown["2"]
    if "01-32" not in lost:  # of which nobody knows when it began
        assert not unknown["3"]


def test_memory_of_steps_is_that_of_their_job_and_too_little_is_not_ok(tmp_path: Path) -> None:
    head = HEAD + "|MaxRSS|NTasks|ReqMem|AllocCPUS\n"
    times = "c01|2026-01-27T08:00:00|2026-01-27T08:30:00"
    text = head + (
        f"1|ada|a|{times}|COMPLETED|1800|||2Gc|4\n1.0||a|{times}|COMPLETED|1800|1000K|4||4\n"
        f"2|bo|b|{times}|COMPLETED|1800|||4000Mn|4\n2.0||b|{times}|OUT_OF_MEMORY|1800|3900M|1||4\n"
        f"3|bo|c|{times}|OUT_OF_MEMORY|1800|||1G|1\n"
    )
    rows = {row["workload"]: row for row in read(tmp_path, text, SacctImport).table.to_pylist()}
    assert {name: row["status"] for name, row in rows.items()} == {
        "ada/a": "ok", "bo/b": "out_of_memory", "bo/c": "out_of_memory",
    }  # fmt: skip
    assert [rows[n]["peak_memory_bytes"] for n in sorted(rows)] == [4000 * 1024, 3900 * 2**20, None]
    requested = [rows[name]["requested_memory_bytes"] for name in sorted(rows)]
    assert requested == [8 * 2**30, 4000 * 2**20, 2**30]


def test_a_heading_between_a_job_and_its_steps_parts_nothing(tmp_path: Path) -> None:
    head = HEAD + "|MaxRSS\n"
    times = "c01|2026-01-27T08:00:00|2026-01-27T08:30:00|COMPLETED|1800"
    text = head + f"1|ada|a|{times}|\n" + head + f"1.batch||batch|{times}|3M\n2|bo|b|{times}|\n"
    runs = read(tmp_path, text, SacctImport)
    assert np.nanmax(runs.peak_memory_bytes) == 3 * 2**20


@pytest.mark.parametrize("shape", [sge, lsf])
def test_a_record_that_is_cut_off_is_counted_and_leaves_others_unknown(
    shape: Callable[[list[Any]], str], tmp_path: Path
) -> None:
    jobs = made_jobs(0, 3)
    text = shape([(*job[:3], "c01", 0, 600, job[6]) for job in jobs])
    at = text.rstrip("\n").rindex("\n")
    (tmp_path / "log.txt").write_text(text[: at + 70])
    made, _ = JobsImport(tmp_path / "log.txt", **EDGES).read().write(tmp_path / "runs")
    runs = read_runs(tmp_path / "runs")
    assert (len(runs), sum(made.left_aside.values())) == (2, 1)
    # Grid Engine names the node first, LSF after the times.
    assert runs.unknown_corunners.all() == (shape is sge)


def test_durations_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    text = "job,node,start,took,workload\n" + "".join(
        f"{n},n,2026-01-27T08:00:00,{took},a{n}\n"
        for n, took in enumerate(("PT1H", "1:00:00", "soon"))
    )
    log = JobsImport(tmp_path / "log.txt", **EDGES, column=("took=took",))
    (tmp_path / "log.txt").write_text(text)
    read_log = log.read()
    assert read_log.runs().runtime_seconds.tolist() == [3600.0] * 2
    assert read_log.left_aside["a time of theirs cannot be read"] == 1
    (tmp_path / "log.txt").write_text(text.replace("PT1H", "late").replace("1:00:00", "later"))
    with pytest.raises(BadData, match=r"row 1 of jobs: the took 'late' is not a valid duration"):
        log.read()


def test_cells_that_cannot_be_read_are_unknown_and_named_by_row_and_column(tmp_path: Path) -> None:
    head = "job,node,start,end,workload,peak_rss,reqmem,input\n"
    times = "2026-01-27T08:00:00,2026-01-27T09:00:00"
    cells = ["2 GB,4G,1 MB", "2..1 GB,4G,3 MB", ",4X,2 MB", "-5 GB,4G,4 MB", "0,,5 MB", "1 GB,4G,?"]
    text = head + "".join(f"{n},n{n},{times},a{n},{one}\n" for n, one in enumerate(cells))
    (tmp_path / "log.txt").write_text(text)
    log = JobsImport(tmp_path / "log.txt", **EDGES, covariate=("input",)).read()
    made, _ = log.write(tmp_path / "runs")
    rows = sorted(read_runs(tmp_path / "runs").table.to_pylist(), key=lambda row: row["workload"])
    peaks = [2 * 2**30, None, None, None, None, 2**30]
    assert [row["peak_memory_bytes"] for row in rows] == peaks
    limits = [4 * 2**30, 4 * 2**30, None, 4 * 2**30, None, 4 * 2**30]
    assert [row["requested_memory_bytes"] for row in rows] == limits
    assert [row["input"] for row in rows] == [
        2**20,
        3 * 2**20,
        2 * 2**20,
        4 * 2**20,
        5 * 2**20,
        None,
    ]
    told = "cells of {0} cannot be read and count as unknown, the first in row {1} of jobs: the {0} {2!r}"
    assert f"2 {told.format('peak', 2, '2..1 GB')}" in log.notes
    assert f"1 {told.format('requested', 3, '4X')}" in log.notes
    assert "covariate input: sizes; not known where it is '?'" in made.understood


def test_states_that_are_numbers_are_asked_about(tmp_path: Path) -> None:
    text = "job,node,start,end,workload,state\n" + "".join(
        f"{n},n,2026-01-27T08:00:00,2026-01-27T09:00:00,a{n},{state}\n"
        for n, state in enumerate(("0", "3", "137"))
    )
    with pytest.raises(BadData, match=r"only 0 is known: 137, 3.*such as 137=failed"):
        read(tmp_path, text)
    told: dict[str, Any] = {"state": ("137=out_of_memory", "3=timeout")}
    status = read(tmp_path, text, **told).table.column("status").to_pylist()
    assert sorted(status) == ["ok", "out_of_memory", "timeout"]
    codes = (
        read(tmp_path, text.replace("state\n", "exit_code\n")).table.column("status").to_pylist()
    )
    assert sorted(codes) == ["failed", "failed", "ok"]


def test_what_lacks_is_answered_with_the_command_that_prints_it(tmp_path: Path) -> None:
    text = "task_id\tname\tstatus\texit\tsubmit\tduration\trealtime\n1\tX (s)\tCOMPLETED\t0\t-\t4m\t4m\n"
    with pytest.raises(BadData, match=r"none start.*trace\.fields = 'task_id,process,name"):
        read(tmp_path, text)
    with pytest.raises(BadData, match=r"jobnam is cut off with a \+.*-P|is cut off"):
        read(tmp_path, fixed(made_jobs(1)).replace("          align", "         align+"))
    with pytest.raises(UnreadableFile, match="kubectl get pods"):
        read(tmp_path, "NAME  READY\nweb-0  1/1\n", KubernetesImport)


def pod(name: str, start: str | None, end: str | None, **more: Any) -> dict[str, Any]:
    main = {"exitCode": more.get("code", 0), "reason": more.get("reason", "Completed")}
    main |= {"startedAt": start, "finishedAt": end}
    statuses = [{"name": "main", "state": {"terminated": main}}, *more.get("others", ())]
    containers = [
        {"name": one["name"], "resources": {"limits": {"memory": "512Mi"}}} for one in statuses
    ]
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-1", "namespace": more.get("namespace", name), "uid": name,
            "ownerReferences": [{"kind": "Job", "name": name, "controller": True}],
        },
        "spec": {"nodeName": "w1", "containers": containers},
        "status": {
            "phase": more.get("phase", "Succeeded"), "startTime": "2026-01-27T08:00:00Z",
            "containerStatuses": statuses,
        },
    }  # fmt: skip


@pytest.mark.parametrize("killed", [True, False])
@pytest.mark.parametrize("called", ["istio-proxy", "my-agent"])
def test_a_pod_is_its_main_container(killed: bool, called: str, tmp_path: Path) -> None:
    times: dict[str, Any] = {"startedAt": "2026-01-27T08:00:00Z"}
    ended = times | {"exitCode": 137, "finishedAt": "2026-01-27T08:40:00Z"}
    beside = {"name": called, "state": {"terminated": ended} if killed else {"running": times}}
    died: dict[str, Any] = {"code": 137, "phase": "Failed"}
    pods = [
        pod("a", "2026-01-27T08:00:00Z", "2026-01-27T08:30:00Z", phase="Failed", others=[beside]),
        pod("b", "2026-01-27T07:00:00Z", "2026-01-27T08:10:00Z"),
        pod("c", "2026-01-27T08:40:00Z", "2026-01-27T08:50:00Z", **died, reason="OOMKilled"),
    ]
    options: dict[str, Any] = {}
    if called != "istio-proxy":
        options["container"] = ("main",)
    runs = read(tmp_path, json.dumps({"items": pods}), KubernetesImport, **options)
    rows = {row["workload"]: row for row in runs.table.to_pylist()}
    assert rows["a/a"]["runtime_seconds"] == 1800
    assert rows["a/a"]["requested_memory_bytes"] == 512 * 2**20
    assert rows["c/c"]["status"] == "out_of_memory"
    assert rows["c/c"]["corunners"] == []
    if called == "my-agent":
        pods[0]["metadata"]["annotations"] = {"kubectl.kubernetes.io/default-container": "main"}
        again = read(tmp_path, json.dumps({"items": pods}), KubernetesImport)
        assert again.table.equals(runs.table)


@pytest.mark.parametrize("nothing", [None, "0001-01-01T00:00:00Z"])
def test_pods_beside_one_whose_times_are_not_told_have_unknown_co_runners(
    nothing: str | None, tmp_path: Path
) -> None:
    pods = [
        pod("a", "2026-01-27T08:10:00Z", "2026-01-27T08:30:00Z"),
        pod("b", "2026-01-27T07:00:00Z", "2026-01-27T07:50:00Z"),
        pod("lost", nothing, nothing, code=137, reason="ContainerStatusUnknown", phase="Failed"),
    ]
    for shape in (json.dumps({"items": pods}), "\n".join(json.dumps(one) for one in pods)):
        runs = read(tmp_path, shape, KubernetesImport)
        unknown = dict(
            zip(runs.table.column("workload").to_pylist(), runs.unknown_corunners, strict=True)
        )
        assert unknown == {"a/a": True, "b/b": False}


@pytest.mark.parametrize(
    ("conditions", "deleted", "unknown"),
    [
        ([("Ready", "False", "08:05")], None, set()),
        ([("Ready", "False", "08:05"), ("ContainersReady", "False", "08:15")], None, {"a/a"}),
        ([("Ready", "False", "08:05"), ("Ready", "True", "08:40")], None, set()),
        ([("Ready", "False", "08:05"), ("PodScheduled", "False", "08:40")], None, set()),
        ([("Ready", "False", "08:05")], "08:20", {"a/a"}),
    ],
)
def test_a_lost_pod_was_there_until_it_is_last_told_of(
    conditions: list[tuple[str, str, str]], deleted: str | None, unknown: set[str], tmp_path: Path
) -> None:
    day = "2026-01-27T"
    lost = pod("lost", None, None, code=137, reason="ContainerStatusUnknown", phase="Failed")
    lost["status"]["conditions"] = [
        {"type": kind, "status": status, "lastTransitionTime": f"{day}{time}:00Z"}
        for kind, status, time in conditions
    ]
    if deleted is not None:
        lost["metadata"]["deletionTimestamp"] = f"{day}{deleted}:00Z"
    pods = [
        pod("a", f"{day}08:10:00Z", f"{day}08:30:00Z"),
        pod("b", f"{day}08:35:00Z", f"{day}08:50:00Z"),
        lost,
    ]
    runs = read(tmp_path, json.dumps({"items": pods}), KubernetesImport)
    names = runs.table.column("workload").to_pylist()
    assert {n for n, one in zip(names, runs.unknown_corunners, strict=True) if one} == unknown


def test_whose_end_is_lost_was_there_for_twice_the_longest_of_its_name(tmp_path: Path) -> None:
    day = "2026-01-27T"
    rows = [
        f"1|ada|x|c02|{day}06:00:00|{day}06:05:00|COMPLETED|300",
        f"2|ada|x|c02|{day}07:00:00|{day}07:10:00|COMPLETED|600",
        f"3|ada|x|c01|{day}08:00:00|Unknown|COMPLETED|",
        f"4|bo|y|c01|{day}08:15:00|{day}08:25:00|COMPLETED|600",
        f"5|bo|y|c01|{day}08:25:00|{day}08:35:00|COMPLETED|600",
        f"6|bo|y|c02|{day}08:15:00|{day}08:25:00|COMPLETED|600",
    ]
    runs = read(tmp_path, "\n".join([HEAD, *rows]) + "\n", SacctImport)
    ids = [name.split(":")[1] for name in runs.table.column("run_id").to_pylist()]
    assert {n for n, one in zip(ids, runs.unknown_corunners, strict=True) if one} == {"4"}


@pytest.mark.parametrize("shape", SHAPES)
def test_one_command_takes_every_log(shape: str, tmp_path: Path) -> None:
    made, options, _ = SHAPES[shape]
    path = tmp_path / "log"
    path.write_text(made(made_jobs(2, 40)), "utf-8")
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    document = json.loads(
        run("import", str(path), *words, "-o", str(tmp_path / "d"), "--json").stdout
    )
    assert len(read_runs(tmp_path / "d")) == document["runs"] > 20
    assert any("columns of" in text for text in document["understood"])


def test_a_kind_may_be_said_and_what_nothing_tells_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(pbs(made_jobs(2, 40)), "utf-8")
    for words in (["--kind", "jobs"], ["--kind=jobs"]):
        run("import", *words, str(path), "-o", str(tmp_path / words[0]))
        assert read_runs(tmp_path / words[0])
    path.write_text("hello\n", "utf-8")
    with pytest.raises(UsageError, match="nothing tells what"):
        kind_of(str(path))
    assert_fails(UsageError, "nothing tells", "import", str(path), "-o", str(tmp_path / "no"))
    assert_fails(UsageError, "Missing argument", "import", "-o", str(tmp_path / "no"))
    assert_fails(UsageError, "has an option --nonsense", "import", "--nonsense", str(path))


def test_a_word_of_an_option_before_the_file_is_not_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(pbs(made_jobs(2, 40)), "utf-8")
    run("import", "-o", str(tmp_path / "d"), "--timezone", "UTC", str(path))
    assert read_runs(tmp_path / "d")


def test_a_long_log_that_is_refused_at_its_first_lines_ends(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes(b"workload,platform\n" + b"a,b\n" * 12_000_000)
    command = [sys.executable, "-m", "jostle", "import", "log.csv", "--kind", "jobs", "-o", "o"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert found.returncode == 4, found.stderr
    assert "no column is called job" in found.stderr


def test_an_attempt_that_airflow_tries_again_ran(tmp_path: Path) -> None:
    day, head = (
        "2026-03-01 1",
        "dag_id,task_id,run_id,state,hostname,start_date,end_date,try_number",
    )
    rows = [
        f"etl,load,r1,up_for_retry,n1,{day}0:00:00+00:00,{day}0:02:00+00:00,1",
        f"etl,load,r1,success,n1,{day}0:05:00+00:00,{day}0:15:00+00:00,2",
        "etl,load,r2,up_for_retry,,,,1",
        f"etl,clean,r1,success,n1,{day}0:01:00+00:00,{day}0:03:00+00:00,1",
    ]
    file = tmp_path / "tasks.csv"
    file.write_text("\n".join([head, *rows]) + "\n")
    span: dict[str, Any] = {"since": "2026-03-01T09:00:00", "until": "2026-03-01T11:00:00"}
    JobsImport(file, preset="airflow", **span).read().write(tmp_path / "o")
    runs = read_runs(tmp_path / "o")
    assert runs.table.column("status").to_pylist() == ["failed", "ok", "ok"]
    clean = runs.table.column("stretches").to_pylist()[1]
    assert [one["corunners"] for one in clean] == [["etl/load"], []]
