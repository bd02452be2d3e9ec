"""What was seen of a window, and what it is worth: seconds per repetition, or why it cannot be believed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from jostle.measure.host._variants import variant_of
from jostle.measure.slots._beats import beat_cpu_ns, beat_times
from jostle.measure.slots._parts import repeats_per_beat
from jostle.measure.window._estimate import Tolerance, contamination, estimate
from jostle.measure.window._results import MemberResult, WindowResult, failures
from jostle.measure.window._speed import Probes
from jostle.measure.workloads._workloads import Workload


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

    def idle_cores(self) -> list[int]:
        """Cores that are watched and have no member."""
        return [core for core in self.cores if core not in set().union(*self.placement)]


@dataclass(frozen=True)
class Clocks:
    """At a moment: the CPU time of each slot, and idle time of the cores without one."""

    at_ns: int
    cpu_ns: np.ndarray
    idle_seconds: float


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
    """cpu_seconds: of each member. foreign_ratio: of the cores. shares: whether members share cores."""

    cpu_seconds: np.ndarray
    foreign_ratio: float
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
        return WindowResult(results, measured_at, seconds, load.foreign_ratio)
    interval = (observed.begin_ns, observed.end_ns)
    estimates = [
        estimate(beats, *interval, float(cpu), load.shares, window.tolerance)
        for beats, cpu in zip(all_beats, load.cpu_seconds, strict=True)
    ]
    beats_each = [one.repeats / repeats_per_beat(one, window.engine) for one in members]
    late = [max(0.0, (int(beats[0]) - observed.start_ns) * 1e-9) for beats in all_beats]
    repetitions = [
        found.beats / each if found else 0.0
        for found, each in zip(estimates, beats_each, strict=True)
    ]
    reason = contamination(
        slowdown_ratio=slowdown_ratio,
        foreign_load_ratio=load.foreign_ratio,
        lateness_seconds=max(late),
        warmup_seconds=(observed.begin_ns - observed.start_ns) * 1e-9,
        fewest_repetitions=min(repetitions),
        shares_cores=load.shares,
        tolerance=window.tolerance,
    )
    if reason is None and not all(estimates):
        reason = "a member did nothing in the window"
    results = tuple(
        MemberResult(
            status="ok" if reason is None else "contaminated",
            reason=reason,
            runtime_seconds=found.beat_seconds * beats_each[i] if found and not reason else None,
            estimator=found.method if found else None,
            repetitions=repetitions[i],
            beats=len(all_beats[i]) - 1,
            cpu_seconds=float(load.cpu_seconds[i]),
            run_delay_seconds=answers[i]["run_delay_seconds"],
            involuntary_switches=answers[i]["involuntary_switches"],
            lateness_seconds=late[i],
        )
        for i, found in enumerate(estimates)
    )
    longest = max((seconds / done for done in repetitions if done), default=None)
    return WindowResult(
        results, measured_at, seconds, load.foreign_ratio, slowdown_ratio, probes, longest
    )


def _load(window: Window, observed: Observed) -> _Load:
    """What members used of the cores, and what others did."""
    before, after, seconds = observed.before, observed.after, observed.seconds
    cores, idle = len(window.cores), len(window.idle_cores())
    watched_seconds = (after.at_ns - before.at_ns) * 1e-9
    # CPU clocks were read a little off the interval's ends: scale to it.
    cpu_seconds = (after.cpu_ns - before.cpu_ns) * 1e-9 * (seconds / watched_seconds)
    busy_seconds = max(0.0, idle * watched_seconds - (after.idle_seconds - before.idle_seconds))
    # What a command used is known at its beats.
    cpu_seconds += [observed.child_cpu_seconds(answer) for answer in observed.answers]
    # On cores with members, what the members did not get went to others (the hypervisor included).
    quota = variant_of(window.engine).quota_ratio
    entitled = min(cores - idle, len(window.members) * (quota or 1.0))
    lost_seconds = max(0.0, entitled * seconds - float(cpu_seconds.sum()))
    foreign = (lost_seconds + busy_seconds) / (cores * seconds)
    shares = len(window.members) > cores - idle or quota is not None
    return _Load(cpu_seconds, foreign, shares)
