"""What the kernel tells of every core: how long it was idle, taken by a hypervisor, or in interrupts."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jostle.measure.host._proc import text_of

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
    """Of every core that is online (proc_stat(5)); {} where it is not told."""
    found = {}
    for line in (text_of("/proc/stat") or "").splitlines():
        name, _, rest = line.partition(" ")
        if not name.startswith("cpu"):
            break
        if name[3:].isdigit():
            ticks = [int(field) * TICK_SECONDS for field in rest.split()]
            ticks += [0.0] * (8 - len(ticks))
            _, _, _, idle, waiting, hard, soft, stolen, *_ = ticks
            found[int(name[3:])] = CoreTimes(idle + waiting, stolen, hard + soft)
    return found


def kernel_thread_seconds() -> float:
    """CPU seconds that the kernel's own threads have used since boot, which write pages back and serve disks
    and sockets for whoever asked; 0 where they are not seen, as in a container."""
    folder = Path(f"/proc/{_KTHREADD}")
    if text_of(folder / "comm") != "kthreadd":
        return 0.0
    ticks = 0
    for thread in (text_of(folder / f"task/{_KTHREADD}/children") or "").split():
        fields = (text_of(f"/proc/{thread}/stat") or "").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12]) if len(fields) > 12 else 0
    return ticks * TICK_SECONDS
