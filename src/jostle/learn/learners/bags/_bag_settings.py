"""The fields of the method: which learner, which features, and what the trees learn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from jostle._base.option_fields import Limits, OneOf, check_settings
from jostle.errors import UsageError

# Groups of features; see _features for what is in each.
GROUPS = ("solo", "cpu", "fairness", "mix", "other")


@dataclass(frozen=True)
class BagSettings:
    """The fields of Bag, without what it does."""

    learner: Annotated[
        str,
        OneOf(("tree", "forest", "boosting")),
        "tree (CART with squared error, the paper's), forest or boosting.",
    ] = "boosting"
    target: Annotated[
        str,
        OneOf(("extra", "slowdown", "runtime")),
        "What the trees learn: extra (seconds beside others minus seconds alone), slowdown (its logarithm) "
        "or runtime (seconds, the paper's; a tree cannot answer outside the runtimes that it saw).",
    ] = "extra"
    groups: Annotated[
        tuple[str, ...], f"The groups of features that are used: {', '.join(GROUPS)}."
    ] = GROUPS
    cpu_platform: Annotated[
        str | None,
        "The platform whose runs give the CPU-side features (time alone, fairness); they are not learned "
        "from. By default the data has no such side.",
    ] = None
    trees: Annotated[int, "How many trees a forest or boosting has.", Limits(1)] = 200
    fewest: Annotated[
        int | None, "Least training rows in a leaf; by default what suits the learner.", Limits(1)
    ] = None
    depth: Annotated[
        int | None,
        "Most questions on a path; by default 3 to 5 in boosting, more with more rows, else no limit.",
        Limits(1),
    ] = None
    learning_rate: Annotated[float, "Share of every tree in boosting, above 0 and up to 1."] = 0.05
    rules: Annotated[
        bool | None,
        "Whether simple rules stand beside the trees, weighed on bags and on workloads left out; by default "
        "beside boosting alone.",
    ] = None

    @property
    def has_rules(self) -> bool:
        """True if rules stand beside the trees."""
        return self.learner == "boosting" if self.rules is None else self.rules

    def __post_init__(self) -> None:
        check_settings(self)
        unknown = sorted(set(self.groups) - set(GROUPS))
        if unknown or not self.groups:
            raise UsageError(
                f"unknown feature group {unknown[0]!r}" if unknown else "no feature group is left",
                fix=f"Some of {', '.join(GROUPS)}.",
            )
        if not 0 < self.learning_rate <= 1:
            raise UsageError(f"learning_rate must lie in (0, 1], not {self.learning_rate}")
