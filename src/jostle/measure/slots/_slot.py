"""A slot: the child process that runs one member of a set, told what to do line by line.

`python -m jostle.measure.slots._slot PARENT` reads JSON lines from its standard input and answers each
with one. It lives between windows, so modules are compiled once; it dies with its parent, even when
that is killed. With the name of another host after PARENT it becomes that (Node runs `_slot.js`).
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
from pathlib import Path
from typing import Any, TextIO

from jostle.measure.host._engines import reason_of
from jostle.measure.slots._follow import follow

_PR_SET_PDEATHSIG = 1
_PROBES = 3
_BETWEEN_PROBES_SECONDS = 0.001


def main() -> None:
    """Serve until the input ends."""
    _die_with(int(sys.argv[1]))
    if sys.argv[2:]:
        _become(sys.argv[2])
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
                if current is not None:
                    current.close()
                harness = current = _harness(harnesses, message)
                for part in message["parts"]:
                    harness.add(part)
                answer: dict[str, Any] = {"ready": True}
            elif message["do"] == "checksum":
                answer = {"checksum": str(current.checksum() if current else None)}
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


def _harness(harnesses: dict[str, Any], message: dict[str, Any]) -> Any:
    """The harness for this engine and kind of workload, made when first asked for."""
    engine, kind = message["engine"].partition("@")[0], message["parts"][0]["kind"]
    key = engine if engine in ("native", "wasm3") else f"{engine}/{kind}"
    if key not in harnesses:
        if engine == "native":
            from jostle.measure.slots._harness_native import NativeHarness

            harnesses[key] = NativeHarness()
        elif engine == "wasm3":
            from jostle.measure.slots._harness_python import wasm3_harness

            harnesses[key] = wasm3_harness()
        elif kind == "wasi":
            from jostle.measure.slots._harness_python import wasi_harness

            harnesses[key] = wasi_harness(engine)
        else:
            from jostle.measure.slots._harness import Harness

            harnesses[key] = Harness(engine)
    return harnesses[key]


def _become(host: str) -> None:
    """Replace this process by Node."""
    flags = {
        "node": ["--no-liftoff", "--no-wasm-tier-up"],
        "node-liftoff": ["--liftoff-only"],
    }[host]
    os.execvp("node", ["node", *flags, str(Path(__file__).with_name("_slot.js"))])


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
        "cpu_ns": base64.b64encode(beats.cpu_ns).decode("ascii") if beats.cpu_ns else None,
        "run_delay_seconds": delay,
        "involuntary_switches": after["involuntary"] - before["involuntary"],
    }


def _probe(harnesses: dict[str, Any]) -> list[int]:
    """Nanoseconds for a fixed piece of work that keeps all of a core busy, a few times."""
    from jostle.measure.slots._harness import Probe

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
