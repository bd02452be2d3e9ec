"""Beats say when each repetition of a workload ended; a part is what is set up and repeated."""

from __future__ import annotations

import base64
import ctypes
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
    """Times at which the repetitions of a workload began and ended. times: (count + 1,) int64 little-endian
    bytes: the start, then the end of each repetition.

    Add clock_offset_ns to get `time.monotonic_ns`. count: repetitions.
    """

    times: bytes
    count: int
    clock_offset_ns: int = 0
    # (count + 1,) int64: CPU time used by then, where others than this process used it.
    cpu_ns: bytes | None = None

    def to_message(self) -> dict[str, Any]:
        """Make the JSON object in which the times travel."""
        return {
            "times": base64.b64encode(self.times).decode("ascii"),
            "clock_offset_ns": self.clock_offset_ns,
            "cpu_ns": base64.b64encode(self.cpu_ns).decode("ascii") if self.cpu_ns else None,
        }


def beat_times(message: Mapping[str, Any]) -> np.ndarray:
    """Return (count + 1,) int64, in `time.monotonic_ns`."""
    return _numbers(message["times"]) + message["clock_offset_ns"]


def beat_cpu_ns(message: Mapping[str, Any]) -> np.ndarray | None:
    """Return (count + 1,) int64: CPU time that others than the slot used by then; None where nobody did."""
    return _numbers(message["cpu_ns"]) if message.get("cpu_ns") else None


def _numbers(text: str) -> np.ndarray:
    import numpy as np

    return np.frombuffer(base64.b64decode(text), "<i8")


def packed(numbers: Sequence[int]) -> bytes:
    """Return numbers as int64."""
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
    """A fresh instance of a workload for one phase, set up."""

    @abstractmethod
    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Beats:
        """Sleep until start, then repeat until a repetition ends past until. Raises what it traps with."""

    def checksum(self) -> int:
        """Return the checksum of the result after one repetition; only shipped kernels have one."""
        raise RuntimeError("it has no checksum")

    def close(self) -> None:  # noqa: B027
        """Let its memory go."""
