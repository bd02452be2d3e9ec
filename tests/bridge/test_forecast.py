"""Forecasts: what comes out at a time, where it must refuse, and what the answer says of itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jostle
from jostle.bridge import (
    Bridge,
    Cloud,
    Distribution,
    Snapshots,
    total_demand,
)
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError
from jostle.methods import Data
from jostle.traces import Trace, Traces, write_traces
from studies.bridge.data import COUNTERS
from studies.bridge.graphs.clock import ClockedSnapshots, ClockForecast, ClockSettings
from studies.bridge.graphs.contexts import Contexts
from studies.bridge.graphs.forecasts import GRAPHS, GraphForecast
from studies.bridge.graphs.placing import place
from studies.bridge.rivals import wasserstein
from tests.bridge.conftest import a_trace

SEVEN = Bridge(components=COUNTERS, snapshots=7)
BEATS = ClockSettings("beats", "beats")


def gaussians(s: int = 4, n: int = 200, d: int = 2) -> Snapshots:
    """A cloud that moves by one per unit of time, far from 0."""
    random = np.random.default_rng(0)
    clouds = [random.normal(20 + k, 1.0, (n, d)) for k in range(s)]
    return Snapshots.from_arrays(np.arange(s, dtype=float), clouds, [f"c{i}" for i in range(d)])


def trace(run: int, counts: list[float], seconds: float = 0.1, **changes: Any) -> Trace:
    return replace(a_trace(run, {"instructions": counts}, seconds), **changes)


def test_the_face_answers(phases: Traces) -> None:
    found = jostle.forecast(phases, jostle.Bridge(components=COUNTERS)).at(0.405, core=0)
    assert found.components == COUNTERS
    assert found.atoms.shape[1] == 3
    assert found.weights.sum() == pytest.approx(1)
    assert found.quantile(0.95).shape == (3,)
    assert found.quantile([0.5, 0.9]).shape == (2, 3)
    assert 0 <= found.exceedance_ratio({"instructions": float(found.mean[0])}) <= 1


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


@pytest.mark.parametrize("method", ["average", "nearest", "mixture", "ot", "bridge", "spline"])
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


def test_thinned_covariance_within_five_percent() -> None:
    forecast = jostle.forecast(gaussians(n=500, d=3), Bridge("bridge", atoms=500))
    for time in (0.3, 0.5, 1.7):
        found = forecast.at(time)
        assert len(found) == 500
        ratio = np.trace(found.cloud.covariance) / np.trace(found.covariance)
        assert ratio == pytest.approx(1, abs=0.05)


def test_the_same_question_has_the_same_answer() -> None:
    one, two = (jostle.forecast(gaussians(), Bridge(seed=5)).at(1.3) for _ in range(2))
    np.testing.assert_array_equal(one.atoms, two.atoms)
    other = jostle.forecast(gaussians(), Bridge(seed=6)).at(1.3)
    assert not np.array_equal(one.atoms, other.atoms)
    np.testing.assert_array_equal(one.sample(10, seed=1), two.sample(10, seed=1))


@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_agree_on_the_mean(drifting: Traces, graph: str) -> None:
    path = jostle.forecast(drifting, Bridge("bridge", components=COUNTERS, snapshots=5))
    tied = GraphForecast(path.snapshots, path.method, graph, barycentre_atoms=150)
    found, path = tied.at(0.25, core=1), path.at(0.25, core=1)
    np.testing.assert_allclose(found.mean, path.mean, rtol=1e-3)
    np.testing.assert_allclose(np.diag(found.covariance), np.diag(path.covariance), rtol=0.35)


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


def test_phase_beats_time_on_a_phase_program(phases: Traces) -> None:
    ids = phases.run_ids
    times = np.linspace(0.05, 0.85, 40)
    truth = Snapshots.from_traces(phases.select(ids[30:]), COUNTERS, times)
    shots = ClockedSnapshots.timed(phases.select(ids[:30]), COUNTERS, clock=BEATS)
    forecast = ClockForecast(shots.select(place(shots, 7)), Bridge())
    errors: dict[str, list[float]] = {"phase": [], "bridge": []}
    for k, time in enumerate(times):
        for method, found in errors.items():
            guess = forecast.at(float(time), method=method).cloud.scaled(forecast.scale)
            found.append(wasserstein(guess, truth.of(0)[k].cloud.scaled(forecast.scale)))
    assert np.mean(errors["phase"]) < 0.7 * np.mean(errors["bridge"])


def test_a_work_clock_needs_no_marks(phases: Traces) -> None:
    times = jostle.forecast(phases, SEVEN).snapshots.times_seconds
    clock = ClockSettings("instructions")
    shots = ClockedSnapshots.timed(phases, COUNTERS, times, clock=clock)
    forecast = ClockForecast(shots, Bridge())
    found = forecast.at(0.31, method="phase")
    truth = Snapshots.from_traces(phases, COUNTERS, [0.31]).of(0)[0].cloud
    bridge = forecast.at(0.31, method="bridge")
    gap = [
        wasserstein(d.cloud.scaled(forecast.scale), truth.scaled(forecast.scale))
        for d in (found, bridge)
    ]
    assert gap[0] < gap[1]


def test_placed_snapshots_catch_every_phase(phases: Traces) -> None:
    shots = ClockedSnapshots.timed(phases, COUNTERS, clock=BEATS)
    chosen = place(shots, 8)
    assert chosen[0] == 0
    assert chosen[-1] == len(shots) - 1
    assert len(chosen) == 8
    assert shots.clock is not None
    caught = {
        int(p) for k in chosen for p in shots.clock.at(0, shots.times_seconds[k])[0] if p == p
    }
    assert caught == set(range(6))
    with pytest.raises(UsageError):
        place(gaussians(), 3)


def test_contexts_interpolate_and_refuse(drifting: Traces) -> None:
    made = {}
    for value, shift in ((0.0, 0.0), (1.0, 4.0), (3.0, 12.0)):
        base = gaussians()
        clouds = [shot.cloud.atoms + shift for shot in base.of(0)]
        made[value] = jostle.forecast(
            Snapshots.from_arrays(base.times_seconds, clouds, base.components)
        )
    contexts = Contexts(made)
    found = contexts.at(1.5, 2.0)
    truth = made[1.0].at(1.5).mean + 4.0
    np.testing.assert_allclose(found.mean, truth, atol=0.3)
    np.testing.assert_array_equal(contexts.at(1.5, 1.0).atoms, made[1.0].at(1.5).atoms)
    with pytest.raises(UsageError, match="outside those measured"):
        contexts.at(1.5, 4.0)
    with pytest.raises(UsageError):
        Contexts({0.0: made[0.0]})
    with pytest.raises(BadData):
        Contexts({0.0: made[0.0], 1.0: jostle.forecast(drifting)})


def law(atoms: list[float], weights: list[float] | None = None) -> Distribution:
    cloud = Cloud.of(np.array(atoms), None if weights is None else np.array(weights))
    return Distribution.of(cloud, ["x"], "made")


def test_total_demand_by_hand() -> None:
    coin, die = law([0, 1]), law([1, 2, 3, 4, 5, 6])

    def over(laws: list[Distribution], capacity: float) -> float:
        return total_demand(laws).exceedance_ratio({"x": capacity})

    assert over([coin, die], 6) == pytest.approx(1 / 12)
    assert over([coin, die], 0.99) == pytest.approx(1)
    assert over([coin, die], 1) == pytest.approx(11 / 12)
    assert over([die], 4) == pytest.approx(1 / 3)
    assert over([coin] * 3, 2) == pytest.approx(1 / 8)
    with pytest.raises(UsageError):
        total_demand([])
    with pytest.raises(UnknownName):
        total_demand([coin]).exceedance_ratio({"y": 1.0})


def test_many_workloads_are_drawn() -> None:
    """Four exponential laws: Erlang's law says how often their sum is over 6."""
    levels = (np.arange(700) + 0.5) / 700
    total = total_demand([law(list(-np.log(levels)))] * 4)
    truth = np.exp(-6) * (1 + 6 + 18 + 36)
    deviation = np.sqrt(truth * (1 - truth) / len(total))
    assert total.exceedance_ratio({"x": 6.0}) == pytest.approx(truth, abs=6 * deviation)


def test_few_runs_leave_open_what_they_did_not_show() -> None:
    """Three workloads of five runs, normal and known: new sums stay below the 95% quantile that is claimed,
    on the mean over draws of the runs, as often or a little more; the quantile of what was recorded does not
    hold. And two of one workload are alike."""
    random, kept = np.random.default_rng(3), []
    for number in range(300):
        rows = 10 + random.standard_normal((3, 5))
        laws = [law(row.tolist()) for row in rows]
        told = total_demand([replace(one, runs=5) for one in laws], size=1000, seed=number)
        assert told.mean[0] == pytest.approx(rows.mean(axis=1).sum())
        quantiles = [one.quantile(0.95)[0] for one in (told, total_demand(laws))]
        kept.append([NormalDist(30, 3**0.5).cdf(float(one)) for one in quantiles])
    claimed, recorded = np.mean(kept, axis=0)
    assert 0.945 < claimed < 0.985
    assert recorded < 0.92
    one = replace(law([1, 2, 3, 4, 5]), runs=5)
    alike, apart = (total_demand([one, one], same=s).atoms.std() for s in ("aa", "ab"))
    assert alike > 1.04 * apart


def test_moments_of_a_sum_are_exact() -> None:
    a, b = law([0, 2]), law([1, 5], [3, 1])
    total = total_demand([a, b])
    assert total.mean[0] == pytest.approx(3)
    assert total.covariance[0, 0] == pytest.approx(1 + 3)
    assert total.cloud.mean[0] == pytest.approx(3, abs=0.01)


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
