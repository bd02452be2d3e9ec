"""Native workloads: kernels built by gcc, and command lines, each repeated with its beats noted.

A command line is started over and over; a repetition is from before its start to its end, so it includes
starting a process, about a millisecond. It must end with exit code 0; what it prints is thrown away, but for
the end of its standard error, which says why it failed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

from jostle.kernels import Beats, Library, Part, packed, repeated, sleep_until
from jostle.measure.serving._serve import ServicePart
from jostle.measure.slots._execute import JobPart
from jostle.measure.slots._slots import how_it_ended, started


def native_part(part: dict[str, Any]) -> Part:
    """A fresh one, set up. Raises RuntimeError, OSError."""
    if part["kind"] == "job":
        job = JobPart(part)
        job.prepare()
        return job
    if part["kind"] == "service":
        return ServicePart(part)
    return Command(part) if part["kind"] == "command" else Library(part)


class Command(Part):
    """A command line."""

    def __init__(self, part: dict[str, Any]) -> None:
        self._words = [part["module"], *part["arguments"]]
        self._nothing = os.open(os.devnull, os.O_RDWR)
        self._errors = os.memfd_create("jostle-command-errors", os.MFD_CLOEXEC)
        self._cpu_ns = 0

    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Beats:
        sleep_until(start_ns)
        cpu = [self._cpu_ns]

        def call(repeats: int) -> None:
            for _ in range(repeats):
                self._cpu_ns += self._run()
            cpu.append(self._cpu_ns)

        return replace(repeated(call, repeats, until_ns, most), cpu_ns=packed(cpu))

    def close(self) -> None:
        os.close(self._nothing)
        os.close(self._errors)

    def _run(self) -> int:
        """Once; its CPU time in nanoseconds."""
        os.ftruncate(self._errors, 0)
        os.lseek(self._errors, 0, os.SEEK_SET)
        child = started(self._words, (self._nothing, self._nothing, self._errors))
        try:
            _, status, used = os.wait4(child, 0)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            raise
        if status:
            code = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"it ended with {how_it_ended(code, self._errors)}")
        return int((used.ru_utime + used.ru_stime) * 1e9)
