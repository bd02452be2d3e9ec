"""A slot: the child process that runs one member of a set, told what to do line by line.

`python -m jostle.collect.slots._slot PARENT` reads JSON lines from its standard input and answers each
with one. It lives between windows, so modules are compiled once; it ends with its parent, even when
that is killed, and with it all that it has started.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from typing import Any, TextIO

from jostle.collect.kernels._child import die_with
from jostle.collect.kernels._engines import reason_of
from jostle.collect.slots._execute import execute, native_part
from jostle.collect.slots._harness import Harness, follow
from jostle.collect.slots._slots import adopt_orphans, end_children, leave_guard


def main() -> None:
    """Serve until the input ends."""
    leave_guard()
    # What the programs that it runs leave behind become children of this process, to be ended and counted.
    adopt_orphans()
    signal.signal(signal.SIGTERM, _end)
    die_with(parent := int(sys.argv[1]))
    # An interrupt at the terminal is the parent's to handle.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    # Without a buffer: a stop that comes with what it is to stop must not be read ahead, where nobody looks.
    sys.stdin = open(0, "rb", buffering=0, closefd=False)  # noqa: SIM115
    harnesses: dict[str, Harness] = {}
    current: Harness | None = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["do"] == "stop":  # what it was to stop has ended
            continue
        try:
            answer: dict[str, Any]
            if message["do"] == "prepare":
                if current is not None:
                    current.close()
                current = _harness(harnesses, message)
                # A kernel is never interrupted and starts nothing; a program may have started others.
                is_kernel = message["parts"][0]["kind"] in ("kernel", "wasi")
                die_with(parent, signal.SIGKILL if is_kernel else signal.SIGTERM)
                current.prepare(message["parts"])
                answer = {"ready": True}
            elif current is None:
                raise RuntimeError("nothing was prepared")
            elif message["do"] == "checksum":
                answer = {"checksum": str(current.checksum())}
            elif message["do"] == "go":
                answer = _go(current, message)
            elif message["do"] == "execute":
                answer = execute(current, message, lambda note: _send(answers, note))
            else:
                answer = follow(current, message, lambda note: _send(answers, note))
        except Exception as error:
            answer = {"failed": reason_of(error)}
        _send(answers, answer)


def _end(*_: object) -> None:
    end_children()
    os._exit(1)


def _send(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _harness(harnesses: dict[str, Harness], message: dict[str, Any]) -> Harness:
    """Return the harness for this engine and kind of workload, made when first asked for."""
    engine, kind = message["engine"], message["parts"][0]["kind"]
    key = engine if engine in ("native", "wasm3") else f"{engine}/{kind}"
    if key not in harnesses:
        if engine == "native":
            make = native_part
        elif engine == "wasm3":
            from jostle.collect.kernels._wasm import kernels_on_wasm3

            make = kernels_on_wasm3()
        elif kind == "wasi":
            from jostle.collect.kernels._wasm import wasi_programs_on

            make = wasi_programs_on(engine)
        else:
            from jostle.collect.kernels._wasm import kernels_on

            make = kernels_on(engine)
        harnesses[key] = Harness(make)
    return harnesses[key]


def _go(harness: Harness, message: dict[str, Any]) -> dict[str, Any]:
    """Run one window; what it used, in seconds, beside its beats."""
    start_ns = message["start_ns"]
    before = _usage()
    beats = harness.beats(message["repeats"], start_ns, message["until_ns"])
    after = _usage()
    delay = None
    if after["run_delay_ns"] is not None and before["run_delay_ns"] is not None:
        delay = (after["run_delay_ns"] - before["run_delay_ns"]) * 1e-9
    return {
        **beats.to_message(),
        "run_delay_seconds": delay,
        "involuntary_switches": after["involuntary"] - before["involuntary"],
    }


def _usage() -> dict[str, Any]:
    try:
        with open("/proc/self/schedstat", encoding="ascii") as file:
            run_delay_ns = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):  # a kernel without schedstat
        run_delay_ns = None
    involuntary = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    return {"run_delay_ns": run_delay_ns, "involuntary": involuntary}


if __name__ == "__main__":
    main()
