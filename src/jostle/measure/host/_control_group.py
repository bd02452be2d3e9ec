"""What a control group (version 2) tells of itself at a moment: running totals and levels of all in it.

https://docs.kernel.org/admin-guide/cgroup-v2.html: cpu.stat, memory.current, memory.stat, io.stat,
pids.current, and the pressure files (PSI) of this group alone. What a kernel does not tell is missing.
"""

from __future__ import annotations

from pathlib import Path

from jostle.measure.host._proc import text_of

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
    """Totals and levels of a control group now, by name. folder: below /sys/fs/cgroup."""
    found: dict[str, float] = {}
    for file, names in (("cpu.stat", _CPU), ("memory.stat", _MEMORY)):
        for line in (text_of(folder / file) or "").splitlines():
            key, _, value = line.partition(" ")
            if key in names and value.strip().isdigit():
                name, unit = names[key]
                found[name] = int(value) * unit
    for line in (text_of(folder / "io.stat") or "").splitlines():
        for part in line.split()[1:]:  # after the device; devices are added up
            key, _, value = part.partition("=")
            if key in _IO and value.isdigit():
                found[_IO[key]] = found.get(_IO[key], 0.0) + int(value)
    for file, name in _LEVELS.items():
        text = text_of(folder / file)
        if text is not None and text.isdigit():
            found[name] = float(text)
    for what, kind, name in _WAITING:
        for line in (text_of(folder / f"{what}.pressure") or "").splitlines():
            value = line.partition("total=")[2].strip()
            if line.startswith(kind) and value.isdigit():
                found[name] = int(value) * 1e-6
    return found


def is_populated(folder: Path) -> bool:
    """Whether the group says that it has processes, also such as are not seen from here."""
    return "populated 1" in (text_of(folder / "cgroup.events") or "").splitlines()
