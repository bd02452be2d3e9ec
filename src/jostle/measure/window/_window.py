"""One window: a set of workloads side by side on one engine, for a fraction of a second.

All are set up, sleep to a common start, run through a warm-up and then through the interval that
counts; in the meantime this process sleeps too, but for reading CPU clocks at the interval's two
ends and, where cores are shared, for moving members at the phases between (see `_placement`).
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jostle.measure.host._engines import engine_setting
from jostle.measure.host._proc import idle_seconds
from jostle.measure.host._variants import variant_of
from jostle.measure.slots._slots import Slot, gather
from jostle.measure.window._estimate import Estimate, Tolerance, contamination, estimate
from jostle.measure.window._speed import CoreSpeed, Probes, wait_for_speed
from jostle.measure.workloads._workloads import Workload

# From the last member being ready to the common start: enough for every slot to fall asleep.
_START_AHEAD_SECONDS = 0.003
_WARMUP_RATIO = 0.1
_SHORTEST_WARMUP_SECONDS = 0.02


@dataclass(frozen=True)
class MemberResult:
    """What one member did in a window; None is not known. Columns of a run, see docs/measure.md."""

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


@dataclass(frozen=True)
class WindowResult:
    """members: in the order asked. foreign_load_ratio: CPU time of others over all there was.

    slowdown_ratio: how much slower than usual the slowest core was before or after, and probes,
    what says so. window_seconds: the interval that counts. longest_repetition_seconds: the slowest
    member's, in the mean.
    """

    members: tuple[MemberResult, ...]
    measured_at: datetime
    window_seconds: float
    foreign_load_ratio: float | None = None
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


class Stopped(Exception):
    """The window was given up because the campaign is to stop."""


def run_window(
    slots: Sequence[Slot],
    members: Sequence[Workload],
    engine: str,
    placement: Sequence[Sequence[int]],
    *,
    cores: Sequence[int],
    window_seconds: float,
    timeout_seconds: float,
    tolerance: Tolerance,
    speed: CoreSpeed | None,
    stopped: Callable[[], bool],
    probers: Sequence[Slot] | None = None,
) -> WindowResult:
    """Run the members at the same time, one a slot.

    placement: for each phase a core per member. cores: all that are watched for foreign load.
    speed: knows the cores' usual speed; None leaves it unwatched. probers: slots that probe it, one
    a member, where the members' own cannot; they are pinned as their members are.
    timeout_seconds: for set-up, and again for what the window takes beyond its length.
    Raises Stopped, and NotPermitted where processes cannot be pinned.
    """
    measured_at = datetime.now(UTC)
    slots = slots[: len(members)]
    for slot, workload, core in zip(slots, members, placement[0], strict=True):
        slot.pin([core])
        slot.send(
            {
                "do": "prepare",
                "engine": engine,
                "parts": [part_of(workload, engine)],
            }
        )
    ready = _answers(slots, time.monotonic() + timeout_seconds, stopped)
    if not all(answer.get("ready") for answer in ready):
        results = _failures(members, ready, "set-up", timeout_seconds)
        return WindowResult(results, measured_at, window_seconds)

    probing = slots if probers is None else probers[: len(members)]
    if speed is not None and probers is not None:
        for slot, core in zip(probing, placement[0], strict=True):
            slot.pin([core])
    before_it = wait_for_speed(speed, _by_core(probing, placement[0]), tolerance)

    warmup_seconds = max(_SHORTEST_WARMUP_SECONDS, _WARMUP_RATIO * window_seconds)
    start_ns = time.monotonic_ns() + int(_START_AHEAD_SECONDS * 1e9)
    begin_ns = start_ns + int(warmup_seconds * 1e9)
    end_ns = begin_ns + int(window_seconds * 1e9)
    for slot, workload in zip(slots, members, strict=True):
        slot.send(
            {
                "do": "go",
                "start_ns": start_ns,
                "until_ns": end_ns,
                "repeats": repeats_per_beat(workload, engine),
            }
        )
    used = [sorted(set(phase)) for phase in placement]
    idle_cores = [core for core in cores if core not in set().union(*used)]
    _sleep_until(begin_ns)
    before = _Sample(slots, idle_cores)
    for number, phase in enumerate(placement[1:], start=1):
        _sleep_until(begin_ns + (end_ns - begin_ns) * number // len(placement))
        for slot, core in zip(slots, phase, strict=True):
            slot.pin([core])
    _sleep_until(end_ns)
    after = _Sample(slots, idle_cores)
    answers = _answers(slots, time.monotonic() + timeout_seconds, stopped)
    if speed is not None and probers is not None:
        for slot, core in zip(probing, placement[-1], strict=True):
            slot.pin([core])
    after_it = speed.probe(_by_core(probing, placement[-1])) if speed else {}
    if not all("times" in answer for answer in answers):
        results = _failures(members, answers, "a repetition", timeout_seconds)
        return WindowResult(results, measured_at, window_seconds)
    return _judged(
        members,
        engine,
        answers,
        before,
        after,
        start_ns=start_ns,
        begin_ns=begin_ns,
        end_ns=end_ns,
        cores=len(cores),
        idle_cores=len(idle_cores),
        probes=(before_it, after_it),
        slowdown_ratio=speed.slowdown(before_it, after_it) if speed else None,
        measured_at=measured_at,
        tolerance=tolerance,
    )


def part_of(workload: Workload, engine: str) -> dict[str, Any]:
    """What a slot must know to set a workload up on an engine."""
    part = workload.part()
    native = part["kind"] == "kernel" and "native" in engine_setting(engine).runs
    return {**part, "kind": "native"} if native else part


def repeats_per_beat(workload: Workload, engine: str) -> int:
    """How much of a repetition one beat holds: all of it, or in an interpreter about a thirtieth.

    Beats of a few milliseconds at most can tell a quiet moment from a disturbed one.
    """
    cut = engine_setting(engine).interprets and workload.kind == "kernel"
    return max(1, workload.repeats // 32) if cut else workload.repeats


class _Sample:
    """CPU time of each slot, idle time of the cores without one, and when: the parent's watch."""

    def __init__(self, slots: Sequence[Slot], idle_cores: Sequence[int]) -> None:
        self.at_ns = time.monotonic_ns()
        self.cpu_ns = np.array([slot.cpu_ns() for slot in slots])
        self.idle_seconds = idle_seconds(idle_cores) if idle_cores else 0.0


def _judged(
    members: Sequence[Workload],
    engine: str,
    answers: Sequence[dict[str, Any]],
    before: _Sample,
    after: _Sample,
    *,
    start_ns: int,
    begin_ns: int,
    end_ns: int,
    cores: int,
    idle_cores: int,
    probes: tuple[Probes, ...],
    slowdown_ratio: float | None,
    measured_at: datetime,
    tolerance: Tolerance,
) -> WindowResult:
    """Estimate every member and decide whether the window can be believed."""
    window_seconds = (end_ns - begin_ns) * 1e-9
    watched_seconds = (after.at_ns - before.at_ns) * 1e-9
    # CPU clocks were read a little off the interval's ends: scale to it.
    cpu_seconds = (after.cpu_ns - before.cpu_ns) * 1e-9 * (window_seconds / watched_seconds)
    busy_seconds = max(
        0.0, idle_cores * watched_seconds - (after.idle_seconds - before.idle_seconds)
    )
    # What a command used is known at its beats.
    cpu_seconds += [_child_cpu_seconds(answer, begin_ns, end_ns) for answer in answers]
    # On cores with members, what the members did not get went to others (the hypervisor included).
    quota = variant_of(engine).quota_ratio
    entitled = min(cores - idle_cores, len(members) * (quota or 1.0))
    lost_seconds = max(0.0, entitled * window_seconds - float(cpu_seconds.sum()))
    foreign = (lost_seconds + busy_seconds) / (cores * window_seconds)
    shares = len(members) > cores - idle_cores or quota is not None

    all_beats = [
        np.frombuffer(base64.b64decode(answer["times"]), dtype="<i8") + answer["clock_offset_ns"]
        for answer in answers
    ]
    full = [
        {"failed": f"its repetitions are too short: {len(beats) - 1} filled the harness's memory"}
        if beats[-1] < end_ns
        else {}
        for beats in all_beats
    ]
    if any(full):
        return WindowResult(
            _failures(members, full, "a repetition", 0), measured_at, window_seconds, foreign
        )
    estimates = [
        estimate(beats, begin_ns, end_ns, float(cpu), shares, tolerance)
        for beats, cpu in zip(all_beats, cpu_seconds, strict=True)
    ]
    beats_each = [workload.repeats / repeats_per_beat(workload, engine) for workload in members]
    late = [max(0.0, (int(beats[0]) - start_ns) * 1e-9) for beats in all_beats]
    reason = contamination(
        slowdown_ratio=slowdown_ratio,
        foreign_load_ratio=foreign,
        lateness_seconds=max(late),
        warmup_seconds=(begin_ns - start_ns) * 1e-9,
        fewest_repetitions=min(
            e.beats / each if e else 0.0 for e, each in zip(estimates, beats_each, strict=True)
        ),
        shares_cores=shares,
        tolerance=tolerance,
    )
    if reason is None and not all(estimates):
        reason = "a member did nothing in the window"
    results = tuple(
        _member(found, each, reason, answer, beats, float(cpu), lateness)
        for found, each, answer, beats, cpu, lateness in zip(
            estimates, beats_each, answers, all_beats, cpu_seconds, late, strict=True
        )
    )
    longest = max(
        (window_seconds / member.repetitions for member in results if member.repetitions),
        default=None,
    )
    return WindowResult(
        results, measured_at, window_seconds, foreign, slowdown_ratio, probes, longest
    )


def _member(
    found: Estimate | None,
    beats_each: float,
    reason: str | None,
    answer: dict[str, Any],
    beats: np.ndarray,
    cpu_seconds: float,
    lateness_seconds: float,
) -> MemberResult:
    believed = found is not None and reason is None
    return MemberResult(
        status="ok" if believed else "contaminated",
        reason=reason,
        runtime_seconds=found.beat_seconds * beats_each if found and believed else None,
        estimator=found.method if found else None,
        repetitions=found.beats / beats_each if found else 0.0,
        beats=len(beats) - 1,
        cpu_seconds=cpu_seconds,
        run_delay_seconds=answer["run_delay_seconds"],
        involuntary_switches=answer["involuntary_switches"],
        lateness_seconds=lateness_seconds,
    )


def _child_cpu_seconds(answer: dict[str, Any], begin_ns: int, end_ns: int) -> float:
    """CPU time of what the slot started, in the interval; even within a repetition."""
    if answer.get("cpu_ns") is None:
        return 0.0
    times = np.frombuffer(base64.b64decode(answer["times"]), "<i8") + answer["clock_offset_ns"]
    used = np.frombuffer(base64.b64decode(answer["cpu_ns"]), "<i8")
    begin, end = np.interp([begin_ns, end_ns], times, used)
    return float(end - begin) * 1e-9


def _by_core(slots: Sequence[Slot], phase: Sequence[int]) -> dict[int, Slot]:
    """One slot of each core that is in use."""
    return dict(zip(phase, slots, strict=True))


def _failures(
    members: Sequence[Workload],
    answers: Sequence[dict[str, Any]],
    what: str,
    timeout_seconds: float,
) -> tuple[MemberResult, ...]:
    """Who failed or hung, and for the others that they were not measured beside a full set."""
    found: list[MemberResult | None] = []
    blamed: list[str] = []
    for workload, answer in zip(members, answers, strict=True):
        if "failed" in answer:
            found.append(MemberResult("failed", answer["failed"]))
        elif answer.get("timeout"):
            found.append(MemberResult("timeout", f"{what} took more than {timeout_seconds:g} s"))
        else:
            found.append(None)
            continue
        blamed.append(workload.name)
    instead = MemberResult("failed", f"a co-runner failed: {', '.join(sorted(blamed))}")
    return tuple(result or instead for result in found)


def _answers(
    slots: Sequence[Slot], deadline: float, stopped: Callable[[], bool]
) -> list[dict[str, Any]]:
    answers = gather(slots, deadline, stopped)
    if answers is None:
        raise Stopped
    return answers


def _sleep_until(at_ns: int) -> None:
    while (left_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(left_ns * 1e-9)
