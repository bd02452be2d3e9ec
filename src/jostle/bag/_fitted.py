"""A fitted bag model, answered by NumPy alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from jostle.bag._explain import BagExplanation, path_of, report_of
from jostle.bag._features import BagFeatures
from jostle.bag._larger import larger_bags
from jostle.bag._rules import NAMES, BagRules
from jostle.bag._target import log_slowdown_of, second_target
from jostle.bag._trees import Trees
from jostle.bounds import Candidates
from jostle.errors import UsageError
from jostle.methods import FromCounts, RunCounts
from jostle.rules import SlowdownRows

if TYPE_CHECKING:
    from jostle._report import Report
    from jostle.runs import Colocations, Runs


@dataclass(frozen=True, eq=False)
class FittedBag(FromCounts):
    """Predicts seconds beside others from features by trees; seconds alone are those measured.

    learner, target: as in the settings. workload_names, platform_names: the names it knows, sorted.
    described: what features are made from. kept: (k,) the columns that the trees ask about. unknown: (k,)
    what stands there for an unknown number. counts: of the runs learned from. most: co-runners in any of
    them. rules: beside the trees, None for
    trees alone. second: trees of the log slowdown (where that is the target, of the extra time) over what
    turns on shared cores explain, which answer with the rules; None without them.
    """

    learner: str
    target: str
    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    described: BagFeatures
    kept: np.ndarray
    unknown: np.ndarray
    trees: Trees
    counts: RunCounts
    notes: tuple[str, ...] = ()
    most: int = 0
    rules: BagRules | None = None
    second: Trees | None = None

    @property
    def input_platforms(self) -> tuple[str, ...]:
        """Platforms on which nothing beside others is answered: the CPU's, if there is one."""
        return () if self.described.cpu < 0 else (self.platform_names[self.described.cpu],)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """The columns of `features`, in the order of the trees' feature numbers."""
        every = self.described.feature_names(self.platform_names)
        return tuple(every[at] for at in self.kept)

    @cached_property
    def feature_groups(self) -> tuple[str, ...]:
        """The group of each feature."""
        every = self.described.feature_groups()
        return tuple(every[at] for at in self.kept)

    def features(self, asked: Colocations) -> np.ndarray:
        """(n, k) float64: what the trees ask about; unknown numbers lie under all known ones.

        Raises UnknownName for a name that the model has never met.
        """
        codes = asked.codes_in(self.workload_names, self.platform_names)
        rows = self.described.rows(asked, codes)[:, self.kept]
        return np.where(np.isnan(rows), self.unknown, rows)

    def predict(self, asked: Colocations) -> np.ndarray:
        """(n,) seconds; NaN where the workload never ran alone on the platform, and beside others on the CPU
        platform, whose runs are what features are made of."""
        return np.exp(self._log_seconds(asked)[1])

    def candidates(self, asked: Colocations) -> Candidates:
        """Ways to bound: the prediction with the same offset everywhere, or one that grows with the
        slowdown."""
        log_solo, centre = self._log_seconds(asked)
        return Candidates.with_slowdown(centre, centre - log_solo)

    def _log_seconds(self, asked: Colocations) -> tuple[np.ndarray, np.ndarray]:
        """((n,) alone, (n,) as asked), both log seconds."""
        workload, platform, _ = asked.codes_in(self.workload_names, self.platform_names)
        log_solo = self.described.log_solo[platform, workload]
        out = log_solo.copy()
        degree = asked.number_of_corunners
        is_larger = (degree > self.most) if self.most else np.zeros(len(degree), bool)
        beside, larger = np.flatnonzero((degree > 0) & ~is_larger), np.flatnonzero(is_larger)
        if len(larger):

            def log_slowdown(some: Colocations) -> np.ndarray:
                alone, log_seconds = self._log_seconds(some)
                return log_seconds - alone

            more = larger_bags(asked.take(larger), self.most, log_slowdown)
            out[larger] = log_solo[larger] + more
        if len(beside):
            x, alone = self.features(asked.take(beside)), log_solo[beside]
            if self.rules is None:
                log_seconds = self._by_trees(self.trees, self.target, x, alone) + alone
            else:
                rows, ground = self._slowdown_rows(asked.take(beside)), self.described.ground()
                beyond = self.rules.beyond(rows)
                near = alone + beyond if self.target == "extra" else alone
                by_trees = np.stack([self._by_trees(self.trees, self.target, x, near)] * 2)
                if self.second is not None:
                    target = second_target(self.target, self.described.has_core_share)
                    over = alone + beyond + self.rules.by_turns(rows, ground)
                    by_trees[1] = self._by_trees(self.second, target, x, over)
                log_seconds = alone + self.rules.log_slowdown(rows, ground, by_trees)
            out[beside] = np.where(platform[beside] == self.described.cpu, np.nan, log_seconds)
        return log_solo, out

    def _by_trees(
        self, trees: Trees, target: str, x: np.ndarray, log_solo: np.ndarray
    ) -> np.ndarray:
        """(n,) log slowdowns over log seconds alone."""
        scale = float(self.described.time_scale)
        return log_slowdown_of(trees.predict(x), log_solo, target, scale)

    def _slowdown_rows(self, asked: Colocations) -> SlowdownRows:
        codes = asked.codes_in(self.workload_names, self.platform_names)
        return self.described.slowdown_rows(codes, asked.number_of_corunners, np.zeros(len(asked)))

    def path_uses(self, asked: Colocations) -> np.ndarray:
        """(n, k) how often each of `feature_names` is asked about on the way to each answer."""
        return self.trees.uses(self.features(asked), len(self.feature_names))

    def explained(self, asked: Colocations) -> BagExplanation:
        """What `explain` reports, as numbers. Raises UsageError unless one co-location is asked."""
        if len(asked) != 1:
            raise UsageError(f"one co-location can be explained at a time, not {len(asked)}")
        log_solo, log_seconds = (float(part[0]) for part in self._log_seconds(asked))
        workload, platform, corunners = asked.row(0)
        path, uses = (), {}
        # Nothing is asked alone, where the answer is the solo time, or where there is no answer.
        if corunners and not np.isnan(log_seconds):
            path = path_of(self.trees, self.features(asked)[0], self.unknown, self.feature_names)
            counts = self.path_uses(asked)[0]
            order = np.argsort(-counts, kind="stable")
            uses = {self.feature_names[at]: int(counts[at]) for at in order if counts[at]}
        seconds = float(np.exp(log_seconds)), float(np.exp(log_solo))
        weights = {}
        if self.rules is not None and path:
            share = self.rules.weight_of(self._slowdown_rows(asked))[:, 0].tolist()
            weights = {name: part for name, part in zip(NAMES, share, strict=True) if part > 0}
        named = workload, platform, corunners
        trees = self.learner, len(self.trees.root)
        return BagExplanation(*named, *seconds, *trees, path, uses, weights)

    def explain(self, asked: Colocations, *, runs: Runs | None = None) -> Report:
        """The questions on the way to the answer; runs: to count those that stand behind it.

        Raises UsageError for more or fewer co-locations than one, UnknownName.
        """
        return report_of(self.explained(asked), asked, runs)
