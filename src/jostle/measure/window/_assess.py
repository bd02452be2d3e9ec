"""What was observed in a window, and what it is worth: seconds per repetition, or why it cannot be
believed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np

from jostle.measure.host._variants import variant_of
from jostle.measure.slots._available import repeats_per_beat
from jostle.measure.slots._harness import beat_cpu_ns, beat_times
from jostle.measure.window._estimate import Tolerance, contamination, estimate
from jostle.measure.window._foreign import Elapsed, Foreign, Moment, foreign_to_kernels
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
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])


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
    present = set(statuses)
    return next(s for s in ("timeout", "failed", "contaminated", "ok") if s in present)


def failures(
    members: Sequence[Workload],
    answers: Sequence[dict[str, Any]],
    what: str,
    timeout_seconds: float,
) -> tuple[MemberResult, ...]:
    """Who failed or hung, and for the others that they were not measured beside a full set."""
    results: dict[int, MemberResult] = {}
    for place, answer in enumerate(answers):
        if "failed" in answer:
            results[place] = MemberResult("failed", answer["failed"])
        elif answer.get("timeout"):
            text = f"{what} took more than {timeout_seconds:g} s"
            results[place] = MemberResult("timeout", text)
    blamed = ", ".join(sorted(members[place].name for place in results))
    instead = MemberResult("failed", f"a co-runner failed: {blamed}")
    return tuple(results.get(place, instead) for place in range(len(members)))


@dataclass(frozen=True)
class Window:
    """Members to run at the same time on one engine.

    placement: for each phase a core per member. cores: all that are watched for foreign load.
    window_seconds: the interval that counts. timeout_seconds: for set-up, and again for what the
    window takes beyond its length.
    """

    members: tuple[Workload, ...]
    engine: str
    placement: tuple[tuple[int, ...], ...]
    cores: tuple[int, ...]
    window_seconds: float
    timeout_seconds: float
    tolerance: Tolerance


@dataclass(frozen=True)
class Clocks:
    """At a moment: the CPU time of each slot, and what the system told of all cores."""

    at_ns: int
    cpu_ns: np.ndarray
    moment: Moment


@dataclass(frozen=True)
class Observed:
    """start_ns: the common start. begin_ns, end_ns: the interval that counts, with the clocks read
    at about its two ends. answers: of each slot."""

    start_ns: int
    begin_ns: int
    end_ns: int
    before: Clocks
    after: Clocks
    answers: Sequence[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """How long the interval is."""
        return (self.end_ns - self.begin_ns) * 1e-9

    def child_cpu_seconds(self, answer: dict[str, Any]) -> float:
        """CPU time of what the slot started, in the interval; even within a repetition."""
        used = beat_cpu_ns(answer)
        if used is None:
            return 0.0
        begin, end = np.interp([self.begin_ns, self.end_ns], beat_times(answer), used)
        return float(end - begin) * 1e-9


@dataclass(frozen=True)
class _Load:
    """cpu_seconds: of each member. shares: whether members share cores."""

    cpu_seconds: np.ndarray
    foreign: Foreign
    shares: bool


def assessed(
    window: Window,
    observed: Observed,
    measured_at: datetime,
    probes: tuple[Probes, ...],
    slowdown_ratio: float | None,
) -> WindowResult:
    """Estimate every member and decide whether the window can be believed."""
    members, seconds, answers = window.members, observed.seconds, observed.answers
    load = _load(window, observed)
    all_beats = [beat_times(answer) for answer in answers]
    full = [
        {"failed": f"its repetitions are too short: {len(beats) - 1} filled the harness's memory"}
        if beats[-1] < observed.end_ns
        else {}
        for beats in all_beats
    ]
    if any(full):
        results = failures(members, full, "a repetition", 0)
        return WindowResult(results, measured_at, seconds, load.foreign)
    interval = (observed.begin_ns, observed.end_ns)
    estimates = [
        estimate(beats, *interval, float(cpu), load.shares, window.tolerance)
        for beats, cpu in zip(all_beats, load.cpu_seconds, strict=True)
    ]
    beats_each = [one.repeats / repeats_per_beat(one, window.engine) for one in members]
    late = [max(0.0, (int(beats[0]) - observed.start_ns) * 1e-9) for beats in all_beats]
    repetitions = [
        beat.beats / each if beat else 0.0 for beat, each in zip(estimates, beats_each, strict=True)
    ]
    reason = contamination(
        slowdown_ratio=slowdown_ratio,
        foreign=load.foreign.reason(window.tolerance, len(window.cores) if load.shares else None),
        lateness_seconds=max(late),
        warmup_seconds=(observed.begin_ns - observed.start_ns) * 1e-9,
        fewest_repetitions=min(repetitions),
        tolerance=window.tolerance,
    )
    if reason is None and not all(estimates):
        reason = "a member did nothing in the window"
    results = tuple(
        MemberResult(
            status="ok" if reason is None else "contaminated",
            reason=reason,
            runtime_seconds=beat.beat_seconds * beats_each[i] if beat and not reason else None,
            estimator=beat.method if beat else None,
            repetitions=repetitions[i],
            beats=len(all_beats[i]) - 1,
            cpu_seconds=float(load.cpu_seconds[i]),
            run_delay_seconds=answers[i]["run_delay_seconds"],
            involuntary_switches=answers[i]["involuntary_switches"],
            lateness_seconds=late[i],
        )
        for i, beat in enumerate(estimates)
    )
    longest = max((seconds / done for done in repetitions if done), default=None)
    return WindowResult(
        results, measured_at, seconds, load.foreign, slowdown_ratio, probes, longest
    )


def _load(window: Window, observed: Observed) -> _Load:
    """What members used of the cores, and what others did."""
    before, after, seconds = observed.before, observed.after, observed.seconds
    watched_seconds = (after.at_ns - before.at_ns) * 1e-9
    # CPU clocks were read a little off the interval's ends: scale to it.
    cpu_seconds = (after.cpu_ns - before.cpu_ns) * 1e-9 * (seconds / watched_seconds)
    # What a command used is known at its beats.
    cpu_seconds += [observed.child_cpu_seconds(answer) for answer in observed.answers]
    used = set().union(*window.placement)
    quota = variant_of(window.engine).quota_ratio
    shares = len(window.members) > len(used) or quota is not None
    elapsed = Elapsed(before.moment, after.moment)
    whole_seconds = (observed.end_ns - observed.start_ns) * 1e-9
    delays = [answer["run_delay_seconds"] for answer in observed.answers]
    foreign = foreign_to_kernels(
        elapsed,
        window.cores,
        used,
        cpu_seconds=[float(one) * elapsed.seconds / seconds for one in cpu_seconds],
        delay_seconds=[
            None if one is None else one * elapsed.seconds / whole_seconds for one in delays
        ],
        entitled_cores=min(len(used), len(window.members) * (quota or 1.0)) if shares else None,
    )
    return _Load(cpu_seconds, foreign, shares)
