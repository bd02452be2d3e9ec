"""One window: a set of workloads side by side on one engine, for a fraction of a second.

All are set up, sleep to a common start, run through a warm-up and then through the interval that
counts; in the meantime this process sleeps too, but for reading CPU clocks at the interval's two
ends and, where cores are shared, for moving members at the phases between (see `_placement`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from jostle.collect.kernels._beats import sleep_until
from jostle.collect.slots._available import repeats_per_beat
from jostle.collect.slots._slots import Slot, gather
from jostle.collect.window._assess import Clocks, Observed, Window, WindowResult, assessed, failures
from jostle.collect.window._foreign_load import Moment

# From the last member being ready to the common start: enough for every slot to fall asleep.
_START_AHEAD_SECONDS = 0.003
_WARMUP_RATIO = 0.1
_SHORTEST_WARMUP_SECONDS = 0.02


class Stopped(Exception):
    """The window was given up because the campaign is to stop."""


def run_window(
    window: Window,
    slots: Sequence[Slot],
    *,
    stopped: Callable[[], bool],
) -> WindowResult:
    """Run the members at the same time, one a slot.

    Raises Stopped, and NotPermitted where processes cannot be pinned.
    """
    measured_at = datetime.now(UTC)
    members, placement = window.members, window.placement
    slots = slots[: len(members)]
    for slot, workload, core in zip(slots, members, placement[0], strict=True):
        slot.pin([core])
        parts = [workload.part()]
        slot.send({"do": "prepare", "engine": window.engine, "parts": parts})
    ready = _answers(slots, window, stopped)
    if not all(answer.get("ready") for answer in ready):
        results = failures(members, ready, "set-up", window.timeout_seconds)
        return WindowResult(results, measured_at, window.window_seconds)

    observed = _observed(window, slots, stopped)
    if not all("times" in answer for answer in observed.answers):
        results = failures(members, observed.answers, "a repetition", window.timeout_seconds)
        return WindowResult(results, measured_at, window.window_seconds)
    return assessed(window, observed, measured_at)


def _observed(window: Window, slots: Sequence[Slot], stopped: Callable[[], bool]) -> Observed:
    """Observe the members from their common start until all have answered."""
    warmup_seconds = max(_SHORTEST_WARMUP_SECONDS, _WARMUP_RATIO * window.window_seconds)
    start_ns = time.monotonic_ns() + int(_START_AHEAD_SECONDS * 1e9)
    begin_ns = start_ns + int(warmup_seconds * 1e9)
    end_ns = begin_ns + int(window.window_seconds * 1e9)
    for slot, workload in zip(slots, window.members, strict=True):
        slot.send(
            {
                "do": "go",
                "start_ns": start_ns,
                "until_ns": end_ns,
                "repeats": repeats_per_beat(workload, window.engine),
            }
        )
    phases = window.placement
    sleep_until(begin_ns)
    before = _clocks(slots)
    for number, phase in enumerate(phases[1:], start=1):
        sleep_until(begin_ns + (end_ns - begin_ns) * number // len(phases))
        _pin(slots, phase)
    sleep_until(end_ns)
    after = _clocks(slots)
    answers = _answers(slots, window, stopped)
    return Observed(start_ns, begin_ns, end_ns, before, after, answers)


def _clocks(slots: Sequence[Slot]) -> Clocks:
    at_ns = time.monotonic_ns()
    cpu_ns = np.array([slot.cpu_ns() for slot in slots])
    return Clocks(at_ns, cpu_ns, Moment.now())


def _pin(slots: Sequence[Slot], cores: Sequence[int]) -> None:
    for slot, core in zip(slots, cores, strict=True):
        slot.pin([core])


def _answers(
    slots: Sequence[Slot], window: Window, stopped: Callable[[], bool]
) -> list[dict[str, Any]]:
    answers = gather(slots, time.monotonic() + window.timeout_seconds, stopped)
    if answers is None:
        raise Stopped
    return answers
