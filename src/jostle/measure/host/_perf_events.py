"""Hardware and software counters of a process by perf_event_open(2), each where the host has it.

Each event is opened by itself: what does not open is missing, never 0. Where there are more events
than counters the kernel takes turns; counts are then scaled by time enabled over time running, as
`perf stat` does, and an event that never ran is missing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

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
        """What this host counts for us."""
        return tuple(self._files)

    def read(self) -> dict[str, float]:
        """Totals since the start, by name; an event that had no turn yet is missing."""
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
    """The events that this host counts for us."""
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
