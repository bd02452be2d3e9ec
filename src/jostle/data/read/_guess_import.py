"""The import that a table's header asks for, as a command line to complete."""

from __future__ import annotations

import gzip
import json
import re
import shlex
import zlib
from collections.abc import Collection
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet

from jostle._base.untrusted import require_regular
from jostle.data.read._foreign_table import header_of
from jostle.data.read._importer import importer_named, importer_names
from jostle.data.read._job_presets import PRESETS
from jostle.data.runs._schema import ARROW_ERRORS
from jostle.data.tables.lines import encoding_of, require_text
from jostle.data.tables.quantities import ColumnOfNumbers, numbers_in, unit_in_name
from jostle.errors import JostleError, UnreadableFile, UsageError

# The first name that fits, in this order; what no column fits is left for the user to say.
_LIKE = {
    "workload": r"workload|job|program|task|app|benchmark|function|kernel|^model$|(?<!gpu[-_ ])name",
    "platform": r"platform|host|node|machine|device|server|cluster|where|^gpu([-_ ](name|type|model))?$",
    "corunners": r"co[-_ ]?run|beside|neighbou?r|other|with|interfer|background",
    "runtime": r"runtime|wall|elapsed|took|duration|latency|seconds|time|_m?s$|\([mun]?s\)$|\((min|h)\)$"
    r"|^(m|milli|u|micro|n|nano)?s(ecs?|econds?)?$|^(min(ute)?|h(ou)?r)s?$",
}
_HEADER = 65_536
_OF_JOBS = {"start", "end", "node", "job", "hostname", "complete", "state"}
_SMI = "nvidia-smi --query-gpu=timestamp,index,memory.used --format=csv -l 1, or pidstat -hH"
_DOCKER = "docker stats --no-stream --format '{{.Name}},{{.CPUPerc}},{{.MemUsage}}' in a loop, after the time"
# Of the first bytes of what holds too little: what it is, and the preset or the command that prints enough.
_INSTEAD = (
    (rb"(?i)\A<(!DOCTYPE html|html)", "a page for a browser", "curl with a token, or behind the login"),
    (rb"\A\d+(_\d+)?\|[^\n]*\d\d\d\d-\d\d-\d\dT", "sacct without a header", "sacct -aDP, without -n"),
    (rb"\A *JOBID +PARTITION|\AJob ID: \d", "what Slurm prints for people", "sacct"),
    (rb"(?m)\AJob [iI][dD] +(Name|User)|^Job ID +Username", "what qstat prints for people", "qstat"),
    (rb"\Ajob-ID +prior", "what qstat prints of jobs that run", "qacct"),
    (
        rb"\AJOBID +USER +STAT|\A-{40,}\s+Job <|\A\s*Job <\d|Accounting information about jobs",
        "a report for people", "bjobs",
    ),
    (rb"(?m)\A *ID +OWNER +SUBMITTED|^-- Schedd:", "what HTCondor prints for people", "htcondor"),
    (rb"(?i)\A(sacct|slurm_\w+|kubectl|error)\b[^|,\n]*:", "an error and no log", "as here, once it works"),
    (rb"\A(apiVersion:|kind:|items:)", "YAML", "kubernetes"),
    (
        rb"\AName(space)?:|\A(NAMESPACE +)?(NAME +(READY|STATUS|COMPLETIONS)|LAST SEEN +\w)",
        "a list of Kubernetes for people", "kubernetes",
    ),
    (
        rb"\A(NAMESPACE +|POD +)?NAME +CPU\(cores\)|\ACONTAINER ID +NAME"
        rb'|\A\{(?![^\n]*[tT]ime)[^\n]*"CPUPerc"',
        "usage without times", _DOCKER,
    ),
    (
        rb"\A# (HELP|TYPE) |\A[a-z_:]+\{[^}\n]*\} [0-9.eE+-]+\s*$", "metrics of one moment",
        "curl 'http://HOST:9090/api/v1/query_range?query=...&start=...&end=...&step=15s'",
    ),
    (
        rb"(?m)^ *# +time +counts unit|Performance counter stats for"
        rb"|\A(#[^\n]*\s+)?\d+,[^,\n]*,[\w:-]+,\d+,[\d.]+",
        "perf stat without intervals for programs", "perf stat -I 100 -x, -o FILE -- PROGRAM",
    ),
    (rb"\ANSYSREP|\AQDREP", "a report of nsys", "nsys export --type sqlite REPORT.nsys-rep"),
    (rb"\APERFETTO", "a trace of Perfetto", "rocpd convert --output-format csv"),
    (
        rb"\ATime ?\(%\)[^\n]*Instances|\A[^\n]*Total Time \(ns\)", "a summary of nsys",
        "nsys stats --report cuda_gpu_trace --format csv REPORT.nsys-rep",
    ),
    (rb"\A# *(gpu|Date)\b|\Aprocs -+memory|\| NVIDIA-SMI", "a table for people", _SMI),
    (rb"\A\d{4}/\d\d/\d\d [\d:.]+, ", "readings without the names of their columns", _SMI),
)  # fmt: skip
# Kinds that take files of the same looks, for the one whose options are given.
_OTHERWISE = {"windows": ("prometheus",), "csv": ("jobs", "series", "pairs-csv"), "jobs": ("csv",)}
# Of the first bytes, the first that fits.
_SIGNS = (
    (
        "profile",
        rb'^SQLite format 3|"traceEvents"|"ph": ?"[XBiM]"|NVPROF|CUPTI_|"?Start \(ns\)|Kernel_Name',
    ),
    ("kubernetes", rb'"kind": ?"(List|Pod|PodList)"|kube_pod_info'),
    ("windows", rb'(_bucket|time_to_first_token|request_duration|_latency|_summary_us)[^}]*\}.*"values"'),
    ("prometheus", rb'"resultType": ?"|"status": ?"error"'),
    ("perf", rb'(?m)^ *\d+[.,]\d{9}[,;]|"interval" ?:'),
    ("sacct", rb'(?im)^[^\n]*jobid[^\n]*nodelist|"slurm|"openapi/slurm|\A[^|]*"job_id"[^|]*"nodes"'),
    ("jobs", rb'(?m)task_id\t|^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[SEQ];|"JOB_FINISH"|^([^:\n]*:){35}'),
    ("jobs", rb"(?m)^={20,}\r?\n|^ClusterId = |\A[^\n]*\bClusterId +ProcId|^JobI[dD][=:] ?\d|^Job Id: "
        rb'|\A0\d\d \(\d|"(task_instances|ClusterId|Jobs|dag_id|JOBID)"'
        rb"|\A<[^\n]*\n?[^\n]*<?(classads|Data)\b"),
    ("jobs", rb"(?im)^(?=[^\n]*\b(start|end|beg[iau]n))(?=[^\n]*(node|host|machine|worker))"
        rb"(?=[^\n]*(\b(end|finish|stop)|complete|runtime|elapsed|duration))"),
    ("pairs-csv", rb"(?i)\A[^\n]*((target|victim|foreground)\b[^\n]*\b(corunner|aggressor|background)"
        rb"|(?P<w>workload|job|model|app|program|name|target)"
        rb"(_a[^\n]*\W(?P=w)_b|_?1[^\n]*\W(?P=w)_?2|_x[^\n]*\W(?P=w)_y|_left[^\n]*\W(?P=w)_right)\W)"
        rb'|\A"?\w+ ?\\ ?\w+"?[,;\t]|\A"?(fg|foreground|victim|target)[/|]\w+"?[,;\t]'),
    ("series", rb'(?i)\A"?series"?[,;]"?time'),
    ("series", rb"(?i)\A\W*(time|timestamp|date|epoch)\b|\A# Elapsed time|\ALinux \d|\A\W*Dstat"),
    ("csv", rb"\A[^\n]*[,;\t|][^\n]*\n"),
)  # fmt: skip


def kind_of(path: str, options: Collection[str] = ()) -> str:
    """Return the importer that a file asks for by its first bytes. options: names of those that are given: of
    kinds that take such files the one that has them. Raises UnreadableFile for no file, an empty one, and one
    that holds too little, UsageError where nothing tells."""
    if path.startswith(("http://", "https://")):
        return "prometheus"
    head = b"PERFETTO" if path.endswith((".pftrace", ".perfetto-trace")) else _head(path)
    if head.startswith(b"PAR1"):
        names = {name.lower() for name in _header(Path(path))[0]}
        return "jobs" if len(names & _OF_JOBS) > 2 else "parquet"
    kind = next((kind for kind, pattern in _SIGNS if re.search(pattern, head)), "")
    if kind == "csv" and _is_matrix(head):
        kind = "pairs-csv"
    if kind in ("", "csv", "series"):
        for pattern, what, command in _INSTEAD:
            if re.search(pattern, head):
                told = PRESETS[command].printed_by if command in PRESETS else command
                raise UnreadableFile(f"it is {what}", where=path, fix=f"Print it so: {told}.")
    if not kind:
        raise UsageError(
            f"nothing tells what {path!r} is", fix=f"Say by `kind`: {', '.join(importer_names())}."
        )

    def lacks(one: str) -> int:
        return len(set(options) - {field.name for field in fields(importer_named(one))})

    return min((kind, *_OTHERWISE.get(kind, ())), key=lacks)


def _is_matrix(head: bytes) -> bool:
    """Tell by rows that are called as columns are."""
    (_, *names), *rows = (re.split(rb"[,;\t|]", line) for line in head.splitlines())
    plain = {name.strip(b' "\r') for name in names}
    return 2 * len(plain & {row[0].strip(b' "\r') for row in rows}) > len(plain)


def _head(path: str) -> bytes:
    """Return the first bytes, unpacked, in UTF-8, without blank lines and comments. Raises UnreadableFile."""
    try:
        require_regular(path)
        with open(path, "rb") as raw:
            head = raw.read(_HEADER)
        if head.startswith(b"\x1f\x8b"):
            with gzip.open(path) as file:
                head = file.read(_HEADER)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        is_cut = isinstance(error, (EOFError, zlib.error))
        fix = "Copy or pack it again." if is_cut else "Check the name."
        raise UnreadableFile(f"cannot be read: {reason}", where=path, fix=fix) from None
    require_text(head, path)
    if (encoding := encoding_of(head)) != "utf-8-sig":
        head = head.decode(encoding, "replace").encode()
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    if not head.strip():
        raise UnreadableFile("the file is empty", where=path, fix="Print or record it again.")
    comment = (
        rb"\A(sep=.\s*\n|# (?!(HELP|TYPE|Elapsed|Time|gpu|started)\b)[^\n]*\n|\s*\n)+(?=[\w\"])"
    )
    return re.sub(comment, b"", head)


def import_command(path: Path) -> str:
    """Write the command that imports a table of runs or a scheduler's log; capitals stand for what its header
    does not tell."""
    names, delimiter, row = _header(path)
    file = shlex.quote(str(path))
    folder = shlex.quote(path.stem)
    if {"JobID", "NodeList"} <= set(names):
        return f"jostle import {file} --kind sacct -o {folder}"
    fits: dict[str, str] = {}
    for key, pattern in _LIKE.items():
        left = (n for n in names if n not in fits.values() and re.search(pattern, n, re.I))
        moments = r"date|stamp|_at$|start|end"  # which are taken where nothing else fits
        if ordered := sorted(left, key=lambda name: bool(re.search(moments, name, re.I))):
            fits[key] = ordered[0]
    runtime = fits.get("runtime", "")
    read = numbers_in([dict(zip(names, row, strict=False)).get(runtime)])
    is_told = isinstance(read, ColumnOfNumbers) and read.unit == "seconds"
    unit = "" if is_told else unit_in_name(runtime) or "UNIT"
    words = ["jostle import", file, "--kind", "parquet" if delimiter is None else "csv"]
    words += [f"--{key} {shlex.quote(fits.get(key, 'COLUMN'))}" for key in ("workload", "runtime")]
    words += [f"--unit {unit}"] if unit else []
    place = f"--platform {shlex.quote(fits['platform'])}" if "platform" in fits else ""
    words += [place or "--platform-name NAME"]
    words += [f"--corunners {shlex.quote(fits['corunners'])}"] if "corunners" in fits else []
    words += [f"--delimiter {shlex.quote(delimiter)}"] if delimiter not in (None, ",") else []
    return " ".join([*words, f"-o {folder}"])


def _header(path: Path) -> tuple[list[str], str | None, list[str]]:
    """Return (names of columns, what parts them, None of a Parquet file, cells of the first row)."""
    try:
        start = _head(str(path))
        if start.startswith(b"PAR1"):
            return list(pyarrow.parquet.read_schema(path).names), None, []
        if (text := start.decode("utf-8", "replace").lstrip(" \r\n[")).startswith("{"):
            row = json.JSONDecoder().raw_decode(text)[0]
            return list(row), ",", [str(cell) for cell in row.values()]
    except (OSError, ValueError, RecursionError, *ARROW_ERRORS, JostleError):
        return [], ",", []
    line, above, delimiter = header_of(start, None)
    lines = [line, *start.splitlines()[above + 1 : above + 2]]
    names, *rows = (one.decode("utf-8", "replace").split(delimiter) for one in lines)
    cells = [[cell.strip(' "') for cell in one] for one in (names, *rows, [])]
    return cells[0], delimiter, cells[1]
