"""Whether runs beside others say anything of a slowdown."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

from jostle.learn import (
    SlowdownRows,
    corunner_identity_p_value,
    either,
    interference_p_value,
    is_noise,
    mean_differs,
)


def test_few_runs_that_are_all_slower_are_evidence() -> None:
    target = np.array([0, 0, 1, 1, 2])
    assert mean_differs(np.array([0.3, 0.5, 0.3, 0.4, 0.45]), target)
    assert mean_differs(np.array([-0.3, -0.5, -0.3, -0.4, -0.45]), target)


def test_runs_of_one_cell_say_nothing_however_many() -> None:
    assert not mean_differs(np.full(50, 0.5), np.zeros(50, int))
    assert not mean_differs(np.zeros(0), np.zeros(0, int))


def test_noise_is_rarely_taken_for_a_slowdown() -> None:
    random = np.random.default_rng(0)
    target = np.repeat(np.arange(12), 5)
    alone = random.normal(0, 0.1, (400, 12))[:, target]  # what was measured alone errs, too
    drawn = random.normal(0, 0.05, (400, 60)) + alone
    assert np.mean([mean_differs(values, target) for values in drawn]) < 0.09


def by_every_shuffle(cell: np.ndarray, y: np.ndarray, beside: np.ndarray) -> float:
    """What interference_p_value draws, by all ways to set labels."""

    def statistics(label: np.ndarray) -> tuple[float, float]:
        total, squares = 0.0, 0.0
        for c in np.unique(cell):
            there, alone = y[(cell == c) & label], y[(cell == c) & ~label]
            weight = len(there) * len(alone) / (len(there) + len(alone))
            apart = there.mean() - alone.mean()
            total, squares = total + weight * apart, squares + weight * apart**2
        return abs(total), squares

    found, ways = statistics(beside), []
    for c in np.unique(cell):
        at = np.flatnonzero(cell == c)
        ways.append([set(chosen) for chosen in combinations(at.tolist(), int(beside[at].sum()))])
    drawn = []
    for chosen in product(*ways):
        label = np.zeros(len(y), bool)
        label[[i for part in chosen for i in part]] = True
        drawn.append(statistics(label))
    exceeded = (np.array(drawn) >= np.array(found) * (1 - 1e-9)).mean(0)
    return min(1.0, 2 * float(exceeded.min()))


@pytest.mark.parametrize("seed", range(4))
def test_the_chance_is_that_of_all_ways_to_shuffle(seed: int) -> None:
    random = np.random.default_rng(seed)
    cell = np.array([0] * 5 + [1] * 4 + [2] * 4)
    beside = np.array([0, 1, 0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1], bool)
    y = random.normal(size=13) + seed * 0.4 * beside + 100.0 * cell
    found = interference_p_value(cell, y, beside, 0)
    assert found == pytest.approx(by_every_shuffle(cell, y, beside), abs=0.06)
    turned = random.permutation(13)
    again = interference_p_value(cell[turned], y[turned], beside[turned], 1)
    assert again == pytest.approx(found, abs=0.08)


def test_the_chance_without_interference_is_no_smaller_than_it_says() -> None:
    random = np.random.default_rng(1)
    cell, beside = np.repeat(np.arange(6), 6), np.tile(np.array([0, 0, 1, 1, 1, 1], bool), 6)
    spread = np.exp(random.normal(0, 1, 6))[cell]  # cells need not be as noisy as each other
    chances = [
        interference_p_value(cell, spread * random.standard_t(2, 36), beside, 0) for _ in range(150)
    ]
    assert np.mean(np.array(chances) <= 0.1) <= 0.16
    slower = interference_p_value(cell, 0.02 * random.normal(size=36) + 0.1 * beside, beside, 0)
    assert slower <= 0.005


def test_without_a_cell_that_has_both_there_is_no_chance_to_tell() -> None:
    cell = np.array([0, 0, 1, 1])
    assert np.isnan(interference_p_value(cell, np.arange(4.0), np.array([0, 0, 1, 1], bool), 0))
    assert np.isnan(interference_p_value(cell[:0], np.zeros(0), np.zeros(0, bool), 0))


def pairs_of(programs: int, platforms: int) -> tuple[SlowdownRows, np.ndarray]:
    """(every program beside every other on every platform, who ran together)."""
    each = [
        (p * programs + i, p * programs + j)
        for p in range(platforms)
        for i in range(programs)
        for j in range(programs)
        if i != j
    ]
    target, corunner = np.array(each).T
    n = len(target)
    low, high = np.sort(np.stack([target % programs, corunner % programs]), axis=0)
    rows = SlowdownRows(target, corunner, np.arange(n), np.zeros(n), np.ones(n))
    return rows, low * programs + high


def test_company_that_helps_as_often_as_it_costs_is_seen_by_who_it_is() -> None:
    random, (rows, together) = np.random.default_rng(0), pairs_of(6, 2)
    noise = 0.02 * random.normal(size=len(rows))
    press = np.array([-0.1, 0.1, 0.05, -0.05, 0.1, -0.1])[rows.corunner % 6]
    friends = np.where(rows.target % 6 // 2 == rows.corunner % 6 // 2, -0.4, 0.1)
    for log in (press, friends):
        seen = replace(rows, log_slowdown=log + noise)
        assert corunner_identity_p_value(seen, together, 0) <= 0.004
    own = replace(rows, log_slowdown=np.linspace(-1, 1, 12)[rows.target] + noise)
    assert corunner_identity_p_value(own, together, 0) > 0.1


def test_noise_is_no_company_and_copies_of_it_are_no_more_of_it() -> None:
    random, (rows, together) = np.random.default_rng(1), pairs_of(5, 2)
    drawn = [replace(rows, log_slowdown=random.standard_t(2, len(rows))) for _ in range(100)]
    chances = [corunner_identity_p_value(seen, together, 0) for seen in drawn]
    seen = drawn[-1]
    assert np.mean(np.array(chances) <= 0.1) <= 0.19  # 1 of 100 are more where a tenth are to be
    twice = [np.tile(each, 2) for each in (seen.target, seen.corunner, seen.log_slowdown)]
    row = np.arange(2 * len(rows))
    copies = SlowdownRows(twice[0], twice[1], row, twice[2], np.ones(len(row)))
    again = corunner_identity_p_value(copies, np.tile(together, 2), 0)
    assert again == pytest.approx(chances[-1], abs=1e-9)


def test_without_a_target_that_met_two_nobody_can_tell_who_it_was() -> None:
    rows, together = pairs_of(2, 2)
    assert np.isnan(corunner_identity_p_value(rows, together, 0))
    assert np.isnan(
        corunner_identity_p_value(rows.take(np.zeros(len(rows), bool)), together[:0], 0)
    )
    nan = float("nan")
    assert np.isnan(either(nan, nan))
    assert either(nan, 0.2) == 0.2
    assert either(0.7, 0.2, 0.4) == pytest.approx(0.6)
    assert either(0.7, 0.6) == 1.0


def test_what_is_taken_for_noise_depends_on_the_chance() -> None:
    gain, sets = np.array([0.1, 0.3, -0.05, 0.2, 0.1, -0.1]), np.arange(6)
    assert not is_noise(0.001, -gain, sets)  # plainly there, whatever rules make of it
    assert is_noise(0.5, gain, sets)  # not there: rules have to be far closer
    assert not is_noise(0.5, np.full(6, 0.3) + 0.01 * gain, sets)
    assert not is_noise(0.05, gain, sets)
    assert not is_noise(float("nan"), gain, sets)
    assert is_noise(float("nan"), -gain, sets)
