"""Forecasts: what comes out at a time, where it must refuse, and what the answer says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jostle
from jostle.data import Trace, Traces, write_traces
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError
from jostle.learn import Data
from jostle.usage import Bridge, Cloud, Distribution, Snapshots
from tests.packages.usage.conftest import COUNTERS, a_trace

SEVEN = Bridge(components=COUNTERS, snapshots=7)


def gaussians(s: int = 4, n: int = 200, d: int = 2) -> Snapshots:
    """A cloud that moves by one per unit of time, far from 0."""
    random = np.random.default_rng(0)
    clouds = [random.normal(20 + k, 1.0, (n, d)) for k in range(s)]
    return Snapshots.from_arrays(np.arange(s, dtype=float), clouds, [f"c{i}" for i in range(d)])


def trace(run: int, counts: list[float], seconds: float = 0.1, **changes: Any) -> Trace:
    return replace(a_trace(run, {"instructions": counts}, seconds), **changes)


def test_runs_that_end_with_their_last_sample_are_there_at_it() -> None:
    times = 0.1 * np.arange(1, 42)
    lengths = np.diff(times, prepend=0.0)  # of a clock: 41 times their median is more than 4.1
    counts = [float(2000 * time * length) for time, length in zip(times, lengths, strict=True)]
    changes = {"time_seconds": times, "interval_seconds": lengths, "runtime_seconds": times[-1]}
    runs = Traces.from_traces([trace(i, counts, **changes) for i in range(4)])
    for method in (Bridge(), Bridge(snapshots=7)):
        forecast = jostle.forecast(runs, method)
        for time in (times[0], 3.9, times[-1]):
            found = forecast.at(float(time))
            assert found.idle_ratio == 0
            assert found.mean == pytest.approx([2000 * time], rel=1e-9)


def test_traces_come_as_a_folder_or_as_data_too(phases: Traces, tmp_path: Path) -> None:
    write_traces(tmp_path, phases)
    settings = Bridge(components=COUNTERS, snapshots=4)
    expected = jostle.forecast(phases, settings).at(0.4)
    for data in (tmp_path, str(tmp_path), Data(path=tmp_path), Data(traces=phases)):
        np.testing.assert_array_equal(jostle.forecast(data, settings).at(0.4).atoms, expected.atoms)
    with pytest.raises(NotEnoughRuns, match="no traces"):
        jostle.forecast(Data())
    with pytest.raises(UsageError, match="cannot be a"):
        jostle.forecast(3)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("method", ["bridge", "ot", "mixture"])
def test_every_method_gives_a_law(phases: Traces, method: str) -> None:
    found = jostle.forecast(phases, replace(SEVEN, method=method)).at(0.31)
    assert found.weights.sum() == pytest.approx(1)
    assert np.isfinite(found.atoms).all()
    assert found.atoms.min() >= 0
    assert np.isfinite(found.covariance).all()


def test_at_a_snapshot_it_is_that_snapshot() -> None:
    shots = gaussians()
    found = jostle.forecast(shots).at(2.0)
    assert found.method == "snapshot"
    np.testing.assert_array_equal(found.atoms, shots.of(0)[2].cloud.atoms)


@pytest.mark.parametrize("time", [-0.1, 3.1, np.nan, np.inf])
def test_outside_the_data_it_refuses(time: float) -> None:
    with pytest.raises(UsageError, match="outside the data"):
        jostle.forecast(gaussians()).at(time)


def test_the_mean_moves_and_the_width_stays() -> None:
    found = jostle.forecast(gaussians(n=400), Bridge(atoms=4000)).at(1.5)
    np.testing.assert_allclose(found.mean, 21.5, atol=0.15)
    np.testing.assert_allclose(np.diag(found.covariance), 1.0, atol=0.2)
    # The atoms are a sample of the law whose moments are given.
    np.testing.assert_allclose(found.cloud.mean, found.mean, atol=0.05)
    np.testing.assert_allclose(found.cloud.covariance, found.covariance, atol=0.07)


def test_the_same_question_has_the_same_answer() -> None:
    one, two = (jostle.forecast(gaussians(), Bridge(seed=5)).at(1.3) for _ in range(2))
    np.testing.assert_array_equal(one.atoms, two.atoms)
    other = jostle.forecast(gaussians(), Bridge(seed=6)).at(1.3)
    assert not np.array_equal(one.atoms, other.atoms)
    np.testing.assert_array_equal(one.sample(10, seed=1), two.sample(10, seed=1))


def test_rates_are_counts_over_their_own_interval() -> None:
    uneven = np.array([0.1, 0.2, 0.05])
    rows = []
    for run in range(3):
        times = np.cumsum(uneven)
        rows.append(
            trace(run, [1, 1, 1], time_seconds=times, interval_seconds=uneven,
                  counters={"instructions": 1e9 * uneven * (1 + run)}, runtime_seconds=0.35)
        )  # fmt: skip
    shots = Snapshots.from_traces(Traces.from_traces(rows), times_seconds=[0.1, 0.25, 0.34])
    for shot in shots.of(0):
        np.testing.assert_allclose(shot.cloud.atoms[:, 0], [1e9, 2e9, 3e9])


def test_ended_runs_are_idle_mass_not_displaced() -> None:
    rows = [trace(run, [100.0] * (10 if run % 2 else 5)) for run in range(8)]
    shots = Snapshots.from_traces(Traces.from_traces(rows), times_seconds=[0.3, 0.9])
    forecast = jostle.forecast(shots)
    late = forecast.at(0.7)
    assert late.idle_ratio == pytest.approx(0.5)
    np.testing.assert_allclose(np.unique(late.atoms.round(6)), [0.0, 1000.0])
    assert late.mean[0] == pytest.approx(500)
    assert forecast.at(0.4).idle_ratio == 0


def test_all_runs_ended_is_all_idle() -> None:
    rows = [trace(run, [100.0] * (3 + run)) for run in range(4)]
    shots = Snapshots.from_traces(Traces.from_traces(rows), times_seconds=[0.2, 0.65, 0.8])
    found = jostle.forecast(shots).at(0.8)
    assert found.idle_ratio == 1
    assert found.mean[0] == 0


def test_gaps_are_left_out_not_zero() -> None:
    rows = [trace(run, [100.0, 100.0, 100.0]) for run in range(3)]
    rows.append(trace(3, [100.0, np.nan, 100.0]))
    cut = trace(4, [100.0], runtime_seconds=np.nan)  # its trace stopped before it did
    shots = Snapshots.from_traces(Traces.from_traces([*rows, cut]), times_seconds=[0.1, 0.2, 0.3])
    assert [len(shot.cloud) for shot in shots.of(0)] == [5, 3, 4]
    assert [shot.idle_ratio for shot in shots.of(0)] == [0, 0, 0]


def test_bad_traces_are_refused() -> None:
    rows = [trace(run, [1.0, 2.0]) for run in range(3)]
    with pytest.raises(NotEnoughRuns):
        jostle.forecast(Traces.from_traces(rows[:1]))
    with pytest.raises(BadData, match="differ in workload"):
        jostle.forecast(Traces.from_traces([*rows, trace(3, [1.0], workload="other")]))
    traces = Traces.from_traces(rows)
    with pytest.raises(UnknownName):
        jostle.forecast(traces, Bridge(components=("instrutions",)))
    going = Traces.from_traces([replace(t, runtime_seconds=np.nan) for t in rows])
    with pytest.raises(NotEnoughRuns, match="known at 5 s"):
        jostle.forecast(going, Bridge(snapshots=(0.1, 5.0)))
    for times in ([0.2, 0.1], [0.1, 0.1], [np.nan], []):
        with pytest.raises(UsageError):
            Snapshots.from_traces(traces, times_seconds=times)
    with pytest.raises(BadData, match="core 3"):
        jostle.forecast(traces).at(0.15, core=3)


def test_bad_settings_are_refused() -> None:
    cases: tuple[dict[str, Any], ...] = (
        {"method": "magic"}, {"eps": 0.0}, {"eps": float("nan")},
        {"eps_unit": "metres"}, {"method": "phase"}, {"atoms": 0},
    )  # fmt: skip
    for wrong in cases:
        with pytest.raises(UsageError):
            Bridge(**wrong)
    with pytest.raises(UnknownName):
        jostle.forecast(gaussians(), Bridge(scale={"nothing": 1.0}))


def test_the_papers_eps_is_called_independent() -> None:
    scale = {"c0": 1e-3, "c1": 1e-3}
    found = jostle.forecast(gaussians(), Bridge.paper(scale)).at(0.5)
    assert any("independent" in text for text in found.warnings)


def test_misses_do_not_exceed_requests() -> None:
    random = np.random.default_rng(0)
    shots = Snapshots.from_arrays(
        [0.0, 1.0],
        [random.uniform(1, 1.1, (50, 2)) for _ in range(2)],
        ["llc-requests", "llc-misses"],
    )
    atoms = jostle.forecast(shots, Bridge(method="bridge", eps=5.0)).at(0.5).atoms
    assert (atoms[:, 1] <= atoms[:, 0]).all()


def law(atoms: list[float], weights: list[float] | None = None) -> Distribution:
    cloud = Cloud.of(np.array(atoms), None if weights is None else np.array(weights))
    return Distribution.of(cloud, ["x"], "made")


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 1)), min_size=1, max_size=20),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_quantiles_and_exceedance_fit_together(
    atoms: list[tuple[float, float]], ratio: float, idle: float
) -> None:
    found = law([a for a, _ in atoms], [w for _, w in atoms]).with_idle(idle)
    top = found.quantile(ratio)[0]
    assert found.exceedance_ratio({"x": float(top)}) <= 1 - ratio + 1e-9
    assert found.weights.sum() == pytest.approx(1)
    mean = float(found.weights @ found.atoms[:, 0])
    assert found.mean[0] == pytest.approx(mean, abs=1e-9)
    spread = float(found.weights @ (found.atoms[:, 0] - mean) ** 2)
    assert found.covariance[0, 0] == pytest.approx(spread, abs=1e-6)


def test_odd_questions_are_refused() -> None:
    found = law([1, 2])
    for call in (
        lambda: found.quantile(1.5), lambda: found.quantile(float("nan")),
        lambda: found.exceedance_ratio({}), lambda: found.exceedance_ratio({"x": float("nan")}),
        lambda: found.sample(0), lambda: found.with_idle(2.0),
    ):  # fmt: skip
        with pytest.raises(UsageError):
            call()
    with pytest.raises(UnknownName):
        found.exceedance_ratio({"y": 1.0})
