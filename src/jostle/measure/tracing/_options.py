"""How to trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from jostle._options import Flag, Limits, Short
from jostle.errors import UsageError
from jostle.measure.host._facts import Cores, Device
from jostle.measure.window._estimate import Tolerance
from jostle.measure.workloads._probes import probe_workloads

_SHORTEST_INTERVAL_SECONDS = 0.001


@dataclass(frozen=True)
class TraceOptions:
    """How to trace.

    engine: a name, with a variant or without. alone: members by themselves are recorded first. probes: the
    stressors by themselves are recorded, too. loop: all stay beside one another; traces hold the first pass.
    attempts: a window that was disturbed by what is no member is recorded again, at most so often in
    all; the least disturbed attempt is kept, and `core_slowdown_ratio` says how much slower a core was.
    tolerance: what counts as disturbed; None does not watch. Raises UsageError.
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
    tolerance: Tolerance | None = None

    def __post_init__(self) -> None:
        if self.runs < 1 or self.attempts < 1:
            raise UsageError("a trace needs at least one run and one attempt")
        if self.stressors and not self.probes:
            raise UsageError("stressors, but nothing is traced beside them", fix="Set `probes`.")
        probe_workloads(self.stressors)  # checks their names
        if not _SHORTEST_INTERVAL_SECONDS <= self.interval_seconds < float("inf"):
            raise UsageError(
                f"samples are at least {_SHORTEST_INTERVAL_SECONDS} s apart",
                where=f"interval_seconds={self.interval_seconds}",
            )
        if not self.interval_seconds <= self.seconds <= self.timeout_seconds < float("inf"):
            raise UsageError(
                "a trace is at least as long as an interval and at most as its timeout",
                where=f"seconds={self.seconds}, timeout_seconds={self.timeout_seconds}",
            )
