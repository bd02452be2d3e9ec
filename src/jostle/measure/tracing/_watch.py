"""How to trace, and whether a traced window was disturbed by what is no member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from jostle._options import Flag, Limits, Short, check_settings
from jostle.errors import UsageError
from jostle.measure.host._facts import Cores, Device
from jostle.measure.slots._slots import Slot
from jostle.measure.window._speed import MOST_SLOWDOWN_RATIO, CoreSpeed, Probes, wait_for_speed
from jostle.measure.workloads._program import probe_workloads


@dataclass(frozen=True)
class TraceOptions:
    """How to trace.

    alone: members by themselves are recorded first. probes: the
    stressors by themselves are recorded, too. loop: all stay beside one another; traces hold the first pass.
    attempts: a window that was disturbed by what is no member is recorded again, at most so often in
    all; the least disturbed attempt is kept, and `core_slowdown_ratio` says how much slower a core was.
    most_disturbed_ratio: share of the members' time that others may take; None does not watch.
    Raises UsageError.
    """

    engine: Annotated[str, "What they run on.", Short("-e")] = "speed"
    runs: Annotated[int, "Times to record everything.", Limits(1)] = 1
    alone: Annotated[bool, "Record each member by itself as well."] = False
    probes: Annotated[
        bool,
        "Record each member by itself and beside each of four stressors as well: five windows for each, "
        "as long as it takes.",
    ] = False
    stressors: Annotated[
        Sequence[str],
        "Only these stressors, so much less to record: cache, copy, scatter, stream, or core, where cores "
        "are shared; may be repeated.  [implies --probes]",
    ] = ()
    loop: Annotated[bool, "Who has ended begins again until all have ended once."] = False
    seconds: Annotated[float, "How long to follow members that have no end.", Limits(0.001)] = 1.0
    interval_seconds: Annotated[
        float, "Seconds between samples.", Flag("--interval"), Limits(0.001, 60)
    ] = 0.01
    cores: Cores = None
    device: Device = None
    timeout_seconds: Annotated[
        float, "Seconds one window may take.", Flag("--timeout"), Limits(0.1)
    ] = 120.0
    attempts: Annotated[
        int, "Times a window is recorded at most, if it is disturbed.", Limits(1)
    ] = 1
    most_disturbed_ratio: Annotated[
        float | None,
        "Disturbed: members waited for their cores this share of the time, or a core was slow.",
        Flag("--most-disturbed"),
        Limits(0, 1),
    ] = None

    def __post_init__(self) -> None:
        check_settings(self)
        if self.stressors and not self.probes:
            raise UsageError("stressors, but nothing is traced beside them", fix="Set `probes`.")
        probe_workloads(self.stressors)  # checks their names
        if not self.interval_seconds <= self.seconds <= self.timeout_seconds:
            raise UsageError(
                "a trace is at least as long as an interval and at most as its timeout",
                where=f"seconds={self.seconds}, timeout_seconds={self.timeout_seconds}",
            )


# Longer than before a window of a fraction of a second: a program's trace is longer too.
_PATIENCE_SECONDS = 1.0
_LATE_SECONDS = 0.02


@dataclass(frozen=True)
class Assessment:
    """Of one attempt at a window. members: their names. attempt: 0, 1, …. reason: why it was disturbed,
    None where it was not. slowdown_ratio: of the slowest core before or after, against what is usual;
    foreign_load_ratio: CPU time that the members waited for on cores of their own, over the time that
    they ran; None where not watched."""

    members: tuple[str, ...]
    attempt: int
    reason: str | None
    slowdown_ratio: float | None
    foreign_load_ratio: float | None


class Watch:
    """Knows how fast the cores usually are."""

    def __init__(self, slot: Slot, cores: tuple[int, ...], most_disturbed_ratio: float) -> None:
        self.most_disturbed_ratio = most_disturbed_ratio
        self._speed = CoreSpeed()
        self._speed.calibrate(slot, cores)

    def before(self, slots: Sequence[Slot], cores: Sequence[int]) -> Probes:
        """Probes of the cores that members are pinned to, when they are quiet or patience has ended."""
        by_core = dict(zip(cores, slots, strict=True))
        return wait_for_speed(self._speed, by_core, _PATIENCE_SECONDS)

    def after(self, slots: Sequence[Slot], cores: Sequence[int]) -> Probes:
        return self._speed.probe(dict(zip(cores, slots, strict=True)))

    def assessed(
        self,
        members: tuple[str, ...],
        attempt: int,
        probes: tuple[Probes, Probes],
        *,
        ran_seconds: np.ndarray,
        cpu_seconds: np.ndarray | None,
        lateness_seconds: float,
    ) -> Assessment:
        """cpu_seconds: of each member while it ran, None where it cannot be known or cores are shared."""
        # A long run may begin and end in different bursts: both moments count, not the better one.
        ratios = [self._speed.slowdown(moment) for moment in probes]
        known = [ratio for ratio in ratios if ratio is not None]
        slowdown = max(known) if known else None
        foreign = None
        if cpu_seconds is not None:
            foreign = float(np.maximum(ran_seconds - cpu_seconds, 0.0).sum() / ran_seconds.sum())
        reason = None
        if foreign is not None and foreign > self.most_disturbed_ratio:
            allowed = self.most_disturbed_ratio
            reason = f"foreign load {foreign:.1%} of the cores, at most {allowed:.1%} allowed"
        elif slowdown is not None and slowdown > MOST_SLOWDOWN_RATIO:
            reason = (
                f"a core was {slowdown:.2f} times slower than usual before or after, "
                f"at most {MOST_SLOWDOWN_RATIO:g} allowed"
            )
        elif lateness_seconds > _LATE_SECONDS:
            reason = f"a member started {lateness_seconds:.3f} s late"
        return Assessment(members, attempt, reason, slowdown, foreign)
