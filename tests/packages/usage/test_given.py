"""A run that goes on: what it will use, given what it has shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Trace, Traces, write_traces
from jostle.errors import BadData, UnknownName, UsageError
from jostle.usage import Forecast, Snapshots
from tests.limits import assert_closer
from tests.packages.usage.conftest import a_trace


def until(trace: Trace, samples: int) -> Trace:
    """The trace as it was after so many samples."""
    return replace(
        trace,
        time_seconds=trace.time_seconds[:samples],
        interval_seconds=trace.interval_seconds[:samples],
        counters={name: value[:samples] for name, value in trace.counters.items()},
        runtime_seconds=float("nan"),
    )


def levels(runs: int, mode: float | None = None, *, first: int = 0) -> Traces:
    """Runs that use 10 or 50 per second all the time; the last five of ten samples twice that."""
    random = np.random.default_rng(first)
    made = []
    for number in range(first, first + runs):
        use = (1.0 if number % 2 else 5.0) if mode is None else mode
        counts = use * np.exp(0.02 * random.standard_normal(10))
        counts[5:] *= 2
        made.append(a_trace(number, {"x": counts.tolist()}))
    return Traces.from_traces(made)


@pytest.fixture(scope="module")
def forecast() -> Forecast:
    return jostle.forecast(levels(80))


@pytest.mark.parametrize(("mode", "mean"), [(1.0, 20.0), (5.0, 100.0)])
def test_the_mode_that_was_seen_is_the_mode_to_come(
    forecast: Forecast, mode: float, mean: float
) -> None:
    (live,) = levels(1, mode, first=90)
    found = forecast.given(until(live, 4)).at(0.8)
    assert found.method == "given"
    assert found.mean[0] == pytest.approx(mean, rel=0.1)
    assert forecast.at(0.8).mean[0] == pytest.approx(60, rel=0.1)


def test_within_some_seconds_is_any_of_their_samples(forecast: Forecast) -> None:
    live = forecast.given(until(next(iter(levels(1, 1.0, first=90))), 4))
    for seconds, over, expected in ((0.1, 15, 0.0), (0.2, 15, 1.0), (0.6, 15, 1.0), (0.6, 45, 0.0)):
        found = live.exceedance_ratio({"x": over}, seconds)
        assert found == pytest.approx(expected, abs=0.05)
    assert live.exceedance_ratio({"x": 15}, 100.0) == pytest.approx(1.0, abs=0.05)


def test_samples_may_come_one_by_one(forecast: Forecast) -> None:
    (live,) = levels(1, 5.0, first=90)
    whole = forecast.given(until(live, 3))
    steps = forecast.given()
    with pytest.raises(UsageError, match="shown nothing yet"):
        steps.at(0.5)
    for k in range(3):
        steps.see(0.1 * (k + 1), {"x": float(live["x"][k])}, interval_seconds=0.1)
    np.testing.assert_array_equal(steps.at(0.7).atoms, whole.at(0.7).atoms)
    np.testing.assert_array_equal(steps.at(0.7).weights, whole.at(0.7).weights)
    assert forecast.given(until(live, 2)).now_seconds == pytest.approx(0.2)  # another run, unmixed
    assert steps.now_seconds == pytest.approx(0.3)
    # A sample in which nothing was counted is no sample of zeros.
    steps.see(0.4, {"x": float("nan")}, interval_seconds=0.1)
    assert steps.at(0.8).mean[0] == pytest.approx(100, rel=0.2)


def test_runs_that_end_are_idle() -> None:
    rows = [a_trace(number, {"x": [1.0] * 4}) for number in range(10)]
    rows += [a_trace(number, {"x": [9.0] * 10}) for number in range(10, 20)]
    forecast = jostle.forecast(Traces.from_traces(rows))
    short = forecast.given(until(rows[0], 3)).at(0.8)
    long = forecast.given(until(rows[-1], 3)).at(0.8)
    assert short.idle_ratio > 0.9
    assert long.idle_ratio < 0.1
    assert long.mean[0] == pytest.approx(90, rel=0.1)


def walks(runs: int, seed: int) -> list[np.ndarray]:
    """Rates that go from sample to sample by chance."""
    random = np.random.default_rng(seed)
    return [np.exp(np.cumsum(0.15 * random.standard_normal(60))) for _ in range(runs)]


def waves(runs: int, seed: int) -> list[np.ndarray]:
    """Waves of one length that begin anywhere."""
    random, time = np.random.default_rng(seed), np.arange(60)
    starts = random.uniform(0, 2 * np.pi, runs)
    return [2 + np.sin(time / 3 + at) + 0.1 * random.standard_normal(60) for at in starts]


@pytest.mark.parametrize("made", [walks, waves])
def test_it_is_closer_than_what_is_usual_then(made: Any) -> None:
    """By the Brier score of each run, over three moments and two limits, four samples ahead."""
    rows = made(80, 3)
    traces = Traces.from_traces([a_trace(n, {"x": row.tolist()}) for n, row in enumerate(rows)])
    ids = traces.run_ids
    forecast = jostle.forecast(traces.select(ids[:30]))
    limits = np.quantile(np.concatenate(rows[:30]) / 0.1, (0.5, 0.8))

    def score(law: Any, row: np.ndarray, sample: int) -> float:
        found = law.at(0.1 * (sample + 1))
        claimed = np.array([found.exceedance_ratio({"x": float(one)}) for one in limits])
        return float(((claimed - (row[sample] / 0.1 > limits)) ** 2).mean())

    of_given, usual = np.zeros((2, 50, 3))
    for number, trace in enumerate(traces.select(ids[30:])):
        for place, samples in enumerate((15, 30, 45)):
            row, ahead = rows[30 + number], samples + 3
            of_given[number, place] = score(forecast.given(until(trace, samples)), row, ahead)
            usual[number, place] = score(forecast, row, ahead)
    assert_closer(of_given.mean(axis=1), usual.mean(axis=1))


def test_odd_runs_are_refused() -> None:
    forecast = jostle.forecast(levels(20))
    (trace,) = levels(1, 1.0, first=90)
    live = forecast.given(until(trace, 4))
    for moment in (0.4, 0.1, 1.7, float("nan"), -1.0):
        with pytest.raises(UsageError, match="is not between"):
            live.at(moment)
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(UsageError, match="not a time to come"):
            live.exceedance_ratio({"x": 1}, seconds)
    with pytest.raises(UnknownName):
        live.exceedance_ratio({"y": 1}, 0.2)
    with pytest.raises(UsageError):
        live.exceedance_ratio({}, 0.2)
    with pytest.raises(UsageError, match="not after"):
        live.see(0.4, {"x": 1.0}, interval_seconds=0.1)
    for length, value in ((0.0, 1.0), (-0.1, 1.0), (float("nan"), 1.0), (0.1, float("inf"))):
        with pytest.raises(BadData):
            live.see(0.5, {"x": value}, interval_seconds=length)
    with pytest.raises(BadData, match="has no sample of x"):
        forecast.given(a_trace(3, {"y": [1.0]}))
    unknown = Snapshots.from_arrays(
        [0.0, 1.0], [np.ones((3, 1)), np.ones((4, 1))], ["x"], paired=False
    )
    with pytest.raises(UsageError, match="does not know them"):
        jostle.forecast(unknown).given()


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_traces(tmp_path / "past", levels(40))
    (trace,) = levels(1, 5.0, first=90)
    write_traces(tmp_path / "now", Traces.from_traces([until(trace, 4)]))
    arguments = ["forecast", str(tmp_path / "past"), "--at", "0.8", "--limit", "x=70"]
    live = ["--given", str(tmp_path / "now")]
    assert exit_code([*arguments, *live, "--within", "0.2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["answers"][0]["exceedance_ratio"] > 0.8
    assert document["given"]["exceedance_within_ratio"] > 0.8
    assert document["given"]["until_seconds"] == pytest.approx(0.4)
    assert exit_code([*arguments, *live, "--within", "0.2"]) == 0
    assert "P(over limit within 0.2 s)" in capsys.readouterr().out
    assert exit_code([*arguments, "--within", "0.2", "--json"]) == 2
    assert exit_code([*arguments, "--given", str(tmp_path / "past"), "--json"]) == 2
    assert exit_code([*arguments[:4], *live, "--within", "0.2", "--json"]) == 2
