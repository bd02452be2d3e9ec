"""Options of studies that draw many times, so that they are called the same and say the same."""

from __future__ import annotations

from typing import Annotated

from jostle.extend import Limits

Seeds = Annotated[int, "Draws, each with a seed one higher.", Limits(1)]
FirstSeed = Annotated[int, "Of the first draw."]


def listed(text: str | None) -> list[str] | None:
    """Split what was separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",")]
