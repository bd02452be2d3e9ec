"""The settings of the method, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jostle._options import Limits, check_settings
from jostle.alignment.solo._probed import EVERY_STRESSOR
from jostle.errors import UsageError


@dataclass(frozen=True)
class AlignmentSettings:
    """The fields of Alignment, without what it does."""

    learner: Annotated[
        Literal["auto", "ridge", "phases", "mixture"],
        "What learns; auto weighs probes of whole runs, their mixture stretch by stretch, counters inside "
        "phases, one level and none.",
    ] = "auto"
    form: Annotated[
        Literal["interacting", "linear"],
        "The features of ridge: own rates times others' pressure, or linear as in the paper, where the "
        "instructions of a period are learned.",
    ] = "interacting"
    alignment: Annotated[
        Literal["section", "printed"],
        "How samples alone are laid over a period beside others: as long as it is, or as the paper prints.",
    ] = "section"
    slots: Annotated[
        Literal["pooled", "pair"],
        "One model for all slots, or as in the paper one per ordered pair of slots.",
    ] = "pooled"
    counters: Annotated[
        tuple[str, ...] | None,
        "The counters to learn from; by default they are selected in three steps.",
    ] = None
    strength: Annotated[
        float | None, "Of the regularisation; by default chosen by leaving out workload sets."
    ] = None
    corunners: Annotated[
        Literal["auto", "once", "loop"],
        "Whether co-runners run once, or loop until the workload ends; auto: as they were traced.",
    ] = "auto"
    period_seconds: Annotated[
        float | None, "Length of the periods rolled forward; by default the traces' own."
    ] = None
    most_counters: Annotated[int, "The most counters that are selected.", Limits(1)] = 8
    cut: Annotated[
        float | None,
        "Where the tree of counters is cut, from 0 to 1; by default several are tried.",
    ] = None
    own_cores: Annotated[
        bool, "Every member had a core of its own: what it waited for its core is left out."
    ] = False
    stressors: Annotated[
        tuple[str, ...],
        "Names or patterns of the workloads that are stressors; jostle trace --probes traces beside probe-….",
    ] = EVERY_STRESSOR

    def __post_init__(self) -> None:
        check_settings(self)
        if self.form == "linear" and self.learner != "ridge":
            raise UsageError("a linear form without ridge", fix="Say the learner ridge too.")
        if self.slots == "pair" and self.learner == "auto":
            raise UsageError("models by pair of slots without a learner", fix="Say the learner.")
        if not self.stressors or not all(name.strip() for name in self.stressors):
            raise UsageError("no stressors", fix="Name them, or a pattern such as 'probe-*'.")
        for name in ("strength", "period_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{name} {value} is not above 0")
