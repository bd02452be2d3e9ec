"""Times alone of runs that repeat."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.learn import relative_error, relative_medians

TIMES = st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=7)


def test_of_two_kinds_of_times_the_short_one_is_closest() -> None:
    times = np.log([1.2, 0.1, 1.2, 0.1, 1.2, 1.2, 2.0, 2.02])
    cell = np.array([3, 3, 3, 3, 3, 3, 0, 0])
    short, pair = relative_medians(cell, times, 5)[[3, 0]]
    assert short == pytest.approx(np.log(0.1))
    assert pair == pytest.approx(np.log(2.01), abs=1e-4)
    assert np.isnan(relative_medians(cell, times, 5)[[1, 2, 4]]).all()


@given(TIMES)
def test_no_time_measured_is_closer_by_more_than_the_way_to_the_next(times: list[float]) -> None:
    """The mean relative error is convex in the time and bends at those measured only (brute force)."""
    log = np.array(times)
    value = float(relative_medians(np.zeros(len(log), int), log, 1)[0])
    errors = [relative_error(one - log).mean() for one in log]
    near = [
        int(np.argmin(np.where(side, np.abs(log - value), np.inf)))
        for side in (log >= value - 1e-12, log <= value + 1e-12)
        if side.any()
    ]
    assert min(errors) == pytest.approx(min(errors[at] for at in near), abs=1e-12)


@given(TIMES, st.randoms(use_true_random=False))
def test_the_order_of_runs_does_not_matter(times: list[float], turn: object) -> None:
    other = list(times)
    turn.shuffle(other)  # type: ignore[attr-defined]
    one, same = (relative_medians(np.zeros(len(t), int), np.array(t), 1) for t in (times, other))
    assert one == pytest.approx(same)
