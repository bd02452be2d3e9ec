"""Is this machine quiet, and if not, what disturbs it?

For some seconds all that disturbs windows is watched as a campaign would see it: what other processes take
of the cores (with names), how fast a fixed piece of work goes from moment to moment (neighbours that
a guest cannot see), how late a sleeper wakes, and what the system tells of itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from jostle.measure.host._facts import chosen_cores, machine_facts
from jostle.measure.host._proc import idle_seconds, pressure, process_seconds, stolen_seconds
from jostle.measure.slots._slots import Slot
from jostle.measure.window._speed import MOST_SLOWDOWN_RATIO, CoreSpeed

_PAUSE_SECONDS = 0.05
_NAP_SECONDS = 0.001
_NAMED = 5
_LATE_SECONDS, _STEAL_RATIO = 0.02, 0.05
# Of the probed moments, this many may be slow before it is reported.
_SLOW_MOMENTS_RATIO = 0.25
# A moment of 50 ms counts as busy from this share of the cores on.
_BUSY_RATIO = 0.15
_BUSY_MOMENTS_RATIO = 0.25


@dataclass(frozen=True)
class MachineCheck:
    """quiet: whether little would be taken off most runs. disturbances: sentences, the worst first.

    foreign_load_ratio: (median, p90) share of the cores that others held. slow_moments_ratio: the
    share of probes more than the tolerated times slower than usual; slowdown_p90_ratio: how much
    slower, nine times of ten. lateness_p99_seconds: of waking up. other_processes: (name, CPU
    seconds per second) of the busiest. governor, steal_ratio, pressure_cpu_ratio: None where not told.
    """

    quiet: bool
    disturbances: tuple[str, ...]
    seconds: float
    cores: tuple[int, ...]
    foreign_load_ratio: tuple[float, float]
    slow_moments_ratio: float
    slowdown_p90_ratio: float
    lateness_p99_seconds: float
    other_processes: tuple[tuple[str, float], ...]
    governor: str | None
    steal_ratio: float | None
    pressure_cpu_ratio: float | None

    def to_json(self) -> dict[str, Any]:
        """A JSON document, schema measure-check/v1."""
        document = {"schema": "measure-check/v1", **asdict(self)}
        document["strangers"] = document.pop("other_processes")  # its name since version 1
        return document


@dataclass
class _Watched:
    """What was seen. loads: share of the cores that others held, by moment. late: seconds that each nap
    was too long. slowdowns: of each probe. before, after: what the system told."""

    cores: tuple[int, ...]
    loads: list[float] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    slowdowns: list[float] = field(default_factory=list)
    seconds: float = 0.0
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def rate(self, name: str) -> float | None:
        """A total's increase per second; None where it is not told."""
        before, after = self.before.get(name), self.after.get(name)
        return None if before is None or after is None else (after - before) / self.seconds

    def other_processes(self) -> tuple[tuple[str, float], ...]:
        """(name, CPU seconds per second) of the busiest."""
        loads: dict[str, float] = {}
        # By number alone: a process may have another name by now.
        earlier = {pid: total for (pid, _), total in self.before["processes"].items()}
        for (pid, name), total in self.after["processes"].items():
            used = total - earlier.get(pid, 0.0)
            if used > 0:
                loads[name] = loads.get(name, 0.0) + used / self.seconds
        return tuple(sorted(loads.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED])


def check_machine(seconds: float = 4.0, cores: Sequence[int] | None = None) -> MachineCheck:
    """Watch the machine for so long.

    Raises UsageError for cores that are not usable here, NotPermitted off Linux or where pinning is refused.
    """
    watched = _watched(seconds, chosen_cores(cores))
    steal_ratio = watched.rate("steal")
    if steal_ratio is not None:
        steal_ratio /= os.cpu_count() or 1
    check = MachineCheck(
        quiet=True,
        disturbances=(),
        seconds=watched.seconds,
        cores=watched.cores,
        foreign_load_ratio=(
            float(np.median(watched.loads)),
            float(np.quantile(watched.loads, 0.9)),
        ),
        slow_moments_ratio=float(np.mean(np.array(watched.slowdowns) > MOST_SLOWDOWN_RATIO)),
        slowdown_p90_ratio=float(np.quantile(watched.slowdowns, 0.9)),
        lateness_p99_seconds=float(np.quantile(watched.late, 0.99)),
        other_processes=watched.other_processes(),
        governor=machine_facts(watched.cores)["governor"],
        steal_ratio=steal_ratio,
        pressure_cpu_ratio=watched.rate("pressure_cpu_seconds"),
    )
    busy_moments = float(np.mean(np.array(watched.loads) > _BUSY_RATIO))
    disturbances = _disturbances(check, busy_moments)
    advice = []
    if check.governor not in (None, "performance"):
        advice.append(
            f"the clock follows the load (governor {check.governor}); performance is steadier"
        )
    return replace(check, quiet=not disturbances, disturbances=(*disturbances, *advice))


def _watched(seconds: float, cores: tuple[int, ...]) -> _Watched:
    """Naps and probes in turn, for so long."""
    watched, speed, best = _Watched(cores), CoreSpeed(), []
    slot = Slot()
    try:
        ours = (os.getpid(), slot.pid)
        watched.before, began = _system(ours), time.monotonic()
        while (now := time.monotonic()) - began < seconds:
            idle, slept = idle_seconds(cores), 0.0
            while slept < _PAUSE_SECONDS:
                nap = time.monotonic()
                time.sleep(_NAP_SECONDS)
                took = time.monotonic() - nap
                watched.late.append(took - _NAP_SECONDS)
                slept += took
            passed = time.monotonic() - now
            watched.loads.append(1 - min(1.0, (idle_seconds(cores) - idle) / (passed * len(cores))))
            for core in cores:
                slot.pin([core])
                best.append(speed.probe({core: slot}))
        watched.after, watched.seconds = _system(ours), time.monotonic() - began
    finally:
        slot.kill()
    slowdowns = [ratio for probes in best if (ratio := speed.slowdown(probes)) is not None]
    watched.slowdowns = slowdowns or [1.0]
    return watched


def _disturbances(check: MachineCheck, busy_moments_ratio: float) -> list[str]:
    """What disturbs windows, the worst first."""
    reasons: list[tuple[float, str]] = []
    if busy_moments_ratio > _BUSY_MOMENTS_RATIO:
        who = ", ".join(
            f"{name} ({load:.0%} of a core)" for name, load in check.other_processes[:3]
        )
        text = (
            f"other programs hold more than {_BUSY_RATIO:.0%} of the cores "
            f"{busy_moments_ratio:.0%} of the time: {who or 'none that can be seen'}"
        )
        reasons.append((busy_moments_ratio, text))
    if check.slow_moments_ratio > _SLOW_MOMENTS_RATIO:
        text = (
            f"the cores are more than {MOST_SLOWDOWN_RATIO:g} times slower than usual "
            f"{check.slow_moments_ratio:.0%} of the time, which no load explains: a neighbour on the same "
            "hardware, or a clock that changes"
        )
        reasons.append((check.slow_moments_ratio, text))
    if check.lateness_p99_seconds > _LATE_SECONDS:
        text = f"sleepers wake up to {check.lateness_p99_seconds:.3f} s late"
        reasons.append((check.lateness_p99_seconds, text))
    if check.steal_ratio is not None and check.steal_ratio > _STEAL_RATIO:
        text = f"the hypervisor takes {check.steal_ratio:.0%} of the CPU time away"
        reasons.append((check.steal_ratio, text))
    return [text for _, text in sorted(reasons, reverse=True)]


def _system(ours: tuple[int, int]) -> dict[str, Any]:
    """CPU seconds of every process but ours, time stolen, and pressure."""
    return {"processes": process_seconds(ours), "steal": stolen_seconds(), **pressure()}
