"""How to trace, and whether a traced window was disturbed by what is no member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from jostle._base.option_fields import Flag, Limits, NoOption, Short, check_settings
from jostle.collect.host._facts import Cores, Device
from jostle.collect.workloads._program import probe_workloads
from jostle.errors import UsageError


@dataclass(frozen=True)
class TraceOptions:
    """Settings of how to trace.

    alone: members by themselves are recorded first. probes: the
    stressors by themselves are recorded, too. loop: all stay beside one another; traces hold the first pass.
    attempts: a window that was disturbed by what is no member is recorded again, at most so often in
    all; the least disturbed attempt is kept.
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
        int, "Times a window is recorded at most, if it is disturbed.", Limits(1), NoOption()
    ] = 1
    most_disturbed_ratio: Annotated[
        float | None,
        "Disturbed: members waited for their cores this share of the time.",
        NoOption(),
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


_LATE_SECONDS = 0.02


@dataclass(frozen=True)
class Assessment:
    """Describe one attempt at a window.

    members: their names.
    attempt: 0, 1, ….
    reason: why it was disturbed; None if it was not.
    foreign_load_ratio: CPU time that the members waited for on cores of their own, over the time that they
    ran; None if that cannot be known.
    """

    members: tuple[str, ...]
    attempt: int
    reason: str | None
    foreign_load_ratio: float | None


def assessed(
    members: tuple[str, ...],
    attempt: int,
    most_disturbed_ratio: float,
    *,
    ran_seconds: np.ndarray,
    cpu_seconds: np.ndarray | None,
    lateness_seconds: float,
) -> Assessment:
    """Decide whether a traced window was disturbed.

    ran_seconds: how long each member ran.
    cpu_seconds: CPU time of each member meanwhile; None if it cannot be known or cores are shared.
    lateness_seconds: of the member that started last.
    """
    foreign, reason = None, None
    if cpu_seconds is not None:
        foreign = float(np.maximum(ran_seconds - cpu_seconds, 0.0).sum() / ran_seconds.sum())
    if foreign is not None and foreign > most_disturbed_ratio:
        reason = (
            f"foreign load {foreign:.1%} of the cores, at most {most_disturbed_ratio:.1%} allowed"
        )
    elif lateness_seconds > _LATE_SECONDS:
        reason = f"a member started {lateness_seconds:.3f} s late"
    return Assessment(members, attempt, reason, foreign)
