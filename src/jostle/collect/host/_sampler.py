"""What the system tells of a process at a moment: running totals and levels, from /proc, PSI and perf.

A total's difference over an interval is its counter; a level (`LEVELS`) is taken as it is at the interval's
end. Of memory it is the most that a process ever had, where this has grown since the look before: its peak
between two looks is seen. What a kernel does not tell is missing, never 0.

Events of perf_event_open(2) are opened one by one; where there are more events than counters the kernel takes
turns: counts are then scaled by time enabled over time running, as `perf stat` does, and an event that
never ran is missing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable, Iterable

from jostle.collect.host._proc import PRESSURE, pressure, text_of, threads_of
from jostle.data import LEVELS

# name: (type, config), from linux/perf_event.h. Cache events are id | operation << 8 | result << 16.
_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3
EVENTS: dict[str, tuple[int, int]] = {
    "perf_instructions": (_HARDWARE, 1),
    "perf_cycles": (_HARDWARE, 0),
    "perf_cache_references": (_HARDWARE, 2),
    "perf_cache_misses": (_HARDWARE, 3),
    "perf_branches": (_HARDWARE, 4),
    "perf_branch_misses": (_HARDWARE, 5),
    "perf_llc_loads": (_CACHE, 2),
    "perf_llc_load_misses": (_CACHE, 2 | 1 << 16),
    "perf_dtlb_load_misses": (_CACHE, 3 | 1 << 16),
    "perf_task_clock_ns": (_SOFTWARE, 1),
    "perf_page_faults": (_SOFTWARE, 2),
    "perf_context_switches": (_SOFTWARE, 3),
    "perf_cpu_migrations": (_SOFTWARE, 4),
}
_SYSCALL = {"x86_64": 298, "aarch64": 241}
_SIZE = 64  # PERF_ATTR_SIZE_VER0
_FORMAT_TIMES = 1 | 2  # total time enabled, total time running
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HYPERVISOR = 1 << 1, 1 << 5, 1 << 6
_CLOSE_ON_EXEC = 8


class PerfEvents:
    """Counters of one process and of the children that it starts from now on.

    names: what opened. read() gives running totals. Software events need no hardware counters.
    """

    def __init__(self, pid: int, names: Iterable[str] = EVENTS) -> None:
        self._files = {name: file for name in names if (file := _opened(pid, name)) is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the counters that this host offers."""
        return tuple(self._files)

    def read(self) -> dict[str, float]:
        """Return totals since the start, by name; an event that had no turn yet is missing."""
        totals = {}
        for name, file in self._files.items():
            count, enabled, running = struct.unpack("QQQ", os.read(file, 24))
            if running:
                totals[name] = count * (enabled / running)
            elif not enabled:  # the process has not run since: nothing has happened yet
                totals[name] = 0.0
        return totals

    def close(self) -> None:
        """Let the counters go."""
        for file in self._files.values():
            os.close(file)
        self._files = {}


def available_counters() -> tuple[str, ...]:
    """Return the events that this host counts for us."""
    counters = PerfEvents(os.getpid())
    try:
        return counters.names
    finally:
        counters.close()


def _opened(pid: int, name: str) -> int | None:
    number = _SYSCALL.get(platform.machine())
    if number is None:
        return None
    kind, config = EVENTS[name]
    libc = ctypes.CDLL(None, use_errno=True)
    for flags in (_INHERIT, _INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HYPERVISOR):
        # type, size, config, period, sample type, read format, flags, wake-up, breakpoint, address
        fields = (kind, _SIZE, config, 0, 0, _FORMAT_TIMES, flags, 0, 0, 0)
        attributes = ctypes.create_string_buffer(struct.pack("IIQQQQQIIQ", *fields), _SIZE)
        file = libc.syscall(
            number, attributes, ctypes.c_int(pid), -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC)
        )
        if file >= 0:
            return file
    return None


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
_MOST = "VmHWM"  # the most memory that a process ever had (proc_pid_status(5))
NAMES = (*_PROCESS, *LEVELS, *PRESSURE, *EVENTS)


class Sampler:
    """Reads one process (and those it started, where `tree`), over and over; or those that `processes` names
    each time, with all their threads."""

    def __init__(
        self, pid: int, *, tree: bool = False, processes: Callable[[], list[int]] | None = None
    ) -> None:
        self._pid, self._tree, self._processes = pid, tree, processes
        # The last totals of every process seen: one that has ended keeps them.
        self._processes_totals: dict[str, dict[str, float]] = {}
        self._most: dict[str, float] | None = None  # bytes that each process had by the last look
        self._perf = PerfEvents(pid)

    def read(self) -> dict[str, float]:
        """Return totals and levels now, by name; what is not told is missing."""
        resident, is_first, most = 0.0, self._most is None, self._most or {}
        for folder in self._folders():
            own_totals = _process(folder)
            if not own_totals:
                continue
            own, high = (own_totals.pop(name, 0.0) for name in ("resident_bytes", _MOST))
            # Threads share their process's memory.
            parts = folder.split("/")
            if parts[2] == parts[-1]:
                resident += high if high > most.get(folder, 0.0) and not is_first else own
                most[folder] = high
            self._processes_totals[folder] = own_totals
        self._most = most
        totals: dict[str, float] = {}
        for process in self._processes_totals.values():
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
    """Read the totals of the process or thread in this folder; empty if it has ended."""
    totals: dict[str, float] = {}
    if schedstat := text_of(f"{folder}/schedstat"):
        ran, waited, slices = map(int, schedstat.split()[:3])
        totals["cpu_seconds"], totals["run_delay_seconds"] = ran * 1e-9, waited * 1e-9
        totals["timeslices"] = slices
    if stat := text_of(f"{folder}/stat"):
        # After the name, which is in parentheses and may hold anything.
        fields = stat.rpartition(")")[2].split()
        totals |= {"minor_faults": int(fields[7]), "major_faults": int(fields[9])}
        totals["resident_bytes"] = int(fields[21]) * _PAGE
    for line in (text_of(f"{folder}/status") or "").splitlines():
        name, _, value = line.partition(":")
        if name in _SWITCHES:
            totals[_SWITCHES[name]] = int(value)
        elif name == _MOST:
            totals[_MOST] = int(value.split()[0]) * 1024
    return totals
