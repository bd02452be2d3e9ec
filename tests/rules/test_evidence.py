"""Whether runs beside others say anything of a slowdown."""

from __future__ import annotations

import numpy as np

from jostle.rules import plainly_another_time


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
