"""How to forecast: the settings, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from jostle._base.option_fields import Flag, Limits, NoOption, check_settings
from jostle.errors import UsageError
from jostle.usage.solvers._coupling import Stopping


@dataclass(frozen=True)
class Bridge:
    """How to forecast the distribution of resource use at any time from snapshots of it."""

    method: Annotated[
        Literal["bridge", "ot", "mixture"],
        "bridge (entropic coupling), ot (exact transport) or mixture (each run at either snapshot).",
    ] = "bridge"
    components: Annotated[
        tuple[str, ...] | None,
        "A counter of the state; several.  [default: all]",
        Flag("--component"),
    ] = None
    snapshots: Annotated[
        int | tuple[float, ...] | None,
        "How many times to learn from, or these times in seconds; none: all sample times.",
        NoOption(),
    ] = None
    eps: Annotated[
        float,
        "Blur of the bridge; inf is the independent coupling.",
        NoOption(),
    ] = 0.1
    eps_unit: Annotated[
        Literal["spread", "median", "absolute"],
        "What eps is a multiple of: spread (within the snapshots), median (of the costs) or absolute.",
        NoOption(),
    ] = "spread"
    time_scaled: Annotated[
        bool,
        "Give each interval an eps in proportion to its length, as Brownian motion has it.",
        NoOption(),
    ] = True
    scale: Annotated[
        Mapping[str, float] | None,
        "COMPONENT=FACTOR in distances; none: 1 / the noise within snapshots.",
        NoOption(),
    ] = None
    atoms: Annotated[int, "Draw at least so many atoms per forecast.", NoOption(), Limits(1)] = 500
    stopping: Annotated[Stopping, "When the solvers stop.", NoOption()] = field(
        default_factory=Stopping
    )
    seed: Annotated[int, "Of the draws."] = 0

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.eps > 0:
            raise UsageError(f"eps {self.eps} is not above 0")

    @classmethod
    def paper(cls, scale: Mapping[str, float], eps: float = 0.1) -> Bridge:
        """Return the settings of the paper: one eps for all edges, fixed scales, no noise, no time in eps."""
        return cls("bridge", eps=eps, eps_unit="absolute", scale=scale, time_scaled=False)
