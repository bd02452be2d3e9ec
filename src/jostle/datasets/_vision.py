"""The vision bags: what `benchmarks/vision_bags.py` recorded on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jostle.runs import Runs

_FOLDER = Path(__file__).parent / "vision"
VISION_CPU = "wasmtime-speed:amd-epyc-2c"


def vision_bags() -> Runs:
    """Runs of nine vision kernels in three sizes, alone and in random bags of two and three, on a platform
    with two cores, VISION_CPU, and on one where all members take turns on one core."""
    from jostle.runs import Dataset

    return Dataset(_FOLDER).read()
