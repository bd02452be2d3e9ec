"""Weights by what was left out: greedy where much was, by each member's error where little was."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.learn import gain_is_insignificant, greedy_weights, shrunk_weights, weighted_median


def answers(errors: list[float], n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(answers (k, n), truth (n,)) with such mean errors."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=n)
    return truth + np.outer(errors, random.choice([-1.0, 1.0], n)), truth


@pytest.mark.parametrize("parts", [0, 1, 5, 24, 1000])
def test_weights_are_shares_and_move_from_errors_to_what_was_chosen(parts: int) -> None:
    given, truth = answers([0.1, 0.1, 0.2])
    chosen = np.array([0.0, 0.25, 0.75])
    found = shrunk_weights(chosen, given, truth, parts)
    assert found.sum() == pytest.approx(1.0)
    trust = parts / (parts + 24)
    by_error = (found - trust * chosen) / (1 - trust)
    assert by_error[0] == pytest.approx(by_error[1])
    assert by_error[2] < 0.01


def test_one_that_never_errs_takes_what_is_not_trusted() -> None:
    given, truth = answers([0.3, 0.0])
    assert shrunk_weights(np.array([1.0, 0.0]), given, truth, 0) == pytest.approx([0.0, 1.0])


def test_answers_far_off_are_numbers() -> None:
    given, truth = answers([0.1, 500.0])
    found = shrunk_weights(np.array([0.4, 0.6]), given, truth, 4)
    assert np.isfinite(found).all()
    assert found[0] > found[1]


def test_the_best_pick_counts_not_the_last() -> None:
    """Three whose errors cancel: a third of each is exact, and no twenty picks are."""
    random = np.random.default_rng(0)
    first, second = random.normal(size=(2, 60))
    away = 0.1 * np.stack([first, second, -first - second])
    truth = random.normal(size=60)
    weight = greedy_weights(truth + away, truth, np.arange(60), seed=0)
    assert weight == pytest.approx(np.full(3, 1 / 3))


def test_rows_of_one_set_count_as_one() -> None:
    """Drawn and left out together: copies of all rows within their sets change nothing."""
    given, truth = answers([0.1, 0.15, 0.2], 40)
    given = given + 0.1 * np.random.default_rng(1).normal(size=given.shape)
    sets = np.arange(40) // 2
    weight = greedy_weights(given, truth, sets, seed=3)
    again = greedy_weights(np.tile(given, 3), np.tile(truth, 3), np.tile(sets, 3) + 7, seed=3)
    assert again == pytest.approx(weight)


@pytest.mark.parametrize("copies", [1, 50])
@pytest.mark.parametrize(("mean", "is_noise"), [(0.95, True), (1.05, False), (-3.0, True)])
def test_evidence_is_a_mean_over_its_standard_error_by_sets(
    copies: int, mean: float, is_noise: bool
) -> None:
    gain = np.random.default_rng(2).normal(size=9)
    gain = (gain - gain.mean()) / gain.std(ddof=1) * 3.0 + mean  # a standard error of 1
    gain, sets = np.repeat(gain, copies), np.repeat(np.arange(9), copies)
    assert gain_is_insignificant(gain, sets) == is_noise
    assert gain_is_insignificant(np.append(gain, np.nan), np.append(sets, 99)) == is_noise
    assert gain_is_insignificant(gain, sets, 2.0)
    assert not gain_is_insignificant(np.full(4, np.nan), np.arange(4))
    assert gain_is_insignificant(np.zeros(4), np.arange(4))


def test_the_median_is_where_half_of_the_weight_is() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert weighted_median(values, np.ones(3)) == 2.0
    assert weighted_median(values, np.array([5.0, 1.0, 1.0])) == 3.0
    assert weighted_median(values, np.array([1.0, 5.0, 1.0])) == 1.0


def test_a_belief_held_before_gives_way_to_what_was_left_out() -> None:
    """Of two that are as wrong as each other the one believed before counts more, the less so the more parts
    were left out; where there is no such belief nothing changes."""
    random = np.random.default_rng(5)
    shares = []
    for parts in (4, 40, 4_000):
        truth = random.normal(0.3, 0.1, parts)
        answers = truth + np.log([[1.1], [0.9]])
        even = np.array([0.5, 0.5])
        usual = shrunk_weights(even, answers, truth, parts)
        assert usual == pytest.approx(even)
        shares.append(shrunk_weights(even, answers, truth, parts, np.array([5.0, 1.0]))[0])
    assert shares == sorted(shares, reverse=True)
    assert 0.75 < shares[0] < 5 / 6
    assert shares[-1] < 0.51
