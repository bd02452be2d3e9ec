"""The default, an average of several forecasts: what it keeps, what it weighs, how often it is right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import jostle
from jostle.bridge import Bridge, Cloud, Forecast, Snapshots, evenly_few, transport
from jostle.bridge.forecasting._average import LawShares
from jostle.bridge.forecasting._interpolate import moved
from jostle.errors import UnknownName
from studies.bridge.data import COUNTERS
from studies.bridge.families import FAMILIES, made_family
from studies.bridge.rivals import wasserstein
from studies.bridge.scores import came_true, score
from studies.bridge.splits import trace_splits


def clouds(seed: int = 0, n: int = 120, s: int = 7) -> list[np.ndarray]:
    random = np.random.default_rng(seed)
    return [random.gamma(3.0, 10.0 + 2 * k, (n, 2)) for k in range(s)]


def made(atoms: list[np.ndarray]) -> Snapshots:
    return Snapshots.from_arrays(np.arange(len(atoms), dtype=float), atoms, ["a", "b"])


def test_it_is_the_default_unless_the_bridge_is_meant() -> None:
    assert Bridge().method == "average"
    for own in (
        Bridge(eps=0.3),
        Bridge(time_scaled=False),
        Bridge(eps_unit="median"),
    ):
        assert own.method == "bridge"
    assert Bridge(method="average", eps=0.3).method == "average"
    assert replace(Bridge(), snapshots=5).method == "average"


def test_moments_and_shares_are_those_of_the_whole() -> None:
    forecast = jostle.forecast(made(clouds()))
    found = forecast.at(2.3)
    shares = {name: value for name, value in found.details.items() if name.startswith("share_")}
    assert sum(shares.values()) == pytest.approx(1)
    assert found.method == "average"
    np.testing.assert_allclose(found.weights @ found.atoms, found.mean, rtol=0.02)
    np.testing.assert_allclose(found.cloud.deviation**2, np.diag(found.covariance), rtol=0.05)
    again = jostle.forecast(made(clouds())).at(2.3)
    np.testing.assert_array_equal(found.atoms, again.atoms)


def test_zeros_keep_their_share_exactly_between_equal_ones() -> None:
    random = np.random.default_rng(1)
    atoms = clouds()
    for cloud in atoms:
        cloud[:, 1] = random.permutation(np.where(np.arange(120) < 102, 0.0, cloud[:, 1]))
    for time in (0.4, 3.5, 5.9):
        found = jostle.forecast(made(atoms)).at(time)
        assert found.weights @ (found.atoms[:, 1] == 0) == pytest.approx(0.85, abs=0.02)


def test_smooth_programs_are_left_to_the_spline() -> None:
    traces = made_family("smooth", 60, seed=1)
    forecast = jostle.forecast(traces, Bridge(components=COUNTERS, snapshots=7))
    assert forecast.stack().weights == {"spline": 1.0}
    assert forecast.stack().scores["spline"] < forecast.stack().scores["mixture"]


def test_two_snapshots_are_enough_and_equal_ones_stay() -> None:
    same = clouds(s=1) * 2
    found = jostle.forecast(made(same)).at(0.5)
    np.testing.assert_allclose(found.mean, same[0].mean(axis=0), rtol=1e-9)
    assert jostle.forecast(made(same)).stack() is not None
    one = made([np.full((3, 2), 5.0), np.full((4, 2), 7.0), np.full((2, 2), 9.0)])
    assert np.isfinite(jostle.forecast(one).at(0.7).atoms).all()


def test_nothing_is_pooled_at_the_ends_of_an_interval() -> None:
    stack = LawShares({"moved": 0.5, "climatology": 0.5}, {})
    assert stack.at(0.0) == {"moved": 0.5, "mixture": 0.5}
    assert 0 < stack.at(0.5)["climatology"] < 0.5


def test_runs_that_go_over_to_another_mode_are_not_seen_in_between() -> None:
    random = np.random.default_rng(2)
    x = np.concatenate([random.normal(0, 1, (90, 2)), random.normal(60, 1, (10, 2))])
    y = np.concatenate([random.normal(0, 1, (85, 2)), random.normal(60, 1, (15, 2))])
    one, two = Cloud.of(x), Cloud.of(y)
    for stay in (0.0, 0.5):
        found = moved(transport(one, two), one, two, 0.4, stay)
        between = (found.atoms[:, 0] > 10) & (found.atoms[:, 0] < 50)
        assert not between.any()
        assert found.weights @ (found.atoms[:, 0] > 30) == pytest.approx(0.12)
        assert found.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", ["modes", "glitches", "turns"])
def test_what_it_calls_nearly_certain_comes_true(name: str) -> None:
    """And it is no worse than the best single method by much, nor than the mixture."""
    method = Bridge(components=COUNTERS)
    splits = trace_splits(made_family(name, 120, seed=2), 7, method=method, splits=1, times=10)
    found = score(name, splits)
    share, claimed = found.came_true("average")
    assert claimed > 5
    assert share > 0.98
    assert found.mean("average", "brier") < 1.05 * found.mean("mixture", "brier")
    singles = ("nearest", "mixture", "ot", "bridge", "spline")
    assert found.mean("average", "crps") < 1.1 * min(found.mean(m, "crps") for m in singles)


def test_came_true_counts_both_ends() -> None:
    claims = np.array([[1.0, 0.9], [0.0, 0.1], [0.5, 0.5]])
    assert came_true([claims], 0.99) == (pytest.approx(0.9), 2)
    assert came_true([claims[2:]], 0.99)[1] == 0


def test_families_are_what_they_say() -> None:
    for name in FAMILIES:
        traces = made_family(name, 3, seed=1)
        assert len(traces) == 3
    rare = np.concatenate([t["llc-misses"] for t in made_family("zeros", 20)])
    assert (rare == 0).mean() == pytest.approx(0.85, abs=0.02)
    seen = np.concatenate([t["llc-misses"] for t in made_family("turns", 20)])
    assert np.isnan(seen).mean() == pytest.approx(0.3, abs=0.03)
    with pytest.raises(UnknownName):
        made_family("none", 3)


def test_many_runs_are_transported_in_part() -> None:
    """Exact transport of thousands of atoms takes minutes: fewer tell the ranks, all tell the quantiles."""
    random = np.random.default_rng(3)
    atoms = [random.normal(10 * k + 50, 1 + k, (900, 2)) for k in range(3)]
    forecast = Forecast(made(atoms), Bridge())
    assert len(forecast.coupling(0, 0, "ot").x) < 900
    found = forecast.at(0.5)
    assert len(found) == 1800
    np.testing.assert_allclose(found.mean, 55, rtol=0.01)


def test_the_study_compares_as_many_atoms_as_there_are_runs() -> None:
    """Of whole numbers few are different, and so few atoms would say little of a mixture."""
    traces = made_family("smooth", 80, seed=2)
    whole = [
        replace(t, counters={n: np.round(v / v.mean()) for n, v in t.counters.items()})
        for t in traces
    ]
    splits = trace_splits(type(traces).from_traces(whole), 5, splits=1, times=8)
    truth, oracle = splits[0].held_out[0].truth, splits[0].held_out[0].oracle
    assert len(oracle.merged) < 0.5 * len(oracle)
    found = score("whole", splits)
    scale = splits[0].forecast.scale
    law = splits[0].forecast.at(splits[0].held_out[0].time_seconds, method="mixture").cloud
    draws = [evenly_few(law.merged, 40, seed).scaled(scale) for seed in range(4)]
    expected = np.mean([wasserstein(draw, truth.scaled(scale)) for draw in draws])
    assert found.errors["mixture"][0, 0] == pytest.approx(expected)
