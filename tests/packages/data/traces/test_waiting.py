"""A trace without the time that its program waited for its core."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.data import Trace, Traces, all_without_waiting, without_waiting
from jostle.errors import BadData
from tests.plain_traces import plain_trace


def a_trace(waited: list[float], instructions: list[float] | None = None) -> Trace:
    counted = [5.0] * len(waited) if instructions is None else instructions
    return plain_trace({"instructions": counted, "run_delay_seconds": waited}, 0.01)


def test_what_was_waited_is_left_out() -> None:
    found = without_waiting(a_trace([0.0, 0.004, 0.0, np.nan]))
    np.testing.assert_allclose(found.time_seconds, [0.01, 0.016, 0.026, 0.036])
    np.testing.assert_allclose(found.interval_seconds, [0.01, 0.006, 0.01, 0.01])
    assert found.runtime_seconds == pytest.approx(0.036)
    np.testing.assert_array_equal(found["instructions"], [5.0] * 4)
    unchanged = without_waiting(a_trace([0.0] * 3))
    np.testing.assert_allclose(unchanged.time_seconds, [0.01, 0.02, 0.03])


def test_a_wait_that_is_told_late_is_of_the_sample_before() -> None:
    # It waited from the middle of the second sample to that of the third, told when it ended.
    found = without_waiting(a_trace([0.0, 0.0, 0.018, 0.0], [8.0, 2.0, 0.0, 8.0]))
    assert found.runtime_seconds == pytest.approx(0.022)
    assert found["instructions"].sum() == 18.0
    assert (found.interval_seconds >= 0.0025 - 1e-12).all()
    assert found["instructions"].tolist() == [8.0, 10.0]


@given(
    st.lists(st.tuples(st.floats(0, 0.02), st.floats(0, 100)), min_size=1, max_size=30),
    st.floats(0.02, 0.1),
)
@settings(deadline=None)
def test_totals_stay_and_times_rise(samples: list[tuple[float, float]], first: float) -> None:
    trace = a_trace([w for w, _ in samples], [i for _, i in samples])
    # Never more waiting than there is time.
    trace = replace(
        trace,
        time_seconds=trace.time_seconds + len(samples) * first,
        interval_seconds=np.r_[0.01 + len(samples) * first, trace.interval_seconds[1:]],
        runtime_seconds=trace.runtime_seconds + len(samples) * first,
    )
    found = without_waiting(trace)
    assert found["instructions"].sum() == pytest.approx(trace["instructions"].sum())
    assert (found.interval_seconds > 0).all()
    assert found.interval_seconds.sum() == pytest.approx(found.time_seconds[-1])
    waited = trace["run_delay_seconds"].sum()
    assert found.runtime_seconds == pytest.approx(trace.runtime_seconds - waited)


def test_all_of_a_dataset_and_what_cannot_be_told() -> None:
    found = all_without_waiting(Traces.from_traces([a_trace([0.0, 0.005])]))
    assert found.of("r").runtime_seconds == pytest.approx(0.015)
    for counters in ({}, {"run_delay_seconds": np.array([np.nan])}):
        with pytest.raises(BadData, match="how long it waited"):
            without_waiting(replace(a_trace([0.0]), counters=counters))
    with pytest.raises(BadData, match="all of its time"):
        without_waiting(a_trace([0.02, 0.02]))
