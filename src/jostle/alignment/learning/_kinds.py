"""What can be learned, in which form and by which learner, by name."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

Learner = Literal["ridge", "lasso", "elastic_net", "linear_svr", "network"]
Form = Literal["linear", "interacting", "network"]
Target = Literal["instructions", "slowdown", "speed"]
LEARNERS: tuple[str, ...] = get_args(Learner)
TARGETS: tuple[str, ...] = get_args(Target)


class Kind(NamedTuple):
    """A learner (of LEARNERS), the form of its features (see `_features`; the network takes the rates as
    they are), and what it learns (of TARGETS)."""

    learner: str
    form: str
    target: str


# What `auto` chooses among.
CANDIDATES = (Kind("ridge", "interacting", "slowdown"), Kind("network", "network", "slowdown"))
