"""The import that a table's header asks for, as a command line to complete."""

from __future__ import annotations

import gzip
import re
import shlex
from pathlib import Path

import pyarrow.parquet

from jostle.data.read._importer import importer_names
from jostle.data.runs._schema import ARROW_ERRORS
from jostle.errors import JostleError, UsageError

# The first name that fits, in this order; what no column fits is left for the user to say.
_LIKE = {
    "workload": r"workload|job|program|task|app|benchmark|function|name",
    "platform": r"platform|host|node|machine|device|server|cluster|where",
    "corunners": r"corunner|co_run|beside|neighbou?r|other|with|interfer|background",
    "runtime": r"runtime|wall|elapsed|duration|latency|seconds|time|_m?s$",
}
_UNITS = (
    ("ns", r"nano|_ns$"),
    ("us", r"micro|_us$"),
    ("ms", r"milli|_ms$|msec"),
    ("min", r"minut|_min$"),
)
_HEADER = 65_536
_OF_JOBS = {"start", "end", "node", "job", "hostname", "complete", "state"}
# Of the first bytes, the first that fits.
_SIGNS = (
    (
        "profile",
        rb'^SQLite format 3|"traceEvents"|"ph": ?"[XBiM]"|NVPROF|CUPTI_|"?Start \(ns\)|Kernel_Name',
    ),
    ("kubernetes", rb'"kind": ?"(List|Pod|PodList)"|kube_pod_info'),
    (
        "windows",
        rb'(_bucket|time_to_first_token|request_duration|_latency|_summary_us)[^}]*\}.*"values"',
    ),
    ("prometheus", rb'"resultType": ?"(matrix|vector)"'),
    ("perf", rb'(?m)^ *\d+[.,]\d{9}[,;]|"interval" ?:'),
    ("sacct", rb'(?im)^[^\n]*jobid[^\n]*nodelist|"slurm|"openapi/slurm'),
    ("jobs", rb'(?m)task_id\t|^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[SEQ];|"JOB_FINISH"|^([^:\n]*:){35}'),
    ("jobs", rb'(?m)^={20,}\r?\n|^ClusterId = |"(task_instances|ClusterId)"'),
    (
        "jobs",
        rb"(?i)\A(?=[^\n]*\bstart)(?=[^\n]*(\bend|\bfinish|complete))(?=[^\n]*(node|host|machine))",
    ),
    (
        "pairs-csv",
        rb"(?i)\A[^\n]*(target[^\n]*corunner|workload_a[^\n]*workload_b)|\A\w+[\\/|]\w+,",
    ),
    ("series", rb"(?i)\A\W*(time|timestamp|date|epoch)\b|\A# Elapsed time|\ALinux \d|\A\W*Dstat"),
    ("csv", rb"\A[^\n]*[,;\t|][^\n]*\n"),
)


def kind_of(path: str) -> str:
    """The importer that a file asks for by its first bytes. Raises UsageError where nothing tells."""
    if path.startswith(("http://", "https://")):
        return "prometheus"
    try:
        with open(path, "rb") as raw:
            head = raw.read(_HEADER)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as file:
                head = file.read(_HEADER)
    except (OSError, EOFError, ValueError):
        head = b""
    if head.startswith(b"PAR1"):
        names = {name.lower() for name in _header(Path(path))[0]}
        return "jobs" if len(names & _OF_JOBS) > 2 else "parquet"
    for kind, pattern in _SIGNS:
        if re.search(pattern, head):
            return kind
    raise UsageError(
        f"nothing tells what {path!r} is", fix=f"Say by `kind`: {', '.join(importer_names())}."
    )


def import_command(path: Path) -> str:
    """For a table of runs, or a scheduler's log; capitals stand for what its header does not tell."""
    names, delimiter = _header(path)
    file = shlex.quote(str(path))
    folder = shlex.quote(path.stem)
    if {"JobID", "NodeList"} <= set(names):
        return f"jostle import {file} --kind sacct -o {folder}"
    fits: dict[str, str] = {}
    for key, pattern in _LIKE.items():
        left = [name for name in names if name not in fits.values()]
        for name in sorted(
            left, key=lambda name: re.search(r"date|stamp|_at$|start|end", name, re.I) is not None
        ):
            if re.search(pattern, name, re.I):
                fits[key] = name
                break
    runtime = fits.get("runtime", "")
    unit = next((unit for unit, pattern in _UNITS if re.search(pattern, runtime, re.I)), None)
    unit = unit or ("s" if re.search(r"sec|_s$", runtime, re.I) else "UNIT")
    words = ["jostle import", file, "--kind", "parquet" if delimiter is None else "csv"]
    words += [f"--{key} {shlex.quote(fits.get(key, 'COLUMN'))}" for key in ("workload", "runtime")]
    words += [f"--unit {unit}"]
    words += [
        f"--platform {shlex.quote(fits['platform'])}"
        if "platform" in fits
        else "--platform-name NAME"
    ]
    words += [f"--corunners {shlex.quote(fits['corunners'])}"] if "corunners" in fits else []
    words += [f"--delimiter {shlex.quote(delimiter)}"] if delimiter not in (None, ",") else []
    return " ".join([*words, f"-o {folder}"])


def _header(path: Path) -> tuple[list[str], str | None]:
    """(the names of the columns, what parts them; None of a Parquet file)."""
    try:
        with path.open("rb") as file:
            start = file.read(_HEADER)
        if start.startswith(b"PAR1"):
            return list(pyarrow.parquet.read_schema(path).names), None
    except (OSError, *ARROW_ERRORS, JostleError):
        return [], ","
    lines = start.decode("utf-8", "replace").lstrip("\ufeff").splitlines() or [""]
    delimiter = max(",;\t|", key=lines[0].count)
    return [name.strip().strip('"') for name in lines[0].split(delimiter)], delimiter
