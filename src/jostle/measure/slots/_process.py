"""What slots and the commands in them have in common as child processes."""

from __future__ import annotations

import ctypes
import os
import signal

_LIBC = ctypes.CDLL(None)
_PR_SET_PDEATHSIG = 1
# Enough of a dying process's last words to say why.
_LAST_WORDS_BYTES = 300


def die_with(parent: int) -> None:
    """This process is killed when its parent ends, even when that is killed."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before the wish was made
        os._exit(1)


def how_it_ended(code: int, errors: int) -> str:
    """A signal or an exit code, and the end of what was written to the file of its standard error."""
    end = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    size = os.fstat(errors).st_size
    words = os.pread(errors, _LAST_WORDS_BYTES, max(0, size - _LAST_WORDS_BYTES))
    text = " ".join(words.decode("utf-8", "replace").split())
    return f"{end}: {text}".rstrip(": ")
