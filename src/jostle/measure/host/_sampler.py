"""What the system tells of a process at a moment: running totals and levels, from /proc and PSI.

A total's difference over an interval is its counter; a level (`LEVELS`) is taken as it is at the
interval's end. What a kernel does not tell is missing.
"""

from __future__ import annotations

import os
from pathlib import Path

from jostle.measure.host._perf_events import EVENTS, PerfEvents
from jostle.traces import LEVELS

_PAGE = os.sysconf("SC_PAGE_SIZE")

# Totals of the process and of what it started.
_PROCESS = (
    "cpu_seconds",
    "run_delay_seconds",
    "timeslices",
    "minor_faults",
    "major_faults",
    "voluntary_switches",
    "involuntary_switches",
)
# Totals of the whole machine: microseconds in which some task waited, from /proc/pressure.
_PRESSURE = {
    f"pressure_{what}_seconds": Path("/proc/pressure") / what for what in ("cpu", "memory", "io")
}
NAMES = (*_PROCESS, *LEVELS, *_PRESSURE, *EVENTS)


class Sampler:
    """Reads one process (and those it started, where `tree`), over and over."""

    def __init__(self, pid: int, *, tree: bool = False) -> None:
        self._pid, self._tree = pid, tree
        # The last totals of every process seen: one that has ended keeps them.
        self._seen: dict[str, dict[str, float]] = {}
        self._perf = PerfEvents(pid)

    def read(self) -> dict[str, float]:
        """Totals and levels now, by name; what is not told is missing."""
        resident = 0.0
        for folder in _threads(self._pid) if self._tree else [f"/proc/{self._pid}"]:
            found = _process(folder)
            if not found:
                continue
            own = found.pop("resident_bytes", 0.0)
            # Threads share their process's memory.
            resident += own if self._is_first(folder) else 0.0
            self._seen[folder] = found
        totals: dict[str, float] = {}
        for process in self._seen.values():
            for name, value in process.items():
                totals[name] = totals.get(name, 0.0) + value
        if resident:
            totals["resident_bytes"] = resident
        return {**totals, **pressure(), **self._perf.read()}

    def close(self) -> None:
        """Let the counters go."""
        self._perf.close()

    @staticmethod
    def _is_first(folder: str) -> bool:
        parts = folder.split("/")
        return parts[2] == parts[-1]


def pressure() -> dict[str, float]:
    """Seconds since boot in which some task waited for the CPU, for memory, for input and output."""
    found = {}
    for name, path in _PRESSURE.items():
        text = _text(path)
        if text and "total=" in text:
            found[name] = int(text.split("total=")[1].split()[0]) * 1e-6
    return found


def _process(folder: str) -> dict[str, float]:
    """Of the process or thread in this folder; empty when it is gone."""
    found: dict[str, float] = {}
    if schedstat := _text(f"{folder}/schedstat"):
        ran, waited, slices = map(int, schedstat.split()[:3])
        found |= {
            "cpu_seconds": ran * 1e-9,
            "run_delay_seconds": waited * 1e-9,
            "timeslices": slices,
        }
    if stat := _text(f"{folder}/stat"):
        # After the name, which is in parentheses and may hold anything.
        fields = stat.rpartition(")")[2].split()
        found |= {"minor_faults": int(fields[7]), "major_faults": int(fields[9])}
        found["resident_bytes"] = int(fields[21]) * _PAGE
    if status := _text(f"{folder}/status"):
        for line in status.splitlines():
            name, _, value = line.partition(":")
            if name == "voluntary_ctxt_switches":
                found["voluntary_switches"] = int(value)
            elif name == "nonvoluntary_ctxt_switches":
                found["involuntary_switches"] = int(value)
    return found


def _threads(pid: int) -> list[str]:
    """Folders of all threads of the process and of all that it started, as far as they live."""
    found, next_to_ask = [], [str(pid)]
    while next_to_ask:
        one = next_to_ask.pop()
        try:
            threads = os.listdir(f"/proc/{one}/task")
        except OSError:
            continue
        for thread in threads:
            folder = f"/proc/{one}/task/{thread}"
            found.append(folder)
            next_to_ask += (_text(f"{folder}/children") or "").split()
    return found


def _text(path: str | Path) -> str | None:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return None
