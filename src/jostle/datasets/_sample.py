"""The sample campaign: what `benchmarks/collect_sample.py` measured on one machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jostle.runs import Runs

_FOLDER = Path(__file__).parent / "sample"


def sample() -> Runs:
    """Runs of Jostle's kernels alone and side by side on six engines of one machine.

    Every kernel in its middle size, five times alone and in 500 random sets of two to four, and
    pairs of a few kernels ten times each; with the features of workloads and platforms.
    """
    from jostle.runs import Dataset

    return Dataset(_FOLDER).read()


def sample_description() -> dict[str, Any]:
    """What was measured where, how well it repeats, and how quiet the machine was."""
    return json.loads((_FOLDER / "sample.json").read_text(encoding="utf-8"))
