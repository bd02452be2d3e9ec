"""The command line: results on stdout, progress and errors on stderr, exit codes that say why."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line (sys.argv by default) and exit with its code; SIGTERM interrupts as Ctrl-C does."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(exit_code(list(sys.argv[1:] if arguments is None else arguments)))


def exit_code(arguments: list[str], application: Callable[[], Any] | None = None) -> int:
    """Run a command line, of `jostle` or of another application; returns its exit code."""
    from jostle.cli import _command_app as _app

    return _app.run(arguments, application or _app.build)
