"""What the tour measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.option_fields import Flag, Limits, NoOption

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

    workloads: Annotated[tuple[str, ...], "Shipped workloads.", NoOption()] = WORKLOADS
    engines: Annotated[
        tuple[str, ...], "Engines, of which those that work here are used.", NoOption()
    ] = ENGINES
    solo_repeats: Annotated[int, "Windows of each workload alone on each engine.", NoOption()] = 2
    sets: Annotated[
        int, "Random sets of 2 to 4 side by side, as many again in every further tour.", Limits(4)
    ] = 210
    window_seconds: Annotated[float, "Seconds that count in one window.", NoOption()] = 0.2
    time_budget_seconds: Annotated[
        float, "Seconds to measure at most.", Flag("--budget"), Limits(1)
    ] = 120.0
    confidence: Annotated[float, "How sure the bounds are, under 1.", NoOption()] = (
        DEFAULT_CONFIDENCE
    )
    seed: Annotated[int, "Of everything that is drawn.", NoOption()] = 0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.confidence)
