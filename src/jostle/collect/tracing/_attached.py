"""Following what runs already: a process with all that it started, or all processes of a control group."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jostle.collect.host._facts import chosen_cores, device_name, platform_name
from jostle.collect.host._proc import GROUP_NAMES, group_totals, is_populated, text_of
from jostle.collect.host._sampler import NAMES, Sampler
from jostle.collect.tracing._trace_settings import TraceOptions
from jostle.data import Trace, Traces, is_level
from jostle.errors import UnreadableFile, UsageError

_GROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/cpu"))


@dataclass(frozen=True)
class RunningSample:
    """Counters of a running program in one interval. time_seconds: its end since the first look. counters:
    counts over it, levels at its end; NaN where not told."""

    time_seconds: float
    interval_seconds: float
    counters: dict[str, float]


def follow_running(
    pid: int | None = None,
    cgroup: str | os.PathLike[str] | None = None,
    options: TraceOptions | None = None,
) -> Iterator[RunningSample]:
    """Yield the samples of what runs already, each when it is there, for `seconds` or until it ends.

    pid: a process, followed with all that it started. cgroup: a control group instead, its folder or its
    path below /sys/fs/cgroup (podman and docker name theirs after the container), with the groups in it; what
    its own files tell (CPU, throttling, memory, input and output, pressure) is in cgroup_….
    Raises UsageError for neither or both, UnreadableFile where there is no such process or group.
    """
    options = options or TraceOptions()
    group = _group_of(pid, cgroup)
    sampler = (
        Sampler(pid, tree=True)
        if pid is not None
        else Sampler(os.getpid(), processes=lambda: _processes(group))
    )
    # Counters of the hardware are of this process, not of the group.
    names = [n for n in NAMES if group is None or not n.startswith("perf_")]
    try:
        looks = _looks(sampler, pid, group, options)
        began = before = next(looks, None)
        for now in looks:
            assert began is not None
            assert before is not None
            counters = {}
            for counter in (*names, *(n for n in GROUP_NAMES if n in now[1])):
                value = now[1].get(counter, np.nan)
                if not is_level(counter):
                    value = np.maximum(0.0, value - before[1].get(counter, np.nan))
                counters[counter] = float(value)
            yield RunningSample((now[0] - began[0]) * 1e-9, (now[0] - before[0]) * 1e-9, counters)
            before = now
    finally:
        sampler.close()


def trace_running(
    pid: int | None = None,
    cgroup: str | os.PathLike[str] | None = None,
    options: TraceOptions | None = None,
    *,
    name: str | None = None,
) -> Traces:
    """Return a trace of what runs already, as `follow_running` sees it, on the platform native:DEVICE.

    name: the workload's; by default that of the process or group. Interrupted, it gives what it has; what
    ended meanwhile has a run time, as long as it was seen.
    Raises UsageError for neither or both, UnreadableFile where there is no such process or group.
    """
    options = options or TraceOptions()
    group = _group_of(pid, cgroup)
    workload = name or (text_of(f"/proc/{pid}/comm") if group is None else group.name) or "process"
    samples: list[RunningSample] = []
    seen = ran = float("nan")
    try:
        for sample in follow_running(pid, cgroup, options):
            samples.append(sample)
            seen = time.monotonic()
        if samples and not _goes_on(pid, group):
            ran = samples[-1].time_seconds + time.monotonic() - seen
    except KeyboardInterrupt:
        if not samples:
            raise
    if not samples:
        raise UnreadableFile(
            "it ended, or was empty, before it could be looked at twice", where=workload
        )
    known = list(dict.fromkeys(counter for one in samples for counter in one.counters))
    device = options.device or device_name(chosen_cores(options.cores))
    return Traces.from_traces(
        [
            Trace(
                run_id=f"{workload}-{time.time_ns()}",
                core=0,
                workload=workload,
                platform=platform_name("native", device),
                corunners=(),
                window_id=None,
                runtime_seconds=ran,
                time_seconds=np.array([one.time_seconds for one in samples]),
                interval_seconds=np.array([one.interval_seconds for one in samples]),
                counters={
                    counter: np.array([one.counters.get(counter, np.nan) for one in samples])
                    for counter in known
                },
            )
        ]
    )


def _group_of(pid: int | None, cgroup: str | os.PathLike[str] | None) -> Path | None:
    if (pid is None) == (cgroup is None):
        raise UsageError("name one process, or one control group")
    if pid is not None and text_of(f"/proc/{pid}/stat") is None:
        raise UnreadableFile("there is no such process", where=f"process {pid}")
    return None if cgroup is None else _group(cgroup)


def _looks(
    sampler: Sampler, pid: int | None, group: Path | None, options: TraceOptions
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield (when, totals and levels) at the first look and after every interval."""
    end = time.monotonic() + options.seconds
    while _goes_on(pid, group):
        yield (
            time.monotonic_ns(),
            sampler.read() if group is None else sampler.read() | group_totals(group),
        )
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(options.interval_seconds, left))


def _goes_on(pid: int | None, group: Path | None) -> bool:
    """Return whether the process is there and has not ended (one that nobody has waited for stays visible),
    or the group has any."""
    if group is not None:
        return bool(_processes(group)) or is_populated(group)
    state = (text_of(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()[:1]
    return state not in ([], ["Z"], ["X"])


def _group(given: str | os.PathLike[str]) -> Path:
    """Return the folder of a control group. Raises UnreadableFile."""
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
    """Return the processes of the group and of all groups in it."""
    processes: list[int] = []
    for folder, _, files in os.walk(group or ""):
        if "cgroup.procs" in files:
            words = (text_of(f"{folder}/cgroup.procs") or "").split()
            processes += [int(word) for word in words if word.isdigit()]
    return processes
