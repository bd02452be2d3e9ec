"""The report: what it says is so, it holds all it needs, and names show as text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.report import find, to_html
from jostle.report._held_out import wilson
from jostle.runs import Dataset, Runs
from tests.service.conftest import model_folders  # noqa: F401

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def data(model_folders: tuple[Path, Path]) -> Path:  # noqa: F811
    return Path(next(model_folders[0].parents[1].glob("world*/dataset")))


def test_the_file_holds_all_it_needs(
    data: Path,
    model_folders: tuple[Path, Path],  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "report.html"
    assert exit_code(["report", str(data), str(model_folders[0]), "-o", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    text = out.read_text("utf-8")
    HTMLParser().feed(text)
    assert not re.findall(r"(src|href)=|https?://|@import|url\(", text)
    for title in ("The data", "Errors and coverage", "Pairs that disturb", "Map of workloads",
                  "Worst errors", "What to measure next"):  # fmt: skip
        assert title in text
    assert exit_code(["report", str(data), str(model_folders[0]), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "report/v1"
    assert document["overall"]["runs"] > 50


def test_errors_and_coverage_are_those_of_runs_not_learned_from(
    data: Path,
    model_folders: tuple[Path, Path],  # noqa: F811
) -> None:
    model = jostle.load(model_folders[0])
    found = find(Dataset(data), model, confidence=0.8)
    assert found.overall is not None
    assert found.overall.runs == len(model.calibration.runs)
    assert found.overall.low < found.overall.coverage < found.overall.high
    assert 0.7 < found.overall.coverage < 0.9
    per_degree = found.groups["co-runners"]
    assert sum(row.runs for row in per_degree) == found.overall.runs
    assert not found.notes
    assert found == find(Dataset(data), model, confidence=0.8)
    errors = [abs(np.log(one.runtime_seconds / one.predicted_seconds)) for one in found.worst]
    assert errors == sorted(errors, reverse=True)


def test_pairs_are_measured_slowdowns() -> None:
    from jostle.report._findings import _pairs

    runs = Runs.from_columns(
        workload=["a", "b", "a", "b", "a"],
        platform=["x"] * 5,
        corunners=[[], [], ["b"], ["a"], ["b"]],
        runtime_seconds=[1.0, 2.0, 4.0, 2.2, 9.0],
    )
    first, second = _pairs(runs)
    assert (first.workload, first.corunner, first.runs) == ("a", "b", 2)
    assert first.slowdown == pytest.approx(6.0)
    assert second.slowdown == pytest.approx(1.1)


def test_names_with_markup_show_as_text(
    data: Path,
    model_folders: tuple[Path, Path],  # noqa: F811
) -> None:
    from dataclasses import replace

    found = find(Dataset(data), jostle.load(model_folders[0]))
    text = to_html(
        replace(found, dataset=HOSTILE, map_points=((HOSTILE, 0.0, 1.0),), notes=(HOSTILE,))
    )
    assert HOSTILE not in text
    assert text.count("&lt;script&gt;") >= 4


def test_other_data_than_the_model_knows_says_so(
    model_folders: tuple[Path, Path],  # noqa: F811
    tmp_path: Path,
) -> None:
    runs = Runs.from_columns(
        workload=["new", "other"], platform=["there", "there"], runtime_seconds=[1.0, 2.0]
    )
    Dataset(tmp_path / "data").write(runs)
    found = find(Dataset(tmp_path / "data"), jostle.load(model_folders[0]))
    assert found.notes
    assert "not of the version" in " ".join(found.notes)
    assert to_html(found)


def test_the_interval_is_wilsons() -> None:
    low, high = wilson(0.9, 100)
    assert (round(low, 4), round(high, 4)) == (0.8256, 0.9448)
    assert wilson(1.0, 10)[1] == pytest.approx(1.0)
    assert np.isnan(wilson(0.5, 0)[0])
