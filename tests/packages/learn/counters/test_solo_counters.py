"""From a trace to solo counters: totals stay, odd traces are named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import BadData, UnknownName, UsageError
from jostle.learn.learners.counters import solo_counters
from tests.packages.learn.counters.traced_samples import a_solo, a_trace

counts = st.lists(st.floats(0, 1e6), min_size=2, max_size=30).filter(lambda x: sum(x) > 1)


@given(counts, st.floats(0.5, 2.0))
@settings(deadline=None)
def test_totals_stay_and_unequal_samples_are_divided_by_their_own_interval(
    instructions: list[float], stretch: float
) -> None:
    random = np.random.default_rng(len(instructions))
    intervals = 0.01 * stretch * random.uniform(0.5, 1.5, len(instructions))
    trace = a_trace(
        instructions,
        interval=intervals.tolist(),
        counters={"misses": [2 * i for i in instructions]},
    )
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
    good = a_trace([4.0, 4.0, 4.0], counters={"misses": [1.0, 2.0, 3.0]})
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
        (a_trace([4.0] * 3, counters={"misses": [nan, nan, 1.0]}), "null in 2 of 3"),
    ):
        with pytest.raises(BadData, match=message):
            solo_counters(trace, [n for n in trace.counters if n != "instructions"])
    with pytest.raises(UnknownName, match="mises"):
        solo_counters(good, ["mises"])
    with pytest.raises(UsageError):
        solo_counters(good, period_seconds=0.0)


def test_few_nulls_are_filled_from_their_neighbours_never_with_zero() -> None:
    solo = solo_counters(a_trace([1.0] * 5, counters={"misses": [2.0, np.nan, 4.0, 4.0, 4.0]}))
    np.testing.assert_allclose(np.diff(solo.cumulative[:, 1]), [2, 3, 4, 4, 4])


@given(
    st.lists(st.tuples(st.floats(0.5, 9), st.floats(0, 9)), min_size=2, max_size=12),
    st.integers(1, 20),
)
@settings(deadline=None)
def test_sections_add_up_to_all_that_was_counted(rows: list[tuple[float, float]], n: int) -> None:
    solo = a_solo(np.array(rows))
    edges = np.sort(np.random.default_rng(n).uniform(0, len(rows), n + 1))
    found = solo.section(edges[:-1], edges[1:])
    total = solo.at(solo.cumulative, edges[[0, -1]])
    np.testing.assert_allclose(
        (found * np.diff(edges)[:, None]).sum(axis=0), total[1] - total[0], atol=1e-6
    )


def test_of_several_repeats_the_one_of_the_median_time_counts() -> None:
    runs = [a_trace([4.0] * 5, interval=0.01 * slow, run_id=f"{slow}") for slow in (1.5, 1.0, 1.1)]
    assert solo_counters(runs).duration_seconds == pytest.approx(0.055)
    other = replace(runs[0], counters={"instructions": 1.1 * runs[0]["instructions"]})
    for some, error, message in (
        ([], UsageError, "at least one"),
        ([runs[0], other], BadData, "instructions"),
        ([runs[0], replace(runs[1], corunners=("x",))], BadData, "beside others"),
    ):
        with pytest.raises(error, match=message):
            solo_counters(some)


def test_stretches_inside_a_phase() -> None:
    first, second = np.array([8.0, 1.0, 4.0]), np.array([4.0, 2.0, 4.0])
    table = np.concatenate(
        [np.tile(first, (4, 1)), (first + second)[None] / 2, np.tile(second, (4, 1))]
    )
    solo = a_solo(table, tau=2.0)  # the period from 8 to 10 seconds holds both
    begin, end = np.array(
        [(0, 2), (1, 7.5), (10, 18), (3, 3.5), (18, 20), (7, 9), (8, 10), (9.5, 10.5), (17, 19)]
    ).T
    assert solo.inside_phase(begin, end).tolist() == [True] * 5 + [False] * 4
