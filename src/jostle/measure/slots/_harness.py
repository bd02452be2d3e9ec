"""A harness: the phases of one member, each repeated with its beats noted, whatever runs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from jostle.measure.slots._beats import CAPACITY, Beats


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
