"""`jostle forecast` of several workloads, of windows and of saved forecasts, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Trace, Traces, write_traces
from jostle.usage import Snapshots
from tests.plain_traces import plain_trace


def steady(name: str, rates: list[float], *, runs: str = "", **changes: Any) -> list[Trace]:
    """One run per rate, ten samples of a tenth of a second."""
    return [
        plain_trace(
            {"events": [0.1 * rate] * 10, "lost": [np.nan] * 10},
            0.1,
            **{"run_id": f"{name}{runs}-{number}", "workload": name} | changes,
        )
        for number, rate in enumerate(rates)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "two"
    write_traces(
        path, Traces.from_traces([*steady("a", [1.0, 3.0] * 50), *steady("b", [10.0, 20.0] * 50)])
    )
    return path


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert exit_code(["forecast", *arguments, "--method", "mixture", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_total_demand_by_hand(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1 or 3 and 10 or 20: the sums 11, 13, 21, 23 are equally likely."""
    found = answered(
        capsys, str(folder), "-w", "a", "-w", "b", "--at", "0.35", "--capacity", "events=12"
    )
    assert [one["workload"] for one in found["forecasts"]] == ["a", "b"]
    assert found["schema"] == "forecast/v2"
    (total,) = found["total"]
    assert total["exceedance_ratio"] == {"events": pytest.approx(0.75, abs=0.03)}
    assert total["components"]["events"]["mean_per_second"] == pytest.approx(17.0)
    # The same workload twice is two of them: 2, 4, 4, 6.
    found = answered(
        capsys, str(folder), "-w", "a", "-w", "a", "--at", "0.35", "--capacity", "events=3"
    )
    assert found["total"][0]["exceedance_ratio"]["events"] == pytest.approx(0.75, abs=0.03)
    # One workload has a capacity too.
    found = answered(capsys, str(folder), "-w", "b", "--at", "0.35", "--capacity", "events=15")
    assert found["total"][0]["exceedance_ratio"]["events"] == pytest.approx(0.5)


def test_folders_and_saved_forecasts_add(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved-a"
    first = answered(capsys, str(folder), "-w", "a", "--at", "0.35", "--save", str(saved))
    again = answered(capsys, str(saved), "--at", "0.35")
    assert again["answers"] == first["answers"]
    other = tmp_path / "b"
    write_traces(other, Traces.from_traces(steady("b", [10.0, 20.0] * 50)))
    found = answered(capsys, str(saved), str(other), "--at", "0.35", "--capacity", "events=12")
    assert found["total"][0]["exceedance_ratio"]["events"] == pytest.approx(0.75, abs=0.03)


def test_tables_and_pictures_say_it_too(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["forecast", str(folder), "-w", "a", "--at", "0.35", "--picture", str(tmp_path)]
    assert exit_code(arguments) == 0
    assert (tmp_path / "figures" / "forecast.png").stat().st_size > 10_000
    arguments = ["forecast", str(folder), "-w", "a", "-w", "b", "--at", "0.35"]
    assert exit_code([*arguments, "--method", "mixture", "--capacity", "events=12"]) == 0
    printed = capsys.readouterr().out
    assert "P(events > 12)" in printed
    assert re.search(r"P\(events > 12\)\s+0\.7[0-9]{3}", printed)


def test_windows_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = []
    for number in range(3):
        window = {"window_id": f"w{number}", "runs": str(number)}
        rows += steady("a", [1.0 + number], corunners=("b",), **window)
        rows += steady("b", [10.0 + number], corunners=("a",), **window)
    write_traces(tmp_path, Traces.from_traces([*rows, *steady("a", [5.0, 6.0], runs="alone")]))
    for core, mean in ((0, 2.0), (1, 11.0)):
        found = answered(capsys, str(tmp_path), "--windows", "--core", str(core), "--at", "0.35")
        mine = found["answers"][0]["components"]["events"]
        assert mine["mean_per_second"] == pytest.approx(mean)
    chosen = answered(
        capsys, str(tmp_path), "--windows", "-w", "a", "-b", "b", "--at", "0.35", "--core", "1"
    )
    assert chosen["answers"][0]["components"]["events"]["mean_per_second"] == pytest.approx(11.0)
    none = ["forecast", str(tmp_path), "--windows", "-w", "a", "-b", "a", "--at", "0.3", "--json"]
    assert exit_code(none) == 4


@pytest.mark.parametrize(
    ("more", "code", "message"),
    [
        (["-w", "nobody"], 4, "unknown workload 'nobody'"),
        (["-w", "a", "-w", "nobody"], 4, "unknown workload 'nobody'"),
        ([], 4, "differ in workload"),
        (["-w", "a", "--component", "lost"], 3, "lost: null in every run"),
        (["-w", "a", "--component", "evens"], 4, "Did you mean events"),
        (["-w", "a", "--at", "2"], 2, "outside the data"),
        (["-w", "a", "-w", "b", "--at", "2"], 2, "a: 2 s lies outside"),
        (["-w", "a", "--at", "nan"], 2, "outside the data"),
        (["-w", "a", "--snapshots", "1"], 2, "--snapshots"),
        (["-w", "a", "--core", "5"], 4, "core 5 has no snapshots"),
        (["-w", "a", "--capacity", "events"], 2, "--capacity"),
        (["-w", "a", "--capacity", "events=nan"], 2, "NaN"),
        (["-w", "a", "--capacity", "evens=3"], 4, "evens"),
        (["-w", "a", "--limit", "evens=3"], 4, "evens"),
        (["-w", "a", "--limit", "events"], 2, "--limit"),
        (["-w", "a", "-b", "nobody"], 4, "beside those co-runners"),
        (["-w", "a", "--method", "magic"], 2, "magic"),
        (["-w", "a", "-w", "b", "--save", "x"], 2, "one workload at a time"),
        (["-w", "a", "--windows"], 4, "window"),
    ],
)
def test_odd_questions_end_with_a_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str], more: list[str], code: int, message: str
) -> None:
    given = [] if "--at" in more else ["--at", "0.35"]
    assert exit_code(["forecast", str(folder), *given, *more, "--json"]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "error/v1"
    assert message in document["message"]


def test_a_single_run_is_no_distribution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_traces(tmp_path, Traces.from_traces(steady("a", [1.0])))
    assert exit_code(["forecast", str(tmp_path), "--at", "0.3", "--json"]) == 3
    assert (
        "1 run is not enough for a distribution" in json.loads(capsys.readouterr().out)["message"]
    )
    assert exit_code(["forecast", str(tmp_path / "nowhere"), "--at", "0.3", "--json"]) == 4


@pytest.mark.parametrize(("runs", "least"), [(5, 0.02), (20, 0.004), (100, 0.0005)])
def test_few_runs_call_nothing_certain(runs: int, least: float) -> None:
    """None of n runs above a limit does not mean that the next one is not."""
    random = np.random.default_rng(runs)
    clouds = [random.lognormal(0, 1, (runs, 1)) for _ in range(6)]
    forecast = jostle.forecast(Snapshots.from_arrays(np.arange(6.0), clouds, ["x"]))
    found = forecast.at(2.0)
    assert found.runs == runs
    assert least < found.exceedance_ratio({"x": 1e9}) < 1.01 / runs
    assert 1 - 1.01 / runs < found.exceedance_ratio({"x": -1.0}) < 1 - least
    share = float(found.weights @ found.above({"x": 1.0}))
    assert found.exceedance_ratio({"x": 1.0}) == pytest.approx(share, abs=1 / runs)
