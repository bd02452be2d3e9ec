"""From a trace to solo counters: totals stay, odd traces are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import BadData, UnknownName, UsageError
from jostle.learn.learners.counters import solo_counters
from tests.packages.learn.counters.conftest import a_trace

counts = st.lists(st.floats(0, 1e6), min_size=2, max_size=30).filter(lambda x: sum(x) > 1)


@given(counts, st.floats(0.5, 2.0))
@settings(deadline=None)
def test_totals_stay_and_unequal_samples_are_divided_by_their_own_interval(
    instructions: list[float], stretch: float
) -> None:
    random = np.random.default_rng(len(instructions))
    intervals = 0.01 * stretch * random.uniform(0.5, 1.5, len(instructions))
    trace = a_trace(instructions, interval=intervals.tolist(), misses=[2 * i for i in instructions])
    solo = solo_counters(trace, period_seconds=0.01)
    assert solo.duration_seconds == pytest.approx(intervals.sum())
    assert solo.instructions == pytest.approx(sum(instructions), rel=1e-9)
    at = np.array([0.3, 0.77]) * solo.duration_seconds
    expected = np.interp(at, np.r_[0, trace.time_seconds], np.r_[0, np.cumsum(instructions)])
    # Between edges of periods counts are a straight line, so it is off by at most one sample.
    assert np.abs(solo.at(solo.cumulative, at)[:, 0] - expected).max() <= 2 * max(instructions) + 1
    np.testing.assert_allclose(
        solo.cumulative[:, 1], 2 * solo.cumulative[:, 0], rtol=1e-9, atol=1e-12
    )


def test_equal_samples_are_kept_as_they_are() -> None:
    solo = solo_counters(a_trace([3.0, 5.0, 2.0]))
    np.testing.assert_allclose(np.diff(solo.cumulative[:, 0]), [3, 5, 2])
    np.testing.assert_allclose(
        solo.seconds_at(np.array([0.0, 3.0, 5.5, 10.0])), [0, 0.01, 0.015, 0.03]
    )


def test_a_short_last_sample_counts_for_its_own_length() -> None:
    solo = solo_counters(a_trace([4.0, 4.0, 1.0], interval=[0.01, 0.01, 0.0025]))
    assert solo.duration_seconds == pytest.approx(0.0225)
    assert solo.instructions == pytest.approx(9.0)


def test_idle_is_on_the_axis_of_time_and_leaves_that_of_instructions() -> None:
    solo = solo_counters(a_trace([4.0, 0.0, 0.0, 4.0]))
    assert solo.idle.tolist() == [False, True, True, False]
    np.testing.assert_allclose(solo.seconds_at(np.array([3.0, 4.0, 5.0])), [0.0075, 0.03, 0.0325])


def test_after_its_end_a_run_begins_anew() -> None:
    solo = solo_counters(a_trace([4.0, 2.0]))
    np.testing.assert_allclose(
        solo.at(solo.cumulative, np.array([0.005, 0.025, 0.045]))[:, 0], [2, 8, 14]
    )
    np.testing.assert_allclose(solo.seconds_at(np.array([2.0, 8.0, 14.0])), [0.005, 0.025, 0.045])


def test_odd_traces_are_named() -> None:
    good = a_trace([4.0, 4.0, 4.0], misses=[1.0, 2.0, 3.0])
    nan = np.nan
    for trace, message in (
        (replace(good, corunners=("x",)), "beside others"),
        (replace(good, runtime_seconds=nan), "had not ended"),
        (replace(good, runtime_seconds=0.2), "stops early"),
        (a_trace([0.0, 0.0]), "no instructions at all"),
        (a_trace([4.0, nan]), "1 samples have no instructions"),
        (a_trace([4.0, 2.0**64]), "wrapped"),
        (a_trace([4.0, -1.0]), "falls"),
        (
            replace(good, time_seconds=np.array([0.01, 0.02, 0.06]), runtime_seconds=0.06),
            "nothing was sampled",
        ),
        (a_trace([4.0] * 3, misses=[nan, nan, 1.0]), "null in 2 of 3"),
        (a_trace([]), "no samples")
        if False
        else (replace(good, counters={"instructions": np.array([4.0, 4.0, 1e30])}), "wrapped"),
    ):
        with pytest.raises(BadData, match=message):
            solo_counters(trace, [n for n in trace.counters if n != "instructions"])
    with pytest.raises(UnknownName, match="mises"):
        solo_counters(good, ["mises"])
    with pytest.raises(UsageError):
        solo_counters(good, period_seconds=0.0)


def test_few_nulls_are_filled_from_their_neighbours_never_with_zero() -> None:
    solo = solo_counters(a_trace([1.0] * 5, misses=[2.0, np.nan, 4.0, 4.0, 4.0]))
    np.testing.assert_allclose(np.diff(solo.cumulative[:, 1]), [2, 3, 4, 4, 4])
