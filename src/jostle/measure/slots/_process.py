"""What slots and the commands in them have in common as child processes."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time
from contextlib import suppress

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_BETWEEN_LOOKS_SECONDS = 0.002
# Enough of a dying process's last words to say why.
_LAST_WORDS_BYTES = 300


def die_with(parent: int) -> None:
    """This process is killed when its parent ends, even when that is killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the wish was made
        os._exit(1)


def adopt_orphans() -> None:
    """Processes whose parents have ended become children of this one instead of the system's first."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_children(patience_seconds: float = 0.0) -> list[resource.struct_rusage]:
    """End all children of this thread, and theirs, which are adopted one after the other; what each used.

    patience_seconds: how long they may take to end by themselves.
    """
    found: list[resource.struct_rusage] = []
    until = time.monotonic() + patience_seconds
    with suppress(ChildProcessError):
        while time.monotonic() < until:
            pid, _, used = os.wait4(-1, os.WNOHANG)
            if pid:
                found.append(used)
            else:
                time.sleep(_BETWEEN_LOOKS_SECONDS)
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
                    found.append(os.wait4(child, 0)[2])
    return found


def descendants(pid: int) -> list[int]:
    """All processes that it started and those that these did, as far as their parents live."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{one}/task"):
                with open(f"/proc/{one}/task/{thread}/children", encoding="ascii") as file:
                    children = [int(child) for child in file.read().split()]
                found += children
                waiting += children
    return found


def cpu_ns_of(pid: int) -> int:
    """CPU time that a process has used, threads that have ended included; 0 when it is gone."""
    # The kernel's number for "CPU clock of process pid" (clock_getcpuclockid(3)).
    try:
        return time.clock_gettime_ns(~pid << 3 | 2)
    except OSError:
        return 0


def tree_cpu_seconds(pid: int) -> float:
    """The same of a process and all that it started, those that have ended and were waited for included."""
    total = 0.0
    for one in [pid, *descendants(pid)]:
        total += cpu_ns_of(one) * 1e-9
        with (
            suppress(OSError, IndexError),
            open(f"/proc/{one}/stat", encoding="utf-8", errors="replace") as file,
        ):
            fields = file.read().rpartition(")")[2].split()
            total += (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    return total


def how_it_ended(code: int, errors: int) -> str:
    """A signal or an exit code, and the end of what was written to the file of its standard error."""
    end = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    size = os.fstat(errors).st_size
    words = os.pread(errors, _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
    text = " ".join(words.decode("utf-8", "replace").split())
    return f"{end}: {text}".rstrip(": ")
