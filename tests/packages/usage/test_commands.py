"""`jostle forecast` on small recorded-like traces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from jostle.cli import exit_code
from jostle.data import Traces, write_traces
from jostle.usage import Snapshots

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
