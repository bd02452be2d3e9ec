"""The settings of the method, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from jostle._options import Limits, check_settings
from jostle.alignment.learning._kinds import OWN_FORM, LearnerKind
from jostle.alignment.solo._probed import EVERY_STRESSOR
from jostle.errors import UsageError

AUTO = "auto"


@dataclass(frozen=True)
class AlignmentSettings:
    """The fields of Alignment, without what it does."""

    learner: Annotated[
        Literal[
            "auto",
            "ridge",
            "lasso",
            "elastic_net",
            "linear_svr",
            "network",
            "phases",
            "trees",
            "mixture",
        ],
        "What learns; auto weighs ridge, networks, trees, the probes' mixture, one level and none.",
    ] = "auto"
    form: Annotated[
        Literal["auto", "linear", "interacting", "network", "phases", "trees", "mixture"],
        "The features: linear as in the paper, interacting (own rates times others' pressure), or its own.",
    ] = "auto"
    target: Annotated[
        Literal["auto", "instructions", "slowdown", "speed"],
        "What is learned: the instructions of a period as in the paper, the slowdown, or its inverse.",
    ] = "auto"
    alignment: Annotated[
        Literal["section", "continuous", "swapped", "printed"],
        "How samples alone are laid over a period beside others; swapped and printed are the paper's errors.",
    ] = "section"
    slots: Annotated[
        Literal["pooled", "pair"],
        "One model with the slot as a feature, or as in the paper one per ordered pair of slots.",
    ] = "pooled"
    counters: Annotated[
        tuple[str, ...] | None,
        "The counters to learn from; by default they are selected in three steps.",
    ] = None
    strength: Annotated[
        float | None, "Of the regularisation; by default chosen by leaving out workload sets."
    ] = None
    corunners: Annotated[
        Literal["once", "loop"], "Whether co-runners run once, or loop until the workload ends."
    ] = "once"
    period_seconds: Annotated[
        float | None, "Length of the periods rolled forward; by default the traces' own."
    ] = None
    most_counters: Annotated[int, "The most counters that are selected.", Limits(1)] = 8
    cut: Annotated[
        float | None,
        "Where the tree of counters is cut, from 0 to 1; by default several are tried.",
    ] = None
    repeats: Annotated[
        Literal["quiet", "all"],
        "Of what was traced several times, the quiet stretches, or all windows and the first solo run.",
    ] = "quiet"
    own_cores: Annotated[
        bool, "Every member had a core of its own: what it waited for its core is left out."
    ] = False

    stressors: Annotated[
        tuple[str, ...],
        "Names or patterns of the workloads that are stressors; jostle trace --probes traces beside probe-….",
    ] = EVERY_STRESSOR

    def __post_init__(self) -> None:
        check_settings(self)
        if self.learner != AUTO:
            self.kind()  # checks that its parts go together
        elif (self.form, self.target) != (AUTO, AUTO):
            raise UsageError("a form or target without a learner", fix="Say the learner too.")
        if not self.stressors or not all(name.strip() for name in self.stressors):
            raise UsageError("no stressors", fix="Name them, or a pattern such as 'probe-*'.")
        for name in ("strength", "period_seconds"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise UsageError(f"{name} {value} is not above 0")

    def kind(self, learner: str = AUTO) -> LearnerKind:
        """What is learned, without any `auto`; learner: the one to take where this one is `auto`."""
        name = learner if self.learner == AUTO else self.learner
        usual_form = name if name in OWN_FORM else "interacting"
        form = usual_form if self.form == AUTO else self.form
        usual_target = "speed" if form == "linear" else "slowdown"
        return LearnerKind(name, form, usual_target if self.target == AUTO else self.target)
