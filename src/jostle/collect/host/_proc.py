"""What the kernel tells in /proc, /sys and control groups at a moment; what it does not tell is missing.

Of a control group (version 2, https://docs.kernel.org/admin-guide/cgroup-v2.html): cpu.stat, memory.current,
memory.stat, io.stat, pids.current, and the pressure files (PSI) of this group alone, as running totals and
levels of all in it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_PRESSURE = Path("/proc/pressure")
# Microseconds in which some task of the machine waited.
PRESSURE = {f"pressure_{what}_seconds": what for what in ("cpu", "memory", "io")}


def text_of(path: str | Path) -> str | None:
    """Return the stripped text of a file; None where there is no such file or nothing in it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def pressure() -> dict[str, float]:
    """Return seconds since boot in which some task waited for the CPU, for memory, for input and output."""
    waited = {}
    for name, what in PRESSURE.items():
        text = text_of(_PRESSURE / what)
        if text and "total=" in text:
            waited[name] = int(text.split("total=")[1].split()[0]) * 1e-6
    return waited


def process_seconds(without: Sequence[int]) -> dict[tuple[int, str], float]:
    """Return CPU seconds of every process by its number and name, but for some."""
    tick = os.sysconf("SC_CLK_TCK")
    seconds = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in without:
            head, _, rest = (text_of(f"/proc/{entry}/stat") or "").rpartition(")")
            if fields := rest.split():
                name = head.partition("(")[2]
                seconds[int(entry), name] = (int(fields[11]) + int(fields[12])) / tick
    return seconds


_KTHREADD = 2
# The kernel tells these times in ticks of a hundredth of a second.
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class CoreTimes:
    """Seconds since boot. idle: waiting for input and output is idle too. stolen: by the hypervisor.
    interrupts: hard and soft ones, of whatever process."""

    idle: float
    stolen: float
    interrupts: float


def core_times() -> dict[int, CoreTimes]:
    """Read the times of every core that is online (proc_stat(5)); {} if the system does not give them."""
    times = {}
    for line in (text_of("/proc/stat") or "").splitlines():
        name, _, rest = line.partition(" ")
        if not name.startswith("cpu"):
            break
        if name[3:].isdigit():
            ticks = [int(field) * TICK_SECONDS for field in rest.split()]
            ticks += [0.0] * (8 - len(ticks))
            _, _, _, idle, waiting, hard, soft, stolen, *_ = ticks
            times[int(name[3:])] = CoreTimes(idle + waiting, stolen, hard + soft)
    return times


def kernel_thread_seconds() -> float:
    """Return CPU seconds that the kernel's own threads have used since boot, which write pages back and serve
    disks and sockets for whoever asked; 0 where they are not seen, as in a container."""
    folder = Path(f"/proc/{_KTHREADD}")
    if text_of(folder / "comm") != "kthreadd":
        return 0.0
    ticks = 0
    for thread in (text_of(folder / f"task/{_KTHREADD}/children") or "").split():
        fields = (text_of(f"/proc/{thread}/stat") or "").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0
    return ticks * TICK_SECONDS


_CPU = {
    "usage_usec": ("cgroup_cpu_seconds", 1e-6),
    "system_usec": ("cgroup_system_seconds", 1e-6),
    "nr_throttled": ("cgroup_throttled_periods", 1.0),
    "throttled_usec": ("cgroup_throttled_seconds", 1e-6),
}
_MEMORY = {
    "pgfault": ("cgroup_page_faults", 1.0),
    "pgmajfault": ("cgroup_major_faults", 1.0),
    "workingset_refault_file": ("cgroup_refaults", 1.0),
}
_IO = {
    "rbytes": "cgroup_read_bytes",
    "wbytes": "cgroup_written_bytes",
    "rios": "cgroup_reads",
    "wios": "cgroup_writes",
}
_LEVELS = {
    "memory.current": "cgroup_memory_bytes_level",
    "memory.swap.current": "cgroup_swap_bytes_level",
    "pids.current": "cgroup_tasks_level",
}
_WAITING = [
    (what, kind, f"cgroup_pressure_{what}_{kind}_seconds")
    for what in ("cpu", "memory", "io")
    for kind in ("some", "full")
]
GROUP_NAMES = (
    *(name for name, _ in (*_CPU.values(), *_MEMORY.values())),
    *_IO.values(),
    *_LEVELS.values(),
    *(name for _, _, name in _WAITING),
)


def group_totals(folder: Path) -> dict[str, float]:
    """Return totals and levels of a control group now, by name. folder: below /sys/fs/cgroup."""
    totals: dict[str, float] = {}
    for file, names in (("cpu.stat", _CPU), ("memory.stat", _MEMORY)):
        for line in (text_of(folder / file) or "").splitlines():
            key, _, value = line.partition(" ")
            if key in names and value.strip().isdigit():
                name, unit = names[key]
                totals[name] = int(value) * unit
    for line in (text_of(folder / "io.stat") or "").splitlines():
        for part in line.split()[1:]:  # after the device; devices are added up
            key, _, value = part.partition("=")
            if key in _IO and value.isdigit():
                totals[_IO[key]] = totals.get(_IO[key], 0.0) + int(value)
    for file, name in _LEVELS.items():
        text = text_of(folder / file)
        if text is not None and text.isdigit():
            totals[name] = float(text)
    for what, kind, name in _WAITING:
        for line in (text_of(folder / f"{what}.pressure") or "").splitlines():
            value = line.partition("total=")[2].strip()
            if line.startswith(kind) and value.isdigit():
                totals[name] = int(value) * 1e-6
    return totals


def throttled_seconds() -> float:
    """Return the seconds for which the control group of this process was throttled since it began; 0 where
    there is none or no limit."""
    for line in (text_of("/proc/self/cgroup") or "").splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            folder = Path("/sys/fs/cgroup") / path.lstrip("/")
            return group_totals(folder).get("cgroup_throttled_seconds", 0.0)
    return 0.0


def is_populated(folder: Path) -> bool:
    """Return whether the group says that it has processes, also such as are not seen from here."""
    return "populated 1" in (text_of(folder / "cgroup.events") or "").splitlines()


def threads_of(pid: int, and_children: bool = False) -> list[str]:
    """Return folders of all threads of the process, and of all that it started, as far as they live."""
    folders, processes = [], [str(pid)]
    while processes:
        one = processes.pop()
        try:
            threads = os.listdir(f"/proc/{one}/task")
        except OSError:
            continue
        for thread in threads:
            folder = f"/proc/{one}/task/{thread}"
            folders.append(folder)
            if and_children:
                processes += (text_of(f"{folder}/children") or "").split()
    return folders
