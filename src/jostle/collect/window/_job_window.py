"""A window with command lines in it: whole executions, however long, while all others go on.

Everyone begins at a common start and repeats. When the window's time is over and everyone has ended at
least once, all are told to stop; an execution that still runs is killed and does not count. So every
execution that counts had all the others beside it, from its start to its end.

A job may wait, for a disk or a clock, and use little of its core. What others took is therefore not what it
did not get: see `_foreign`.
"""

from __future__ import annotations

import base64
import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jostle.collect.kernels._beats import beat_times, sleep_until
from jostle.collect.slots._available import repeats_per_beat
from jostle.collect.slots._slots import Slot, gather
from jostle.collect.window._assess import Window, WindowResult, failures, result_of
from jostle.collect.window._beat_estimate import estimate
from jostle.collect.window._core_sharing import others_of
from jostle.collect.window._foreign_load import Elapsed, Moment, foreign_to_jobs
from jostle.collect.window._lost import Cleaned, Others, cleaned_executions
from jostle.collect.window._window import Stopped
from jostle.collect.workloads._workloads import Workload

_START_AHEAD_SECONDS = 0.005
# The kernel tells idle time to a hundredth of a second: in less than this a share of it says little.
_SHORTEST_SECONDS = 1.0
# A kernel beside jobs keeps the beats of its last so many pieces of 50 ms.
_PIECES = 100
_LOOK_SECONDS = 0.1
# One of these is in each good answer: of a job, of a kernel.
_IN_ANSWERS = {"starts", "pieces"}


@dataclass(frozen=True)
class JobRecord:
    """Record of a window of jobs that run to their end. answers: of each slot. seconds: from the common start
    to the stop, with what the system told at its two ends. slot_cpu_ns: of each slot itself."""

    answers: list[dict[str, Any]]
    start_ns: int
    stop_ns: int
    slot_cpu_ns: np.ndarray
    elapsed: Elapsed

    @property
    def seconds(self) -> float:
        return (self.stop_ns - self.start_ns) * 1e-9


def has_jobs(members: Sequence[Workload]) -> bool:
    """Return whether a window with these members is one of whole executions."""
    return any(member.kind == "command" for member in members)


@dataclass(frozen=True)
class JobWindow:
    """Members that run at the same time, one a slot, until each has ended once at least.

    limit_seconds: for the window, and for preparing it.
    """

    window: Window
    slots: Sequence[Slot]
    stopped: Callable[[], bool]
    limit_seconds: float

    def run(self) -> WindowResult:
        """Raises Stopped, and NotPermitted where processes cannot be pinned."""
        window, measured_at = self.window, datetime.now(UTC)
        for slot, member, core in zip(self.slots, window.members, window.placement[0], strict=True):
            slot.pin([core])
            part = member.part()
            part = {**part, "kind": "job"} if member.kind == "command" else part
            slot.send({"do": "prepare", "engine": window.engine, "parts": [part]})
        members = window.members
        ready = gather(self.slots, time.monotonic() + self.limit_seconds, self.stopped)
        if ready is None:
            raise Stopped
        if not all(answer.get("ready") for answer in ready):
            results = failures(members, ready, "set-up", self.limit_seconds)
            return WindowResult(results, measured_at, window.window_seconds)
        record = self._followed()
        if not all(_IN_ANSWERS & set(answer) for answer in record.answers):
            results = failures(members, record.answers, "an execution", self.limit_seconds)
            return WindowResult(results, measured_at, record.seconds)
        return _assessed(window, record, measured_at)

    def _followed(self) -> JobRecord:
        """Run the members from their common start until all of them have ended, and record what happened."""
        window, slots = self.window, self.slots
        if len(slots) > len(window.cores):  # nobody knows how long it takes: the kernel shares
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
        early, is_late = self._waited(start_ns)
        stop_ns = time.monotonic_ns()
        used_ns = np.array([slot.cpu_ns() if slot.is_running else 0 for slot in slots]) - cpu_ns
        after = Moment.now(kernel=True)
        running = [place for place in range(len(slots)) if place not in early]
        for place in running:
            slots[place].send({"do": "stop"})
        until = time.monotonic() + window.timeout_seconds
        last = gather([slots[place] for place in running], until, lambda: False) or []
        by_slot = dict(zip(running, last, strict=True)) | early
        if is_late:
            for place, answer in by_slot.items():
                if not answer.get("ends"):
                    by_slot[place] = {"timeout": True}
        answers = [by_slot[place] for place in range(len(slots))]
        elapsed = Elapsed(before, after)
        return JobRecord(answers, start_ns, stop_ns, np.maximum(used_ns, 0), elapsed)

    def _waited(self, start_ns: int) -> tuple[dict[int, dict[str, Any]], bool]:
        """Return ({slot: what it answered before anybody told it to stop, a failure}, whether time was up).

        Raises Stopped.
        """
        slots = self.slots
        shortest = max(self.window.window_seconds, _SHORTEST_SECONDS)
        poll, places = select.poll(), {slot.fileno(): place for place, slot in enumerate(slots)}
        for file in places:
            poll.register(file, select.POLLIN | select.POLLHUP)
        waiting, early = set(range(len(slots))), {}
        while not early:
            passed = (time.monotonic_ns() - start_ns) * 1e-9
            if self.stopped():
                for slot in slots:
                    slot.kill()
                raise Stopped
            if not waiting and passed >= shortest:
                return early, False
            if passed >= max(self.limit_seconds, shortest):
                return early, True
            left = _LOOK_SECONDS if waiting else min(_LOOK_SECONDS, shortest - passed)
            for file, _ in poll.poll(max(1, left * 1000)):
                place = places[file]
                for message in slots[place].lines():
                    if "done" in message:
                        waiting.discard(place)
                    else:
                        early[place] = message
        return early, False


def _assessed(window: Window, record: JobRecord, measured_at: datetime) -> WindowResult:
    # What watches a command line takes its core like anybody else; a kernel is the slot.
    cpu = [
        float((0 if "starts" in answer else slot_ns) + answer.get("cpu_ns_used", 0)) * 1e-9
        for slot_ns, answer in zip(record.slot_cpu_ns, record.answers, strict=True)
    ]
    around = [answer.get("cpu_ns_around", 0) * 1e-9 for answer in record.answers]
    watching = [
        float(slot_ns) * 1e-9 if "starts" in answer else 0.0
        for slot_ns, answer in zip(record.slot_cpu_ns, record.answers, strict=True)
    ]
    shares = len(window.members) > len(window.cores)
    used_cores = window.cores if shares else set().union(*window.placement)
    foreign = foreign_to_jobs(
        record.elapsed, window.cores, used_cores, sum(cpu) + sum(around) + sum(watching)
    )
    used = [one + other for one, other in zip(cpu, around, strict=True)]
    everyone = range(len(used))
    groups = [tuple(everyone)] if shares else [(place,) for place in everyone]
    others = [one for group in groups for one in _others(window, record, group, used)]
    rows = []
    for place, (member, answer) in enumerate(zip(window.members, record.answers, strict=True)):
        if "starts" in answer:
            cores = len(window.cores) if shares else 1
            one = _of_job(answer, others[place], cores)
        else:
            one = _of_kernel(window, member, record, answer, cpu[place], shares)
        rows.append(
            result_of(
                one[0] if one else None,
                estimator=one[1] if one else None,
                repetitions=one[2] if one else 0.0,
                beats=int(one[2]) if one else 0,
                cpu_seconds=cpu[place],
                run_delay_seconds=answer["run_delay_seconds"],
                involuntary_switches=answer["involuntary_switches"],
                extra=_further(answer),
            )
        )
    results = window.results(rows, float("inf"))
    return WindowResult(results, measured_at, record.seconds, foreign)


def _others(
    window: Window,
    record: JobRecord,
    group: Sequence[int],
    used: Sequence[float],
) -> list[Others]:
    """Return who had the cores of each of some members that share theirs. used: CPU seconds of every member,
    with what runs it."""
    elapsed, seconds = record.elapsed, record.elapsed.seconds
    cores = window.cores if len(group) > 1 else [window.placement[0][group[0]]]
    own = np.array([used[place] for place in group])
    busy = sum(map(elapsed.busy, cores))
    taken = max(0.0, busy - float(own.sum()))
    waited, hidden = np.zeros(len(own)), own.copy()
    for at, place in enumerate(group):
        answer = record.answers[place]
        if answer["run_delay_seconds"] is not None:  # nobody asks a kernel: it is always ready
            waited[at] = answer["run_delay_seconds"]
            hidden[at] = _numbers(answer, "unseen", "<i8").sum() * 1e-9 if "unseen" in answer else 0
    away = taken, elapsed.stolen(cores), elapsed.throttled_seconds
    return others_of(seconds, len(cores), away, own, waited, hidden)


_JobEstimate = tuple[Cleaned, str, float]


def _numbers(answer: dict[str, Any], name: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(answer[name]), kind)


def _of_job(answer: dict[str, Any], others: Others, cores: int) -> _JobEstimate | None:
    """Return (median of its executions, estimator, executions). cores: on which it may run."""
    lasted = (_numbers(answer, "ends", "<i8") - _numbers(answer, "starts", "<i8")) * 1e-9
    if not len(lasted):
        return None
    waited, used, unseen = (
        _numbers(answer, name, "<i8") * 1e-9 for name in ("waited", "used", "unseen")
    )
    beat = cleaned_executions(lasted, waited, unseen, used, cores, others)
    return beat, "executions", float(len(lasted))


def _further(answer: dict[str, Any]) -> dict[str, Any]:
    """Return further columns of a run, some of whose executions failed."""
    if not (failed := answer.get("failed_executions")):
        return {}
    of_all = failed / (failed + len(_numbers(answer, "ends", "<i8")))
    columns = {"failed_executions": float(failed), "failure_ratio": of_all}
    return {**columns, "failure": answer["failure"]}


def _of_kernel(
    window: Window,
    member: Workload,
    record: JobRecord,
    answer: dict[str, Any],
    cpu_seconds: float,
    shares: bool,
) -> _JobEstimate | None:
    """Return the same of a kernel that repeats beside jobs: by its last beats."""
    first, *rest = (beat_times(piece) for piece in answer["pieces"])
    beats = np.concatenate([first, *(piece[1:] for piece in rest)])
    begin, end = int(beats[0]), int(beats[-1])
    used = cpu_seconds * (end - begin) * 1e-9 / record.seconds
    one = estimate(beats, begin, end, used, shares)
    if one is None:
        return None
    each = member.repeats / repeats_per_beat(member, window.engine)
    times = {name: getattr(one.beat, name) * each for name in ("seconds", "raw_seconds")}
    return replace(one.beat, **times), one.method, one.beats / each
