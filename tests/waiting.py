"""Waits that end when it has happened: however slow a machine is, only what hangs fails."""

from __future__ import annotations

import time
from collections.abc import Callable

HANGS_SECONDS = 600.0


def wait_for(done: Callable[[], object]) -> None:
    """Until it has happened."""
    until = time.monotonic() + HANGS_SECONDS
    while not done():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
