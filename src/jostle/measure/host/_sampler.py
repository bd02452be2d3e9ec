"""What the system tells of a process at a moment: running totals and levels, from /proc and PSI.

A total's difference over an interval is its counter; a level (`LEVELS`) is taken as it is at the
interval's end. What a kernel does not tell is missing.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from jostle.measure.host._perf_events import EVENTS, PerfEvents
from jostle.measure.host._proc import PRESSURE, pressure, text_of
from jostle.traces import LEVELS

_PAGE = os.sysconf("SC_PAGE_SIZE")

# Totals of the process and of what it started.
_PROCESS = (
    *("cpu_seconds", "run_delay_seconds", "timeslices", "minor_faults", "major_faults"),
    *("voluntary_switches", "involuntary_switches"),
)
_SWITCHES = {
    "voluntary_ctxt_switches": "voluntary_switches",
    "nonvoluntary_ctxt_switches": "involuntary_switches",
}
NAMES = (*_PROCESS, *LEVELS, *PRESSURE, *EVENTS)


class Sampler:
    """Reads one process (and those it started, where `tree`), over and over; or those that `processes` names
    each time, with all their threads."""

    def __init__(
        self, pid: int, *, tree: bool = False, processes: Callable[[], list[int]] | None = None
    ) -> None:
        self._pid, self._tree, self._processes = pid, tree, processes
        # The last totals of every process seen: one that has ended keeps them.
        self._seen: dict[str, dict[str, float]] = {}
        self._perf = PerfEvents(pid)

    def read(self) -> dict[str, float]:
        """Totals and levels now, by name; what is not told is missing."""
        resident = 0.0
        for folder in self._folders():
            found = _process(folder)
            if not found:
                continue
            own = found.pop("resident_bytes", 0.0)
            # Threads share their process's memory.
            parts = folder.split("/")
            resident += own if parts[2] == parts[-1] else 0.0
            self._seen[folder] = found
        totals: dict[str, float] = {}
        for process in self._seen.values():
            for name, value in process.items():
                totals[name] = totals.get(name, 0.0) + value
        if resident:
            totals["resident_bytes"] = resident
        return {**totals, **pressure(), **self._perf.read()}

    def _folders(self) -> list[str]:
        if self._processes is not None:
            return [thread for pid in self._processes() for thread in threads_of(pid)]
        return threads_of(self._pid, True) if self._tree else [f"/proc/{self._pid}"]

    def close(self) -> None:
        """Let the counters go."""
        self._perf.close()


def _process(folder: str) -> dict[str, float]:
    """Of the process or thread in this folder; empty when it is gone."""
    found: dict[str, float] = {}
    if schedstat := text_of(f"{folder}/schedstat"):
        ran, waited, slices = map(int, schedstat.split()[:3])
        found["cpu_seconds"], found["run_delay_seconds"] = ran * 1e-9, waited * 1e-9
        found["timeslices"] = slices
    if stat := text_of(f"{folder}/stat"):
        # After the name, which is in parentheses and may hold anything.
        fields = stat.rpartition(")")[2].split()
        found |= {"minor_faults": int(fields[7]), "major_faults": int(fields[9])}
        found["resident_bytes"] = int(fields[21]) * _PAGE
    for line in (text_of(f"{folder}/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name in _SWITCHES:
            found[_SWITCHES[name]] = int(value)
    return found


def threads_of(pid: int, and_children: bool = False) -> list[str]:
    """Folders of all threads of the process, and of all that it started, as far as they live."""
    found, processes = [], [str(pid)]
    while processes:
        one = processes.pop()
        try:
            threads = os.listdir(f"/proc/{one}/task")
        except OSError:
            continue
        for thread in threads:
            folder = f"/proc/{one}/task/{thread}"
            found.append(folder)
            if and_children:
                processes += (text_of(f"{folder}/children") or "").split()
    return found
