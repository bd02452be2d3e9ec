"""What can be learned, in which form and by which learner, by name."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.errors import UsageError

LEARNERS = ("ridge", "lasso", "elastic_net", "linear_svr", "network", "phases", "trees", "mixture")
FORMS = ("linear", "interacting", "network", "phases", "trees", "mixture")
OWN_FORM = ("network", "phases", "trees", "mixture")  # learners that take the rates as they are
CUT = 0.4  # of the tree of counters, where the paper cuts it
TARGETS = ("instructions", "slowdown", "speed")


@dataclass(frozen=True)
class LearnerKind:
    """A learner, the form of its features (see `_features`; those of OWN_FORM take the rates as
    they are), and what it learns. Raises UsageError for an unknown name, or what these two cannot learn."""

    learner: str = "ridge"
    form: str = "interacting"
    target: str = "slowdown"

    def __post_init__(self) -> None:
        for name, known in (("learner", LEARNERS), ("form", FORMS), ("target", TARGETS)):
            value = getattr(self, name)
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}", fix=f"One of {', '.join(known)}.")
        own = [name for name in OWN_FORM if name in (self.learner, self.form)]
        if own and self.learner != self.form:
            raise UsageError(f"the {own[0]} learner and the {own[0]} form go together")
        if own and self.target != "slowdown":
            raise UsageError(f"the learner {own[0]!r} learns the slowdown")

    @property
    def is_network(self) -> bool:
        return self.learner == "network"

    @property
    def is_printed(self) -> bool:
        """The paper's own: rows weigh alike, and none is weighed again by its error."""
        return (self.form, self.target) == ("linear", "instructions")

    @property
    def takes_rates(self) -> bool:
        """As they are, without features made of them."""
        return self.learner in OWN_FORM


MIXTURE = LearnerKind("mixture", "mixture")
PHASES = LearnerKind("phases", "phases")
# What `auto` weighs; the mixture where there are probes.
CANDIDATES = (
    LearnerKind(),
    LearnerKind("network", "network"),
    PHASES,
    LearnerKind("trees", "trees"),
    MIXTURE,
)
