"""A window with command lines in it: whole executions, however long, while all others go on.

Everyone begins at a common start and repeats. When the window's time is over and everyone has ended at
least once, all are told to stop; an execution that still runs is killed and does not count. So every
execution that counts had all the others beside it, from its start to its end.

A job may wait, for a disk or a clock, and use little of its core. What others took is therefore not what it
did not get: see `_foreign`.
"""

from __future__ import annotations

import base64
import os
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jostle.measure.slots._available import part_of, repeats_per_beat
from jostle.measure.slots._execute import remove_all
from jostle.measure.slots._harness import beat_times, sleep_until
from jostle.measure.slots._slots import Slot, gather
from jostle.measure.window._assess import MemberResult, Window, WindowResult, failures
from jostle.measure.window._estimate import estimate, too_slow
from jostle.measure.window._foreign import Elapsed, Moment, foreign_to_jobs
from jostle.measure.window._speed import CoreSpeed, wait_for_speed
from jostle.measure.window._window import Stopped
from jostle.measure.workloads._workloads import Workload

_START_AHEAD_SECONDS = 0.005
# The kernel tells idle time to a hundredth of a second: in less than this a share of it says little.
_SHORTEST_SECONDS = 1.0
# A kernel beside jobs keeps the beats of its last so many pieces of 50 ms.
_PIECES = 100
_LOOK_SECONDS = 0.1
# One of these is in each good answer: of a job, a service, a kernel.
_IN_ANSWERS = {"starts", "latencies", "pieces"}
_QUANTILES = (0.5, 0.9, 0.99, 0.999)


@dataclass(frozen=True)
class _Seen:
    """answers: of each slot. seconds: from the common start to the stop, with what the system told at its
    two ends. slot_cpu_ns: of each slot itself."""

    answers: list[dict[str, Any]]
    start_ns: int
    stop_ns: int
    slot_cpu_ns: np.ndarray
    elapsed: Elapsed

    @property
    def seconds(self) -> float:
        return (self.stop_ns - self.start_ns) * 1e-9


def has_jobs(members: Sequence[Workload]) -> bool:
    """Whether a window with these members is one of whole executions."""
    return any(member.kind in ("command", "service") for member in members)


def run_jobs(
    window: Window,
    slots: Sequence[Slot],
    *,
    speed: CoreSpeed | None,
    stopped: Callable[[], bool],
    limit_seconds: float,
) -> WindowResult:
    """Run the members at the same time, one a slot, until each has ended once at least.

    limit_seconds: for the window, and for preparing it. Raises Stopped, and NotPermitted where processes
    cannot be pinned.
    """
    measured_at = datetime.now(UTC)
    members = window.members
    slots = slots[: len(members)]
    for slot, member, core in zip(slots, members, window.placement[0], strict=True):
        slot.pin([core])
        part = part_of(member, window.engine)
        part = {**part, "kind": "job"} if member.kind == "command" else part
        slot.send({"do": "prepare", "engine": window.engine, "parts": [part]})
    try:
        return _run(window, slots, measured_at, speed, stopped, limit_seconds)
    finally:
        _end_containers(window)


def _run(
    window: Window,
    slots: Sequence[Slot],
    measured_at: datetime,
    speed: CoreSpeed | None,
    stopped: Callable[[], bool],
    limit_seconds: float,
) -> WindowResult:
    """The window, once its members are told to prepare."""
    members = window.members
    ready = gather(slots, time.monotonic() + limit_seconds, stopped)
    if ready is None:
        raise Stopped
    if not all(answer.get("ready") for answer in ready):
        results = failures(members, ready, "set-up", limit_seconds)
        return WindowResult(results, measured_at, window.window_seconds)
    by_core = dict(zip(window.placement[0], slots, strict=True))
    before = wait_for_speed(speed, by_core, window.tolerance)
    seen = _followed(window, slots, stopped, limit_seconds)
    for slot, core in zip(slots, window.placement[0], strict=True):
        if slot.is_running:
            slot.pin([core])
    probes = (before, speed.probe(by_core) if speed else {})
    if not all(_IN_ANSWERS & set(answer) for answer in seen.answers):
        results = failures(members, seen.answers, "an execution", limit_seconds)
        return WindowResult(results, measured_at, seen.seconds)
    slowdown = speed.slowdown(*probes) if speed else None
    return _assessed(window, seen, measured_at, probes, slowdown)


def _followed(
    window: Window, slots: Sequence[Slot], stopped: Callable[[], bool], limit_seconds: float
) -> _Seen:
    """From the common start until everyone has stopped."""
    if len(slots) > len(
        window.cores
    ):  # nobody knows how long it takes: the kernel shares the cores
        for slot in slots:
            slot.pin(window.cores)
    start_ns = time.monotonic_ns() + int(_START_AHEAD_SECONDS * 1e9)
    for slot, member in zip(slots, window.members, strict=True):
        repeats = repeats_per_beat(member, window.engine)
        message = {"do": "execute", "start_ns": start_ns, "repeats": repeats, "pieces": _PIECES}
        slot.send(message)
    sleep_until(start_ns)
    cpu_ns = np.array([slot.cpu_ns() for slot in slots])
    before = Moment.now(kernel=True)
    shortest = max(window.window_seconds, _SHORTEST_SECONDS)
    early, is_late = _waited(window, slots, start_ns, shortest, limit_seconds, stopped)
    stop_ns = time.monotonic_ns()
    slot_cpu_ns = np.array([slot.cpu_ns() if slot.is_running else 0 for slot in slots]) - cpu_ns
    after = Moment.now(kernel=True)
    running = [slot for place, slot in enumerate(slots) if place not in early]
    for slot in running:
        slot.send({"do": "stop"})
    last = gather(running, time.monotonic() + window.timeout_seconds, lambda: False) or []
    found = dict(zip((i for i in range(len(slots)) if i not in early), last, strict=True)) | early
    if is_late:
        for place, answer in found.items():
            if not answer.get("ends"):
                found[place] = {"timeout": True}
    return _Seen(
        [found[place] for place in range(len(slots))],
        start_ns,
        stop_ns,
        np.maximum(slot_cpu_ns, 0),
        Elapsed(before, after),
    )


def _end_containers(window: Window) -> None:
    """Those of members: a slot that is killed cannot end them, and they need not be children of its."""
    programs = {str(one.module) for one in window.members if one.job and one.job.container}
    for program in programs:
        remove_all(program, os.getpid())


def _waited(
    window: Window,
    slots: Sequence[Slot],
    start_ns: int,
    shortest_seconds: float,
    limit_seconds: float,
    stopped: Callable[[], bool],
) -> tuple[dict[int, dict[str, Any]], bool]:
    """({slot: what it answered before anybody told it to stop, a failure}, whether time was up).

    Raises Stopped.
    """
    poll, places = select.poll(), {slot.fileno(): place for place, slot in enumerate(slots)}
    for file in places:
        poll.register(file, select.POLLIN | select.POLLHUP)
    waiting, early = set(range(len(slots))), {}
    while not early:
        passed = (time.monotonic_ns() - start_ns) * 1e-9
        if stopped():
            _end_containers(window)
            for slot in slots:
                slot.kill()
            raise Stopped
        if not waiting and passed >= shortest_seconds:
            return early, False
        if passed >= max(limit_seconds, shortest_seconds):
            return early, True
        left = _LOOK_SECONDS if waiting else min(_LOOK_SECONDS, shortest_seconds - passed)
        for file, _ in poll.poll(max(1, left * 1000)):
            place = places[file]
            for message in slots[place].lines():
                if "done" in message:
                    waiting.discard(place)
                else:
                    early[place] = message
    return early, False


def _assessed(
    window: Window,
    seen: _Seen,
    measured_at: datetime,
    probes: tuple[Any, ...],
    slowdown_ratio: float | None,
) -> WindowResult:
    cpu = [
        float(slot_ns + (answer.get("cpu_ns_used") or 0)) * 1e-9
        for slot_ns, answer in zip(seen.slot_cpu_ns, seen.answers, strict=True)
    ]
    # Of what a service runs for a member, nobody here knows what it used.
    hidden = [answer.get("cpu_ns_used", 0) is None for answer in seen.answers]
    around = sum(answer.get("cpu_ns_around", 0) for answer in seen.answers) * 1e-9
    shares = len(window.members) > len(window.cores)
    used_cores = window.cores if shares else set().union(*window.placement)
    unseen = [
        core for core, is_hidden in zip(window.placement[0], hidden, strict=True) if is_hidden
    ]
    unseen = list(window.cores) if unseen and shares else unseen
    seconds = sum(cpu) + around
    foreign = foreign_to_jobs(seen.elapsed, window.cores, used_cores, seconds, unseen)
    reason = foreign.reason(window.tolerance)
    if (
        reason is None
        and slowdown_ratio is not None
        and slowdown_ratio > window.tolerance.slowdown_ratio
    ):
        reason = too_slow(slowdown_ratio, window.tolerance)
    results = []
    for member, answer, used in zip(window.members, seen.answers, cpu, strict=True):
        if "starts" in answer:
            found = _of_job(answer)
        elif "latencies" in answer:
            found = _of_service(answer)
        else:
            found = _of_kernel(window, member, seen, answer, used, shares)
        results.append((found, answer, used))
    if reason is None and not all(found for found, _, _ in results):
        reason = "a member did nothing in the window"
    rows = tuple(
        MemberResult(
            status="ok" if reason is None else "contaminated",
            reason=reason,
            runtime_seconds=found[0] if found and reason is None else None,
            estimator=found[1] if found else None,
            repetitions=found[2] if found else 0.0,
            beats=int(found[2]) if found else 0,
            cpu_seconds=None if is_hidden else used,
            run_delay_seconds=answer["run_delay_seconds"],
            involuntary_switches=answer["involuntary_switches"],
            lateness_seconds=None,
            extra=_latencies(answer) if reason is None else {},
        )
        for (found, answer, used), is_hidden in zip(results, hidden, strict=True)
    )
    return WindowResult(rows, measured_at, seen.seconds, foreign, slowdown_ratio, probes, None)


_Found = tuple[float, str, float]


def _of_job(answer: dict[str, Any]) -> _Found | None:
    """(median wall seconds of an execution, estimator, executions)."""
    starts, ends = (
        np.frombuffer(base64.b64decode(answer[name]), "<i8") for name in ("starts", "ends")
    )
    if not len(ends):
        return None
    return float(np.median(ends - starts)) * 1e-9, "executions", float(len(ends))


def _of_service(answer: dict[str, Any]) -> _Found | None:
    """(the quantile of its latencies, which one, requests)."""
    seconds = np.frombuffer(base64.b64decode(answer["latencies"]), "<f8")
    if not len(seconds):
        return None
    quantile = answer["quantile"]
    # The higher of two neighbours: a quantile is met by so many requests, not in between.
    value = float(np.quantile(seconds, quantile, method="higher"))
    return max(value, 1e-9), f"p{100 * quantile:g}", float(len(seconds))


def _latencies(answer: dict[str, Any]) -> dict[str, float]:
    """Further columns of a service's run."""
    if "latencies" not in answer:
        return {}
    seconds = np.frombuffer(base64.b64decode(answer["latencies"]), "<f8")
    if not len(seconds):
        return {}
    found = {
        f"latency_p{100 * q:g}_seconds".replace(".", ""): float(
            np.quantile(seconds, q, method="higher")
        )
        for q in _QUANTILES
    }
    return {**found, "failed_requests": float(answer["failed_requests"])}


def _of_kernel(
    window: Window,
    member: Workload,
    seen: _Seen,
    answer: dict[str, Any],
    cpu_seconds: float,
    shares: bool,
) -> _Found | None:
    """The same of a kernel that repeats beside jobs: by its last beats."""
    first, *rest = (beat_times(piece) for piece in answer["pieces"])
    beats = np.concatenate([first, *(piece[1:] for piece in rest)])
    begin, end = int(beats[0]), int(beats[-1])
    used = cpu_seconds * (end - begin) * 1e-9 / seen.seconds
    found = estimate(beats, begin, end, used, shares, window.tolerance)
    if found is None:
        return None
    each = member.repeats / repeats_per_beat(member, window.engine)
    return found.beat_seconds * each, found.method, found.beats / each
