"""The method as a value: which learner, which features, and what it predicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle.errors import UsageError

if TYPE_CHECKING:
    import numpy as np

    from jostle.bag._fitted import FittedBag
    from jostle.runs import Runs

LEARNERS = ("tree", "forest", "boosting")
TARGETS = ("extra", "slowdown", "runtime")
# Groups of features; see _features for what is in each.
GROUPS = ("solo", "cpu", "fairness", "mix", "other")
Progress = Callable[[int, int, float], None]


@dataclass(frozen=True)
class Bag:
    """Run time of a bag of applications from features of each (Moolchandani et al.).

    learner: `tree` (CART with squared error, the paper's), `forest` or `boosting`. target: what the trees
    learn: `extra` (seconds beside others minus seconds alone), `slowdown` (its logarithm), or `runtime`
    (seconds themselves, the paper's; a tree cannot answer outside the runtimes that it saw). groups: the
    features used, of GROUPS. cpu_platform: the platform whose runs give the CPU-side features (time alone,
    fairness); its runs are not learned from. None: the data has no such side. trees: how many, in a forest
    or in boosting. fewest: training rows in a leaf. depth: most questions on a path; None: no limit.
    learning_rate: of boosting.
    """

    learner: str = "boosting"
    target: str = "extra"
    groups: tuple[str, ...] = GROUPS
    cpu_platform: str | None = None
    trees: int = 200
    fewest: int | None = None
    depth: int | None = None
    learning_rate: float = 0.05

    name = "bag"
    needs_alone = True  # answers are relative to the runtime alone

    def __post_init__(self) -> None:
        for name, known in (("learner", LEARNERS), ("target", TARGETS)):
            if getattr(self, name) not in known:
                raise UsageError(
                    f"unknown {name} {getattr(self, name)!r}", fix=f"One of {', '.join(known)}."
                )
        unknown = sorted(set(self.groups) - set(GROUPS))
        if unknown or not self.groups:
            raise UsageError(
                f"unknown feature group {unknown[0]!r}" if unknown else "no feature group is left",
                fix=f"Some of {', '.join(GROUPS)}.",
            )
        if self.trees < 1 or (self.depth is not None and self.depth < 1):
            raise UsageError("trees and depth must be at least 1")
        if self.fewest is not None and self.fewest < 1:
            raise UsageError(f"fewest must be at least 1, not {self.fewest}")
        if not 0 < self.learning_rate <= 1:
            raise UsageError(f"learning_rate must lie in (0, 1], not {self.learning_rate}")

    def inputs(self, runs: Runs) -> np.ndarray:
        """(n,) bool: the runs of the CPU platform: features are made of them, bounds are not."""
        import numpy as np

        c = runs.colocations
        if self.cpu_platform not in c.platform_names:
            return np.zeros(len(runs), bool)
        return c.platform == c.platform_names.index(self.cpu_platform)

    def fit(
        self, runs: Runs, validation: Runs, *, seed: int = 0, progress: Progress | None = None
    ) -> FittedBag:
        """Learn from runs and validation with co-runners; those alone give the solo times.

        Raises NotEnoughRuns, UnknownName for a cpu_platform without runs, and MissingExtra where
        scikit-learn is not installed.
        """
        from jostle.bag._fit import fit

        return fit(self, runs, validation, seed, progress)
