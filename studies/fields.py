"""Options of studies that fit many times, so that they are called the same and say the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
