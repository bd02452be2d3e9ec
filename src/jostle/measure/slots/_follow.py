"""In a slot: run a program of phases once, or over and over, and keep the beats of its first pass.

The engine is left every 50 milliseconds at most, to look whether the parent has sent a stop: an
interruption of some 20 microseconds.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from typing import Any

from jostle.measure.slots._harness import Harness

_LOOK_EVERY_NS = 50_000_000


def follow(
    harness: Harness, message: dict[str, Any], notice: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Beats of the first pass, in pieces, each with the phase it belongs to.

    message: phases: [{repeats: of one beat, beats: how many, None for no end}], start_ns, until_ns,
    and loop: whether to begin again after the end, until stopped. notice: told {"finished": true}
    at the end of the first pass of a loop.
    """
    pieces: list[dict[str, Any]] = []
    first, begin_ns = True, message["start_ns"]
    while True:
        for part, phase in enumerate(message["phases"]):
            left = phase["beats"]
            while left is None or left > 0:
                until_ns = min(
                    message["until_ns"], max(begin_ns, time.monotonic_ns()) + _LOOK_EVERY_NS
                )
                most = {} if left is None else {"most": left}
                beats = harness.beats(phase["repeats"], begin_ns, until_ns, part=part, **most)
                if left is not None:
                    left -= beats.count
                if first:
                    pieces.append({"phase": part, **beats.to_message()})
                if time.monotonic_ns() >= message["until_ns"] or _is_told_to_stop():
                    done = left == 0 and part == len(message["phases"]) - 1
                    return {"pieces": pieces, "finished": done or not first}
        if not message["loop"]:
            return {"pieces": pieces, "finished": True}
        if first:
            notice({"finished": True})
        first = False


def _is_told_to_stop() -> bool:
    """Whether a line has come; it is read away."""
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    sys.stdin.readline()
    return True
