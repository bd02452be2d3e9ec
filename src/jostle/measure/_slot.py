"""A slot: the child process that runs one member of a set, told what to do line by line.

`python -m jostle.measure._slot PARENT` reads JSON lines from its standard input and answers each
with one. It lives between windows, so modules are compiled once; it dies with its parent, even when
that is killed.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import resource
import signal
import sys
import time
from typing import Any, TextIO

from ._follow import follow
from ._harness import reason_of

_PR_SET_PDEATHSIG = 1
_PROBES = 3
_BETWEEN_PROBES_SECONDS = 0.001


def main() -> None:
    """Serve until the input ends."""
    _die_with(int(sys.argv[1]))
    # An interrupt at the terminal is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    harnesses: dict[str, Any] = {}
    current: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if message["do"] == "prepare":
                current = _prepare(harnesses, current, message)
                answer: dict[str, Any] = {"ready": True}
            elif message["do"] == "go":
                answer = _go(current, message)
            elif message["do"] == "follow":
                answer = follow(current, message, lambda notice: _say(answers, notice))
            else:
                answer = {"probe_ns": _probe(harnesses)}
        except Exception as error:
            answer = {"failed": reason_of(error)}
        _say(answers, answer)


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _prepare(harnesses: dict[str, Any], current: Any, message: dict[str, Any]) -> Any:
    from ._harness import Harness

    if current is not None:
        current.close()
    engine = message["engine"]
    if engine not in harnesses:
        harnesses[engine] = Harness(engine)
    harness = harnesses[engine]
    harness.close()
    for part in message["parts"]:
        harness.add(part["module"], part["digest"], part["argument"])
    return harness


def _go(harness: Any, message: dict[str, Any]) -> dict[str, Any]:
    """Run one window; what it used, in seconds, beside its beats."""
    start_ns = message["start_ns"]
    before = _usage()
    beats = harness.beats(message["repeats"], start_ns, message["until_ns"])
    after = _usage()
    delay = None
    if after["run_delay_ns"] is not None and before["run_delay_ns"] is not None:
        delay = (after["run_delay_ns"] - before["run_delay_ns"]) * 1e-9
    return {
        "times": base64.b64encode(beats.times).decode("ascii"),
        "clock_offset_ns": beats.clock_offset_ns,
        "run_delay_seconds": delay,
        "involuntary_switches": after["involuntary"] - before["involuntary"],
    }


def _probe(harnesses: dict[str, Any]) -> list[int]:
    """Nanoseconds for a fixed piece of work that keeps all of a core busy, a few times."""
    from ._harness import Probe

    if "probe" not in harnesses:
        harnesses["probe"] = Probe()
    found = []
    for _ in range(_PROBES):
        found.append(harnesses["probe"].run())
        time.sleep(_BETWEEN_PROBES_SECONDS)
    return found


def _usage() -> dict[str, Any]:
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            run_delay_ns = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):  # a kernel without schedstat
        run_delay_ns = None
    involuntary = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    return {"run_delay_ns": run_delay_ns, "involuntary": involuntary}


def _die_with(parent: int) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the wish was made
        os._exit(1)


if __name__ == "__main__":
    main()
