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
from jostle.ensemble import Ensemble
from jostle.methods import Data
from jostle.report import find, to_html
from jostle.report._findings import _likely
from jostle.report._held_out import HeldOutRuns, wilson
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


def test_pairs_are_measured_slowdowns(tmp_path: Path) -> None:
    runs = Runs.from_columns(
        workload=["a", "b", "a", "b", "a"],
        platform=["x"] * 5,
        corunners=[[], [], ["b"], ["a"], ["b"]],
        runtime_seconds=[1.0, 2.0, 4.0, 2.2, 9.0],
    )
    Dataset(tmp_path).write(runs)
    model = jostle.fit(runs, Ensemble(experts=("rules",)))
    first, second = find(Dataset(tmp_path), model).pairs
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


def test_worst_errors_say_what_they_share_with_others() -> None:
    draw = np.random.default_rng(0)
    beside = [["hog"] if n % 4 == 0 else ["calm"] if n % 4 == 1 else [] for n in range(80)]
    runs = jostle.Runs.from_columns(
        workload=[f"w{n % 5}" for n in range(80)],
        platform=["p", "q"] * 40,
        corunners=beside,
        runtime_seconds=np.ones(80),
    )
    error = draw.normal(0, 0.01, 80)
    error[::4] += 0.4
    error[3] = -0.3
    flags = np.ones(80, bool)
    test = HeldOutRuns(runs, error, flags, flags, np.ones(80), np.arange(80), 0.9)
    shared = _likely(test, 8)
    assert shared is not None
    assert shared.startswith("shared: 19 more of runs beside hog took longer, by 4")
    assert _likely(test, 3) is None


def test_what_to_measure_is_never_empty_without_a_reason(
    data: Path,
    model_folders: tuple[Path, Path],  # noqa: F811
) -> None:
    found = find(Dataset(data), jostle.load(model_folders[0]), confidence=0.5)
    ((what, why),) = found.to_measure
    assert what == "nothing has to be"
    assert "has a bound at 0.5" in why


def test_a_model_calibrated_on_what_fits_had_left_out_has_errors_and_coverage(
    tmp_path: Path,
) -> None:
    """Each error is that of the fit that had not seen the run: larger than that of the model, which has."""
    draw = np.random.default_rng(1)
    names = [f"w{n}" for n in range(5)]
    workload = [names[n % 5] for n in range(200)]
    beside = [[names[draw.integers(5)]] * (n % 3 > 0) for n in range(200)]
    seconds = [1 + names.index(w) + 0.2 * len(b) for w, b in zip(workload, beside, strict=True)]
    runs = Runs.from_columns(
        workload=workload,
        platform=["p"] * 200,
        corunners=beside,
        runtime_seconds=np.array(seconds) * draw.lognormal(0, 0.05, 200),
    )
    Dataset(tmp_path / "data").write(runs)
    method = Ensemble(experts=("rules",))
    model = jostle.fit(runs, method, seed=0)
    assert model.calibration.is_crossed
    report = find(Dataset(tmp_path / "data"), model)
    assert report.overall is not None
    _, left_out = method.fit_left_out(method.prepare(Data.of(runs)), seed=0)
    errors = [
        np.abs(
            runs.runtime_seconds[one.runs] / one.fitted.predict(runs.colocations.take(one.runs)) - 1
        )
        for one in left_out
        if not (one.is_of_names or one.is_larger)
    ]
    every = np.concatenate(errors)
    assert report.overall.runs == np.isfinite(every).sum()
    assert report.overall.mean_error == pytest.approx(np.nanmean(every))
    assert 0.5 < report.overall.coverage <= 1
    assert report.worst
