"""Forecasts that were saved give the same answers; summaries keep what they promise."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jostle
from jostle.data import Traces
from jostle.errors import UnreadableFile, UsageError
from jostle.usage import Bridge, Distribution, Forecast, Snapshots

SIX = Bridge(components=("instructions", "llc-misses"), snapshots=6)


def same(one: Distribution, two: Distribution) -> None:
    np.testing.assert_array_equal(one.atoms, two.atoms)
    np.testing.assert_array_equal(one.weights, two.weights)
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.covariance, two.covariance)
    assert (one.method, one.idle_ratio, one.warnings) == (two.method, two.idle_ratio, two.warnings)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=2, max_size=4),
    method=st.sampled_from(["bridge", "ot", "mixture"]),
    eps=st.sampled_from([0.02, 0.1, 3.0, float("inf")]),
    where=st.floats(0, 1),
    seed=st.integers(0, 2**31),
)
def test_a_saved_forecast_gives_the_same_answers(
    sizes: list[int], method: Any, eps: Any, where: float, seed: int
) -> None:
    random = np.random.default_rng(seed)
    clouds = [random.gamma(2.0, 1e3, (n, 2)) for n in sizes]
    times = np.cumsum(random.uniform(0.1, 1.0, len(sizes)))
    made = Bridge(method=method, eps=eps, seed=seed % 97)
    forecast = jostle.forecast(Snapshots.from_arrays(times, clouds, ["a", "b"]), made)
    at = float(times[0] + where * (times[-1] - times[0]))
    at = min(at, float(times[-1]))
    with tempfile.TemporaryDirectory() as folder:
        forecast.save(folder)
        loaded = Forecast.load(folder)
        same(loaded.at(at), forecast.at(at))
        assert loaded.components == forecast.components


def test_with_runs_windows_and_ends(phases: Traces, tmp_path: Path) -> None:
    forecast = jostle.forecast(phases, SIX)
    forecast.save(tmp_path)
    loaded = Forecast.load(tmp_path)
    assert loaded.method == forecast.method
    assert loaded.snapshots.windows == forecast.snapshots.windows
    np.testing.assert_array_equal(loaded.snapshots.of(0)[2].runs, forecast.snapshots.of(0)[2].runs)
    last = forecast.span_seconds[1]
    for time in (0.2, 0.47, 0.5 * (0.9 + last), last):
        same(loaded.at(time), forecast.at(time))
    with pytest.raises(UsageError, match="cannot have"):
        forecast.save(tmp_path, atoms=0)


def test_a_smaller_one_is_near(phases: Traces, tmp_path: Path) -> None:
    made = Bridge(components=("instructions", "llc-misses"), snapshots=6)
    forecast = jostle.forecast(phases, made)
    forecast.save(tmp_path, atoms=12)
    small = Forecast.load(tmp_path)
    assert max(len(shot.cloud) for shot in small.snapshots.of(0)) == 12
    found, whole = small.at(0.3), forecast.at(0.3)
    np.testing.assert_allclose(found.mean, whole.mean, rtol=2e-3)
    np.testing.assert_allclose(np.diag(found.covariance), np.diag(whole.covariance), rtol=0.15)


def test_what_is_not_a_saved_forecast_is_refused(phases: Traces, tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="no forecast here"):
        Forecast.load(tmp_path)
    jostle.forecast(phases, SIX).save(tmp_path)
    head = tmp_path / "forecast.json"
    document = json.loads(head.read_text())
    for broken in (
        document | {"schema": "model/v1"},
        document | {"method": {}},
        document | {"method": document["method"] | {"eps": "much"}},
        document | {"snapshots": document["snapshots"] | {"cores": [[7, []]]}},
        [],
    ):
        head.write_text(json.dumps(broken))
        with pytest.raises(jostle.JostleError):
            Forecast.load(tmp_path)
    head.write_text(json.dumps(document))
    tensors = tmp_path / document["tensors"]
    tensors.write_bytes(tensors.read_bytes()[:-9])
    with pytest.raises(UnreadableFile, match="truncated or changed"):
        Forecast.load(tmp_path)


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 60),
    atoms=st.integers(1, 20),
    idle=st.sampled_from([0.0, 0.25, 1.0]),
    seed=st.integers(0, 1000),
)
def test_a_summary_keeps_mean_and_idle_share(n: int, atoms: int, idle: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    from jostle.usage import Cloud

    cloud = Cloud.of(random.gamma(2.0, 1.0, (n, 2)), random.uniform(0.1, 1, n))
    whole = Distribution.of(cloud, ["a", "b"], "made", idle_ratio=idle)
    small = whole.summary(atoms)
    assert len(small) <= atoms + (0 < idle < 1)
    assert small.idle_ratio == whole.idle_ratio
    assert small.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(small.weights @ small.atoms, whole.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(small.covariance, whole.covariance)
    if 0 < idle < 1:
        assert (small.atoms[-1] == 0).all()
        assert small.weights[-1] == pytest.approx(idle)
