"""The table of docs/how-to/logs.md: what each command prints, with the fields that it names, is imported by
the command beside it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jostle.cli import exit_code
from jostle.data import JobsImport, read_runs
from jostle.data.read._job_presets import PRESETS
from tests.packages.data.runs.log_sources_samples import (
    EDGES,
    airflow,
    clock,
    condor_json,
    epoch,
    lsf,
    made_jobs,
    pbs,
    qstat_xml,
    sge,
    words,
)
from tests.packages.data.runs.windows_samples import histogram

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/logs.md").read_text("utf-8")
JOBS = made_jobs(3, 40)


def ctime(second: int) -> str:
    return clock(second, "%b %d %H:%M:%S %Y")


def cells_of(job: Any, form: Callable[[int], str], size: str) -> dict[str, Any]:
    """What a source prints of a job, by its names of fields in lower case."""
    number, user, name, node, start, end, peak = job
    each = {
        "jobid task_id clusterid": number, "procid": 0, "user owner": user, "jobname job_name": name,
        "name process": f"{user}/{name}", "cmd": f"/bin/{name}", "nodelist hostname exec_host": node,
        "lastremotehost": f"slot1@{node}", "start starttime start_time submit": form(start),
        "end complete finish_time": form(end), "jobcurrentstartdate": epoch(start),
        "completiondate": epoch(end), "state status stat": "COMPLETED", "jobstatus": 4, "attempt": 1,
        "elapsedraw": end - start, "realtime": words(end - start), "memoryusage": peak // 2**20,
        "maxrss peak_rss max_mem": f"{peak // 1024}{size}", "reqmem memory": f"{2**23}{size}",
        "requestmemory": 8192, "rchar": f"{number}{size}",
    }  # fmt: skip
    return {one: cell for names, cell in each.items() for one in names.split()}


def printed(
    fields: str, mark: str, form: Callable[[int], str] = clock, size: str = "K"
) -> list[dict[str, Any]]:
    names = re.split(mark, fields)
    return [{name: cells_of(job, form, size)[name.lower()] for name in names} for job in JOBS]


def table(rows: list[dict[str, Any]], separator: str) -> str:
    lines = [list(rows[0]), *(list(row.values()) for row in rows)]
    return "".join(separator.join(map(str, line)) + "\n" for line in lines)


SACCT = re.findall(r"-o (JobID\S+)", PRESETS["sacct"].printed_by)[0]
TRACE = re.findall(r"trace\.fields = '([^']+)'", PRESETS["nextflow"].printed_by)[0]
BJOBS = re.findall(r"-o '(.*?) delimiter", PRESETS["bjobs"].printed_by)[0]
CONDOR = re.findall(r"-attributes (\S+)", PRESETS["htcondor"].printed_by)[0]
PRINTED = {
    "sacct": table(printed(SACCT, ","), "|"),
    "nextflow": table(printed(TRACE, ",", size=" KB"), "\t"),
    "bjobs": table(printed(BJOBS, " ", ctime, size=" KB"), ","),
    "htcondor": json.dumps(printed(CONDOR, ",")),
}


@pytest.mark.parametrize("source", PRINTED)
def test_what_a_command_prints_is_all_that_its_source_needs(source: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(PRINTED[source])
    runs = JobsImport(tmp_path / "log", **EDGES).read().runs()
    assert len(runs) == len(JOBS)
    assert sorted(runs.peak_memory_bytes) == pytest.approx(sorted(job[-1] for job in JOBS))
    assert {job[1] for job in JOBS} == {
        name.split("/")[0] for name in runs.table.column("workload").to_pylist()
    }


def pods() -> str:
    def one(job: Any) -> dict[str, Any]:
        number, user, name, node, start, end, _ = job
        state = {
            "terminated": {
                "startedAt": f"{clock(start)}Z",
                "finishedAt": f"{clock(end)}Z",
                "exitCode": 0,
            }
        }
        made = [{"kind": "Job", "name": f"{name}-{29000000 + number}"}]
        about = {
            "name": f"{name}-{number}",
            "namespace": user,
            "uid": f"u{number}",
            "ownerReferences": made,
        }
        spec = {"nodeName": node, "containers": [{"name": "main"}, {"name": "proxy"}]}
        listed = [{"name": "main", "state": state}, {"name": "proxy", "state": {"running": {}}}]
        status = {"phase": "Running", "containerStatuses": listed}
        return {"kind": "Pod", "metadata": about, "spec": spec, "status": status}

    return json.dumps({"kind": "List", "items": [one(job) for job in JOBS]})


def series(*result: dict[str, Any]) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [*result]}})


MEMORY = {
    "metric": {
        "__name__": "container_memory_working_set_bytes",
        "pod": "web-1",
        "container": "web",
    },
    "values": [[1_764_201_600 + 600 * n, f"{10**9 + n}"] for n in range(300)],
}
FILES = {
    "sacct.txt": [PRINTED["sacct"]],
    "pods.json": [pods()],
    "trace.txt": [PRINTED["nextflow"]],
    "all.tsv": ["rule\ts\th:m:s\tmax_rss\nmap\t60.5\t0:01:00\t412.5\nsort\t9.5\t0:00:09\t-\n"],
    "FILE": [made(JOBS) for made in (condor_json, pbs, qstat_xml, sge, lsf, airflow)]
    + [PRINTED["bjobs"]],
    "ttft.json": [series(*histogram("chat", "0", [4, 8], [0.1, 0.2]))],
    "memory.json": [series(MEMORY)],
}
COMMANDS = re.findall(
    r"`(jostle import (\S+) [^`]*-o [^`]*)`", PAGE.split("| source |")[1].split("\n\n")[0]
)


def test_every_command_of_the_page_takes_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {file for _, file in COMMANDS} == set(FILES)
    for command, file in COMMANDS:
        for number, text in enumerate(FILES[file]):
            Path(file).write_text(text)
            assert exit_code([*shlex.split(command)[1:], "-o", f"{file}-{number}"]) == 0, command
            if file != "memory.json":
                assert len(read_runs(f"{file}-{number}")) > 0
    assert all(fields in PAGE for fields in (SACCT, TRACE, BJOBS))
