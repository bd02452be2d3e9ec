"""A harness: the phases of one member, each repeated with its beats noted, whatever runs them.

Beats say when each repetition of a workload ended, and travel from a slot to its parent. A program of
phases is run once, or over and over; the engine is left every 50 milliseconds at most, to look whether the
parent has sent a stop: an interruption of some 20 microseconds.
"""

from __future__ import annotations

import base64
import ctypes
import select
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


# One beat is eight bytes; a harness stops when its memory is full.
MEMORY_PAGES = 32
CAPACITY = MEMORY_PAGES * 65536 // 8 - 1


@dataclass(frozen=True)
class Beats:
    """times: (count + 1,) int64 little-endian bytes: the start, then the end of each repetition.

    Add clock_offset_ns to get `time.monotonic_ns`. count: repetitions.
    """

    times: bytes
    count: int
    clock_offset_ns: int = 0
    # (count + 1,) int64: CPU time used by then, where others than this process used it.
    cpu_ns: bytes | None = None

    def to_message(self) -> dict[str, Any]:
        """As it travels in a line of JSON."""
        return {
            "times": base64.b64encode(self.times).decode("ascii"),
            "clock_offset_ns": self.clock_offset_ns,
            "cpu_ns": base64.b64encode(self.cpu_ns).decode("ascii") if self.cpu_ns else None,
        }


def beat_times(message: Mapping[str, Any]) -> np.ndarray:
    """(count + 1,) int64, in `time.monotonic_ns`."""
    return _numbers(message["times"]) + message["clock_offset_ns"]


def beat_cpu_ns(message: Mapping[str, Any]) -> np.ndarray | None:
    """(count + 1,) int64: CPU time that others than the slot used by then; None where nobody did."""
    return _numbers(message["cpu_ns"]) if message.get("cpu_ns") else None


def _numbers(text: str) -> np.ndarray:
    import numpy as np

    return np.frombuffer(base64.b64decode(text), "<i8")


def packed(numbers: Sequence[int]) -> bytes:
    """Numbers as int64."""
    return bytes((ctypes.c_int64 * len(numbers))(*numbers))


def sleep_until(at_ns: int) -> None:
    """Sleep until `time.monotonic_ns` says so."""
    while (early_ns := at_ns - time.monotonic_ns()) > 0:
        time.sleep(early_ns * 1e-9)


def repeated(call: Callable[[int], object], repeats: int, until_ns: int, most: int) -> Beats:
    """Call over and over until a call ends past until, at most so often."""
    clock = time.monotonic_ns
    times = [clock()]
    while True:
        call(repeats)
        times.append(clock())
        if times[-1] >= until_ns or len(times) > most:
            break
    return Beats(packed(times), len(times) - 1)


class Part(ABC):
    """One phase, set up: a fresh instance of a workload."""

    @abstractmethod
    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Beats:
        """Sleep until start, then repeat until a repetition ends past until. Raises what it traps with."""

    def checksum(self) -> int:
        """Of the result after one repetition; only shipped kernels have one."""
        raise RuntimeError("it has no checksum")

    def close(self) -> None:  # noqa: B027
        """Let its memory go."""


class Harness:
    """make: sets up the part of a `prepare` message."""

    def __init__(self, make: Callable[[dict[str, Any]], Part]) -> None:
        self._make = make
        self.parts: list[Part] = []

    def prepare(self, parts: list[dict[str, Any]]) -> None:
        """Fresh ones, set up, in place of those prepared before. Raises what setting up traps with."""
        self.close()
        for part in parts:
            self.parts.append(self._make(part))

    def beats(
        self, repeats: int, start_ns: int, until_ns: int, *, most: int = CAPACITY, part: int = 0
    ) -> Beats:
        """Of a part. Times in `time.monotonic_ns`; most: repetitions, at most CAPACITY."""
        return self.parts[part].beats(repeats, start_ns, until_ns, min(most, CAPACITY))

    def checksum(self) -> int:
        """Of the first part's result after one repetition."""
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
