"""Options of studies that fit many times, so that they are called the same and say the same."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from jostle._base.option_fields import Positional
from jostle.errors import require_known
from jostle.extend import Limits, Short

Output = Annotated[Path, "Folder for the results.", Short("-o")]
Kept = Annotated[
    Path | None, "Folder that keeps finished fits, so that a study goes on where it was left."
]
Workers = Annotated[int | None, "Fits at once.  [default: one per core]", Limits(1)]
FitsAtOnce = Annotated[int, "Fits at once, each in a process of its own.", Limits(1)]
Scheduler = Annotated[
    str | None, "Fit on the workers of this Dask scheduler (tcp://HOST:PORT) instead."
]
DatasetFolder = Annotated[Path, "The dataset: a folder of runs.", Positional()]
Methods = Annotated[str | None, "Only these, separated by commas.  [default: all]"]
Seeds = Annotated[int, "Draws, each with a seed one higher.", Limits(1)]
FirstSeed = Annotated[int, "Of the first draw."]


def listed(text: str | None) -> list[str] | None:
    """What was separated by commas."""
    return None if text is None else [part.strip() for part in text.split(",")]


def picked(known: dict[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """The methods with these names, all without any. Raises UnknownName."""
    require_known("method", names or (), known)
    return known if names is None else {name: known[name] for name in names}
