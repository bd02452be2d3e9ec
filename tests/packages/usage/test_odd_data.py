"""Data as real services give them: glitches, zeros, heavy tails, clock times, counters that take turns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.data import Traces
from jostle.usage import Bridge, Forecast, Snapshots
from tests.packages.usage.conftest import a_trace

RUNS = 400


def shots(clouds: list[np.ndarray], start: float = 0.0) -> Snapshots:
    names = [f"c{i}" for i in range(clouds[0].shape[1])]
    return Snapshots.from_arrays(start + np.arange(len(clouds)), clouds, names)


def drifting_clouds(seed: int = 0) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.normal(100 + 3 * k, 5.0, (RUNS, 2)) for k in range(4)]


def test_glitches_move_no_quantile_by_more_than_their_share() -> None:
    """0.5% of the samples 300 times too large."""
    random = np.random.default_rng(1)
    clean, wild = drifting_clouds(), drifting_clouds()
    for cloud in wild:
        cloud[random.choice(RUNS, RUNS // 200, replace=False), 0] *= 300
    settings = Bridge()
    for time in (0.5, 1.3, 2.8):
        one = jostle.forecast(shots(clean), settings).at(time)
        two = jostle.forecast(shots(wild), settings).at(time)
        # Sampling moves a quantile too: twice the share, and the noise of 400 runs.
        for ratio in (0.02, 0.25, 0.5, 0.75, 0.95):
            low, high = one.quantile((max(ratio - 0.03, 0), min(ratio + 0.03, 1)))
            assert low[0] <= two.quantile(ratio)[0] <= high[0]
        limit = {"c0": float(one.quantile(0.98)[0])}
        assert two.exceedance_ratio(limit) < one.exceedance_ratio(limit) + 0.02


def test_zeros_and_heavy_tails_keep_their_shares() -> None:
    random = np.random.default_rng(2)
    clouds = []
    for _ in range(4):
        rare = np.where(random.random(RUNS) < 0.85, 0.0, random.gamma(2.0, 50.0, RUNS))
        clouds.append(np.stack([rare, np.exp(random.normal(3, 2.0, RUNS))], axis=1))
    forecast = jostle.forecast(shots(clouds))
    for time in (0.4, 1.5, 2.6):
        found = forecast.at(time)
        assert found.weights @ (found.atoms[:, 0] == 0) > 0.75
        assert found.weights @ (found.atoms[:, 1] <= 0.1) < 0.02
        np.testing.assert_allclose(found.weights @ found.atoms, found.mean, rtol=0.1)


def test_what_is_below_zero_stays_there_and_is_named() -> None:
    clouds = [cloud - 103 for cloud in drifting_clouds()]
    found = jostle.forecast(shots(clouds)).at(0.5)
    assert found.quantile(0.1).max() < 0
    assert any("below 0 in the data" in text for text in found.warnings)
    assert not any(
        "below 0" in t for t in jostle.forecast(shots(drifting_clouds())).at(0.5).warnings
    )


@pytest.mark.parametrize("start", [1.7e9, 1.7e9 + 1 / 3, -5.0])
def test_the_clock_may_count_from_anywhere(start: float) -> None:
    clouds = drifting_clouds()
    usual, shifted = jostle.forecast(shots(clouds)), jostle.forecast(shots(clouds, start))
    for time in (0.0, 0.25, 1.0, 1.5, 2.0, 2.75, 3.0):
        one, two = usual.at(time), shifted.at(start + time)
        assert one.method == two.method
        np.testing.assert_allclose(two.mean, one.mean, rtol=1e-5)


def test_traces_may_be_timed_since_1970() -> None:
    rows = []
    for run in range(5):
        counts = [1.0 + run + k for k in range(10)]
        row = a_trace(run, {"x": counts}, runtime_seconds=np.nan)
        rows.append(replace(row, time_seconds=1.7e9 + row.time_seconds))
    found = jostle.forecast(Traces.from_traces(rows))
    assert found.span_seconds == pytest.approx((1.7e9 + 0.1, 1.7e9 + 1.0), abs=1e-6)
    assert found.at(1.7e9 + 0.5).mean[0] == pytest.approx(70)


def turns(missing: float) -> tuple[Traces, np.ndarray]:
    """Four counters that hang together, of which each is missing in a share of the samples."""
    random = np.random.default_rng(3)
    rows, whole = [], []
    for run in range(80):
        level = 0.3 * random.standard_normal(12)
        values = [
            np.exp((1 if i % 2 else -1) * level + 0.1 * random.standard_normal(12) + i)
            for i in range(4)
        ]
        seen: dict[str, list[float]] = {
            f"c{i}": np.where(random.random(12) < missing, np.nan, v).tolist()
            for i, v in enumerate(values)
        }
        rows.append(a_trace(run, seen))
        whole.append(np.stack(values, axis=1) / 0.1)
    return Traces.from_traces(rows), np.array(whole)


def test_counters_that_take_turns_lose_no_run(tmp_path: Path) -> None:
    traces, whole = turns(0.3)
    forecast = jostle.forecast(traces)
    found = forecast.at(0.5)
    assert len(found) >= 78
    truth = whole[:, 4]
    np.testing.assert_allclose(found.mean, truth.mean(axis=0), rtol=0.08)
    together = np.corrcoef(found.atoms.T) - np.corrcoef(truth.T)
    assert np.abs(together).max() < 0.15
    (text,) = found.warnings
    assert "come from runs alike: c0 " in text
    forecast.save(tmp_path)
    again = Forecast.load(tmp_path).at(0.5)
    assert again.warnings == found.warnings
    np.testing.assert_array_equal(again.atoms, found.atoms)


def test_counters_in_step_come_from_the_runs_own_neighbours() -> None:
    """One is counted in even samples of all runs, the other in odd ones."""
    random = np.random.default_rng(4)
    rows = []
    for run in range(20):
        use = np.exp(0.1 * random.standard_normal(12)) * (1 + run)
        odd = np.arange(12) % 2 == 1
        even = {
            "a": np.where(odd, np.nan, use).tolist(),
            "b": np.where(odd, 3 * use, np.nan).tolist(),
        }
        rows.append(a_trace(run, even))
    found = jostle.forecast(Traces.from_traces(rows)).at(0.5)
    assert found.atoms.shape == (20, 2)
    assert found.mean[1] == pytest.approx(3 * found.mean[0], rel=0.1)
    assert np.corrcoef(found.atoms.T)[0, 1] > 0.9


def test_a_gap_of_all_counters_is_still_no_value() -> None:
    rows = [a_trace(run, {"a": [1.0, 1, 1], "b": [2.0, 2, 2]}) for run in range(4)]
    rows.append(a_trace(4, {"a": [1.0, np.nan, 1], "b": [2.0, np.nan, 2]}))
    found = Snapshots.from_traces(Traces.from_traces(rows), times_seconds=[0.1, 0.2, 0.3])
    assert [len(shot.cloud) for shot in found.of(0)] == [5, 4, 5]
    assert all(shot.filled is None for shot in found.of(0))


def test_a_run_recorded_late_hides_no_time() -> None:
    """As days of a service: the first began in the afternoon, one has a gap in its morning."""
    runs = [a_trace(number, {"x": [float(number)] * 20}) for number in range(8)]
    late = a_trace(8, {"x": [1.0] * 5}, time_seconds=0.1 * np.arange(16, 21))
    forecast = jostle.forecast(Traces.from_traces([*runs, late]))
    assert forecast.span_seconds[0] == pytest.approx(0.1)
    assert len(forecast.at(0.2)) == 8
    assert len(forecast.at(1.8)) == 9
