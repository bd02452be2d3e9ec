"""`jostle forecast` and `python -m studies bridge` on small recorded-like traces, and the harness itself."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import studies
from jostle.bridge import Bridge, Snapshots
from jostle.cli import exit_code
from jostle.traces import Traces, write_traces
from studies.bridge.data import COUNTERS
from studies.bridge.scores import ForecastSplit, HeldOutTime, score
from studies.bridge.splits import leaks_of_design, published_splits, trace_splits

SMALL = ["--component", "instructions", "--component", "llc-misses", "--snapshots", "5"]


@pytest.fixture(scope="session")
def folder(phases: Traces, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "recorded"
    write_traces(path, phases)
    return path


def test_forecast_prints_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["forecast", str(folder), "--at", "0.31", "--at", "0.5", *SMALL, "--json"]
    assert exit_code([*arguments, "--limit", "instructions=1e9"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "forecast/v2"
    assert len(document["answers"]) == 2
    one = document["answers"][0]
    assert set(one["components"]) == {"instructions", "llc-misses"}
    assert 0 <= one["exceedance_ratio"] <= 1
    levels = list(one["components"]["instructions"]["quantiles_per_second"].values())
    assert levels == sorted(levels)


def test_forecast_prints_a_table_and_draws(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["forecast", str(folder), "--at", "0.31", *SMALL, "--picture", str(tmp_path)]
    assert exit_code(arguments) == 0
    printed = capsys.readouterr().out
    assert "instructions" in printed
    assert (tmp_path / "figures" / "forecast.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (["--at", "99"], 2),
        (["--at", "0.3", "--limit", "instructions"], 2),
        (["--at", "0.3", "--workload", "nobody"], 4),
        (["--at", "0.3", "--beside", "nobody"], 4),
        (["--at", "0.3", "--method", "phase"], 2),
        (["--at", "0.3", "--component", "nothing"], 4),
    ],
)
def test_forecast_refuses(folder: Path, more: list[str], code: int) -> None:
    assert exit_code(["forecast", str(folder), *more, "--json"]) == code


def test_evaluate_on_recorded_traces(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bridge", "--data", str(folder), *SMALL, "--splits", "1", "--no-speed"]
    arguments += ["--clock", "beats", "--clock-kind", "beats", "--json"]
    assert studies.run(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evaluate/v1"
    metrics = document["metrics"]
    assert metrics["brute_force_max_abs_error"] < 1e-10
    assert (
        metrics["w2_over_oracle_ratio_phase_recorded"] < metrics["w2_over_oracle_ratio_ot_recorded"]
    )
    for method in ("nearest", "mixture", "ot", "bridge", "spline", "climatology", "quantile"):
        assert metrics[f"w2_over_oracle_ratio_{method}_recorded"] > 0.5


@pytest.mark.parametrize("name", ["nonsense", "phases-x-7", "nmpc-4", "drift"])
def test_evaluate_refuses_unknown_data(name: str) -> None:
    assert studies.run(["bridge", "--data", name, "--no-speed", "--json"]) == 2


def test_a_leak_is_left_out(phases: Traces) -> None:
    split = trace_splits(phases, 5, method=Bridge(components=COUNTERS), splits=1, times=6)[0]
    shot = split.forecast.snapshots.of(0)[1].cloud
    leak = HeldOutTime(0.3, 0, shot, shot, leaks=True)
    found = score("leaky", [ForecastSplit(split.forecast, [*split.held_out, leak])])
    assert found.leaks == 1
    assert len(found.errors["oracle"]) == len(split.held_out)
    assert found.paired("ot") == (0.0, 0.0)


def test_splits_share_no_run(phases: Traces) -> None:
    """The oracle is A's, the truth is B's: no state of the one is among the other's."""
    split = trace_splits(phases, 5, method=Bridge(components=COUNTERS), splits=2, times=4)[1]
    for held_out in split.held_out:
        a, b = held_out.oracle.atoms[:, 0], held_out.truth.atoms[:, 0]
        assert not np.intersect1d(a, b).size


def _published() -> Path:
    root = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("JOSTLE_DATA", root.parent / "shared" / "data")) / "nmpc"


@pytest.mark.data
@pytest.mark.skipif(not _published().is_dir(), reason="the published snapshots are not at hand")
def test_the_published_design_leaks_eight_of_twenty_five() -> None:
    assert [len(leaks_of_design(_published(), k)) for k in range(5)] == [0, 5, 10, 6, 8]
    split = published_splits(_published(), 4, splits=1)[0]
    assert sum(not held_out.leaks for held_out in split.held_out) == 14


def test_from_arrays_checks() -> None:
    from jostle.errors import BadData, UsageError

    good = np.ones((3, 2))
    for times, clouds in (([0.0], [good, good]), ([0.0, 1.0], [good, np.ones((3, 1))])):
        with pytest.raises(BadData):
            Snapshots.from_arrays(times, clouds, ["a", "b"])
    with pytest.raises(UsageError):
        Snapshots.from_arrays([1.0, 0.0], [good, good], ["a", "b"])
    with pytest.raises(BadData):
        Snapshots.from_arrays([0.0], {}, ["a"])
