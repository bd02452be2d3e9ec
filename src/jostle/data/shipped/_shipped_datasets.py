"""The runs that come with Jostle, each measured on one machine (see `studies/collect/README.md`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jostle.data.runs._runs import Runs

_FOLDER = Path(__file__).parent
VISION_CPU = "wasmtime-speed:amd-epyc-2c"
SHARED_CORE_CPU = "wasmtime-speed@cpus=2:intel-xeon-2c"


def sample() -> Runs:
    """Load runs of Jostle's kernels alone and side by side on six engines of one machine.

    Every kernel in its middle size, five times alone and in 500 random sets of two to four, and
    pairs of a few kernels ten times each; with the features of workloads and platforms.
    """
    return _runs("sample")


def sample_description() -> dict[str, Any]:
    """Return what was measured where, how well it repeats, and how quiet the machine was."""
    return json.loads((_FOLDER / "sample" / "sample.json").read_text(encoding="utf-8"))


def vision_bags() -> Runs:
    """Load runs of nine vision kernels in three sizes, alone and in random bags of two and three, on a
    platform with two cores, VISION_CPU, and on one where all members take turns on one core."""
    return _runs("vision")


def shared_core_bags() -> Runs:
    """Load runs of twenty programs that wait for parts of their time, alone, in every pair, copies too, and
    in random bags of three and four, on a platform with two cores, SHARED_CORE_CPU, and on one where all
    members share one core."""
    return _runs("shared_core")


def slurm_log() -> Path:
    """Return what sacct printed of a real Slurm: 506 jobs of eight programs of three users on six nodes of
    four slots. Each program thinks by itself and uses two devices of its node, one job at a time, in turn."""
    return _FOLDER / "slurm" / "sacct.txt"


def _runs(name: str) -> Runs:
    from jostle.data.store._dataset import Dataset

    return Dataset(_FOLDER / name).read()
