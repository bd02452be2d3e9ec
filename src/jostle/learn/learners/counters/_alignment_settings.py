"""The settings of the method, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jostle._base.option_fields import Limits, check_settings
from jostle.errors import UsageError
from jostle.learn.learners.counters.solo._probed import EVERY_STRESSOR


@dataclass(frozen=True)
class AlignmentSettings:
    """The fields of Alignment, without what it does."""

    learner: Annotated[
        Literal["auto", "phases", "mixture"],
        "What learns; auto weighs plain rules and probes of whole runs, their mixture stretch by stretch and "
        "counters inside phases.",
    ] = "auto"
    counters: Annotated[
        tuple[str, ...] | None,
        "The counters to learn from; by default they are selected in three steps.",
    ] = None
    corunners: Annotated[
        Literal["auto", "once", "loop"],
        "Whether co-runners run once, or loop until the workload ends; auto: as they were traced.",
    ] = "auto"
    period_seconds: Annotated[
        float | None, "Length of the periods rolled forward; by default the traces' own."
    ] = None
    most_counters: Annotated[int, "The most counters that are selected.", Limits(1)] = 8
    own_cores: Annotated[
        bool, "Every member had a core of its own: what it waited for its core is left out."
    ] = False
    stressors: Annotated[
        tuple[str, ...],
        "Names or patterns of the workloads that are stressors; jostle trace --probes traces beside probe-….",
    ] = EVERY_STRESSOR

    def __post_init__(self) -> None:
        check_settings(self)
        if not self.stressors or not all(name.strip() for name in self.stressors):
            raise UsageError("no stressors", fix="Name them, or a pattern such as 'probe-*'.")
        if self.period_seconds is not None and not 0 < self.period_seconds < float("inf"):
            raise UsageError(f"period_seconds {self.period_seconds} is not above 0")
