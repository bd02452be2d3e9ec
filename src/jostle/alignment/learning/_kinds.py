"""What can be learned, in which form and by which learner, by name."""

from __future__ import annotations

from dataclasses import dataclass

from jostle.errors import UsageError

LEARNERS = ("ridge", "lasso", "elastic_net", "linear_svr", "network")
FORMS = ("linear", "interacting", "network")
TARGETS = ("instructions", "slowdown", "speed")


@dataclass(frozen=True)
class LearnerKind:
    """A learner, the form of its features (see `_features`; the network takes the rates as they are), and
    what it learns. Raises UsageError for an unknown name, or for what a network cannot learn."""

    learner: str = "ridge"
    form: str = "interacting"
    target: str = "slowdown"

    def __post_init__(self) -> None:
        for name, known in (("learner", LEARNERS), ("form", FORMS), ("target", TARGETS)):
            value = getattr(self, name)
            if value not in known:
                raise UsageError(f"unknown {name} {value!r}", fix=f"One of {', '.join(known)}.")
        if (self.learner == "network") != (self.form == "network"):
            raise UsageError("the network learner and the network form go together")
        if self.is_network and self.target != "slowdown":
            raise UsageError("the network learns the slowdown")

    @property
    def is_network(self) -> bool:
        return self.learner == "network"


# What `auto` chooses among.
CANDIDATES = (LearnerKind(), LearnerKind("network", "network"))
