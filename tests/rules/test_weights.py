"""Weights by what was left out: greedy where much was, by each member's error where little was."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.rules import steadied_weights


def answers(errors: list[float], n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(answers (k, n), truth (n,)) with such mean errors."""
    random = np.random.default_rng(seed)
    truth = random.normal(size=n)
    return truth + np.outer(errors, random.choice([-1.0, 1.0], n)), truth


@pytest.mark.parametrize("parts", [0, 1, 5, 24, 1000])
def test_weights_are_shares_and_move_from_errors_to_what_was_chosen(parts: int) -> None:
    given, truth = answers([0.1, 0.1, 0.2])
    chosen = np.array([0.0, 0.25, 0.75])
    found = steadied_weights(chosen, given, truth, parts)
    assert found.sum() == pytest.approx(1.0)
    trust = parts / (parts + 24)
    by_error = (found - trust * chosen) / (1 - trust)
    assert by_error[0] == pytest.approx(by_error[1])
    assert by_error[2] < 0.01


def test_one_that_never_errs_takes_what_is_not_trusted() -> None:
    given, truth = answers([0.3, 0.0])
    assert steadied_weights(np.array([1.0, 0.0]), given, truth, 0) == pytest.approx([0.0, 1.0])


def test_answers_far_off_are_numbers() -> None:
    given, truth = answers([0.1, 500.0])
    found = steadied_weights(np.array([0.4, 0.6]), given, truth, 4)
    assert np.isfinite(found).all()
    assert found[0] > found[1]
