"""What the tour measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.option_fields import Flag, Limits, Short

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
    """What the tour measures and how sure its bounds are."""

    workloads: Annotated[
        tuple[str, ...], "A shipped workload; repeat for more.", Flag("--workload"), Short("-w")
    ] = WORKLOADS
    engines: Annotated[
        tuple[str, ...], "An engine; repeat for more.", Flag("--engine"), Short("-e")
    ] = ENGINES
    solo_repeats: Annotated[
        int, "Windows of each workload alone on each engine.", Flag("--solo"), Limits(0)
    ] = 2
    sets: Annotated[
        int, "Random sets of 2 to 4 side by side, as many again in every further tour.", Limits(4)
    ] = 210
    window_seconds: Annotated[
        float, "Seconds that count in one window.", Flag("--window"), Limits(0.02)
    ] = 0.2
    time_budget_seconds: Annotated[
        float, "Seconds to measure at most.", Flag("--budget"), Limits(1)
    ] = 120.0
    confidence: Annotated[float, "How sure the bounds are, under 1.", Short("-c")] = (
        DEFAULT_CONFIDENCE
    )
    seed: Annotated[int, "Of everything that is drawn."] = 0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.confidence)
