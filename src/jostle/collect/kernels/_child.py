"""Child processes that end with this one and find the same packages."""

from __future__ import annotations

import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Let this process get a signal when its parent ends, even when that is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, by, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the wish was made
        os._exit(1)


def child_environment() -> dict[str, str]:
    """Return this process's environment, with this very package found first."""
    here = str(Path(__file__).resolve().parents[3])
    inherited = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{here}{os.pathsep}{inherited}" if inherited else here}
