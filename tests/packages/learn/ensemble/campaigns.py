"""Campaigns as base learners get them: one of another package would be shown the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from jostle.data import Runs
from jostle.learn import (
    BaseLearner,
    FittedBaseLearner,
    SimpleRules,
    StackedMethod,
    TrainingRuns,
    learn,
    learner_named,
    learner_names,
)


class Shown(Exception):
    """Carries the campaign out of a fit, before anything is learned."""

    def __init__(self, campaign: TrainingRuns) -> None:
        self.campaign = campaign


class Watcher:
    """A base learner that is asked first."""

    name: ClassVar[str] = "watcher"
    needs: ClassVar[frozenset[str]] = frozenset({"runs"})
    simulates: ClassVar[bool] = True  # so that it is asked where nothing ran beside others, too

    def labels(self, campaign: TrainingRuns) -> tuple[str, ...]:
        raise Shown(campaign)

    def fit(
        self, campaign: TrainingRuns, wanted: Collection[str], *, seed: int = 0, best: bool = False
    ) -> FittedBaseLearner:
        raise AssertionError("never reached")

    @classmethod
    def restore(
        cls, arrays: Mapping[str, np.ndarray], document: Mapping[str, Any]
    ) -> FittedBaseLearner:
        raise AssertionError("never reached")


@dataclass(frozen=True)
class Listed(StackedMethod):
    """A method that is these base learners."""

    learners: tuple[BaseLearner, ...] = ()
    name: ClassVar[str] = "listed"

    def chosen_learners(self) -> list[BaseLearner]:
        return list(self.learners)


def campaign_for(data: Any) -> TrainingRuns:
    """As all installed base learners would get it; data: as Data.of takes it."""
    learners = [learner_named(name)() for name in learner_names()]
    try:
        learn(Listed((Watcher(), *learners)), data)
    except Shown as shown:
        return shown.campaign
    raise AssertionError("nobody was shown a campaign")


def campaigns_of(runs: Runs) -> Any:
    """Those that a fit finds, None where all runs are of one."""
    return learn(Listed((SimpleRules(only=("none",)),)), runs).state.campaign_effects
