"""Who else was there in a window: other processes, the hypervisor, and neighbours on cores not used.

A member that waits uses little of its core, and so does one whose core was taken. They are told apart by
what the kernel says: a core that was idle (waiting for a disk is idle) was taken by nobody; what was stolen
or went to interrupts and to the kernel's own threads is no process; a kernel that always computes lost what
it waited for in the run queue (run_delay of schedstat, see sched-stats.rst of Linux); what else was busy and
is not the members' is others'.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from jostle.collect.host._proc import (
    TICK_SECONDS,
    CoreTimes,
    core_times,
    kernel_thread_seconds,
    pressure,
    throttled_seconds,
)

# So much of every core goes to keeping house on any machine.
_HOUSEKEEPING_RATIO = 0.01


@dataclass(frozen=True)
class Moment:
    """Loads that the system reports at one time. own_seconds: CPU time of this process; kernel_seconds: of
    the kernel's threads, 0 where not asked for."""

    at_ns: int
    cores: Mapping[int, CoreTimes]
    own_seconds: float
    kernel_seconds: float
    pressure: Mapping[str, float]
    throttled_seconds: float = 0.0

    @classmethod
    def now(cls, *, kernel: bool = False) -> Moment:
        return cls(
            time.monotonic_ns(),
            core_times(),
            time.process_time(),
            kernel_thread_seconds() if kernel else 0.0,
            pressure(),
            throttled_seconds(),
        )


@dataclass(frozen=True)
class Foreign:
    """Load of other processes in a window, as columns of a run. foreign_load_ratio: share of the window's
    cores that members did not have, whoever did. foreign_cores: how many of them other processes held in the
    mean; outside_cores: the same of the machine's other cores. stolen_ratio: share of the window's cores that
    the hypervisor took. pressure_cpu_ratio, pressure_io_ratio: of the time some task of the machine waited
    for a core, for input or output (PSI); None where not told."""

    foreign_load_ratio: float
    foreign_cores: float
    outside_cores: float
    stolen_ratio: float
    pressure_cpu_ratio: float | None = None
    pressure_io_ratio: float | None = None


def foreign_columns(foreign: Foreign | None) -> dict[str, float | None]:
    """Return the columns of a run; null if nobody looked."""
    return {one.name: getattr(foreign, one.name, None) for one in fields(Foreign)}


@dataclass(frozen=True)
class Elapsed:
    """Difference between two moments. All in seconds."""

    before: Moment
    after: Moment

    @property
    def seconds(self) -> float:
        return max((self.after.at_ns - self.before.at_ns) * 1e-9, 1e-9)

    @property
    def throttled_seconds(self) -> float:
        return max(0.0, self.after.throttled_seconds - self.before.throttled_seconds)

    @property
    def own_seconds(self) -> float:
        return self.after.own_seconds - self.before.own_seconds

    def stolen(self, cores: Iterable[int]) -> float:
        """Return the time that the hypervisor took, never more than there was: what a core lost before is at
        times told only when it next runs."""
        return sum(min(self.seconds, self._grown(core, "stolen")) for core in cores)

    def busy(self, core: int) -> float:
        """Compute the seconds that a core spent in processes and the kernel's threads."""
        if core not in self.before.cores or core not in self.after.cores:
            return 0.0
        away = sum(self._grown(core, what) for what in ("idle", "stolen", "interrupts"))
        return max(0.0, self.seconds - away)

    def busy_beyond_house(self, cores: Iterable[int]) -> float:
        """Sum the busy seconds of cores without a member, beyond housekeeping and one tick each."""
        slack = TICK_SECONDS + _HOUSEKEEPING_RATIO * self.seconds
        return sum(max(0.0, self.busy(core) - slack) for core in cores)

    def outside(self, cores: Iterable[int]) -> list[int]:
        """Return all cores that are online but these."""
        return sorted(set(self.after.cores) - set(cores))

    def pressure_ratio(self, what: str) -> float | None:
        """Return share of the time in which some task of the machine waited for it."""
        name = f"pressure_{what}_seconds"
        if name not in self.before.pressure or name not in self.after.pressure:
            return None
        return (self.after.pressure[name] - self.before.pressure[name]) / self.seconds

    def _grown(self, core: int, what: str) -> float:
        if core not in self.before.cores or core not in self.after.cores:
            return 0.0
        return max(
            0.0, getattr(self.after.cores[core], what) - getattr(self.before.cores[core], what)
        )


def foreign_to_jobs(
    elapsed: Elapsed,
    cores: Sequence[int],
    used: Iterable[int],
    member_seconds: float,
) -> Foreign:
    """Return where members may wait: what was busy, less what they used.

    used: cores that have a member.
    member_seconds: CPU time of members, of all that they started, and of what runs them.
    """
    with_member = set(used)
    kernel = elapsed.after.kernel_seconds - elapsed.before.kernel_seconds
    busy = sum(elapsed.busy(core) for core in with_member) - member_seconds
    inside = busy + elapsed.busy_beyond_house(set(cores) - set(used))
    ours = elapsed.own_seconds + kernel
    outside = elapsed.busy_beyond_house(elapsed.outside(cores))
    stolen = elapsed.stolen(cores)
    return _foreign(elapsed, cores, inside - ours, outside + min(0.0, inside - ours), stolen, None)


def foreign_to_kernels(
    elapsed: Elapsed,
    cores: Sequence[int],
    used: Iterable[int],
    *,
    cpu_seconds: Sequence[float],
    delay_seconds: Sequence[float | None],
    entitled_cores: float | None,
) -> Foreign:
    """Return where every member always computes: what they did not get, and what was busy beside them.

    cpu_seconds, delay_seconds: of each member in this time; the latter in the run queue, None where not
    told.
    entitled_cores: how many all may hold together where they take turns; None where each has its own core.
    """
    seconds, with_member = elapsed.seconds, set(used)
    beside = elapsed.busy_beyond_house(set(cores) - with_member)
    stolen = elapsed.stolen(with_member)
    slack = _HOUSEKEEPING_RATIO * seconds
    if entitled_cores is not None:
        lost = max(0.0, entitled_cores * seconds - sum(cpu_seconds))
        others = max(0.0, lost - stolen)
    else:
        each = [max(0.0, seconds - used) for used in cpu_seconds]
        lost = sum(each)
        waited = [
            max(0.0, (min(one, delay) if delay is not None else one) - slack)
            for one, delay in zip(each, delay_seconds, strict=True)
        ]
        others = sum(waited) if None not in delay_seconds else max(0.0, sum(waited) - stolen)
    own = elapsed.own_seconds
    outside = elapsed.busy_beyond_house(elapsed.outside(cores))
    rest = beside - own
    load = lost + max(0.0, rest)
    all_stolen = elapsed.stolen(cores)
    return _foreign(
        elapsed, cores, others + max(0.0, rest), outside + min(0.0, rest), all_stolen, load
    )


def _foreign(
    elapsed: Elapsed,
    cores: Sequence[int],
    inside: float,
    outside: float,
    stolen: float,
    load: float | None,
) -> Foreign:
    seconds = elapsed.seconds
    inside = max(0.0, inside)
    return Foreign(
        (inside + stolen if load is None else load) / (len(cores) * seconds),
        inside / seconds,
        max(0.0, outside) / seconds,
        stolen / (len(cores) * seconds),
        elapsed.pressure_ratio("cpu"),
        elapsed.pressure_ratio("io"),
    )
