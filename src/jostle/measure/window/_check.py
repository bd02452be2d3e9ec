"""Is this machine quiet enough to measure on, and if not, what disturbs it?

For some seconds all that disturbs windows is watched as a campaign would see it: what strangers take
of the cores (with names), how fast a fixed piece of work goes from moment to moment (neighbours that
a guest cannot see), how late a sleeper wakes, and what the system says of itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jostle.measure.host._facts import machine_facts, usable_cores
from jostle.measure.host._sampler import pressure
from jostle.measure.slots._slots import Slot
from jostle.measure.window._estimate import Tolerance
from jostle.measure.window._speed import CoreSpeed
from jostle.measure.window._window import idle_seconds

_PAUSE_SECONDS = 0.05
_NAP_SECONDS = 0.001
_NAMED = 5
# Of the probed moments, this many may be slow before it is said.
_SLOW_MOMENTS_RATIO = 0.25
# A window whose foreign load is past the tolerance is repeated: with this many it takes too long.
_BUSY_MOMENTS_RATIO = 0.25


@dataclass(frozen=True)
class MachineCheck:
    """quiet: whether most windows would be believed. disturbances: sentences, the worst first.

    foreign_load_ratio: (median, p90) share of the cores that others held. slow_moments_ratio: the
    share of probes more than the tolerated times slower than usual; slowdown_p90_ratio: how much
    slower, nine times of ten. lateness_p99_seconds: of waking up. strangers: (name, CPU seconds per
    second) of the busiest. governor, steal_ratio, pressure_cpu_ratio: None where not told.
    """

    quiet: bool
    disturbances: tuple[str, ...]
    seconds: float
    cores: tuple[int, ...]
    foreign_load_ratio: tuple[float, float]
    slow_moments_ratio: float
    slowdown_p90_ratio: float
    lateness_p99_seconds: float
    strangers: tuple[tuple[str, float], ...]
    governor: str | None
    steal_ratio: float | None
    pressure_cpu_ratio: float | None

    def to_json(self) -> dict[str, Any]:
        """A JSON document, schema measure-check/v1."""
        return {"schema": "measure-check/v1", **asdict(self)}


def check_machine(
    seconds: float = 4.0, cores: Sequence[int] | None = None, tolerance: Tolerance | None = None
) -> MachineCheck:
    """Watch the machine for so long. Raises NotPermitted off Linux or where pinning is refused."""
    tolerance = tolerance or Tolerance()
    chosen = usable_cores() if cores is None else tuple(sorted(set(cores)))
    slot, speed = Slot(), CoreSpeed()
    loads, late, best = [], [], []
    try:
        before, began = _system(slot.pid), time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            idle = idle_seconds(chosen)
            slept = 0.0
            while slept < _PAUSE_SECONDS:
                nap = time.monotonic()
                time.sleep(_NAP_SECONDS)
                took = time.monotonic() - nap
                late.append(took - _NAP_SECONDS)
                slept += took
            passed = time.monotonic() - now
            loads.append(1 - min(1.0, (idle_seconds(chosen) - idle) / (passed * len(chosen))))
            for core in chosen:
                slot.pin([core])
                best.append(speed.probe({core: slot}))
        after = _system(slot.pid)
        watched = time.monotonic() - began
    finally:
        slot.kill()
    slowdowns = [ratio for probes in best if (ratio := speed.slowdown(probes)) is not None]
    return _judged(
        tolerance, chosen, watched, np.array(loads), np.array(late), slowdowns, before, after
    )


def _judged(
    tolerance: Tolerance,
    cores: tuple[int, ...],
    watched: float,
    loads: np.ndarray,
    late: np.ndarray,
    slowdowns: Sequence[float],
    before: dict[str, Any],
    after: dict[str, Any],
) -> MachineCheck:
    slow = np.array(slowdowns or [1.0])
    slow_moments = float(np.mean(slow > tolerance.slowdown_ratio))
    busy_moments = float(np.mean(loads > tolerance.foreign_load_ratio))
    strangers = _strangers(before, after, watched)
    governor = machine_facts(cores)["governor"]
    steal = None
    if before["steal"] is not None and after["steal"] is not None:
        steal = (after["steal"] - before["steal"]) / (watched * (os.cpu_count() or 1))
    waiting = None
    if "pressure_cpu_seconds" in before and "pressure_cpu_seconds" in after:
        waiting = (after["pressure_cpu_seconds"] - before["pressure_cpu_seconds"]) / watched
    lateness = float(np.quantile(late, 0.99))
    found: list[tuple[float, str]] = []
    if busy_moments > _BUSY_MOMENTS_RATIO:
        who = ", ".join(f"{name} ({load:.0%} of a core)" for name, load in strangers[:3])
        found.append(
            (
                busy_moments,
                f"other programs hold more than {tolerance.foreign_load_ratio:.0%} of the cores "
                f"{busy_moments:.0%} of the time: {who or 'none that can be seen'}",
            )
        )
    if slow_moments > _SLOW_MOMENTS_RATIO:
        found.append(
            (
                slow_moments,
                f"the cores are more than {tolerance.slowdown_ratio:g} times slower than usual "
                f"{slow_moments:.0%} of the time, which no load explains: a neighbour on the same "
                "hardware, or a clock that changes",
            )
        )
    if lateness > tolerance.lateness_seconds:
        found.append((lateness, f"sleepers wake up to {lateness:.3f} s late"))
    if steal is not None and steal > tolerance.wall_load_ratio:
        found.append((steal, f"the hypervisor takes {steal:.0%} of the CPU time away"))
    quiet = not found
    if governor not in (None, "performance"):
        found.append(
            (0.0, f"the clock follows the load (governor {governor}); performance is steadier")
        )
    return MachineCheck(
        quiet=quiet,
        disturbances=tuple(said for _, said in sorted(found, reverse=True)),
        seconds=watched,
        cores=cores,
        foreign_load_ratio=(float(np.median(loads)), float(np.quantile(loads, 0.9))),
        slow_moments_ratio=slow_moments,
        slowdown_p90_ratio=float(np.quantile(slow, 0.9)),
        lateness_p99_seconds=lateness,
        strangers=strangers,
        governor=governor,
        steal_ratio=steal,
        pressure_cpu_ratio=waiting,
    )


def _system(slot: int) -> dict[str, Any]:
    """CPU seconds of every process but ours, time stolen, and pressure."""
    tick = os.sysconf("SC_CLK_TCK")
    processes: dict[tuple[int, str], float] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in (os.getpid(), slot):
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                head, _, rest = file.read().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        processes[int(entry), head.partition("(")[2]] = (int(fields[11]) + int(fields[12])) / tick
    steal = None
    with open("/proc/stat", encoding="ascii") as file:
        fields = file.readline().split()
        if len(fields) > 8:
            steal = int(fields[8]) / tick
    return {"processes": processes, "steal": steal, **pressure()}


def _strangers(
    before: dict[str, Any], after: dict[str, Any], watched: float
) -> tuple[tuple[str, float], ...]:
    loads: dict[str, float] = {}
    for key, total in after["processes"].items():
        used = total - before["processes"].get(key, 0.0)
        if used > 0:
            loads[key[1]] = loads.get(key[1], 0.0) + used / watched
    return tuple(sorted(loads.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED])
