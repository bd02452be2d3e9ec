"""How long an execution waited in the run queue: its process, the threads and processes that it started.

The kernel tells of every thread how long it ran and how long it was ready to run and did not (schedstat,
see sched-stats.rst of Linux). Of the first thread that is known to the end; the others are looked at now and
then while they live, so that the CPU time in which nobody looked is told beside it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

from jostle.collect.host._proc import threads_of


def _read(path: str) -> tuple[int, int]:
    """Return (nanoseconds on a core, nanoseconds in the queue). Raises OSError, ValueError, IndexError."""
    with open(path, encoding="ascii") as file:
        ran, waited, *_ = file.read().split()
    return int(ran), int(waited)


def own_wait_ns() -> int:
    """Read how long this thread waited in the run queue; 0 if the kernel does not say."""
    with suppress(OSError, ValueError, IndexError):
        return _read("/proc/self/schedstat")[1]
    return 0


class RunQueue:
    """Time that one child waited for a core, from a moment on at which it had waited for before_ns."""

    first_look_seconds = 0.01

    def __init__(self, child: int) -> None:
        self._child, self.before_ns = child, 0
        self._others: dict[str, tuple[int, int]] = {}
        self._first: tuple[int, int] | None = None
        self._began = self._looked = time.monotonic()
        self._pause, self._own_ns = self.first_look_seconds, own_wait_ns()

    def look(self) -> float:
        """Look at all threads that live now. Returns after how many seconds to look again: soon if the
        program has started others."""
        first = f"/proc/{self._child}/task/{self._child}"
        for folder in threads_of(self._child, and_children=True):
            if folder != first:
                with suppress(OSError, ValueError, IndexError):
                    self._others[folder] = _read(f"{folder}/schedstat")
        self._looked = time.monotonic()
        part = 0.02 if self._others else 1.0
        self._pause = max(self.first_look_seconds, part * (self._looked - self._began))
        self._own_ns = own_wait_ns()
        return self._pause

    def seen_late_ns(self) -> int:
        """Return how long this process waited to see the end, which was no time of the program's; 0 where it
        was woken to look: nobody knows when the end came."""
        if time.monotonic() - self._looked >= self._pause:
            return 0
        return own_wait_ns() - self._own_ns

    def end(self) -> None:
        """Read the first thread's times after it has ended and before it is reaped."""
        with suppress(OSError, ValueError, IndexError):
            os.waitid(os.P_PID, self._child, os.WEXITED | os.WNOWAIT)
            self._first = _read(f"/proc/{self._child}/schedstat")

    def total(self, cpu_ns: int) -> tuple[int, int]:
        """Return (nanoseconds in the queue, CPU nanoseconds of threads that ended before a look at them).
        cpu_ns: CPU time of the child and of all that it started."""
        ran, waited = self._first or (0, self.before_ns)
        others = self._others.values()
        seen = ran + sum(one[0] for one in others)
        # The clocks of the two differ a little; a start of a process is no thread that was missed.
        unseen = max(0, cpu_ns - seen)
        total = max(0, waited - self.before_ns) + sum(one[1] for one in others)
        return total, unseen if others or unseen > 0.1 * cpu_ns else 0
