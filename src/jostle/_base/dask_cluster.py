"""The one way to reach a Dask scheduler, for whatever runs on its workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jostle.errors import MissingExtra, NotPermitted

PATIENCE_SECONDS = 15.0


@contextmanager
def connected(scheduler: Any, patience_seconds: float | None = None) -> Iterator[Any]:
    """Connect to the scheduler at an address such as tcp://HOST:8786, and close the client afterwards; a
    given client is passed through and left open. Raises MissingExtra, and NotPermitted if no scheduler
    answers in time."""
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("distributed", "measure") from None
    if not isinstance(scheduler, str):
        yield scheduler
        return
    try:
        patience = PATIENCE_SECONDS if patience_seconds is None else patience_seconds
        client = Client(scheduler, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        raise NotPermitted(
            f"no Dask scheduler answers: {error}",
            where=scheduler,
            fix="Start one with: dask scheduler, and workers with: dask worker ADDRESS.",
        ) from error
    with client:
        yield client
