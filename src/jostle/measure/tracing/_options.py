"""How to trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jostle.errors import UsageError
from jostle.measure.window._estimate import Tolerance
from jostle.measure.workloads._probes import probe_workloads

_SHORTEST_INTERVAL_SECONDS = 0.001


@dataclass(frozen=True)
class TraceOptions:
    """How to trace.

    engine: a name, with a variant or without. runs: how often everything is recorded. alone: also
    each member by itself, before. probes: also each member beside each stressor of `probe_workloads`, and
    by itself, and the stressors by themselves. stressors: only these of them, by name. loop: programs that
    have ended begin again until all have ended once, so that all stay beside one another; traces hold the
    first pass. seconds: how long to follow members where all are without end. interval_seconds: between
    samples, at least 0.001. cores: those to use; None means all that this process may use. device: what the
    platform is called after the engine; None derives it from the CPU. timeout_seconds: for one
    window. attempts: a window that was disturbed by what is no member is recorded again, at most so often in
    all; the least disturbed attempt is kept, and `core_slowdown_ratio` says how much slower a core was.
    tolerance: what counts as disturbed; None does not watch. Raises UsageError.
    """

    engine: str = "speed"
    runs: int = 1
    alone: bool = False
    probes: bool = False
    stressors: Sequence[str] = ()
    loop: bool = False
    seconds: float = 1.0
    interval_seconds: float = 0.01
    cores: Sequence[int] | None = None
    device: str | None = None
    timeout_seconds: float = 120.0
    attempts: int = 1
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
