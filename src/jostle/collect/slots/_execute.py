"""In a slot: whole executions of a command line, or a kernel, over and over until told to stop.

An execution is timed from the moment its process becomes the program to its end. One that still runs when
everyone is told to stop is killed, with all it started, and does not count.
"""

from __future__ import annotations

import hashlib
import os
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from mmap import mmap
from pathlib import Path
from typing import Any

from jostle.collect.kernels._beats import Beats, Part, packed, repeated, sleep_until
from jostle.collect.kernels._wasm import kernels_on
from jostle.collect.slots._harness import Harness
from jostle.collect.slots._queue import RunQueue, own_wait_ns
from jostle.collect.slots._slots import (
    LastWords,
    end_children,
    ended,
    how_it_ended,
    started,
)

_LOOK_EVERY_NS = 50_000_000
_OUTPUT_CHUNK = 1 << 20
_PREPARING_SECONDS = 3600.0
_FAILURES = 3


class StoppedInside(Exception):
    """The parent asked to stop while an execution ran."""


class Executions:
    """A command line with what surrounds it. starts, ends: of whole executions, in `time.monotonic_ns`."""

    def __init__(self, part: dict[str, Any]) -> None:
        self.job: dict[str, Any] = part.get("job") or {}
        self._words: list[str] = [part["module"], *part["arguments"]]
        self._nothing = os.open(os.devnull, os.O_RDWR)
        stdin = self.job.get("stdin")
        self._stdin = self._nothing if stdin is None else os.open(stdin, os.O_RDONLY | os.O_CLOEXEC)
        self._errors = LastWords()
        self._output = os.memfd_create("jostle-job-output", os.MFD_CLOEXEC)
        self._shared = mmap(-1, 24)
        self._environment = {**os.environ, **self.job.get("environment", {})}
        self._folder: str | None = None
        self.starts: list[int] = []
        self.ends: list[int] = []
        # Of each execution that counts: in the run queue, CPU time, and of this what nobody looked at.
        self.waited: list[int] = []
        self.used: list[int] = []
        self.unseen: list[int] = []
        self.cpu_ns = self.delay_ns = self.switches = self.failed = 0
        self.failure = ""

    def prepare(self) -> None:
        """Make the folder with the inputs, and run the command before. Raises RuntimeError, OSError."""
        if self._folder is not None:
            return
        folder: str = self.job.get("directory") or os.getcwd()
        if self.job.get("fresh_folder"):
            folder = tempfile.mkdtemp(prefix="jostle-job-")
        self._folder = folder
        for path in self.job.get("inputs", ()):
            target = Path(folder) / (Path(path).name if os.path.isabs(path) else path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if os.path.isdir(path):
                shutil.copytree(path, target, dirs_exist_ok=True)
            else:
                shutil.copy(path, target)
        self._around("before")

    def clean(self) -> None:
        """Run the command after, and remove the folder. Raises RuntimeError, OSError."""
        if self._folder is None:
            return
        try:
            self._around("after")
        finally:
            if self.job.get("fresh_folder"):
                shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def run(self) -> None:
        """Run one whole execution. Raises StoppedInside, RuntimeError for another exit code than 0 or another
        output than expected."""
        self._errors.clear()
        os.ftruncate(self._output, 0)
        os.lseek(self._output, 0, os.SEEK_SET)
        self._shared[:] = bytes(24)
        output = self._output if self.job.get("expected") else self._nothing
        forked_ns = time.monotonic_ns()
        if self._stdin != self._nothing:
            os.lseek(self._stdin, 0, os.SEEK_SET)
        files = (self._stdin, output, self._errors.file)
        child = started(self._words, files, self._environment, self._become)
        queue, stopped = RunQueue(child), True
        try:
            seconds = queue.first_look_seconds
            stopped = not ended(child, self._errors, stops=True, look=queue.look, seconds=seconds)
        finally:
            ended_ns = time.monotonic_ns()
            late_ns = queue.seen_late_ns()
            if stopped:
                _kill(child)
            queue.before_ns = int.from_bytes(self._shared[8:16], "little")
            before_ns = self.cpu_ns
            status, waited, unseen = self._reaped(child, queue)
        if stopped:
            raise StoppedInside
        if status:
            code = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"it ended with {how_it_ended(code, self._errors.take())}")
        self._check_output()
        self.starts.append(int.from_bytes(self._shared[:8], "little") or forked_ns)
        self.ends.append(ended_ns)
        self.waited.append(waited + late_ns)
        self.used.append(self.cpu_ns - before_ns - int.from_bytes(self._shared[16:], "little"))
        self.unseen.append(unseen)

    def close(self) -> None:
        """Clean up whatever is left."""
        with suppress(RuntimeError, OSError):
            self.clean()
        self._errors.close()
        for file in {self._nothing, self._stdin, self._output}:
            with suppress(OSError):
                os.close(file)

    def _reaped(self, child: int, queue: RunQueue) -> tuple[int, int, int]:
        """Return (the child's status, what it waited and where that is not known); what it used is added
        up."""
        queue.end()
        before_ns = self.cpu_ns
        _kill_group(child)
        _, status, used = os.wait4(child, 0)
        for one in (used, *end_children()):
            self.cpu_ns += int((one.ru_utime + one.ru_stime) * 1e9)
            self.switches += one.ru_nivcsw
        waited, unseen = queue.total(self.cpu_ns - before_ns)
        self.delay_ns += waited
        return status, waited, unseen

    def _become(self) -> None:
        """Become the command, as the last step in the child."""
        os.setpgid(0, 0)
        if self._folder is not None:
            os.chdir(self._folder)
        numbers = time.monotonic_ns(), own_wait_ns(), time.process_time_ns()
        self._shared[:] = b"".join(number.to_bytes(8, "little") for number in numbers)

    def _around(self, when: str) -> None:
        for line in self.job.get(when, ()):
            self._errors.clear()
            process = subprocess.Popen(
                shlex.split(line),
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors.file,
            )
            try:
                ended(process.pid, self._errors, look=_too_late, seconds=_PREPARING_SECONDS)
            finally:
                process.kill()
                code = process.wait()
            if code:
                told = how_it_ended(code, self._errors.take())
                raise RuntimeError(f"the command {when} it ({line}) ended with {told}")

    def _check_output(self) -> None:
        expected = self.job.get("expected")
        if not expected:
            return
        os.lseek(self._output, 0, os.SEEK_SET)
        digest = hashlib.sha256()
        while part := os.read(self._output, _OUTPUT_CHUNK):
            digest.update(part)
        if digest.hexdigest() != expected:
            raise RuntimeError("its standard output is not what was expected")


def _too_late() -> None:
    raise RuntimeError(f"a command around it ran for more than {_PREPARING_SECONDS:g} seconds")


class JobPart(Executions, Part):
    """The same as a part of a harness; it is not asked for beats."""

    def beats(self, repeats: int, start_ns: int, until_ns: int, most: int) -> Any:
        raise RuntimeError("a job has executions and no beats")


class Command(Part):
    """A command line that is traced. A repetition includes starting a process, about a millisecond."""

    def __init__(self, part: dict[str, Any]) -> None:
        self._words = [part["module"], *part["arguments"]]
        self._nothing = os.open(os.devnull, os.O_RDWR)
        self._errors = LastWords()
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
        self._errors.close()

    def _run(self) -> int:
        """Once; its CPU time in nanoseconds."""
        self._errors.clear()
        child = started(self._words, (self._nothing, self._nothing, self._errors.file))
        try:
            ended(child, self._errors)
            _, status, used = os.wait4(child, 0)
        except BaseException:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            raise
        if status:
            code = os.waitstatus_to_exitcode(status)
            raise RuntimeError(f"it ended with {how_it_ended(code, self._errors.take())}")
        return int((used.ru_utime + used.ru_stime) * 1e9)


@cache
def _kernels() -> Callable[[dict[str, Any]], Part]:
    return kernels_on("speed")


def native_part(part: dict[str, Any]) -> Part:
    """Set up what runs on the engine native: a command line, or a kernel beside one. Raises RuntimeError,
    OSError."""
    if part["kind"] == "kernel":
        return _kernels()(part)
    if part["kind"] == "command":
        return Command(part)
    job = JobPart(part)
    job.prepare()
    return job


def execute(
    harness: Harness, message: dict[str, Any], notice: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Run the command over and over from start_ns until a line comes; notice: told {"done": n} at every end.
    A job that fails now and then goes on; one that has failed _FAILURES times and never ended well is given
    up.

    Of a job: {"starts", "ends": base64 of int64, "cpu_ns_used": by its executions, "cpu_ns_around": by the
    commands before and after them, and what else a run has}. Of a kernel: its beats.
    """
    part = harness.parts[0]
    if not isinstance(part, Executions):
        return _kernel(harness, message, notice)
    sleep_until(message["start_ns"])
    before_ns = _children_ns()
    try:
        while True:
            part.prepare()
            try:
                part.run()
            except RuntimeError as error:
                part.failed, part.failure = part.failed + 1, str(error)
                if not part.ends and part.failed >= _FAILURES:
                    raise
            part.clean()
            if len(part.ends) == 1:
                notice({"done": True})
            if _told_to_stop():
                break
    except StoppedInside:
        pass
    finally:
        part.clean()
    return {
        "starts": _encoded(part.starts),
        "ends": _encoded(part.ends),
        "waited": _encoded(part.waited),
        "used": _encoded(part.used),
        "unseen": _encoded(part.unseen),
        "cpu_ns_used": part.cpu_ns,
        "cpu_ns_around": max(0, _children_ns() - before_ns - part.cpu_ns),
        "run_delay_seconds": part.delay_ns * 1e-9,
        "involuntary_switches": part.switches,
        "failed_executions": part.failed,
        "failure": part.failure,
    }


def _children_ns() -> int:
    """Return CPU time of all that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return int((used.ru_utime + used.ru_stime) * 1e9)


def _kernel(
    harness: Harness, message: dict[str, Any], notice: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Return beats in pieces, until told to stop; of a long window its last part, as much as is kept."""
    pieces: list[dict[str, Any]] = []
    begin_ns, is_first = message["start_ns"], True
    while True:
        until_ns = max(begin_ns, time.monotonic_ns()) + _LOOK_EVERY_NS
        pieces.append(harness.beats(message["repeats"], begin_ns, until_ns).to_message())
        del pieces[: -message["pieces"]]
        if is_first:
            notice({"done": True})
            is_first = False
        if _told_to_stop():
            return {"pieces": pieces, "run_delay_seconds": None, "involuntary_switches": None}


def _encoded(times: list[int]) -> str:
    import base64

    return base64.b64encode(packed(times)).decode("ascii")


def _kill(child: int) -> None:
    """Kill the process before it has been reaped."""
    with suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _kill_group(leader: int) -> None:
    """Whatever it has started and left behind."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _told_to_stop() -> bool:
    """Return whether a line has come; it stays to be read."""
    return bool(select.select([sys.stdin], [], [], 0)[0])
