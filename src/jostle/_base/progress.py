"""How long work tells how far it is: one type for every package."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, float], None]
"""Called with (steps done, steps in all, loss; NaN where there is no loss)."""


def no_progress(done: int, total: int, loss: float) -> None:
    """Report no progress."""


def share_of(progress: Progress | None, number: int, parts: int) -> Progress | None:
    """Map the progress of one of several equally long parts to progress of the whole. number: of the part,
    from 0."""
    if progress is None:
        return None
    return lambda done, total, loss: progress(number * total + done, parts * total, loss)
