"""What was observed in a window, and what it is worth: seconds per repetition, and how disturbed it was."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from jostle._base.report import finite
from jostle.collect.kernels._beats import beat_cpu_ns, beat_times
from jostle.collect.slots._available import repeats_per_beat
from jostle.collect.window._beat_estimate import estimate
from jostle.collect.window._foreign_load import Elapsed, Foreign, Moment, foreign_to_kernels
from jostle.collect.window._lost import Cleaned
from jostle.collect.workloads._workloads import Workload


@dataclass(frozen=True)
class MemberResult:
    """Result of one member of a window; None is not known. Columns of a run, see docs/measure.md.
    runtime_seconds: estimate of what it takes undisturbed; raw_runtime_seconds: as the clock has it;
    disturbance_ratio: share of its time that it lost to others; runtime_error_ratio: standard error of the
    estimate, as a share. extra: those that only some kinds of workloads have."""

    status: str
    reason: str | None = None
    runtime_seconds: float | None = None
    raw_runtime_seconds: float | None = None
    disturbance_ratio: float | None = None
    runtime_error_ratio: float | None = None
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
    """Result of measuring a window. members: in the window's order. foreign: who else was there, None where
    nobody looked.

    window_seconds: the interval that counts. longest_repetition_seconds: the slowest member's, in the mean.
    """

    members: tuple[MemberResult, ...]
    measured_at: datetime
    window_seconds: float
    foreign: Foreign | None = None
    longest_repetition_seconds: float | None = None

    @property
    def status(self) -> str:
        """The worst of the members': timeout, failed, contaminated or ok."""
        return worst_status(member.status for member in self.members)


def worst_status(statuses: Iterable[str]) -> str:
    """Return the status of a window from its members'."""
    present = set(statuses)
    return next(s for s in ("timeout", "failed", "contaminated", "ok") if s in present)


def failures(
    members: Sequence[Workload],
    answers: Sequence[dict[str, Any]],
    what: str,
    timeout_seconds: float,
) -> tuple[MemberResult, ...]:
    """Return who failed or hung, and for the others that they were not measured beside a full set."""
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
    window takes beyond its length. most_disturbed_ratio: share of its time that a member may lose.
    """

    members: tuple[Workload, ...]
    engine: str
    placement: tuple[tuple[int, ...], ...]
    cores: tuple[int, ...]
    window_seconds: float
    timeout_seconds: float
    most_disturbed_ratio: float = 1.0

    def results(
        self,
        members: Sequence[MemberResult],
        fewest_repetitions: float,
        warmup_seconds: float = 0.0,
    ) -> tuple[MemberResult, ...]:
        """Return the members' results, all marked as contaminated, with the reason, if one of them is.
        warmup_seconds: from the common start to the interval that counts."""
        latest = warmup_seconds + 0.5 * self.window_seconds
        reason = None
        worst = max((one.disturbance_ratio or 0.0 for one in members), default=0.0)
        if worst > self.most_disturbed_ratio:
            reason = (
                f"a member lost {worst:.0%} of its time to others, at most "
                f"{self.most_disturbed_ratio:.0%} allowed"
            )
        elif any(one.runtime_seconds is None for one in members):
            reason = "a member did nothing in the window"
        elif fewest_repetitions < MINIMUM_REPETITIONS:
            reason = (
                f"{fewest_repetitions:.2f} repetitions in the window, at least "
                f"{MINIMUM_REPETITIONS:g} needed"
            )
        elif max(one.lateness_seconds or 0.0 for one in members) > latest:
            reason = "a member started when half of the window was over"
        if reason is None:
            return tuple(members)
        return tuple(
            replace(one, status="contaminated", reason=reason, runtime_seconds=None, extra={})
            for one in members
        )


MINIMUM_REPETITIONS = 2.0


@dataclass(frozen=True)
class Clocks:
    """Clocks at one moment: the CPU time of each slot, and what the system reports of all cores."""

    at_ns: int
    cpu_ns: np.ndarray
    moment: Moment


@dataclass(frozen=True)
class Observed:
    """Interval of a window that counts, with the clocks at both ends. start_ns: the common start. begin_ns,
    end_ns: the interval that counts, with the clocks read at about its two ends. answers: of each slot."""

    start_ns: int
    begin_ns: int
    end_ns: int
    before: Clocks
    after: Clocks
    answers: Sequence[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """Length of the interval in seconds."""
        return (self.end_ns - self.begin_ns) * 1e-9

    def child_cpu_seconds(self, answer: dict[str, Any]) -> float:
        """Return the CPU time of what the slot started, in the interval; a repetition uses it evenly."""
        used = beat_cpu_ns(answer)
        if used is None:
            return 0.0
        begin, end = np.interp([self.begin_ns, self.end_ns], beat_times(answer), used)
        return float(end - begin) * 1e-9


@dataclass(frozen=True)
class _Load:
    """cpu_seconds: of each member. shares: whether members share cores; lost_ratio: then, the share of what
    they may hold together that others had."""

    cpu_seconds: np.ndarray
    foreign: Foreign
    shares: bool
    lost_ratio: float


def result_of(beat: Cleaned | None, each: float = 1.0, **columns: Any) -> MemberResult:
    """Make the result of a member that ended well; without seconds if it did nothing. each: beats of a
    repetition."""
    if beat is None:
        return MemberResult("ok", **columns)
    return MemberResult(
        "ok",
        runtime_seconds=beat.seconds * each,
        raw_runtime_seconds=beat.raw_seconds * each,
        disturbance_ratio=finite(beat.disturbance_ratio),
        runtime_error_ratio=finite(beat.error_ratio),
        **columns,
    )


def assessed(window: Window, observed: Observed, measured_at: datetime) -> WindowResult:
    """Estimate every member, and how much it was disturbed."""
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
        estimate(beats, *interval, float(cpu), load.shares, load.lost_ratio)
        for beats, cpu in zip(all_beats, load.cpu_seconds, strict=True)
    ]
    beats_each = [one.repeats / repeats_per_beat(one, window.engine) for one in members]
    repetitions = [
        beat.beats / each if beat else 0.0 for beat, each in zip(estimates, beats_each, strict=True)
    ]
    results = [
        result_of(
            one.beat if one else None,
            beats_each[i],
            estimator=one.method if one else None,
            repetitions=repetitions[i],
            beats=len(all_beats[i]) - 1,
            cpu_seconds=float(load.cpu_seconds[i]),
            run_delay_seconds=answers[i]["run_delay_seconds"],
            involuntary_switches=answers[i]["involuntary_switches"],
            lateness_seconds=max(0.0, (int(all_beats[i][0]) - observed.start_ns) * 1e-9),
        )
        for i, one in enumerate(estimates)
    ]
    longest = max((seconds / done for done in repetitions if done), default=None)
    warmup_seconds = (observed.begin_ns - observed.start_ns) * 1e-9
    rows = window.results(results, min(repetitions), warmup_seconds)
    return WindowResult(rows, measured_at, seconds, load.foreign, longest)


def _load(window: Window, observed: Observed) -> _Load:
    """Return what members used of the cores, and what others did."""
    before, after, seconds = observed.before, observed.after, observed.seconds
    watched_seconds = (after.at_ns - before.at_ns) * 1e-9
    # CPU clocks were read a little off the interval's ends: scale to it.
    cpu_seconds = (after.cpu_ns - before.cpu_ns) * 1e-9 * (seconds / watched_seconds)
    # What a command used is known at its beats.
    cpu_seconds += [observed.child_cpu_seconds(answer) for answer in observed.answers]
    used = set().union(*window.placement)
    shares = len(window.members) > len(used)
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
        entitled_cores=len(used) if shares else None,
    )
    lost = 0.0
    if shares:
        lost = max(0.0, 1 - float(sum(cpu_seconds)) / (len(used) * seconds))
    return _Load(cpu_seconds, foreign, shares, lost)
