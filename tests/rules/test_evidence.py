"""Whether runs beside others say anything of a slowdown."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from jostle.rules import chance_of_shift, is_noise, plainly_another_time


def test_few_runs_that_are_all_slower_are_evidence() -> None:
    target = np.array([0, 0, 1, 1, 2])
    assert plainly_another_time(np.array([0.3, 0.5, 0.3, 0.4, 0.45]), target)
    assert plainly_another_time(np.array([-0.3, -0.5, -0.3, -0.4, -0.45]), target)


def test_runs_of_one_cell_say_nothing_however_many() -> None:
    assert not plainly_another_time(np.full(50, 0.5), np.zeros(50, int))
    assert not plainly_another_time(np.zeros(0), np.zeros(0, int))


def test_noise_is_rarely_taken_for_a_slowdown() -> None:
    random = np.random.default_rng(0)
    target = np.repeat(np.arange(12), 5)
    alone = random.normal(0, 0.1, (400, 12))[:, target]  # what was measured alone errs, too
    drawn = random.normal(0, 0.05, (400, 60)) + alone
    assert np.mean([plainly_another_time(values, target) for values in drawn]) < 0.09


def by_every_shuffle(cell: np.ndarray, y: np.ndarray, beside: np.ndarray) -> float:
    """What chance_of_shift draws, by all ways to set labels."""

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
    found = chance_of_shift(cell, y, beside, 0)
    assert found == pytest.approx(by_every_shuffle(cell, y, beside), abs=0.06)
    turned = random.permutation(13)
    again = chance_of_shift(cell[turned], y[turned], beside[turned], 1)
    assert again == pytest.approx(found, abs=0.08)


def test_the_chance_without_interference_is_no_smaller_than_it_says() -> None:
    random = np.random.default_rng(1)
    cell, beside = np.repeat(np.arange(6), 6), np.tile(np.array([0, 0, 1, 1, 1, 1], bool), 6)
    spread = np.exp(random.normal(0, 1, 6))[cell]  # cells need not be as noisy as each other
    chances = [
        chance_of_shift(cell, spread * random.standard_t(2, 36), beside, 0) for _ in range(150)
    ]
    assert np.mean(np.array(chances) <= 0.1) <= 0.16
    slower = chance_of_shift(cell, 0.02 * random.normal(size=36) + 0.1 * beside, beside, 0)
    assert slower <= 0.005


def test_without_a_cell_that_has_both_there_is_no_chance_to_tell() -> None:
    cell = np.array([0, 0, 1, 1])
    assert np.isnan(chance_of_shift(cell, np.arange(4.0), np.array([0, 0, 1, 1], bool), 0))
    assert np.isnan(chance_of_shift(cell[:0], np.zeros(0), np.zeros(0, bool), 0))


def test_what_is_taken_for_noise_depends_on_the_chance() -> None:
    gain, sets = np.array([0.1, 0.3, -0.05, 0.2, 0.1, -0.1]), np.arange(6)
    assert not is_noise(0.001, -gain, sets)  # plainly there, whatever rules make of it
    assert is_noise(0.5, gain, sets)  # not there: rules have to be far closer
    assert not is_noise(0.5, np.full(6, 0.3) + 0.01 * gain, sets)
    assert not is_noise(0.05, gain, sets)
    assert not is_noise(float("nan"), gain, sets)
    assert is_noise(float("nan"), -gain, sets)
