"""Base learners tried on what folds leave out; who cannot matter is told early."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from jostle.learn.ensemble._base_learner import NO_SLOWDOWN, BaseLearner, FittedBaseLearner
from jostle.learn.ensemble._display_names import in_words
from jostle.learn.ensemble._folds import ELSEWHERE, KINDS, NEW_CELL, TrialFold, is_large, kinds_of
from jostle.learn.ensemble._shrunk_weights import OF_OTHER_DATA
from jostle.learn.ensemble._stacked_model import answers_of
from jostle.learn.ensemble._stacking import KNOWN_NAMES, OutOfFoldPredictions, surviving_learners
from jostle.learn.training._relative_error import relative_error
from jostle.learn.training._training_data import TrainingRuns

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the solo learner in a time alone never measured
USUAL_SHARE = 0.5  # where that could not be tried
FEWEST_CELLS = 6  # left-out times alone, by which that share is told
HARDLY_ANY = 0.05  # share of the runs, which a learner that is kept need not have learned from
FIRST_ROWS = 2_000  # beside others, from which learners that do not scale learn first
LEFT_AT_BEST = 0.5  # of that error: it halves at best with four times as many rows
OTHER_DATA = frozenset({"profiles", "probes"})
FEWEST_TO_NARROW = 24  # sets left out, by which it is told what cannot matter

BaseLearners = dict[str, BaseLearner]


class CrossValidator:
    """Base learners on folds, fewer once some folds show which matter. wanted: answers of each that are still
    tried, of `every` at first. labels: answers tried on all folds. whole: fits to all runs of those that
    leave out runs in closed form."""

    def __init__(
        self,
        campaign: TrainingRuns,
        learners: BaseLearners,
        wanted: dict[str, tuple[str, ...]],
        seed: int,
    ) -> None:
        self.campaign, self.learners, self.wanted, self.seed = campaign, learners, wanted, seed
        self.every, self.whole = wanted, dict[str, FittedBaseLearner]()
        self.fits: list[tuple[TrialFold, dict[str, FittedBaseLearner], TrainingRuns]] = []
        self.trials: list[tuple[tuple[str, ...], OutOfFoldPredictions]] = []
        self.is_narrowed = False
        self.dropped_learners: tuple[str, ...] = ()

    @cached_property
    def solo_learner(self) -> str | None:
        """The one that predicts how long what never ran on a platform takes alone, where such times are
        asked."""
        if not self.campaign.asks_elsewhere:
            return None
        for name, learner in self.learners.items():
            if _predicts_solo(learner) and learner.labels(self.campaign):
                return name
        return None

    def fit_learner(
        self, name: str, part: TrainingRuns, wanted: Collection[str], best: bool = False
    ) -> FittedBaseLearner:
        """Fit the wanted answers of one learner on a part of the campaign."""
        learner: Any = self.learners[name]
        if not self._leaves_out(name):
            return learner.fit(part, wanted, seed=self.seed, best=best)
        if name not in self.whole:
            every = self.every[name]
            self.whole[name] = learner.fit(self.campaign, every, seed=self.seed, best=True)
        known: Any = self.whole[name]
        return known.without(part, wanted)

    def _leaves_out(self, name: str) -> bool:
        return getattr(self.learners[name], "leaves_out", False)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(label for labels in self.wanted.values() for label in labels)

    @cached_property
    def rank(self) -> dict[str, int]:
        """Ranks of the answers that apply where nothing can be tried."""
        return {
            label: rank
            for learner in self.learners.values()
            for label, rank in getattr(learner, "usual", {}).items()
        }

    @property
    def plain(self) -> set[str]:
        """Answers that are tried on all folds."""
        return {NO_SLOWDOWN, *self.rank}

    @property
    def prior(self) -> np.ndarray:
        """(k,) weight of each label before any set was left out; those of a base learner of other data share
        its weight."""
        belief = [
            np.full(len(labels), OF_OTHER_DATA / max(len(labels), 1))
            if self.learners[name].needs & OTHER_DATA
            else np.ones(len(labels))
            for name, labels in self.wanted.items()
        ]
        return np.concatenate([*belief, np.zeros(0)])

    def fit(self, fold: TrialFold) -> None:
        part = self.campaign.take(~fold.left_out)
        mine = {}
        if not self.fits and is_large(self.campaign) and part.is_training_row.any():
            mine = self._first_look(fold, part)
        mine |= {
            name: self.fit_learner(name, part, labels)
            for name, labels in self.wanted.items()
            if name not in mine
            and (
                (labels and part.is_training_row.any())
                or (name == self.solo_learner and fold.is_of_names)
            )
        }
        labels, campaign = self.labels, self.campaign
        self.fits.append((fold, mine, part))
        self.trials.append((labels, self._trial(fold, mine, part, labels)))
        tried = self.trial()
        if not self.is_narrowed and tried.of(*KNOWN_NAMES).units >= FEWEST_TO_NARROW:
            self.is_narrowed = True
            kept = surviving_learners(labels, tried, self.seed, self.plain)
            ran_alone = np.isin(campaign.cell, campaign.cell[campaign.degree == 0])
            if not ran_alone.all():
                # Of what ran beside others alone other platforms tell in every fold.
                kept.update(self.wanted.get(self.solo_learner or "", ()))
            self._keep(kept)

    def _is_quick(self, name: str) -> bool:
        scales = getattr(self.learners[name], "learns_from_all", False)
        return scales or self._leaves_out(name)

    def _keep(self, kept: set[str]) -> None:
        self.wanted = {
            name: tuple(label for label in own if label in kept)
            for name, own in self.wanted.items()
        }

    def _first_look(self, fold: TrialFold, part: TrainingRuns) -> dict[str, FittedBaseLearner]:
        """Fit learners that learn from all runs or cost little, others on few rows first: those of the others
        that cannot matter are dropped. Returns the fits of the former."""
        few = part.take(~part.beside | _drawn(part.is_training_row, FIRST_ROWS, self.seed))
        learned, labels, trials = [], [], []
        for at_once, whole in ((True, part), (False, few)):
            own = {
                n: each for n, each in self.wanted.items() if each and self._is_quick(n) == at_once
            }
            learned.append({n: self.fit_learner(n, whole, each) for n, each in own.items()})
            labels.append(tuple(label for each in own.values() for label in each))
            trials.append(self._trial(fold, learned[-1], whole, labels[-1]))
        answer = np.concatenate([trial.answer for trial in trials])
        left = np.repeat([1.0, LEFT_AT_BEST], [len(trial.answer) for trial in trials])
        every = (*labels[0], *labels[1])
        kept = surviving_learners(
            every, replace(trials[0], answer=answer), self.seed, self.plain, left
        )
        self._keep(kept.union(labels[0]))
        still = {in_words(label) for label in self.labels}
        gone = dict.fromkeys(in_words(label) for label in every)
        self.dropped_learners = tuple(words for words in gone if words not in still)
        return learned[0]

    def _trial(
        self,
        fold: TrialFold,
        mine: dict[str, FittedBaseLearner],
        part: TrainingRuns,
        labels: tuple[str, ...],
    ) -> OutOfFoldPredictions:
        """Predict what the fold asks, by base learners that learned from a part of the runs."""
        campaign, asked = self.campaign, np.isin(fold.kind, KINDS)
        alone = part.log_solo.ravel()[campaign.cell]
        asked &= np.isfinite(alone) & (campaign.degree > 0)
        if not campaign.uses_estimated_solo:
            asked &= part.ran_alone[campaign.cell]
        rows = campaign.rows_over(part.log_solo, part.unit_seconds).take(asked)
        # A set that was a name's only one leaves it as new.
        kind = kinds_of(rows, part.sets_of_names, fold.kind[asked] == ELSEWHERE)
        return OutOfFoldPredictions(
            answers_of(mine, labels, rows, part.cell_table),
            rows.log_slowdown,
            fold.unit[asked],
            kind,
            rows.degree,
            np.flatnonzero(asked),
        )

    @property
    def ready(self) -> dict[str, FittedBaseLearner]:
        """Solo learner of the first fold, used as it is if it learned from nearly all of very many runs."""
        out: dict[str, Any] = {}
        for fold, mine, _ in self.fits[:1]:
            if is_large(self.campaign) and fold.left_out.mean() < HARDLY_ANY:
                out = {n: one for n, one in mine.items() if _predicts_solo(self.learners[n])}
        return {n: one.in_unit(self.campaign.unit_seconds) for n, one in out.items()}

    def trial(self) -> OutOfFoldPredictions:
        """Collect the out-of-fold predictions of all folds, of the labels that are left."""
        parts = [
            replace(trial, answer=trial.answer[[labels.index(label) for label in self.labels]])
            for labels, trial in self.trials
        ]
        if not parts:
            none, codes = np.zeros(0), np.zeros(0, np.int64)
            answer = np.zeros((len(self.labels), 0))
            return OutOfFoldPredictions(answer, none, codes, codes, codes, codes)
        return OutOfFoldPredictions.concatenate(parts)

    def share(self) -> float:
        """Choose the solo learner's share in times alone, beside the guess by names: by left-out cells."""
        campaign, solo = self.campaign, self.solo_learner
        if solo is None:
            return 0.0
        cost, count = np.zeros(len(SHARES)), 0
        for fold, mine, part in self.fits:
            new = (fold.kind == NEW_CELL) & ~np.isin(campaign.cell, part.cell)
            asked = np.flatnonzero(new & (campaign.degree == 0))
            if solo not in mine or not len(asked):
                continue
            cell = campaign.cell[asked]
            by_names = part.log_solo.ravel()[cell]
            predicted = mine[solo].log_solo().ravel()[cell]  # type: ignore[attr-defined]
            good = np.isfinite(by_names) & np.isfinite(predicted)
            y = campaign.log_runtime[asked][good]
            count += int(good.sum())
            for at, share in enumerate(SHARES):
                blend = share * predicted[good] + (1 - share) * by_names[good]
                cost[at] += relative_error(blend - y).sum()
        return SHARES[int(np.argmin(cost))] if count >= FEWEST_CELLS else USUAL_SHARE


def _predicts_solo(learner: BaseLearner) -> bool:
    return getattr(learner, "predicts_solo", False)


def _drawn(mask: np.ndarray, most: int, seed: int) -> np.ndarray:
    """Draw at most `most` of the true entries of a mask. Returns (n,) bool."""
    at = np.flatnonzero(mask)
    out = np.zeros(len(mask), bool)
    out[np.random.default_rng([seed, 53]).permutation(at)[:most]] = True
    return out
