"""A harness: the phases of one member, each repeated with its beats noted, whatever runs them.

A program of phases is run once, or over and over; the engine is left every 50 milliseconds at most, to look
whether the parent has sent a stop: an interruption of some 20 microseconds.
"""

from __future__ import annotations

import select
import sys
import time
from collections.abc import Callable
from typing import Any

from jostle.collect.kernels._beats import CAPACITY, Beats, Part


class Harness:
    """Parts that a child process sets up and repeats. make: sets up the part of a `prepare` message."""

    def __init__(self, make: Callable[[dict[str, Any]], Part]) -> None:
        self._make = make
        self.parts: list[Part] = []

    def prepare(self, parts: list[dict[str, Any]]) -> None:
        """Set up fresh parts in place of those prepared before. Raises what setting up traps with."""
        self.close()
        for part in parts:
            self.parts.append(self._make(part))

    def beats(
        self, repeats: int, start_ns: int, until_ns: int, *, most: int = CAPACITY, part: int = 0
    ) -> Beats:
        """Run one part and return the times of its repetitions, in `time.monotonic_ns`. most: repetitions, at
        most CAPACITY."""
        return self.parts[part].beats(repeats, start_ns, until_ns, min(most, CAPACITY))

    def checksum(self) -> int:
        """Return the checksum of the first part's result after one repetition."""
        return self.parts[0].checksum() % 2**64

    def close(self) -> None:
        """Let all parts go."""
        for part in self.parts:
            part.close()
        self.parts = []


_LOOK_EVERY_NS = 50_000_000


def follow(
    harness: Harness, message: dict[str, Any], notice: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Yield the beats of the first pass, in pieces, each with the phase it belongs to.

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
    """Return whether a line has come; it is read away."""
    if not select.select([sys.stdin], [], [], 0)[0]:
        return False
    sys.stdin.readline()
    return True
