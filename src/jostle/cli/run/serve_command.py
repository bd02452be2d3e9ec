"""`jostle serve`: answers over HTTP."""

from __future__ import annotations

import sys

from jostle.cli.console import say
from jostle.server import ServeSettings


def serve(settings: ServeSettings) -> None:
    """Answer over HTTP what the library answers: for programs, for schedulers, and as a page for people.

    A new model written into the folder (or a link that is made to point to another folder) is taken while
    serving. Ends on SIGTERM or Ctrl-C, after the answers that are under way.
    """
    from jostle.server import serve as run

    def announce(address: str) -> None:
        say(f"Serving {settings.model} on {address}")
        sys.stdout.flush()

    run(settings, announce)
