"""What to fit, and how long: the fields of the method, and what they may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._base.option_fields import Limits, OneOf, check_settings
from jostle.errors import UsageError
from jostle.learn.learners.network._network_equation import LEAK


@dataclass(frozen=True)
class FactorizationSettings:
    """The fields of Factorization, without what it does."""

    form: Annotated[
        str,
        OneOf(("paper", "product", "saturating")),
        "How co-runners slow a workload down: paper (Eq. 9), product or saturating.",
    ] = "saturating"
    rank: Annotated[
        int, "Width of the embeddings, the paper's r; less where runs are few.", Limits(1)
    ] = 128
    types: Annotated[int, "Interference types, the paper's s.", Limits(1)] = 4
    type_rank: Annotated[
        int, "Width of one type's factors where the form does not share the embeddings.", Limits(1)
    ] = 4
    hidden: Annotated[
        int, "Width of the towers' two layers; less where runs are few.", Limits(1)
    ] = 256
    table_width: Annotated[
        int,
        "Learned features per name and per category, the paper's q; 0 for none beside the offset of each "
        "name's embedding.",
        Limits(0),
    ] = 8
    members: Annotated[
        int,
        "Models trained from different seeds and averaged in log runtime. Each of several leaves out runs "
        "of its own, which tell how errors spread, so that validation runs are trained on as well.",
        Limits(1),
    ] = 1
    corun_weight: Annotated[float, "Weight of runs with co-runners in the loss, beta."] = 1.0
    quantiles: Annotated[
        tuple[float, ...],
        "Heads trained for these quantiles of the runtime, as further ways to bound; the paper's are .5 "
        "to .99. None by default: the spread of errors gave tighter bounds on every data set tried.",
    ] = ()
    steps: Annotated[
        int | None, "Training steps; by default chosen by the number of runs.", Limits(1)
    ] = None
    weight_decay: Annotated[
        float | None, "Of the towers' weights; by default chosen by the number of runs."
    ] = None
    learning_rate: Annotated[float | None, "By default chosen by the number of runs."] = None
    offset_decay: Annotated[
        float | None,
        "Penalty on what a name's embedding has beside its features; by default chosen by the number of "
        "runs.",
    ] = None
    batch: Annotated[
        int | None,
        "Runs in one training step; by default chosen by the number of runs.",
        Limits(1),
    ] = None
    use_workload_features: Annotated[bool, "Whether the towers see the workload features."] = True
    use_platform_features: Annotated[bool, "Whether the towers see the platform features."] = True
    objective: Annotated[
        str,
        OneOf(("relative", "squared_log", "squared_relative")),
        "What training minimises: relative (the error that is reported, smoothed), squared_log or "
        "squared_relative.",
    ] = "relative"
    baseline: Annotated[
        bool,
        "Whether the towers learn what the linear-scaling baseline leaves (the paper's log-residual "
        "objective) or everything.",
    ] = True
    leak: Annotated[
        float, "Slope of the paper form's activation below 0; 1 leaves the activation out."
    ] = LEAK

    def __post_init__(self) -> None:
        check_settings(self)
        if self.learning_rate is not None and not 0 < self.learning_rate < 1:
            raise UsageError(f"learning_rate must lie between 0 and 1, not {self.learning_rate}")
        if any(not 0 < q < 1 for q in self.quantiles):
            raise UsageError("quantiles must lie between 0 and 1")
