"""Baselines: they learn what they can, do not see what they must not, and meet oracles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from jostle.data import Colocations, Runs
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn import learn
from jostle.models import fit
from jostle.operations import error_measures
from studies.rivals.blind import Blind, without_corunners
from studies.rivals.boosting import GradientBoosting
from studies.rivals.linear import LinearScaling
from studies.rivals.vocabulary import feature_matrix
from tests.small_world import make_world


@pytest.fixture(scope="module")
def held() -> Runs:
    return make_world(500, 1)


@pytest.fixture(scope="module")
def trained(world: Runs, held: Runs) -> Any:
    return learn(GradientBoosting(iterations=60), world, validation=held, seed=0)


def parts(runs: Runs) -> tuple[Runs, Runs]:
    degree = runs.colocations.number_of_corunners
    return runs.take(degree == 0), runs.take(degree > 0)


def test_linear_scaling_is_least_squares(world: Runs, held: Runs) -> None:
    """The same numbers as ordinary regression on indicator columns."""
    solo, _ = parts(world)
    c = solo.colocations

    def indicators(part: Colocations) -> np.ndarray:
        workload, platform, _ = part.recode(c.workload_names, c.platform_names)
        left = np.eye(len(c.workload_names))[workload]
        return np.hstack([left, np.eye(len(c.platform_names))[platform]])

    oracle = LinearRegression().fit(indicators(c), np.log(solo.runtime_seconds))
    asked = held.colocations
    predicted = learn(LinearScaling(), world, validation=held).predict(asked)
    np.testing.assert_allclose(np.log(predicted), oracle.predict(indicators(asked)), atol=1e-4)


def test_linear_scaling_has_no_answer_across_components() -> None:
    runs = Runs.from_columns(
        workload=["a", "b", "c", "d"], platform=["p", "p", "q", "q"], runtime_seconds=[1, 2, 3, 4.0]
    )
    asked = Colocations.from_columns(workload=["a", "a", "z"], platform=["p", "q", "p"])
    predicted = learn(LinearScaling(), runs).predict(asked)
    assert predicted[0] == pytest.approx(1, rel=1e-5)
    assert np.isnan(predicted[1:]).all()


def mape(predictor: Any, runs: Runs) -> float:
    return error_measures(predictor.predict(runs.colocations), runs.runtime_seconds)["mape"]


def test_boosting_learns(trained: Any, world: Runs, held: Runs) -> None:
    """Fresh runs are predicted well better than by their mean, alone and beside."""
    solo, corun = parts(make_world(600, 2))
    assert mape(trained, solo) < 0.35
    blind = mape(learn(LinearScaling(), world, validation=held), corun)
    assert mape(trained, corun) < 0.8 * blind


def test_baselines_are_calibrated_unchanged(world: Runs) -> None:
    model = fit(world, GradientBoosting(iterations=30), seed=0)
    fresh = make_world(800, 5)
    bounds = model.bound(fresh.colocations, 0.9)
    assert np.mean(fresh.runtime_seconds <= bounds.seconds) > 0.85


@pytest.mark.parametrize("treatment", ["discard", "ignore"])
def test_blind_answers_ignore_corunners(treatment: str, world: Runs, held: Runs) -> None:
    predictor = learn(Blind(LinearScaling(), treatment), world, validation=held)
    asked = held.colocations
    assert np.array_equal(predictor.predict(asked), predictor.predict(asked.alone()))


def test_ignoring_averages_interference_in_and_discarding_does_not(world: Runs, held: Runs) -> None:
    solo, _ = parts(held)
    discard, ignore = (
        learn(Blind(LinearScaling(), t), world, validation=held).predict(solo.colocations)
        for t in ("discard", "ignore")
    )
    assert np.mean(np.log(ignore / discard)) > 0.1


def test_blind_needs_what_it_keeps(world: Runs, held: Runs) -> None:
    with pytest.raises(UsageError, match="treatment"):
        Blind(LinearScaling(), "forget")
    _, corun = parts(world)
    with pytest.raises(NotEnoughRuns):
        learn(Blind(LinearScaling(), "discard"), corun, validation=held)


def test_runs_without_corunners_keep_everything_else(world: Runs) -> None:
    bare = without_corunners(world)
    assert not bare.colocations.number_of_corunners.any()
    assert np.array_equal(bare.runtime_seconds, world.runtime_seconds)
    assert bare.table.schema.equals(world.table.schema)


def test_feature_matrix(world: Runs) -> None:
    names, table = world.features_of("workload")
    matrix = feature_matrix((*names, "new"), names, table)
    assert matrix.shape == (15, 5)  # three kinds, two counts
    assert np.isfinite(matrix).all()
    np.testing.assert_allclose(matrix[:-1, 3:].mean(0), 0, atol=1e-12)
    assert (matrix[-1, 3:] == 0).all(), "a missing number is the mean"
    assert feature_matrix(("a",), (), None).shape == (1, 0)
