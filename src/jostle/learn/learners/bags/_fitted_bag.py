"""A fitted bag model, answered by NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jostle._base.report import Report
from jostle.data import Colocations
from jostle.errors import UsageError
from jostle.learn.ensemble._display_names import weights_in_words
from jostle.learn.ensemble._stacked_model import FittedEnsemble
from jostle.learn.learners.bags._bag_features import NAME
from jostle.learn.learners.bags._bag_learner import FittedTrees, TreesMember
from jostle.learn.learners.bags._explain_bag import BagExplanation, path_of, report_of


@dataclass(frozen=True, eq=False)
class FittedBag(FittedEnsemble):
    """Predicts seconds beside others by trees on features, and by simple rules where these stand beside them.
    input_platforms: those on which nothing beside others is answered: the CPU's, if there is one."""

    input_platforms: tuple[str, ...] = ()

    @property
    def trees(self) -> FittedTrees | None:
        """None where they have no say."""
        trees = self.learners.get("trees")
        return trees if isinstance(trees, FittedTrees) else None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of `features`, in the order of the trees' feature numbers."""
        if self.trees is None:
            return ()
        platforms = np.array(self.platform_names, object)[np.argsort(self.state.platform_code)]
        every = self.trees.described.feature_names(tuple(platforms))
        return tuple(every[at] for at in self.trees.columns)

    @property
    def feature_groups(self) -> tuple[str, ...]:
        """The group of each feature."""
        if self.trees is None:
            return ()
        every = self.trees.described.feature_groups()
        return tuple(every[at] for at in self.trees.columns)

    def features(self, asked: Colocations) -> np.ndarray:
        """Make what the trees ask about, (n, k) float64; unknown numbers lie under all known ones.

        Raises UnknownName for a name that the model has never met.
        """
        rows, _ = self._rows(asked)
        return np.zeros((len(rows), 0)) if self.trees is None else self.trees.features(rows)

    def _logs(self, asked: Colocations) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        alone, slowdown, apart = super()._logs(asked)
        is_input = np.isin(np.array(asked.platform_names, str), self.input_platforms)
        is_input = is_input[asked.platform] & (asked.number_of_corunners > 0)
        return alone, np.where(is_input, np.nan, slowdown), apart

    def notes_of(self, groups: tuple[str, ...]) -> tuple[str, ...]:
        """List the groups asked for that are not in the data, and who gives answers to whom."""
        notes = []
        if self.trees is not None:
            described = self.trees.described
            there = {"solo", *described.groups, *(["fairness"] if described.has_fairness else [])}
            if lost := [group for group in groups if group not in there]:
                notes.append(f"the data has no features of the groups {', '.join(lost)}")
            if any(name.startswith(NAME) for name in described.columns):
                notes.append("the workloads have no features: their names stand for them")
        on = [
            f"on {name}, the CPU side, nothing beside others is answered"
            for name in self.input_platforms
        ]
        return (*notes, *on)

    def path_uses(self, asked: Colocations) -> np.ndarray:
        """Count, (n, k), how often each of `feature_names` is asked about on the way to each answer, by the
        trees of the greatest weight in the first."""
        spoke, trees = self._spoke(asked), self.trees
        if spoke is None or trees is None:
            return np.zeros((len(asked), len(self.feature_names)), np.int64)
        return spoke.trees.uses(self.features(asked), len(trees.columns))

    def _spoke(self, asked: Colocations) -> TreesMember | None:
        """Return the trees of the greatest weight in the first answer, if any have one."""
        share = self.shares(asked.take(np.zeros(1, np.int64)))[0]
        members = [m for m in (self.trees.members if self.trees else ()) if m.label in share]
        return max(members, key=lambda member: share[member.label], default=None)

    def explained(self, asked: Colocations) -> BagExplanation:
        """Return what `explain` reports, as numbers. Raises UsageError unless one co-location is asked."""
        if len(asked) != 1:
            raise UsageError(f"one co-location can be explained at a time, not {len(asked)}")
        log_solo, slowdown, _ = (float(part[0]) for part in self._logs(asked))
        workload, platform, corunners = asked.row(0)
        path, uses, weights, number = (), {}, {}, 0
        # Nothing is asked alone, where the answer is the solo time, or where there is no answer.
        if corunners and not np.isnan(slowdown):
            spoke, weights = self._spoke(asked), weights_in_words(self.shares(asked)[0])
            if spoke is not None and self.trees is not None:
                trees, names = spoke.trees, self.feature_names
                number = len(trees.root)
                path = path_of(trees, self.features(asked)[0], self.trees.unknown, names)
                counts = self.path_uses(asked)[0]
                order = np.argsort(-counts, kind="stable")
                uses = {names[at]: int(counts[at]) for at in order if counts[at]}
        seconds = float(np.exp(log_solo + slowdown)), float(np.exp(log_solo))
        learner = "" if self.trees is None else self.trees.learner
        named = workload, platform, corunners
        return BagExplanation(*named, *seconds, learner, number, path, uses, weights)

    def explain(self, asked: Colocations) -> Report:
        """List the questions on the way to the answer.

        Raises UsageError for more or fewer co-locations than one, UnknownName.
        """
        return report_of(self.explained(asked))
