"""A process of its own in which modules from elsewhere are validated, compiled and counted.

A module may sleep for ever, need all memory, or keep a compiler busy: whoever asks waits for a limited time,
and can give up. Run with the number of its parent, it reads lines of JSON and answers each with one.
"""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jostle.errors import BadData
from jostle.measure.counting._counted import counted
from jostle.measure.slots._process import die_with
from jostle.measure.slots._slots import Slot, gather

DEFAULT_TIMEOUT_SECONDS = 120.0
# Of data: a compiler of a large module needs some hundred megabytes, a module's memory has its own limit.
_MOST_BYTES = 6 << 30

_lock = threading.Lock()
_process: Slot | None = None


def counted_apart(
    module: Path,
    asked: tuple[str, tuple[str, ...], int, int],
    timeout_seconds: float,
    stopped: Callable[[], bool],
) -> dict[str, Any]:
    """The fields of OpcodeCounts of a module's file. asked: kind, words, argument, repeats.

    Raises BadData, also where it took too long or its process died.
    """
    kind, words, argument, repeats = asked
    message = {
        "module": str(module),
        "kind": kind,
        "words": list(words),
        "argument": argument,
        "repeats": repeats,
    }
    with _lock:
        slot = _slot()
        slot.send(message)
        try:
            answers = gather([slot], time.monotonic() + timeout_seconds, stopped)
        except BaseException:
            slot.kill()
            raise
    if answers is None:
        raise BadData("its instructions were not counted: interrupted")
    (answer,) = answers
    if answer.get("timeout"):
        text = f"its instructions could not be counted in {timeout_seconds:g} s"
        raise BadData(
            text, fix="Does it end at all? Allow it more time, or measure it without counts."
        )
    if "failed" in answer:
        raise BadData(str(answer["failed"]))
    return answer


def _slot() -> Slot:
    """The process, fresh where there is none; one that its starting thread took with it is replaced."""
    global _process
    if _process is None:
        _process = Slot(program="jostle.measure.counting._counter_process")
        atexit.register(_process.kill)
    if not _process.is_alive():
        _process.kill()
        _ = _process.pid
    return _process


def main() -> None:
    """Serve until the input ends."""
    die_with(int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = _MOST_BYTES if hard == resource.RLIM_INFINITY else min(hard, _MOST_BYTES)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        message = json.loads(line)
        try:
            content = Path(message.pop("module")).read_bytes()
            answer = counted(content, **message)
        except BadData as error:
            answer = {"failed": error.what}
        except Exception as error:
            text = f"its instructions cannot be counted: {type(error).__name__}: {error}"
            answer = {"failed": text[:300]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
