"""What the kernel tells in /proc and /sys at a moment; what it does not tell is missing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_PRESSURE = Path("/proc/pressure")
# Microseconds in which some task of the machine waited.
PRESSURE = {f"pressure_{what}_seconds": what for what in ("cpu", "memory", "io")}


def text_of(path: str | Path) -> str | None:
    """The stripped text of a file; None where there is no such file or nothing in it."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def pressure() -> dict[str, float]:
    """Seconds since boot in which some task waited for the CPU, for memory, for input and output."""
    found = {}
    for name, what in PRESSURE.items():
        text = text_of(_PRESSURE / what)
        if text and "total=" in text:
            found[name] = int(text.split("total=")[1].split()[0]) * 1e-6
    return found


def idle_seconds(cores: Sequence[int]) -> float:
    """Seconds these cores have been idle since boot, to a hundredth."""
    wanted = {f"cpu{core}" for core in cores}
    ticks = 0
    with open("/proc/stat", encoding="ascii") as file:
        for line in file:
            name, *fields = line.split()
            if name in wanted:
                ticks += int(fields[3]) + int(fields[4])  # idle, and idle waiting for input
    return ticks / os.sysconf("SC_CLK_TCK")


def stolen_seconds() -> float | None:
    """Seconds that the hypervisor took away since boot, of all cores."""
    fields = (text_of("/proc/stat") or "").partition("\n")[0].split()
    return int(fields[8]) / os.sysconf("SC_CLK_TCK") if len(fields) > 8 else None


def process_seconds(without: Sequence[int]) -> dict[tuple[int, str], float]:
    """CPU seconds of every process by its number and name, but for some."""
    tick = os.sysconf("SC_CLK_TCK")
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in without:
            head, _, rest = (text_of(f"/proc/{entry}/stat") or "").rpartition(")")
            if fields := rest.split():
                name = head.partition("(")[2]
                found[int(entry), name] = (int(fields[11]) + int(fields[12])) / tick
    return found
