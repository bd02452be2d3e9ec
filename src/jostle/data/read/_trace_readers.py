"""Files of profilers and counter tools: which reader a file needs.

A reader is a module beside this one with `name` and `read(path, recording)`, which gives a Profile or Traces,
and raises UnreadableFile for a foreign or truncated file, BadData for one that holds nothing to keep.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from jostle._base.untrusted import Unpacked, understood
from jostle.data.traces._gpus import Gpu, gpu_named
from jostle.data.traces._profile_queries import one_query
from jostle.data.traces._profile_tasks import Profile
from jostle.data.traces._traces import Traces
from jostle.errors import BadData, UnreadableFile

STEP = "ProfilerStep#"  # what torch.profiler calls its steps


@dataclass(frozen=True)
class RecordedRun:
    """Names that a recording may lack. workload, run_id: what ran and the run's name; empty, they come from
    the file's name. gpu: the device, instead of what the file says of it. The others are of traces: platform,
    co-runners, what runs recorded together share, and seconds of the whole run where it had ended. mark: how
    the names of annotations begin that mark a step (a query)."""

    workload: str = ""
    run_id: str = ""
    gpu: Gpu | None = None
    platform: str = ""
    corunners: tuple[str, ...] = ()
    window_id: str | None = None
    runtime_seconds: float | None = None
    mark: str = STEP


def text_of(head: bytes) -> str:
    """Return the beginning of a file as text, without its mark of byte order and blank lines before it."""
    marked = head[:2] in (b"\xff\xfe", b"\xfe\xff")
    return head.decode("utf-16" if marked else "utf-8", "replace").lstrip("\ufeff \t\r\n")


# By the name of its format the module that reads it and how its text begins, in the order of looking.
_READERS = {
    "kineto": ("_kineto", r'\A[{\[](?![\s\S]*"counter-value")'),
    "nsys": ("_nsys", r"(?m)\ASQLite format 3\0|^(?=.*CorrId).*Duration \(|Total Time \(ns\)"),
    "nvprof": ("_nvprof", r'\A==|"Start"[\s\S]*Duration|Duration[\s\S]*"Start"'),
    "perf": (
        "_perf_stat",
        r'\A((#[^\n]*|[ \t\r]*)\n)*[ \t]*([\d.]+,([^,\n]*,){2,}|\{(?=[^\n]*"interval")[^\n]*"counter-value")',
    ),
    "rocprof": ("_rocprof", r"(?i)\A.*(kernel[-_]?name|start[-_]timestamp)"),
}
_HEAD = 65536  # bytes that a reader is shown to tell whether a file is its own
_GZIP = b"\x1f\x8b"


def reader_names() -> tuple[str, ...]:
    """List the names of all readers, sorted. None is loaded for it."""
    return tuple(_READERS)


def _loaded(format: str) -> Any:
    return import_module(f"jostle.data.read.{_READERS[format][0]}")


def looks_like(format: str, text: str) -> bool:
    """Return whether the first 64 KiB of a file, as text, are in a format."""
    return re.search(_READERS[format][1], text) is not None


def read_any(
    path: str | os.PathLike[str], recording: RecordedRun | None = None, *, format: str | None = None
) -> Profile | Traces:
    """Return what another tool recorded, by the reader that knows the file, or that `format` names.

    Raises UnreadableFile for a missing, empty, truncated or foreign file, BadData for one that holds nothing
    to keep and for an unknown format.
    """
    path, recording = Path(path), recording or RecordedRun()
    if format is not None and format not in reader_names():
        known = ", ".join(reader_names())
        raise BadData(f"format {format!r} is none of {known}", where=str(path))
    reader = _sniffed(path) if format is None else _loaded(format)
    workload = recording.workload or path.name.split(".")[0]
    run_id = recording.run_id or workload
    with understood(path):
        return reader.read(path, replace(recording, workload=workload, run_id=run_id))


def read_profile(
    path: str | os.PathLike[str],
    *,
    workload: str | None = None,
    run_id: str | None = None,
    gpu: Gpu | str | None = None,
    format: str | None = None,
    queries: str = "auto",
    mark: str = STEP,
) -> Profile:
    """Return a profile that another tool recorded: nsys SQLite, Kineto JSON, nvprof or rocprof CSV.

    workload: what ran; the file's name by default. gpu: a name from the table of devices or a Gpu, for
    files that do not say. format: instead of looking at the content. queries: how one query is told from a
    recording of many: auto, steps, gaps or whole (see one_query). mark: how the names of annotations or NVTX
    ranges begin that mark one. Raises what read_any raises, BadData
    for counter samples, UnknownName for a GPU.
    """
    if isinstance(gpu, str):
        gpu = gpu_named(gpu)
    recording = RecordedRun(workload or "", run_id or "", gpu, mark=mark)
    profile = read_any(path, recording, format=format)
    if not isinstance(profile, Profile):
        raise BadData("it holds counter samples and no tasks of an accelerator", where=str(path))
    return one_query(profile, queries)


def _sniffed(path: Path) -> Any:
    text = text_of(_head(path))
    for format in _READERS:
        if looks_like(format, text):
            return _loaded(format)
    fix = f"Known formats: {', '.join(reader_names())}."
    if path.suffix in (".nsys-rep", ".qdrep"):
        fix = "Export it first: nsys export --type sqlite REPORT.nsys-rep"
    raise UnreadableFile("not a profile of a known format", where=str(path), fix=fix)


def _head(path: Path) -> bytes:
    with understood(path, "Check the name."), path.open("rb") as file:
        head = file.read(_HEAD)
    if not head:
        raise UnreadableFile("the file is empty", where=str(path), fix="Record the profile again.")
    if not head.startswith(_GZIP):
        return head
    with path.open("rb") as file:
        return Unpacked(file, len(head), str(path)).read(_HEAD)
