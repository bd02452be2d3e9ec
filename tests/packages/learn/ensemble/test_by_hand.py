"""Parts of an ensemble beside loops over what they are said to be."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.data import Colocations
from jostle.learn import (
    HALF_TRUSTED,
    LEAST_WEIGHT,
    NEW_NAME,
    NEW_SET,
    Ensemble,
    OutOfFoldPredictions,
    learn,
    weights_in_words,
    weights_of,
)
from jostle.learn.ensemble._display_names import in_words
from jostle.learn.ensemble._explain_ensemble import MOST_ASKED, MOST_EXACT, shapley
from jostle.learn.ensemble._fit_ensemble import _with_levels
from jostle.learn.ensemble._folds import ELSEWHERE, FEW_SETS, KINDS
from tests.packages.learn.ensemble.campaigns import campaign_for
from tests.packages.learn.ensemble.conftest import made_runs


def game(press: dict[str, float], together: float) -> Any:
    """Log seconds: what each co-runner presses, and more where both x and y are there."""

    def predict(asked: Colocations) -> np.ndarray:
        names = asked.to_columns()["corunners"]
        both = [together * ("x" in own and "y" in own) for own in names]
        return np.exp([sum(press[n] for n in own) for own in names] + np.array(both))

    return predict


def test_what_each_co_runner_adds_is_the_mean_over_all_orders() -> None:
    press, beside = {"x": 0.1, "y": 0.3, "z": 0.7}, ("y", "x", "z", "x")
    predict, added = game(press, 0.5), np.zeros(4)

    def log(others: list[str]) -> float:
        one = Colocations.from_columns(workload=["w"], platform=["p"], corunners=[others])
        return float(np.log(predict(one))[0])

    for order in permutations(range(4)):
        for n, at in enumerate(order):
            before = [beside[k] for k in order[:n]]
            added[at] += (log([*before, beside[at]]) - log(before)) / 24
    assert shapley(predict, "w", "p", beside) == pytest.approx(added)
    assert shapley(predict, "w", "p", ()).tolist() == []
    many = ("z",) * (MOST_EXACT - 1) + ("x", "y")
    by_orders = shapley(predict, "w", "p", many)
    assert by_orders[:-2] == pytest.approx([0.7] * (MOST_EXACT - 1))
    assert by_orders[-2:] == pytest.approx([0.1 + 0.25, 0.3 + 0.25])  # of pairs exactly


@pytest.mark.parametrize("number", [9, 64, 300])
def test_many_co_runners_cost_hardly_more_than_few(number: int) -> None:
    """They add up whatever the game, and no more are asked about in all."""
    beside, counts = tuple(f"n{at}" for at in range(number)), []

    def predict(asked: Colocations) -> np.ndarray:
        counts.append(int(asked.number_of_corunners.sum()))
        return 1 + np.sqrt(asked.number_of_corunners)

    added = shapley(predict, "w", "p", beside)
    assert added.sum() == pytest.approx(np.log(1 + np.sqrt(number)))
    assert sum(counts) <= max(MOST_ASKED, number * (number + 1))


def trial_of(
    answer: np.ndarray, truth: np.ndarray, kind: np.ndarray, **more: Any
) -> OutOfFoldPredictions:
    each = np.arange(len(truth))
    usual = {"unit": each, "degree": np.ones(len(truth), int), "place": each}
    return OutOfFoldPredictions(answer=answer, log_slowdown=truth, kind=kind, **usual | more)


def test_each_kind_and_number_has_weights_of_its_own_as_far_as_it_was_tried() -> None:
    """Answer k is right about kind k alone, and among new sets the last about two co-runners."""
    kinds = [NEW_SET, FEW_SETS, NEW_NAME, ELSEWHERE, NEW_SET]
    truth = np.random.default_rng(0).normal(0.4, 0.1, 300)
    group = np.arange(300) % 5
    answer = truth + np.where(group[None] == np.arange(5)[:, None], 0.0, 0.4)
    kind, degree = np.array(kinds)[group], np.where(group == 4, 2, 1)
    trial = trial_of(answer, truth, kind, degree=degree)
    weight = weights_of(np.full(5, 0.2), trial, most=3, seed=0)
    assert weight.shape == (len(KINDS), 4, 5)
    assert weight.sum(-1) == pytest.approx(np.ones((len(KINDS), 4)))
    assert (weight[weight > 0] > LEAST_WEIGHT).all()
    for at, one in enumerate(kinds):
        mine = weight[one, 2 if at == 4 else 1]
        assert mine.argmax() == at
        own = 60 / (60 + HALF_TRUSTED)
        # What stands for others has no more than what was not trusted.
        assert mine[at] > own if at != 2 else mine[at] > 0.99
    assert (weight[FEW_SETS, 1] == weight[FEW_SETS, 3]).all()
    assert not (weight[NEW_SET, 1] == weight[NEW_SET, 2]).all()
    # None was tried with three: what is told of all new sets stands.
    assert weight[NEW_SET, 3, [0, 4]].min() > 0.1
    one = trial.take(np.arange(1))
    assert (weights_of(np.eye(5)[0], one, 1, 0) == [1, 0, 0, 0, 0]).all()
    # Two sets left out already tell which answer is far off.
    two = trial.take(np.flatnonzero(group == 1)[:2])
    assert weights_of(np.eye(5)[0], two, 1, 0)[NEW_SET, 1].argmax() == 1


def keys_of(rows: Any) -> list[tuple[int, ...]]:
    """Equal for rows of the same target beside the same co-runners."""
    beside = [sorted(rows.corunner[rows.row == at].tolist()) for at in range(len(rows))]
    return [(target, *own) for target, own in zip(rows.target.tolist(), beside, strict=True)]


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_what_never_ran_alone_is_told_by_its_runs_beside_others(noise: float) -> None:
    """As far as cells differ by more than their runs do."""
    random, every = np.random.default_rng(0), made_runs(programs=12, threes=0)
    c = every.colocations
    runs = every.take((c.number_of_corunners > 0) | (c.platform == 0))
    part = campaign_for(runs)
    alone = part.log_runtime[0] + random.normal(size=part.size)
    level, rest = 0.2 * random.normal(size=part.size), noise * random.normal(size=len(part))
    slow = part.log_runtime - (alone + level).ravel()[part.cell] - rest
    place = {key: at for at, key in enumerate(keys_of(part.every_row))}

    def known(rows: Any) -> Any:
        return np.array([slow[place[key]] for key in keys_of(rows)]), np.zeros(len(rows))

    weighed = SimpleNamespace(log_solo=alone, labels=("x",))
    fitted: Any = SimpleNamespace(state=weighed, known=known)
    moved = _with_levels(fitted, part, 1.0) - alone
    never = ~part.ran_alone.reshape(part.size)
    assert never.sum() == 12
    assert (moved[~never] == 0).all()
    left = np.abs(moved - level)[never].mean() / np.abs(level[never]).mean()
    assert left < (0.1 if noise < 0.1 else 1.0)
    # What has learned from these runs is not moved by them once more.
    assert (_with_levels(fitted, part, 0.0) == alone).all()


def test_words_for_people_name_what_differs_in_strength_alone_once() -> None:
    assert in_words("product 0.15") == "susceptibility times pressure"
    assert in_words("level of seconds") == "the mean slowdown, in seconds"
    assert in_words("something new") == "something new"
    given = {"product 0.15": 0.2, "none": 0.5, "product 0.004": 0.3, "level": 0.1}
    found = weights_in_words(given)
    assert list(found.values()) == pytest.approx([0.5, 0.5, 0.1])
    assert list(found)[2] == "the mean slowdown"


def test_errors_may_grow_with_the_slowdown_and_with_how_far_answers_are_apart() -> None:
    runs = made_runs(programs=5, platforms=2, threes=0)
    c = runs.colocations
    runs = runs.take((c.platform == 0) | (c.workload > 0) | (c.number_of_corunners > 0))
    fitted = learn(Ensemble(learners=("rules",)), runs)
    assert any(note.startswith("1 pairs of workload and platform") for note in fitted.notes)
    told = fitted.uncertainty(runs.colocations)
    seconds = fitted.predict(runs.colocations)
    assert told.seconds == pytest.approx(seconds)
    assert np.exp(told.log_runtime) == pytest.approx(seconds)
    alone = runs.colocations.number_of_corunners == 0
    widths = np.exp(told.log_widths)
    assert widths[:, alone] == pytest.approx(0.02)
    assert (widths >= 0.02 - 1e-12).all()
    assert widths[1, ~alone].max() > 0.02
    others = ["program 1", "program 2", "program 3"]
    larger = Colocations.from_columns(
        workload=["program 0"], platform=["machine 0"], corunners=[others]
    )
    assert fitted.predict(larger)[0] > 1.05 * fitted.explain(larger).document["solo_seconds"]
    slowdown = np.log(fitted.predict(larger) / fitted.explain(larger).document["solo_seconds"])
    found = np.exp(fitted.uncertainty(larger).log_widths[:, 0])
    assert found == pytest.approx([0.02 + abs(slowdown[0]), 0.02 + abs(slowdown[0]) / 2])
