"""What came out of a window, for each member and for all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from jostle.measure.window._foreign import Foreign
from jostle.measure.window._speed import Probes
from jostle.measure.workloads._workloads import Workload


@dataclass(frozen=True)
class MemberResult:
    """What one member did in a window; None is not known. Columns of a run, see docs/measure.md. extra: those
    that only some kinds of workloads have."""

    status: str
    reason: str | None = None
    runtime_seconds: float | None = None
    estimator: str | None = None
    repetitions: float | None = None
    beats: int | None = None
    cpu_seconds: float | None = None
    run_delay_seconds: float | None = None
    involuntary_switches: int | None = None
    lateness_seconds: float | None = None
    extra: Mapping[str, float] = field(default_factory=dict[str, float])


@dataclass(frozen=True)
class WindowResult:
    """members: in the window's order. foreign: who else was there, None where nobody looked.

    slowdown_ratio: how much slower than usual the slowest core was before or after, and probes,
    what says so. window_seconds: the interval that counts. longest_repetition_seconds: the slowest
    member's, in the mean.
    """

    members: tuple[MemberResult, ...]
    measured_at: datetime
    window_seconds: float
    foreign: Foreign | None = None
    slowdown_ratio: float | None = None
    probes: tuple[Probes, ...] = ()
    longest_repetition_seconds: float | None = None

    @property
    def status(self) -> str:
        """The worst of the members': timeout, failed, contaminated or ok."""
        return worst_status(member.status for member in self.members)


def worst_status(statuses: Iterable[str]) -> str:
    """The status of a window from its members'."""
    found = set(statuses)
    return next(s for s in ("timeout", "failed", "contaminated", "ok") if s in found)


def failures(
    members: Sequence[Workload],
    answers: Sequence[dict[str, Any]],
    what: str,
    timeout_seconds: float,
) -> tuple[MemberResult, ...]:
    """Who failed or hung, and for the others that they were not measured beside a full set."""
    found: dict[int, MemberResult] = {}
    for place, answer in enumerate(answers):
        if "failed" in answer:
            found[place] = MemberResult("failed", answer["failed"])
        elif answer.get("timeout"):
            text = f"{what} took more than {timeout_seconds:g} s"
            found[place] = MemberResult("timeout", text)
    blamed = ", ".join(sorted(members[place].name for place in found))
    instead = MemberResult("failed", f"a co-runner failed: {blamed}")
    return tuple(found.get(place, instead) for place in range(len(members)))
