"""More co-runners than any run has, and what was measured itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.learn import (
    CellTable,
    DegreeExtrapolation,
    SlowdownRows,
    fit_extrapolation,
    fit_set_residuals,
    learn,
)
from jostle.learn.ensemble._degree_extrapolation import GROW, POOL
from jostle.learn.learners.latent_factors import Slowdown
from jostle.learn.training._set_keys import members_key
from jostle.operations import RULES, SimpleRule
from tests.made_pairs import MadeCampaign

QUICK: dict[str, Any] = {"rank": 2, "members": 1, "steps": 60}
CELL_TABLE = CellTable(1, 4)


def rows_of(sets: list[tuple[int, list[int]]], log: list[float] | None = None) -> SlowdownRows:
    beside = [other for _, others in sets for other in others]
    row = np.repeat(np.arange(len(sets)), [len(others) for _, others in sets])
    n = len(sets)
    return SlowdownRows(
        np.array([i for i, _ in sets]),
        np.array(beside),
        row,
        np.array(log if log is not None else [0.0] * n),
        np.ones(n),
    )


def sum_of_parts(rows: SlowdownRows) -> np.ndarray:
    """An answer known in closed form: a tenth for each co-runner's number."""
    return 0.1 * np.bincount(rows.row, rows.corunner, len(rows))


def test_pools_add_up_powers_of_what_each_costs() -> None:
    asked = rows_of([(0, [1, 2, 3]), (1, [3, 3])])
    found = larger(1, [POOL, 1.5, 0]).log_slowdown(asked, CELL_TABLE, sum_of_parts, None)
    for at, logs in enumerate(([0.1, 0.2, 0.3], [0.3, 0.3])):
        expected = sum(np.expm1(x) ** 1.5 for x in logs) ** (1 / 1.5)
        assert found[at] == pytest.approx(np.log1p(expected))


def test_what_helps_helps_larger_sets_as_pairs_of_them() -> None:
    asked = rows_of([(0, [1, 2, 3]), (1, [3, 3])])
    rule = larger(1, [POOL, 1.0, 0])
    found = rule.log_slowdown(asked, CELL_TABLE, lambda rows: -sum_of_parts(rows))
    assert found == pytest.approx([-0.2, -0.3])


def larger(
    most: int, rule: list[float], stays: bool = False, gain: float = 1.0
) -> DegreeExtrapolation:
    one = np.ones(1), np.array([gain]), np.array(stays)
    return DegreeExtrapolation(np.array(most), np.array([rule]), *one)


@pytest.mark.parametrize("takes_turns", [False, True])
def test_pairs_of_which_none_gets_more_done_than_one_alone_tell_of_turns(
    takes_turns: bool,
) -> None:
    """Each program has a share of the device as large as its weight, or loses a time of its own, whoever is
    beside it."""
    weight, own = np.array([1.0, 1.2, 0.8, 1.1]), np.array([3.6, 1.2, 1.9, 1.3])
    done = [1 / own[i] + 1 / own[j] for i in range(4) for j in range(4) if i != j]
    most = 0.0 if takes_turns else np.quantile(done, 0.9) - 1

    def law(rows: SlowdownRows) -> np.ndarray:
        if takes_turns:
            beside = np.bincount(rows.row, weight[rows.corunner], len(rows))
            return np.log1p(beside / weight[rows.target])
        return np.log(own)[rows.target]

    pairs = rows_of([(i, [j]) for i in range(4) for j in range(4) if i != j])
    pairs = replace(pairs, log_slowdown=law(pairs))
    more, _ = fit_extrapolation(pairs, CELL_TABLE, law, lambda keep: (law, None))
    asked = rows_of([(0, [1, 2]), (3, [0, 1, 2])])
    found = more.log_slowdown(asked, CELL_TABLE, law)
    assert more.gain == pytest.approx([most])
    if takes_turns:
        assert found == pytest.approx(law(asked))


def test_who_simulates_is_believed_about_larger_sets_as_about_pairs() -> None:
    pairs = rows_of([(i, [j]) for i in range(4) for j in range(4) if i != j])
    pairs = replace(pairs, log_slowdown=sum_of_parts(pairs))
    asked = rows_of([(0, [1, 2]), (3, [0, 1, 2])])
    by_weight = [
        fit_extrapolation(
            *(pairs, CELL_TABLE, sum_of_parts, lambda keep: (sum_of_parts, None)),
            untried=np.array([0.0, weight]),
        )[0].log_slowdown(
            asked, CELL_TABLE, sum_of_parts, lambda q: np.ones((2, len(q))) * [[9.0], [1.5]]
        )
        for weight in (0.0, 0.7, 1.0)
    ]
    assert by_weight[1] == pytest.approx(0.3 * by_weight[0] + 0.7 * 1.5)
    assert by_weight[2] == pytest.approx(1.5)


def test_growth_is_from_the_mean_of_smaller_sets() -> None:
    asked = rows_of([(0, [3, 1, 2]), (0, [1, 2, 3])])
    found = larger(2, [GROW, 0.5, 2]).log_slowdown(asked, CELL_TABLE, sum_of_parts, None)
    assert found == pytest.approx([0.4 * np.sqrt(3 / 2)] * 2)


def test_more_company_takes_nothing_away_that_fewer_of_it_cost() -> None:
    def answer(rows: SlowdownRows) -> np.ndarray:
        return sum_of_parts(rows) + np.where(rows.degree > 1, 0.7, 0.0)

    asked = rows_of([(0, [3, 3, 0]), (0, [0, 0, 0])])
    for stays, expected in ((False, [0.2, 0.0]), (True, [1.1, 0.7])):
        found = larger(2, [GROW, 0.0, 1], stays).log_slowdown(asked, CELL_TABLE, answer, None)
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("helps", [False, True])
def test_larger_sets_left_out_say_whether_more_company_costs_less(helps: bool) -> None:
    random = np.random.default_rng(0)
    sizes = np.repeat([1, 2, 3], 60)
    drawn = [(int(random.integers(4)), random.integers(0, 4, k).tolist()) for k in sizes]

    def law(rows: SlowdownRows) -> np.ndarray:
        of_size = np.array([0.0, 1.0, 3.0, 1.0 if helps else 3.0])
        return rows.mean(0.1 * rows.corunner) * of_size[rows.degree]

    rows = rows_of(drawn)
    rows = rows_of(drawn, (law(rows) + 0.01 * random.normal(size=len(rows))).tolist())
    half = (
        np.unique(members_key(rows.target, rows.corunner, rows.row), return_inverse=True)[1] % 2
        == 1
    )
    about = CELL_TABLE, law, lambda keep: (law, None)
    found, tried = fit_extrapolation(rows, *about, half=half)
    assert bool(found.stays) != helps
    assert [one.most for one in (*tried, found)] == [2, 2, 3]
    largest = rows.take(rows.degree == 3)
    for one in tried:
        assert np.abs(one.log_slowdown(largest, CELL_TABLE, law) - law(largest)).max() < 0.1
    # What answers about the sets of one half has not seen them.
    moved = rows.log_slowdown + 2.0 * ((rows.degree == 3) & half)
    _, again = fit_extrapolation(replace(rows, log_slowdown=moved), *about, half=half)
    blind, seeing = (
        np.stack([one.log_slowdown(largest, CELL_TABLE, law) for one in (tried[at], again[at])])
        for at in (1, 0)
    )
    assert (blind[0] == blind[1]).all()
    assert (seeing[0] != seeing[1]).any()


def test_what_was_measured_is_remembered_as_far_as_it_repeats() -> None:
    sets = [(0, [1, 2]), (0, [2, 1]), (1, [0]), (1, [0])]
    rows, residual = rows_of(sets), np.array([0.30, 0.32, -0.2, -0.22])
    memory = fit_set_residuals(rows, residual, np.array([0.3, -0.3, 0.2, -0.2]))
    found = memory.of(rows_of([(0, [2, 1]), (1, [0]), (1, [2])]))
    assert found[:2] == pytest.approx([0.31, -0.21], rel=0.01)  # noise of a hundredth
    assert found[2] == 0
    wild = fit_set_residuals(rows, np.array([0.5, -0.5, 0.5, -0.5]), np.full(4, 0.1))
    assert wild.of(rows) == pytest.approx(np.zeros(4))


def test_three_are_answered_from_one_and_two() -> None:
    runs = MadeCampaign("saturating", workloads=6, platforms=1, corunners=3).runs(seed=0)
    degree = runs.colocations.number_of_corunners
    known, asked = runs.take(degree <= 2), runs.take(degree == 3)

    def error(method: Any) -> float:
        answers = learn(method, known).predict(asked.colocations)
        return float(np.abs(answers / asked.runtime_seconds - 1).mean())

    rules = [SimpleRule(label) for label in RULES.values()]
    assert error(Slowdown(**QUICK)) < 1.05 * min(error(rule) for rule in rules)
