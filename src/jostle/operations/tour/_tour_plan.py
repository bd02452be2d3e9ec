"""What the tour measures: which workloads, in which sets, how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.option_fields import Flag, Limits

# Fast and slow, small and cache-sized, computing and streaming: neighbours that do and do not jostle.
WORKLOADS = (
    "matmul-m",
    "stencil-l",
    "fft-m",
    "sort-m",
    "bfs-l",
    "chase-m",
    "stream-l",
    "copy-l",
    "sha256-m",
    "disparity-m",
)
ENGINES = ("speed", "none", "checked")


@dataclass(frozen=True)
class TourPlan:
    """Settings of what the tour measures and how sure its bounds are.

    engines: of which those that work here are used. solo_repeats: windows of each workload alone on each
    engine. window_seconds: that count in one window. seed: of everything that is drawn.
    """

    sets: Annotated[
        int, "Random sets of 2 to 4 side by side, as many again in every further tour.", Limits(4)
    ] = 210
    time_budget_seconds: Annotated[
        float, "Seconds to measure at most.", Flag("--budget"), Limits(1)
    ] = 120.0
    workloads: tuple[str, ...] = WORKLOADS
    engines: tuple[str, ...] = ENGINES
    solo_repeats: int = 2
    window_seconds: float = 0.2
    confidence: float = DEFAULT_CONFIDENCE
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.confidence)
