"""Runs as base learners are given them: campaign effects and covariates taken off; and who is asked what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.data import Runs
from jostle.errors import NotEnoughRuns
from jostle.learn.contract._data import Data
from jostle.learn.ensemble._base_learner import TURNS_ALONE, BaseLearner
from jostle.learn.ensemble._campaign_effects import CampaignEffects, fit_campaign_effects
from jostle.learn.ensemble._cross_validation import BaseLearners
from jostle.learn.ensemble._run_prior import RunPrior, fit_prior
from jostle.learn.training._training_data import TrainingRuns, campaign_of


@dataclass(frozen=True)
class GivenCampaign:
    """What a fit begins with.

    Parameters
    ----------
    campaign : TrainingRuns
        Without what covariates and campaigns add.
    learners : dict of str to BaseLearner
    wanted : dict of str to tuple of str
        The answers that are asked of each; none of one that has nothing to learn from.
    source : Runs
        Those with known co-runners, as they came: nothing but the prior is learned from others.
    certain : ndarray of int
        Which of all runs these are.
    prior : RunPrior, optional
        What names and covariates say.
    campaign_effects : CampaignEffects, optional
    """

    campaign: TrainingRuns
    learners: BaseLearners
    wanted: dict[str, tuple[str, ...]]
    source: Runs
    certain: np.ndarray
    prior: RunPrior | None
    campaign_effects: CampaignEffects | None


def given_campaign(
    learners: Sequence[BaseLearner], data: Data, runs: Runs, seed: int
) -> GivenCampaign:
    """Take off what covariates and campaigns add. Raises NotEnoughRuns where no run is left."""
    learned: dict[Any, Any] = {}
    every = {learner.name: learner for learner in learners}
    readers: list[Any] = [one for one in learners if hasattr(one, "trace_seconds")]
    traced = {name: s for one in readers for name, s in one.trace_seconds(data, learned).items()}
    runs = runs.ok()
    prior = fit_prior(runs, seed) if len(runs) else None
    certain = np.flatnonzero(~runs.unknown_corunners)
    source = runs.take(certain)
    runs = source if prior is None else prior.taken_off(source)
    campaign = campaign_of(data, runs, traced, learned)
    if not len(campaign):
        raise NotEnoughRuns(
            "there is no run with status ok and known co-runners to learn from",
            fix="Measure or import runs first.",
        )
    effects = fit_campaign_effects(campaign, seed)
    if effects is not None and effects.tell:
        runs = effects.removed(runs, runs.colocations.recode(*campaign.names)[1])
        campaign = replace(campaign, runs=effects.removed(campaign.runs, campaign.codes[1]))
    common = replace(campaign.common, source=runs, data=data.with_runs(runs))
    campaign = replace(campaign, common=common)
    with_inputs: dict[str, Any] = {n: one for n, one in every.items() if hasattr(one, "inputs")}
    inputs = {name: one.inputs(campaign) for name, one in with_inputs.items()}
    is_input = np.sum([np.zeros(len(campaign)), *inputs.values()], axis=0) > 0
    campaign = replace(campaign, common=replace(common, inputs=is_input))
    wanted = _wanted(campaign, every, {name for name, mine in inputs.items() if mine.any()})
    return GivenCampaign(campaign, every, wanted, source, certain, prior, effects)


def _wanted(
    campaign: TrainingRuns, learners: BaseLearners, with_inputs: set[str]
) -> dict[str, tuple[str, ...]]:
    """List the answers asked of each learner: where nothing ran beside others, of those with inputs of their
    own, of those that simulate, and turns on shared cores."""
    if campaign.is_training_row.any():
        return {name: learner.labels(campaign) for name, learner in learners.items()}
    wanted: dict[str, tuple[str, ...]] = {}
    for name, learner in learners.items():
        is_asked = name in with_inputs or getattr(learner, "simulates", False)
        labels = learner.labels(campaign) if is_asked or campaign.cell_table.takes_turns else ()
        wanted[name] = labels if is_asked else (TURNS_ALONE,) * (TURNS_ALONE in labels)
    return wanted
