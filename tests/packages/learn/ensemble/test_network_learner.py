"""What the network says as a base learner: over what was measured alone, and by its own times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.learn.learners.network.training._network_learner import (
    RUNTIME,
    SLOWDOWN,
    FittedNetwork,
    NetworkLearner,
)
from jostle.learn.training._training_data import TrainingRuns
from tests.packages.learn.ensemble.campaigns import campaign_for
from tests.packages.learn.ensemble.conftest import made_runs


@pytest.fixture(scope="module")
def campaign() -> TrainingRuns:
    return campaign_for(made_runs(programs=6, platforms=2, threes=0))


@pytest.fixture(scope="module")
def fitted(campaign: TrainingRuns) -> FittedNetwork:
    return NetworkLearner().fit(campaign, (SLOWDOWN, RUNTIME))


def test_its_own_runtime_does_not_move_with_what_was_measured_alone(
    campaign: TrainingRuns, fitted: FittedNetwork
) -> None:
    def seconds(moved: float) -> np.ndarray:
        rows = campaign.rows_over(campaign.log_solo + moved, campaign.unit_seconds)
        alone = (campaign.log_solo + moved).ravel()[rows.target]
        return alone + fitted.log_slowdowns(rows, campaign.cell_table)

    before, after = seconds(0.0), seconds(0.5)
    np.testing.assert_allclose(after[0], before[0] + 0.5)
    np.testing.assert_allclose(after[1], before[1])
    other = fitted.in_unit(2 * campaign.unit_seconds)
    rows = campaign.rows_over(campaign.log_solo, 2 * campaign.unit_seconds)
    found = campaign.log_solo.ravel()[rows.target] + other.log_slowdowns(rows, campaign.cell_table)
    np.testing.assert_allclose(found, before)


def test_networks_are_averaged_in_logs(campaign: TrainingRuns, fitted: FittedNetwork) -> None:
    other = NetworkLearner().fit(campaign, (SLOWDOWN, RUNTIME), seed=1)
    both = replace(fitted, networks=(*fitted.networks, *other.networks))
    rows = campaign.every_row
    each = [one.log_slowdowns(rows, campaign.cell_table) for one in (fitted, other)]
    np.testing.assert_allclose(both.log_slowdowns(rows, campaign.cell_table), np.mean(each, axis=0))
    np.testing.assert_allclose(both.log_solo(), (fitted.log_solo() + other.log_solo()) / 2)
    assert not np.allclose(each[0], each[1])
    only = replace(fitted, labels=(RUNTIME,))
    np.testing.assert_array_equal(only.log_slowdowns(rows, campaign.cell_table), each[0][1:])
