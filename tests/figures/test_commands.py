"""`python -m studies protocol` and `figures` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from studies import run as run_study


def run(*arguments: object) -> int:
    return run_study([str(argument) for argument in arguments])


def protocol(dataset: Path, folder: Path, *more: object) -> int:
    chosen = ("--methods", "linear scaling", "--replicates", "2", "--workers", "1")
    return run("protocol", dataset, "-o", folder, *chosen, *more)


def test_protocol_prints_a_table_and_leaves_parquet(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert protocol(dataset, tmp_path, "--observed", ".3,.6") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split()[:3] == ["method", "observed", "n"]
    assert [line.split()[2:4] for line in printed[1:]] == [["0.3", "2"], ["0.6", "2"]]
    table = pq.read_table(tmp_path / "baselines.parquet")
    assert set(table.column("replicate").to_pylist()) == {0, 1}
    assert table.schema.metadata[b"schema"] == b"protocol/v1"


def test_protocol_as_json(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert protocol(dataset, tmp_path, "--observed", ".5", "--by", "window", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evaluate/v1"
    assert {row["split_by"] for row in document["rows"]} == {"window"}


def test_protocol_errors(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert protocol(dataset, tmp_path, "--observed", "half") == 2
    assert "half" in capsys.readouterr().err
    assert protocol(dataset, tmp_path, "--study", "nonsense") == 2
    assert "baselines" in capsys.readouterr().err
    assert run("protocol", dataset, "-o", tmp_path, "--methods", "magic") == 2
    assert "linear scaling" in capsys.readouterr().err


@pytest.mark.usefixtures("sketches")
def test_figures(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    assert protocol(dataset, results, "--observed", ".5") == 0
    capsys.readouterr()
    assert run("figures", results) == 0
    paths = [Path(line) for line in capsys.readouterr().out.splitlines()]
    assert all(path.is_file() for path in paths)
    assert "figure-6a-baselines.svg" in {path.name for path in paths}
    assert run("figures", tmp_path) == 4
