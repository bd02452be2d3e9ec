"""What the logs of known sources call their columns, their units and states: a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from jostle.data.tables.quantities import (
    CACHED,
    FAILED,
    OK,
    OUT_OF_MEMORY,
    PENDING,
    RUNNING,
    TIMEOUT,
)
from jostle.errors import require_choice

_KIB, _MIB = 1024.0, 1024.0**2
ROLES = (
    "job", "node", "start", "end", "state", "took", "user", "peak", "requested", "first", "last",
)  # fmt: skip


@dataclass(frozen=True)
class JobPreset:
    """Form of the log of one scheduler. columns: {role: names in lower case, or a rule with columns
    in braces}. workload: rules, the first whose columns are there. needs: columns that tell this source from
    others. took: seconds of a plain number, None where times tell. peak, requested: bytes of a plain number.
    base: of KB and its like. states: of its own. cutting: a rule that cuts names, as an example. is_part:
    whether `took` is only a part of what lies between start and end. exits: columns in which a number other
    than 0 says that a job failed. covariates: NAME=COLUMN, where no other is asked for. is_own: whether it
    holds the jobs of one user where no column names users. order: `md` where 01/02/2026 is the second of
    January."""

    columns: Mapping[str, tuple[str, ...]]
    workload: tuple[str, ...]
    needs: frozenset[str] = frozenset()
    printed_by: str = ""
    took: float | None = None
    peak: float = 1.0
    requested: float = 1.0
    base: int = 1024
    states: dict[str, int] = field(default_factory=dict[str, int])
    cutting: str = "{workload:^[a-z]+}"
    is_part: bool = False
    exits: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    is_own: bool = False
    order: str = ""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _preset(columns: str, workload: str, needs: str, printed_by: str, **more: object) -> JobPreset:
    """columns: `role: name name, role: ...`."""
    roles = (part.split(":", 1) for part in columns.split(", "))
    named = {role.strip(): tuple(names.split()) for role, names in roles}
    return JobPreset(
        named,
        tuple(workload.split()),
        frozenset(needs.split()),
        printed_by,
        **more,  # type: ignore[arg-type]
    )


PRESETS: dict[str, JobPreset] = {
    "sacct": _preset(
        "job: jobid, node: nodelist, start: start, end: end, state: state, took: elapsedraw elapsed, "
        "user: user, peak: maxrss, requested: reqmem",
        "{user}/{jobname} {jobname}", "jobid nodelist start end",
        "sacct -aDP -o JobID,User,JobName,NodeList,Start,End,State,ElapsedRaw,MaxRSS,ReqMem > "
        "sacct.txt",
        took=1.0, cutting="{User}/{JobName:^[a-z]+}",
    ),
    "sacct-json": _preset(
        "job: job_id, node: nodes, start: time.start, end: time.end, state: state.current state, "
        "took: time.elapsed, user: user association.user, peak: peak_bytes, requested: requested_mib",
        "{user}/{name}", "job_id nodes", "sacct -a --json > sacct.json", took=1.0,
        requested=_MIB,
    ),
    "scontrol": _preset(
        "job: jobid, node: nodelist, start: starttime, end: endtime, state: jobstate, took: runtime, "
        "user: {UserId:^[^(]+}",
        "{UserId:^[^(]+}/{JobName} {UserId:^[^(]+}/{Name}", "jobid jobstate nodelist",
        "sacct -aDP -o JobID,User,JobName,NodeList,Start,End,State,ElapsedRaw,MaxRSS,ReqMem > sacct.txt",
        took=1.0, cutting="{JobName:^[a-z]+}",
    ),
    "nextflow": _preset(
        "job: {task_id}.{attempt} task_id, node: hostname, start: start, end: complete, state: status, "
        "took: realtime, peak: peak_rss, requested: memory",
        "{process} {name:^[^\\s(]+}", "task_id realtime",
        "nextflow run -with-trace, with trace.fields = 'task_id,process,name,status,hostname,attempt,submit,"
        "start,complete,realtime,memory,peak_rss,rchar' in nextflow.config",
        took=1e-3, states={"cached": CACHED}, cutting="{process:[^:]+$}", is_part=True,
        covariates=("input_bytes=rchar",),
    ),
    "htcondor": _preset(
        "job: {ClusterId}.{ProcId} globaljobid, node: {LastRemoteHost:[^@]+$} {RemoteHost:[^@]+$}, "
        "start: jobcurrentstartdate jobstartdate, end: completiondate enteredcurrentstatus, "
        "state: jobstatus, took: remotewallclocktime, user: owner user, peak: memoryusage, "
        "requested: requestmemory",
        "{Owner}/{Cmd:[^/]+$} {DAGNodeName}", "clusterid procid",
        "condor_history -json -attributes ClusterId,ProcId,Owner,Cmd,LastRemoteHost,"
        "JobCurrentStartDate,CompletionDate,JobStatus,MemoryUsage,RequestMemory > jobs.json",
        peak=_MIB, requested=_MIB,
        states={"1": PENDING, "2": RUNNING, "3": FAILED, "4": OK, "5": FAILED, "7": RUNNING},
        exits=("exitcode", "exitsignal"), is_own=True,
    ),
    "qstat": _preset(
        "job: id, node: exec_host, start: stime start_time, end: obittime comp_time, state: job_state, "
        "took: resources_used.walltime, user: {Job_Owner:^[^@]+}, peak: resources_used.mem, "
        "requested: resource_list.mem",
        "{Job_Owner:^[^@]+}/{Job_Name}", "id exec_host job_state", "qstat -x -f -F json > jobs.json",
        took=1.0, states={"f": OK, "c": OK, "r": RUNNING, "e": RUNNING, "q": PENDING, "h": PENDING},
        exits=("exit_status",), cutting="{Job_Name:^[a-z]+}",
    ),
    "pbs": _preset(
        "job: id, node: exec_host, start: start, end: end, state: exit_status, user: user, "
        "peak: resources_used.mem, requested: resource_list.mem",
        "{user}/{jobname}", "exec_host jobname",
        "cat /var/spool/pbs/server_priv/accounting/YYYYMMDD",
        states={"-29": TIMEOUT}, cutting="{user}/{jobname:^[a-z]+}",
    ),
    "sge": _preset(
        "job: {job_number}.{task_number}, node: hostname, start: start_time, end: end_time, "
        "state: exit_status, took: ru_wallclock, user: owner, peak: maxvmem",
        "{owner}/{job_name}", "hostname job_number start_time",
        "cat $SGE_ROOT/default/common/accounting", took=1.0,
        cutting="{owner}/{job_name:^[a-z]+}",
    ),
    "qacct": _preset(
        "job: {jobnumber}.{taskid} jobnumber, node: hostname, start: start_time, end: end_time, "
        "state: exit_status, took: ru_wallclock, user: owner, peak: maxvmem",
        "{owner}/{jobname}", "hostname jobnumber start_time", "qacct -j '*' > jobs.txt", took=1.0,
        exits=("failed",), order="md",
    ),
    "lsf": _preset(
        "job: {jobid}[{idx}] jobid, node: exechosts exec_host, start: starttime start_time, "
        "end: eventtime finish_time, state: jstatus stat, user: username user, peak: maxrmem max_mem",
        "{username}/{jobname}", "jobid starttime",
        "cat lsb.acct",
        peak=_KIB, states={"64": OK, "32": FAILED},
    ),
    "bjobs": _preset(
        "job: jobid, node: exec_host, start: start_time, end: finish_time, state: stat, user: user, "
        "peak: max_mem",
        "{user}/{job_name} {user}/{name}", "jobid exec_host start_time",
        "LSB_DISPLAY_YEAR=Y bjobs -a -u all -o 'jobid user job_name exec_host start_time finish_time stat "
        "max_mem delimiter=\",\"' > jobs.csv",
    ),
    "airflow": _preset(
        "job: {dag_id}.{task_id}.{run_id}.{try_number} {dag_id}.{task_id}.{execution_date} "
        "{dag_id}.{task_id}.{dag_run_id}.{try_number}, node: hostname, start: start_date, end: end_date, "
        "state: state, took: duration",
        "{dag_id}/{task_id}", "dag_id task_id start_date",
        "psql airflow -c \"COPY task_instance TO STDOUT CSV HEADER\" > tasks.csv", took=1.0,
    ),
    "kubernetes": _preset(
        "job: job, node: node, start: start, end: end, state: state, first: first, last: last, "
        "user: namespace, requested: requested",
        "workload", "job node start end owner namespace pod",
        "kubectl get pods,events,nodes -A -o json > pods.json",
        cutting="{namespace}/{owner:^[a-z]+}",
    ),
    "jobs": _preset(
        "job: job job_id jobid id task_id, node: node host hostname nodelist machine server worker, "
        "start: start start_time started started_at start_date begin begin_time began, "
        "end: end end_time ended ended_at end_date finish finish_time finished finished_at complete "
        "completed completed_at stop stop_time stopped_at, "
        "state: state status exit_code exit_status exit, took: elapsed elapsedraw duration runtime run_time "
        "wall_time walltime, user: user owner username user_name, peak: peak_memory peak_rss maxrss max_rss "
        "max_memory peak_mem max_mem memory_peak mem_peak memory_used used_memory mem_used rss memory mem, "
        "requested: requested_memory reqmem req_mem requested_mem memory_requested memory_request "
        "mem_request memory_limit mem_limit",
        "workload", "", "",
    ),
}  # fmt: skip
EXIT_CODES = frozenset(("exit", "exit_code", "exit_status", "exitcode", "failed"))
# The first and the last of a record of Grid Engine; how many there are between depends on its version.
SGE_FIRST = _names(
    "qname hostname group owner job_name job_number account priority submission_time start_time end_time "
    "failed exit_status ru_wallclock ru_utime ru_stime ru_maxrss"
)
SGE_LAST = _names("task_number cpu mem io category iow pe_taskid maxvmem arid ar_submission_time")
DIED = {
    "out_of_memory": OUT_OF_MEMORY,
    "ok": OK,
    "failed": FAILED,
    "timeout": TIMEOUT,
    "running": RUNNING,
}


def preset_for(names: Collection[str]) -> str:
    """Return the source whose columns these are, by names in any case; `jobs` where none is known."""
    lower = {name.lower() for name in names}
    fits = [name for name, one in PRESETS.items() if one.needs and one.needs <= lower]
    return fits[0] if fits else "jobs"


def preset_named(name: str) -> JobPreset:
    """Raises UsageError for one that is not known."""
    require_choice("preset", name, PRESETS)
    return PRESETS[name]
