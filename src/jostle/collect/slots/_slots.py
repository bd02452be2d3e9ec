"""The parent's side of the slots: start them, talk to them, notice when they hang or die, and end them."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from jostle.collect.host._proc import text_of, threads_of
from jostle.collect.kernels._child import child_environment, die_with
from jostle.errors import NotPermitted

_LIBC = ctypes.CDLL(None)
_PR_SET_CHILD_SUBREAPER = 36
_MARK = "JOSTLE_SLOT"  # in the environment of a slot and of all that it starts
# Enough of a dying process's last words to say why.
_LAST_WORDS_BYTES = 1000
_LAST_LINES = 5
_MOST_READS = 32
_MOST_SWEEPS = 100  # past which a process is one that the system does not end


def adopt_orphans() -> None:
    """Let processes whose parents have ended become children of this one instead of the system's first."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children() -> list[resource.struct_rusage]:
    """End all children of this thread, and theirs, which are adopted one after the other. Returns what each
    used."""
    usages: list[resource.struct_rusage] = []
    with suppress(OSError):
        while True:
            with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
                children = [int(child) for child in file.read().split()]
            if not children:
                break
            for child in children:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
                with suppress(ChildProcessError):
                    usages.append(os.wait4(child, 0)[2])
    return usages


def leave_guard() -> None:
    """Leave a process behind that ends all that this slot started once the slot has ended, though the slot
    and its parent be killed together."""
    slot, child = os.pidfd_open(os.getpid()), os.fork()
    if child:
        os.waitpid(child, 0)
        os.close(slot)
        return
    if os.fork() == 0:  # a child of the system's first process, and in a session of its own
        os.setsid()
        os.dup2(slot, 0)
        os.closerange(1, 64)
        select.select([0], [], [])
        end_marked(os.environ[_MARK])
    os._exit(0)


def end_marked(mark: str) -> None:
    """End all other processes that a slot of this mark started, whoever their parents are by now."""
    entry, own = f"{_MARK}={mark}".encode(), str(os.getpid())
    for _ in range(_MOST_SWEEPS):
        found = False
        for number in filter(str.isdecimal, set(os.listdir("/proc")) - {own}):
            with suppress(OSError), open(f"/proc/{number}/environ", "rb") as file:
                if entry in file.read().split(
                    b"\0"
                ):  # of one that has ended nothing is left to read
                    os.kill(int(number), signal.SIGKILL)
                    found = True
        if not found:
            return


def cpu_ns_of(pid: int) -> int:
    """Return CPU time that a process has used, threads that have ended included; 0 when it is gone."""
    # The kernel's number for "CPU clock of process pid" (clock_getcpuclockid(3)).
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError:
        return 0


class LastWords:
    """The end of what programs write to their standard error, which is `file`: the rest is not kept."""

    def __init__(self) -> None:
        self._read, self.file = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._read, False)
        self._kept = b""

    def fileno(self) -> int:
        """Return where it comes from."""
        return self._read

    def take(self) -> bytes:
        """Read what has come, so that whoever writes can go on. Returns the last of it."""
        with suppress(BlockingIOError):
            for _ in range(_MOST_READS):
                self._kept = (self._kept + os.read(self._read, 1 << 16))[-_LAST_WORDS_BYTES:]
        return self._kept

    def clear(self) -> None:
        """Forget what was written up to now."""
        self.take()
        self._kept = b""

    def close(self) -> None:
        """Let both ends go."""
        for file in (self._read, self.file):
            with suppress(OSError):
                os.close(file)


def how_it_ended(code: int, words: bytes) -> str:
    """Return a signal or an exit code, and the last lines of its last words on standard error."""
    end = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    lines = [" ".join(line.split()) for line in words.decode("utf-8", "replace").splitlines()]
    return f"{end}: {' | '.join([line for line in lines if line][-_LAST_LINES:])}".rstrip(": ")


def started(
    words: list[str],
    files: tuple[int, int, int],
    environment: Mapping[str, str] | None = None,
    last: Callable[[], None] = lambda: None,
) -> int:
    """Return a child that becomes a program, and dies with this process. files: its input, output and errors.
    last: called in it before it is the program; what is raised there is written to the errors."""
    parent = os.getpid()
    child = os.fork()
    if child:
        return child
    try:
        die_with(parent)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(3, 64)
        last()
        os.execve(words[0], words, os.environ if environment is None else environment)
    except OSError as error:
        os.write(2, f"cannot be started: {error.strerror}".encode())
    finally:
        os._exit(127)


def ended(
    child: int,
    errors: LastWords,
    *,
    stops: bool = False,
    look: Callable[[], float | None] = lambda: None,
    seconds: float | None = None,
) -> bool:
    """Wait until a child has ended, which is not reaped; its errors are read meanwhile.

    stops: whether a line on standard input ends the waiting, too.
    look: called after so many seconds, if that comes first; says in how many it is called again, or None.
    Returns False if the child goes on.
    """
    file = os.pidfd_open(child)
    try:
        poll = select.poll()
        for one in (file, errors, sys.stdin)[: 3 if stops else 2]:
            poll.register(one, select.POLLIN | select.POLLHUP)
        due = seconds and time.monotonic() + seconds
        while True:
            left = due and max(0.0, due - time.monotonic())
            ready = {one for one, _ in poll.poll(None if left is None else 1000 * left)}
            if errors.fileno() in ready:
                errors.take()
            if file in ready or ready - {errors.fileno()}:
                return file in ready
            if not ready:
                seconds = look()
                due = seconds and time.monotonic() + seconds
    finally:
        os.close(file)


class Slot:
    """A child process that runs one member at a time; started on use, again after a kill.

    program: the module that answers.
    """

    def __init__(self, program: str = "jostle.collect.slots._slot") -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        # Files of the parent's ends; they are valid while there is a process.
        self._input = self._output = self._errors = -1
        self._received, self._mark = b"", uuid.uuid4().hex

    @property
    def pid(self) -> int:
        """The process, started if need be."""
        if self._process is None:
            self._process = self._started()
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """True if there is a process that has not been found to have ended."""
        return self._process is not None

    def send(self, message: dict[str, Any]) -> None:
        """Tell the slot something; a slot that has died is noticed by gather()."""
        with suppress(BrokenPipeError):
            os.write(self._input, json.dumps(message).encode() + b"\n")

    def pin(self, cores: Iterable[int]) -> None:
        """Let the process run on these cores only. Raises NotPermitted."""
        cores = set(cores)
        try:
            os.sched_setaffinity(self.pid, cores)
            for thread in self._others():
                with suppress(ProcessLookupError):
                    os.sched_setaffinity(thread, cores)
        except ProcessLookupError:
            pass  # it has died: gather() will say so
        except OSError as error:
            raise NotPermitted(
                f"this system does not let a process be pinned to cores: {error.strerror}",
                fix="Measure on a Linux host or in a container that owns its CPUs.",
            ) from error

    def _others(self) -> list[int]:
        """Return its other threads, and the command it runs: all move with it."""
        threads = [folder.rpartition("/")[2] for folder in threads_of(self.pid)]
        started = (text_of(f"/proc/{self.pid}/task/{self.pid}/children") or "").split()
        return [int(one) for one in [*threads, *started] if int(one) != self.pid]

    def cpu_ns(self) -> int:
        """Return CPU time the process has used, to the nanosecond; 0 when it has died."""
        return cpu_ns_of(self.pid)

    def ask(self, message: dict[str, Any], timeout_seconds: float) -> dict[str, Any]:
        """Return its answer, {"failed": why} or {"timeout": True}; the process is started if need be."""
        _ = self.pid
        self.send(message)
        (answer,) = gather([self], time.monotonic() + timeout_seconds, lambda: False) or [{}]
        return answer

    def fileno(self) -> int:
        """Return where its answers come from."""
        return self._output

    def answer(self) -> dict[str, Any] | None:
        """Return the answer, if all of it has come; {"failed": why} when the process has ended."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            return {"failed": self._how_it_ended()}
        self._received += data
        line, newline, rest = self._received.partition(b"\n")
        if not newline:
            return None
        self._received = rest
        return self._message(line)

    def lines(self) -> list[dict[str, Any]]:
        """Return all messages that have come whole; {"failed": why} when the process has ended."""
        data = os.read(self.fileno(), 1 << 20)
        if not data:
            return [{"failed": self._how_it_ended()}]
        *whole, self._received = (self._received + data).split(b"\n")
        return [self._message(line) for line in whole]

    def _message(self, line: bytes) -> dict[str, Any]:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.kill()
            return {"failed": f"the process says what is no message: {line[:80]!r}"}
        return message

    def kill(self) -> None:
        """End the process at once, and what it has started; the next use starts another."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        end_marked(self._mark)
        for file in (self._input, self._output, self._errors):
            os.close(file)
        self._process, self._received = None, b""

    def _started(self) -> subprocess.Popen[bytes]:
        self._errors = os.memfd_create("jostle-slot-errors")
        child_input, self._input = os.pipe()
        self._output, child_output = os.pipe()
        try:
            return subprocess.Popen(
                [sys.executable, "-m", self._program, str(os.getpid())],
                stdin=child_input,
                stdout=child_output,
                stderr=self._errors,
                env={**child_environment(), _MARK: self._mark},
                # Its own session: an interrupt typed at the terminal reaches the parent alone.
                start_new_session=True,
            )
        finally:
            os.close(child_input)
            os.close(child_output)

    def _how_it_ended(self) -> str:
        code = self._process.wait() if self._process is not None else 0
        size = os.fstat(self._errors).st_size
        end = how_it_ended(
            code, os.pread(self._errors, _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
        )
        self.kill()
        return f"the process ended with {end}"


def gather(
    slots: Sequence[Slot], deadline: float, stopped: Callable[[], bool]
) -> list[dict[str, Any]] | None:
    """Return one answer from each slot: its message, {"failed": why}, or {"timeout": True}.

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
