"""Following what runs already: a process with all that it started, or all processes of a control group."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import UnreadableFile, UsageError
from jostle.measure.host._control_group import GROUP_NAMES, group_totals, is_populated
from jostle.measure.host._engines import platform_name
from jostle.measure.host._facts import chosen_cores, device_name
from jostle.measure.host._proc import text_of
from jostle.measure.host._sampler import NAMES, Sampler
from jostle.measure.tracing._options import TraceOptions
from jostle.traces import is_level

if TYPE_CHECKING:
    from jostle.traces import Traces

_GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/cpu"))
_FEWEST = 2


def trace_running(
    pid: int | None = None,
    cgroup: str | os.PathLike[str] | None = None,
    options: TraceOptions | None = None,
    *,
    name: str | None = None,
) -> Traces:
    """A trace of what runs already, for `seconds` or until it ends, on the platform native:DEVICE.

    pid: a process, followed with all that it started. cgroup: a control group instead, its folder or its
    path below /sys/fs/cgroup (podman and docker name theirs after the container), with the groups in it; what
    its own files tell (CPU, throttling, memory, input and output, pressure) is recorded as cgroup_….
    name: the workload's; by default that of the process or group. Interrupted, it gives what it has.
    Raises UsageError for neither or both, UnreadableFile where there is no such process or group.
    """
    from jostle.traces import Trace, Traces

    options = options or TraceOptions()
    if (pid is None) == (cgroup is None):
        raise UsageError("name one process, or one control group")
    group = None if cgroup is None else _group(cgroup)
    if pid is not None and text_of(f"/proc/{pid}/stat") is None:
        raise UnreadableFile("there is no such process", where=f"process {pid}")
    sampler = (
        Sampler(pid, tree=True)
        if pid is not None
        else Sampler(os.getpid(), processes=lambda: _processes(group))
    )
    spelled = name or (text_of(f"/proc/{pid}/comm") if group is None else group.name) or "process"
    try:
        samples = _followed(sampler, pid, group, options)
    finally:
        sampler.close()
    if len(samples) < _FEWEST:
        raise UnreadableFile(
            "it ended, or was empty, before it could be looked at twice", where=spelled
        )
    at_ns = np.array([when for when, _ in samples], np.int64)
    counters = {}
    told = {name for _, row in samples for name in row}
    for counter in (*NAMES, *(name for name in GROUP_NAMES if name in told)):
        if group is not None and counter.startswith("perf_"):
            continue  # of this process, not of the group
        totals = np.array([row.get(counter, np.nan) for _, row in samples], np.float64)
        counters[counter] = totals[1:] if is_level(counter) else np.maximum(0.0, np.diff(totals))
    device = options.device or device_name(chosen_cores(options.cores))
    return Traces.from_traces(
        [
            Trace(
                run_id=f"{spelled}-{time.time_ns()}",
                core=0,
                workload=spelled,
                platform=platform_name("native", device),
                corunners=(),
                window_id=None,
                runtime_seconds=float("nan"),
                time_seconds=(at_ns[1:] - at_ns[0]) * 1e-9,
                interval_seconds=np.diff(at_ns) * 1e-9,
                counters=counters,
            )
        ]
    )


def _followed(
    sampler: Sampler, pid: int | None, group: Path | None, options: TraceOptions
) -> list[tuple[int, dict[str, float]]]:
    samples: list[tuple[int, dict[str, float]]] = []
    end = time.monotonic() + options.seconds
    try:
        while True:
            if not (_runs(pid) if group is None else _processes(group) or is_populated(group)):
                break
            row = sampler.read() if group is None else sampler.read() | group_totals(group)
            samples.append((time.monotonic_ns(), row))
            left = end - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(options.interval_seconds, left))
    except KeyboardInterrupt:
        if len(samples) < _FEWEST:
            raise
    return samples


def _runs(pid: int | None) -> bool:
    """Whether the process is there and has not ended (one that nobody has waited for stays visible)."""
    state = (text_of(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()[:1]
    return state not in ([], ["Z"], ["X"])


def _group(given: str | os.PathLike[str]) -> Path:
    """The folder of a control group. Raises UnreadableFile."""
    text = os.fspath(given)
    places = [Path(text), *(root / text.lstrip("/") for root in _GROUPS)]
    for place in places:
        if "\0" not in text and (place / "cgroup.procs").is_file():
            return place
    raise UnreadableFile(
        "there is no such control group",
        where=text,
        fix="Give its folder below /sys/fs/cgroup; of a container, /proc/PID/cgroup names it.",
    )


def _processes(group: Path | None) -> list[int]:
    """The processes of the group and of all groups in it."""
    found: list[int] = []
    for folder, _, files in os.walk(group or ""):
        if "cgroup.procs" in files:
            words = (text_of(f"{folder}/cgroup.procs") or "").split()
            found += [int(word) for word in words if word.isdigit()]
    return found
