"""Is this machine quiet, and if not, what disturbs it?

For some seconds the cores are watched as a window is (see `_foreign`): what other processes and the
hypervisor take of them, with names, and how late a sleeper wakes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from jostle.collect.host._facts import chosen_cores, machine_facts
from jostle.collect.host._proc import process_seconds
from jostle.collect.window._foreign_load import Elapsed, Moment

_PAUSE_SECONDS = 0.05
_NAP_SECONDS = 0.001
_NAMED = 5
_LATE_SECONDS, _STEAL_RATIO = 0.02, 0.05
# A moment of 50 ms counts as busy from this share of the cores on; so many busy moments are reported.
_BUSY_RATIO = 0.15
_BUSY_MOMENTS_RATIO = 0.25


@dataclass(frozen=True)
class MachineCheck:
    """Describe how quiet a machine is.

    quiet: whether little would be taken off most runs.
    disturbances: sentences, the worst first.
    foreign_load_ratio: (median, p90) share of the cores that other processes held.
    lateness_p99_seconds: how late a sleeper woke.
    other_processes: (name, CPU seconds per second) of the busiest.
    governor, steal_ratio, pressure_cpu_ratio: None if the system does not report them.
    """

    quiet: bool
    disturbances: tuple[str, ...]
    seconds: float
    cores: tuple[int, ...]
    foreign_load_ratio: tuple[float, float]
    lateness_p99_seconds: float
    other_processes: tuple[tuple[str, float], ...]
    governor: str | None
    steal_ratio: float | None
    pressure_cpu_ratio: float | None

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document, schema measure-check/v2."""
        return {"schema": "measure-check/v2", **asdict(self)}


def check_machine(seconds: float = 4.0, cores: Sequence[int] | None = None) -> MachineCheck:
    """Watch the machine for so long.

    Raises UsageError for cores that are not usable here, NotPermitted off Linux.
    """
    cores = chosen_cores(cores)
    processes, moments, late = process_seconds((os.getpid(),)), [Moment.now()], list[float]()
    while (moments[-1].at_ns - moments[0].at_ns) * 1e-9 < seconds:
        slept = 0.0
        while slept < _PAUSE_SECONDS:
            nap = time.monotonic()
            time.sleep(_NAP_SECONDS)
            took = time.monotonic() - nap
            late.append(took - _NAP_SECONDS)
            slept += took
        moments.append(Moment.now())
    loads = [
        max(0.0, sum(map(one.busy, cores)) - one.own_seconds) / (one.seconds * len(cores))
        for one in map(Elapsed, moments[:-1], moments[1:])
    ]
    whole = Elapsed(moments[0], moments[-1])
    check = MachineCheck(
        quiet=True,
        disturbances=(),
        seconds=whole.seconds,
        cores=cores,
        foreign_load_ratio=(float(np.median(loads)), float(np.quantile(loads, 0.9))),
        lateness_p99_seconds=float(np.quantile(late, 0.99)),
        other_processes=_busiest(processes, process_seconds((os.getpid(),)), whole.seconds),
        governor=machine_facts(cores)["governor"],
        steal_ratio=whole.stolen(cores) / (whole.seconds * len(cores))
        if whole.after.cores
        else None,
        pressure_cpu_ratio=whole.pressure_ratio("cpu"),
    )
    disturbances = _disturbances(check, float(np.mean(np.array(loads) > _BUSY_RATIO)))
    advice = []
    if check.governor not in (None, "performance"):
        advice.append(
            f"the clock follows the load (governor {check.governor}); performance is steadier"
        )
    return replace(check, quiet=not disturbances, disturbances=(*disturbances, *advice))


def _busiest(
    before: dict[tuple[int, str], float], after: dict[tuple[int, str], float], seconds: float
) -> tuple[tuple[str, float], ...]:
    """List (name, CPU seconds per second) of the busiest processes."""
    loads: dict[str, float] = {}
    # By number alone: a process may have another name by now.
    earlier = {pid: total for (pid, _), total in before.items()}
    for (pid, name), total in after.items():
        if (used := total - earlier.get(pid, 0.0)) > 0:
            loads[name] = loads.get(name, 0.0) + used / seconds
    return tuple(sorted(loads.items(), key=lambda pair: (-pair[1], pair[0]))[:_NAMED])


def _disturbances(check: MachineCheck, busy_moments_ratio: float) -> list[str]:
    """Say what disturbs windows, the worst first."""
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
    if check.lateness_p99_seconds > _LATE_SECONDS:
        text = f"sleepers wake up to {check.lateness_p99_seconds:.3f} s late"
        reasons.append((check.lateness_p99_seconds, text))
    if check.steal_ratio is not None and check.steal_ratio > _STEAL_RATIO:
        text = f"the hypervisor takes {check.steal_ratio:.0%} of the CPU time away"
        reasons.append((check.steal_ratio, text))
    return [text for _, text in sorted(reasons, reverse=True)]
