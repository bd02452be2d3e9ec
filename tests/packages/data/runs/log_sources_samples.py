"""One log as each of its sources writes it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

DAY = datetime(2026, 1, 27, tzinfo=UTC)
EDGES: dict[str, Any] = {"since": "2026-01-01T00:00:00Z", "until": "2026-03-01T00:00:00Z"}
Job = tuple[int, str, str, str, int, int, int]  # number, user, name, node, start, end, bytes


def made_jobs(seed: int, n: int = 12) -> list[Job]:
    draw = random.Random(seed)
    jobs = []
    for number in range(n):
        start = draw.randint(0, 4000)
        jobs.append((
            1000 + number, ("ada", "bo")[number % 2], draw.choice(["align", "sort"]),
            draw.choice(["c01", "c02"]), start, start + draw.randint(10, 900),
            draw.randint(1, 4000) * 2**20,
        ))  # fmt: skip
    return jobs


def clock(second: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return (DAY + timedelta(seconds=second)).strftime(form)


def epoch(second: int) -> int:
    return int((DAY + timedelta(seconds=second)).timestamp())


def span(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def words(seconds: int) -> str:
    parts = [(seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s")]
    return " ".join(f"{n}{unit}" for n, unit in parts if n) or "0s"


def sacct(jobs: list[Job]) -> str:
    lines = ["JobID|User|JobName|NodeList|Start|End|State|ElapsedRaw|MaxRSS|ReqMem"]
    for number, user, name, node, start, end, peak in jobs:
        times = f"{clock(start)}|{clock(end)}|COMPLETED|{end - start}"
        lines.append(f"{number}|{user}|{name}|{node}|{times}||8G")
        lines.append(f"{number}.batch||batch|{node}|{times}|{peak // 1024}K|")
        lines.append(f"{number}.0||{name}|{node}|{times}|1K|")
    return "\n".join(lines) + "\n"


def fixed(jobs: list[Job]) -> str:
    rows = [line.split("|") for line in sacct(jobs).splitlines()]
    dashes = ["-" * 20] * len(rows[0])
    return "\n".join(" ".join(f"{c:>20}" for c in row) for row in [rows[0], dashes, *rows[1:]])


def sacct_json(jobs: list[Job]) -> str:
    def step(peak: int) -> dict[str, Any]:
        most = [{"type": "cpu", "count": 9}, {"type": "mem", "count": peak}]
        return {"tasks": {"count": 1}, "tres": {"requested": {"max": most}}, "state": ["COMPLETED"]}

    rows = [
        {
            "job_id": number, "user": user, "name": name, "nodes": node, "state": {"current": ["COMPLETED"]},
            "time": {"start": epoch(start), "end": epoch(end), "elapsed": end - start},
            "required": {"memory_per_node": {"set": True, "infinite": False, "number": 8192}},
            "steps": [step(peak), step(5)],
        }
        for number, user, name, node, start, end, peak in jobs
    ]  # fmt: skip
    return json.dumps({"meta": {"plugin": {}}, "jobs": rows, "errors": []})


def nextflow(jobs: list[Job], raw: bool = False) -> str:
    lines = ["task_id\tname\tstatus\thostname\tstart\tcomplete\trealtime\tpeak_rss\tmemory\trchar"]
    for number, user, name, node, start, end, peak in jobs:
        if raw:
            times = [1000 * second for second in (epoch(start), epoch(end), end - start)]
            cells = [*times, peak, 2**33, number]
        else:
            times = (clock(s, "%Y-%m-%d %H:%M:%S.000") for s in (start, end))
            cells = [*times, words(end - start), f"{peak // 2**20} MB", "8 GB", number]
        lines.append(
            "\t".join(map(str, [number, f"{user}/{name} (s1)", "COMPLETED", node, *cells]))
        )
    return "\n".join(lines) + "\n"


def pbs(jobs: list[Job]) -> str:
    lines = []
    for number, user, name, node, start, end, peak in jobs:
        about = (
            f"{number}.pbs;user={user} jobname={name} start={epoch(start)} exec_host={node}/0*4 "
            f"Resource_List.mem=8gb"
        )
        lines.append(f"{clock(start, '%m/%d/%Y %H:%M:%S')};S;{about}")
        used = f"end={epoch(end)} Exit_status=0 resources_used.mem={peak // 1024}kb"
        lines.append(f"{clock(end, '%m/%d/%Y %H:%M:%S')};E;{about} {used}")
    return "\n".join(lines) + "\n"


def sge(jobs: list[Job]) -> str:
    return "# Version: 8.1.9\n" + "".join(
        f"all.q:{node}:g:{user}:{name}:{number}:sge:0:{epoch(start)}:{epoch(start)}:{epoch(end)}:0:0:"
        f"{end - start}:1:1:5:{'0:' * 14}NONE:d:NONE:4:0:1:0:0:-u {user} -l a=b:0:NONE:{float(peak)}:0:0\n"
        for number, user, name, node, start, end, peak in jobs
    )


def qacct(jobs: list[Job], form: str = "%a %b %d %H:%M:%S %Y") -> str:
    return "".join(
        f"{'=' * 60}\nhostname     {node}\nowner        {user}\njobname      {name}\njobnumber    {number}\n"
        f"start_time   {clock(start, form)}\nend_time     {clock(end, form)}\n"
        f"exit_status  0\nru_wallclock {end - start}s\nmaxvmem      {peak / 2**20}M\n"
        for number, user, name, node, start, end, peak in jobs
    )


def lsf(jobs: list[Job]) -> str:
    return "".join(
        f'"JOB_FINISH" "10.1" {epoch(end)} {number} 1 1 1 {epoch(start)} 0 0 {epoch(start)} "{user}" "q" "" '
        f'"" "" "h" "cwd" "" "" "" "f" 0 1 "{node}" 64 60.0 "{name}" "run it" {"0 " * 19}"" "d" 0 1 "" "" 0 '
        f"{peak // 1024} 0\n"
        for number, user, name, node, start, end, peak in jobs
    )


def condor(jobs: list[Job]) -> str:
    return "\n".join(
        f'ClusterId = {number}\nProcId = 0\nOwner = "{user}"\nCmd = "/home/x/{name}"\n'
        f'LastRemoteHost = "slot1_{number}@{node}"\nJobCurrentStartDate = {epoch(start)}\n'
        f"CompletionDate = {epoch(end)}\nJobStatus = 4\nMemoryUsage = {peak // 2**20}\nRequestMemory = 8192\n"
        for number, user, name, node, start, end, peak in jobs
    )


def condor_json(jobs: list[Job]) -> str:
    rows = []
    for block in condor(jobs).split("\n\n"):
        pairs = (line.split(" = ") for line in block.splitlines() if line)
        rows.append({key: json.loads(value) for key, value in pairs})
    return json.dumps(rows)


def _records(jobs: list[Job]) -> list[dict[str, Any]]:
    return json.loads(condor_json(jobs))


def condor_xml(jobs: list[Job]) -> str:
    def cell(value: Any) -> str:
        return f"<i>{value}</i>" if isinstance(value, int) else f"<s>{value}</s>"

    rows = (
        "".join(f'<a n="{name}">{cell(value)}</a>\n' for name, value in row.items())
        for row in _records(jobs)
    )
    return (
        '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
        + "".join(
            f'<c>\n{row}<a n="ExitBySignal"><b v="f"/></a><a n="X"><un/></a></c>\n' for row in rows
        )
        + "</classads>\n"
    )


def condor_columns(jobs: list[Job]) -> str:
    rows = _records(jobs)
    return "\n".join(
        " ".join(f"{cell!s:30}" for cell in row) for row in [rows[0], *map(dict.values, rows)]
    )


def qstat_xml(jobs: list[Job]) -> str:
    rows = (
        f"<Job><Job_Id>{number}.s</Job_Id><Job_Name>{name}</Job_Name><Job_Owner>{user}@login</Job_Owner>"
        f"<resources_used><mem>{peak // 1024}kb</mem><walltime>{span(end - start)}</walltime>"
        "</resources_used>"
        f"<job_state>C</job_state><exec_host>{node}/0+{node}/1</exec_host><exit_status>0</exit_status>"
        f"<Resource_List><mem>8gb</mem></Resource_List><start_time>{epoch(start)}</start_time>"
        f"<comp_time>{epoch(end)}</comp_time></Job>"
        for number, user, name, node, start, end, peak in jobs
    )
    return f"<Data>{''.join(rows)}</Data>"


def scontrol(jobs: list[Job]) -> str:
    return "\n".join(
        f"JobId={number} JobName={name}\n   UserId={user}(1000) GroupId=g(100)\n   JobState=COMPLETED "
        f"Reason=None\n   RunTime={span(end - start)} TimeLimit=1-00:00:00\n   StartTime={clock(start)} "
        f"EndTime={clock(end)}\n   NodeList={node}\n"
        for number, user, name, node, start, end, _ in jobs
    )


def bjobs_json(jobs: list[Job]) -> str:
    rows = [
        {
            "JOBID": str(number), "USER": user, "JOB_NAME": name, "STAT": "DONE", "EXEC_HOST": f"4*{node}",
            "START_TIME": clock(start, "%b %d %H:%M:%S %Y"), "MAX_MEM": f"{peak // 2**20} Mbytes",
            "FINISH_TIME": clock(end, "%b %d %H:%M:%S %Y L"),
        }
        for number, user, name, node, start, end, peak in jobs
    ]  # fmt: skip
    return json.dumps({"COMMAND": "bjobs", "JOBS": len(rows), "RECORDS": rows})


def airflow(jobs: list[Job]) -> str:
    rows = [
        {
            "dag_id": user, "task_id": name, "run_id": str(number), "try_number": 1, "hostname": node,
            "start_date": clock(start) + "+00:00", "end_date": clock(end) + "+00:00",
            "duration": end - start + 0.25, "state": "success",
        }
        for number, user, name, node, start, end, _ in jobs
    ]  # fmt: skip
    return json.dumps({"task_instances": rows, "total_entries": len(rows)})


def plain(form: str, separator: str) -> Callable[[list[Job]], str]:
    def made(jobs: list[Job]) -> str:
        lines = [separator.join(["id", "owner", "workload", "machine", "began", "minutes"])]
        for number, user, name, node, start, end, _ in jobs:
            cells = [number, user, f"{user}/{name}", node, clock(start, form), (end - start) / 60]
            lines.append(separator.join(map(str, cells)))
        return "\n".join(lines) + "\n"

    return made


COLUMNS = ("start=began", "took=minutes")
SHAPES: dict[str, tuple[Callable[[list[Job]], str], dict[str, Any], bool]] = {
    "sacct": (sacct, {}, True),
    "fixed": (fixed, {}, True),
    "sacct-json": (sacct_json, {}, True),
    "nextflow": (nextflow, {"workload": "{name:^[^ (]+}"}, True),
    "nextflow-raw": (lambda jobs: nextflow(jobs, raw=True), {"workload": "{name:^[^ (]+}"}, True),
    "pbs": (pbs, {}, True),
    "sge": (sge, {}, True),
    "qacct": (qacct, {}, True),
    "lsf": (lsf, {}, True),
    "htcondor": (condor, {}, True),
    "htcondor-json": (condor_json, {}, True),
    "htcondor-xml": (condor_xml, {}, True),
    "htcondor-columns": (condor_columns, {}, True),
    "qstat-xml": (qstat_xml, {}, True),
    "scontrol": (scontrol, {}, False),
    "bjobs-json": (bjobs_json, {}, True),
    "airflow": (airflow, {}, False),
}
