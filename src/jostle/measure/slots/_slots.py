"""The parent's side of the slots: start them, talk to them, notice when they hang or die."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from jostle.errors import NotPermitted
from jostle.measure.host._variants import EngineVariant, ProcessLimits
from jostle.measure.slots._process import cpu_ns_of, descendants, how_it_ended


def child_environment() -> dict[str, str]:
    """This process's environment, with this very package found first."""
    here = str(Path(__file__).resolve().parents[3])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{inherited}" if inherited else here}


class Slot:
    """One child process that runs one member at a time; started on use, again after a kill.

    host: python, or what another kind of slot runs in. variant: what limits it. program: the module that
    answers.
    """

    def __init__(
        self,
        host: str = "python",
        variant: EngineVariant | None = None,
        program: str = "jostle.measure.slots._slot",
    ) -> None:
        self._host, self._variant, self._program = host, variant, program
        self._limits: ProcessLimits | None = None
        self._process: subprocess.Popen[bytes] | None = None
        # Files of the parent's ends; they are valid while there is a process.
        self._input = self._output = self._errors = -1
        self._received = b""

    @property
    def pid(self) -> int:
        """The process, started if need be."""
        if self._process is None:
            self._process = self._started()
            if self._variant is not None and self._variant != EngineVariant():
                self._limits = ProcessLimits(self._variant, self._process.pid)
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether there is a process that has not been found to have ended."""
        return self._process is not None

    def is_alive(self) -> bool:
        """Whether its process runs at this moment."""
        return self._process is not None and self._process.poll() is None

    def send(self, message: dict[str, Any]) -> None:
        """Tell the slot something; a slot that has died is noticed by gather()."""
        with contextlib.suppress(BrokenPipeError):
            os.write(self._input, json.dumps(message).encode() + b"\n")

    def pin(self, cores: Iterable[int]) -> None:
        """Let the process run on these cores only. Raises NotPermitted."""
        cores = set(cores)
        try:
            os.sched_setaffinity(self.pid, cores)
            for thread in self._others():
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(thread, cores)
        except ProcessLookupError:
            pass  # it has died: gather() will say so
        except OSError as error:
            raise NotPermitted(
                f"this system does not let a process be pinned to cores: {error.strerror}",
                fix="Measure on a Linux host or in a container that owns its CPUs.",
            ) from error

    def _others(self) -> list[int]:
        """Its other threads, and the command it runs: all move with it."""
        folder = f"/proc/{self.pid}/task"
        with contextlib.suppress(OSError):
            threads = [int(thread) for thread in os.listdir(folder)]
            with open(f"{folder}/{self.pid}/children", encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
            return [thread for thread in threads if thread != self.pid] + children
        return []

    def cpu_ns(self) -> int:
        """CPU time the process has used, to the nanosecond; 0 when it has died."""
        return cpu_ns_of(self.pid)

    def ask(self, message: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
        """Its answer, {"failed": why} or {"timeout": True}; the process is started if need be."""
        _ = self.pid
        self.send(message)
        (answer,) = gather([self], time.monotonic() + timeout_seconds, lambda: False) or [{}]
        return answer

    def fileno(self) -> int:
        """Where its answers come from."""
        return self._output

    def answer(self) -> dict[str, Any] | None:
        """The answer, if all of it has come; {"failed": why} when the process has ended."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            return {"failed": self._how_it_ended()}
        self._received += data
        line, newline, rest = self._received.partition(b"\n")
        if not newline:
            return None
        self._received = rest
        return json.loads(line)

    def lines(self) -> list[dict[str, Any]]:
        """All messages that have come whole; {"failed": why} when the process has ended."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            return [{"failed": self._how_it_ended()}]
        *whole, self._received = (self._received + data).split(b"\n")
        return [json.loads(line) for line in whole]

    def kill(self) -> None:
        """End the process at once, and what it has started; the next use starts another."""
        if self._process is None:
            return
        started = descendants(self._process.pid)
        self._process.kill()
        for one in started:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        self._process.wait()
        for file in (self._input, self._output, self._errors):
            os.close(file)
        self._process, self._received = None, b""
        if self._limits is not None:
            self._limits.close()
            self._limits = None

    def _started(self) -> subprocess.Popen[bytes]:
        self._errors = os.memfd_create("jostle-slot-errors")
        child_input, self._input = os.pipe()
        self._output, child_output = os.pipe()
        try:
            return subprocess.Popen(
                [
                    *(sys.executable, "-m", self._program, str(os.getpid())),
                    *([] if self._host == "python" else [self._host]),
                ],
                stdin=child_input,
                stdout=child_output,
                stderr=self._errors,
                env=child_environment(),
                # Its own session: an interrupt typed at the terminal reaches the parent alone.
                start_new_session=True,
            )
        finally:
            os.close(child_input)
            os.close(child_output)

    def _how_it_ended(self) -> str:
        code = self._process.wait() if self._process is not None else 0
        end = how_it_ended(code, self._errors)
        self.kill()
        return f"the process ended with {end}"


def gather(
    slots: Sequence[Slot], deadline: float, stopped: Callable[[], bool]
) -> list[dict[str, Any]] | None:
    """One answer from each slot: its message, {"failed": why}, or {"timeout": True}.

    deadline: in `time.monotonic()`; slots that are silent then are killed. None when stopped() was true
    while waiting (asked ten times a second); the silent ones are killed then too.
    """
    answers: dict[int, dict[str, Any]] = {}
    poll = select.poll()
    waiting = {slot.fileno(): index for index, slot in enumerate(slots)}
    for file in waiting:
        poll.register(file, select.POLLIN | select.POLLHUP)
    while waiting:
        left = deadline - time.monotonic()
        if left <= 0 or stopped():
            break
        for file, _ in poll.poll(min(left, 0.1) * 1000):
            index = waiting[file]
            answer = slots[index].answer()
            if answer is not None:
                answers[index] = answer
                poll.unregister(file)
                del waiting[file]
    was_stopped = bool(waiting) and time.monotonic() < deadline
    for index in waiting.values():
        slots[index].kill()
        answers[index] = {"timeout": True}
    return None if was_stopped else [answers[index] for index in range(len(slots))]
