"""Logs that are no plain tables as columns of text: JSON, records, blocks, fixed widths."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from jostle.data.read._job_presets import SGE_FIRST, SGE_LAST
from jostle.errors import BadData, UnreadableFile

Columns = dict[str, list[str]]
_PBS = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;([A-Z]);([^;]*);(.*)")
_PAIR = re.compile(r"(\S+?)=(\"[^\"]*\"|\([^)]*\)|\S*)")
_LSF_FIRST = (
    "event", "version", "eventtime", "jobid", "userid", "options", "tasks", "submittime", "begintime",
    "termtime", "starttime",
)  # fmt: skip
_LSF_AFTER = ("jstatus", "hostfactor", "jobname", "command")
_EVENT = re.compile(r"(0\d\d) \((\d+)\.(\d+)\.\d+\) (\S+ [\d:.]+|\d{4}\S+)")
_OF_EVENTS = {  # of HTCondor: what they say of a job
    "DAGNodeName": r"DAG Node: (\S+)",
    "MemoryUsage": r"\s([\d.]+)\s+-\s+MemoryUsage|Memory \(MB\) *: *([\d.]+) +[\d.]+ +[\d.]+",
    "RequestMemory": r"(?m)Memory \(MB\) *:.*?([\d.]+) +[\d.]+ *$",
}
_DEPTH = 4


def shaped(text: str, where: str) -> tuple[str, Columns] | None:
    """Return (what it is, columns of text by name) of a log that is no table with a header; None of one that
    may be.

    Raises UnreadableFile, BadData.
    """
    text = text.lstrip("\ufeff")
    start = text[:4096].lstrip()
    lines = [line for line in start.splitlines() if line.strip() and not line.startswith("#")][:4]
    if start[:1] in ("{", "["):
        return "JSON", _columns(_flat(row) for row in _rows(documents(text, where), where))
    if start[:1] == "<":
        return "XML", _columns(_flat(row) for row in _xml_rows(text, where))
    if any(_PBS.match(line) for line in lines):
        return "accounting records of PBS", _columns(_pbs(text))
    if any(line.startswith('"JOB_') for line in lines):
        return "accounting records of LSF", _columns(_lsf(text, where))
    if lines and lines[0].count(":") > 35 and "\t" not in lines[0]:
        return "accounting of Grid Engine", _columns(_sge(text))
    if lines and _EVENT.match(lines[0]):
        return "events of HTCondor", _columns(_events(text))
    if lines and re.match(r"JobId=\d", lines[0]):
        return "jobs of scontrol", _columns(
            dict(_PAIR.findall(one)) for one in re.split(r"(?m)^(?=JobId=)", text) if one.strip()
        )
    if lines and (set(lines[0].strip()) == {"="} or re.match(r"\w+ = |Job Id: ", lines[0])):
        return "blocks of names and values", _columns(_blocks(text))
    whole = text.splitlines()
    for at, line in enumerate(whole[1:20], 1):
        if re.fullmatch(r"\s*-{2,}( +-{2,})+\s*", line):
            return "columns of fixed width", _columns(_fixed(whole, at, where))
    words = [line.split() for line in whole if line.strip()]
    if len({len(row) for row in words}) == 1 and not re.search("[|,;\t]", whole[0]):
        names, *rows = words
        return "columns parted by blanks", _columns(dict(zip(names, r, strict=True)) for r in rows)
    return None


def documents(text: str, where: str) -> list[Any]:
    """Return what JSON documents, one after the other, hold. Raises UnreadableFile."""
    decoder, at, found = json.JSONDecoder(), 0, []
    text = text.lstrip("\ufeff")
    try:
        while at < len(text):
            if text[at].isspace():
                at += 1
                continue
            document, at = decoder.raw_decode(text, at)
            found.append(document)
    except (ValueError, RecursionError) as error:
        raise _unreadable(f"JSON: {error}", where) from None
    return found


def _unreadable(what: str, where: str) -> UnreadableFile:
    what = f"not readable {what}"[:200]
    return UnreadableFile(what, where=where, fix="Print it again: was it cut off?")


def _rows(found: list[Any], where: str) -> Iterator[Mapping[str, Any]]:
    for document in found:
        if isinstance(document, Mapping):
            lists = [value for value in document.values() if isinstance(value, list) and value]
            lists = [rows for rows in lists if all(isinstance(one, Mapping) for one in rows)]
            rows = max(lists, key=len) if lists and "job_id" not in document else [document]
            if isinstance(jobs := document.get("Jobs"), Mapping):  # of qstat, by their names
                rows = [{"id": key, **job} for key, job in jobs.items() if isinstance(job, Mapping)]
        else:
            rows = document if isinstance(document, list) else [document]
        for row in rows:
            if not isinstance(row, Mapping):
                what = "JSON, but no list of jobs"
                raise BadData(what, where=where, fix="Give a list of objects.")
            yield row


def _xml_rows(text: str, where: str) -> Iterator[dict[str, Any]]:
    """Read condor_history -xml, which names cells by an attribute, and qstat -x, which does by tags."""
    try:
        if "<!ENTITY" in text:
            raise ValueError("it declares entities")
        root = ElementTree.fromstring(text.lstrip())
        yield from ({"id": row.findtext("Job_Id"), **_xml_cells(row)} for row in root)
    except (ElementTree.ParseError, ValueError, RecursionError) as error:
        raise _unreadable(f"XML: {error}", where) from None


def _xml_cells(row: ElementTree.Element) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    for one in row:
        name = one.get("n")
        value = one[0] if name and len(one) else one
        cells[name or one.tag] = _xml_cells(value) if len(value) else value.text or value.get("v")
    return cells


def _flat(row: Mapping[str, Any], depth: int = 0) -> dict[str, str]:
    """Return objects inside as `time.start`; {"set": true, "number": 3} of Slurm as 3; lists parted by
    commas."""
    flat: dict[str, str] = {}
    for key, value in row.items():
        if isinstance(value, Mapping) and {"set", "number"} <= set(value):
            value = value["number"] if value["set"] and not value.get("infinite") else None
        if isinstance(value, Mapping) and depth < _DEPTH:
            flat |= {f"{key}.{name}": text for name, text in _flat(value, depth + 1).items()}
        elif isinstance(value, list) and key == "steps" and depth == 0:
            flat |= _of_steps(value)
        elif isinstance(value, list):
            flat[key] = ",".join(str(one) for one in value if not isinstance(one, Mapping | list))
        elif value is not None:
            flat[key] = str(value)
    if "required.memory_per_node" in flat:
        flat["requested_mib"] = flat["required.memory_per_node"]
    return flat


def _of_steps(steps: list[Any]) -> dict[str, str]:
    """Find the most memory of Slurm's steps, and whether one of them ran out of memory."""
    peak, died = 0.0, False
    for step in steps:
        try:
            died |= "OUT_OF_MEMORY" in json.dumps(step.get("state"))
            tasks = float((step.get("tasks") or {}).get("count") or 1)
            most = (((step.get("tres") or {}).get("requested") or {}).get("max")) or []
            peak = max([peak, *(one["count"] * tasks for one in most if one.get("type") == "mem")])
        except (AttributeError, TypeError, ValueError, KeyError):
            continue
    return ({"peak_bytes": str(peak)} if peak > 0 else {}) | ({"died": "1"} if died else {})


def _columns(rows: Iterator[dict[str, str]]) -> Columns:
    listed = list(rows)
    names = list(dict.fromkeys(itertools.chain.from_iterable(listed)))
    return {name: [row.get(name, "") for row in listed] for name in names}


def _pbs(text: str) -> Iterator[dict[str, str]]:
    """Yield the record of each end of a job, also if it was run again (R) or aborted (A); of jobs that have
    not ended, the record of their start."""
    started: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        match = _PBS.match(line)
        if match is None or match[1] not in "SERA":
            continue
        pairs = _PAIR.findall(match[3])
        row = {"id": match[2]} | {key.lower(): value.strip('"') for key, value in pairs}
        if match[1] == "S":
            started[match[2]] = row | {"exit_status": "running"}
        elif match[1] == "E":
            started.pop(match[2], None)
            yield row
        elif match[2] in started or "start" in row:
            yield started.pop(match[2], {}) | row | {"exit_status": "failed"}
    yield from started.values()


def _sge(text: str) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        cells = line.split(":")
        if line.startswith("#") or not line.strip():
            continue
        row = dict(zip(SGE_FIRST, cells, strict=False))
        if len(cells) < 36:  # cut off: who ran beside others is lost with it
            yield row | {"end_time": ""}
            continue
        row = dict(zip(SGE_LAST, cells[-len(SGE_LAST) :], strict=True)) | row
        yield row | {"exit_status": row["exit_status"] if row["failed"] in ("", "0") else "failed"}


def _blocks(text: str) -> Iterator[dict[str, str]]:
    """qacct -j, condor_history -long and qstat -f: a name and a value a line."""
    row: dict[str, str] = {}
    name = ""
    for line in itertools.chain(text.splitlines(), [""]):
        if not line.strip() or set(line.strip()) == {"="}:
            if row:
                yield row
            row = {}
            continue
        if line.startswith("\t") and " = " not in line and name:
            row[name] += line.strip()
            continue
        line = line.replace("Job Id: ", "id = ", 1) if line.startswith("Job Id: ") else line
        name, _, value = line.partition(" = ") if " = " in line else line.partition(" ")
        name = name.strip()
        row[name] = value.strip().strip('"')


def _events(text: str) -> Iterator[dict[str, str]]:
    """Read HTCondor's log of a user's jobs: a row for each time that one ran, as of condor_history."""
    names = ("LastRemoteHost", "JobCurrentStartDate", "CompletionDate", "JobStatus")
    known: dict[str, dict[str, str]] = {}
    for event in re.split(r"(?m)^\.\.\.\s*$", text):
        if not (match := _EVENT.match(event.strip())):
            continue
        number, cluster, process, moment = match.groups()
        start = {"ClusterId": cluster, "ProcId": process, "DAGNodeName": cluster}
        row = known.setdefault(f"{cluster}.{process}", start | dict.fromkeys(names, ""))
        if number == "001":
            marks = ("SlotName: ", "alias=", "host: <")
            named = (re.search(rf"{one}([^\s&:>]+)", event) for one in marks)
            row |= {"LastRemoteHost": next((one[1] for one in named if one), ""), "MemoryUsage": ""}
            row |= {"JobCurrentStartDate": moment, "JobStatus": "2"}
        for name, pattern in _OF_EVENTS.items():
            if found := re.search(pattern, event):
                row[name] = next(filter(None, found.groups()))
        if number in ("004", "005", "009", "012", "022") and row["JobStatus"] == "2":
            is_ok = number == "005" and "(return value 0)" in event
            died = "memory usage exceed" in event.lower()
            state = "4" if is_ok else "3"
            yield row | {"CompletionDate": moment, "JobStatus": state, "died": str(+died)}
            row["JobStatus"] = "1"
    yield from (
        row for row in known.values() if not row["JobCurrentStartDate"] or row["JobStatus"] == "2"
    )


def _lsf(text: str, where: str) -> Iterator[dict[str, str]]:
    try:
        for cells in csv.reader(io.StringIO(text), delimiter=" "):
            if cells[:1] != ["JOB_FINISH"]:
                continue
            if len(cells) < 30:  # cut off
                yield dict(zip(_LSF_FIRST, (*cells, *[""] * 11), strict=False))
                continue
            asked = int(cells[22])
            hosts = int(cells[23 + asked])
            rest = cells[24 + asked + hosts :]
            row = dict(zip(_LSF_AFTER, rest, strict=False))
            yield row | {
                "jobid": cells[3], "eventtime": cells[2], "starttime": cells[10], "username": cells[11],
                "exechosts": ",".join(dict.fromkeys(cells[24 + asked : 24 + asked + hosts])),
                "idx": rest[29] if len(rest) > 29 else "0", "maxrmem": rest[30] if len(rest) > 30 else "",
            }  # fmt: skip
    except (ValueError, IndexError, csv.Error) as error:
        raise UnreadableFile(
            f"not readable as records of LSF: {error}"[:200],
            where=where,
            fix="Copy lsb.acct again.",
        ) from None


def _fixed(lines: list[str], at: int, where: str) -> Iterator[dict[str, str]]:
    """at: the line of dashes, under the names."""
    spans = [match.span() for match in re.finditer(r"-+", lines[at])]
    names = [lines[at - 1][first:last].strip() for first, last in spans]
    for number, line in enumerate(lines[at + 1 :], at + 2):
        cells = [line[first:last].strip() for first, last in spans]
        if not line.strip():
            continue
        pairs = zip(names, cells, strict=True)
        if cut := [n for n, cell in pairs if cell.endswith("+") and n.lower() != "state"]:
            what = f"line {number}: {cut[0]} is cut off with a +"
            raise BadData(what, where=where, fix="Print it with -P, which cuts nothing.")
        yield dict(zip(names, cells, strict=True))
