"""The main job end to end, shortened: a few workloads, seconds of measuring."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

import jostle
from jostle.cli import exit_code as run
from jostle.cli.start.tour_command import TourCommand, tour
from jostle.operations.tour import TourPlan

pytest.importorskip("wasmtime", reason="the tour measures with wasmtime (extra: measure)")

SHORT = TourPlan(
    workloads=("matmul-s", "stream-s", "sha256-s"),
    engines=("speed",),
    sets=32,
    window_seconds=0.02,
    time_budget_seconds=40,
)


def test_the_tour_measures_learns_and_checks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "jostle-tour"
    printed = str(tour(TourCommand(output=folder), SHORT))
    for part in (
        "predicted",
        "bound 90%",
        "measured",
        "inside",
        "Mean error",
        "90% bound",
        "Next:",
    ):
        assert part in printed
    runs = jostle.read_runs(folder / "dataset")
    assert set(runs.colocations.workload_names) == {"matmul-s", "stream-s", "sha256-s"}
    assert (runs.ok().runtime_seconds > 0).all()
    assert (runs.colocations.number_of_corunners > 0).sum() > 20
    assert jostle.load(folder / "model").predict(runs.colocations).shape == (len(runs),)

    # A second tour of the same folder goes on from the first; how it learns was tried by that one.
    quick = jostle.Bag("tree")
    monkeypatch.setattr("jostle.operations.tour._tour_steps.tour_method", lambda *_: quick)
    document = tour(TourCommand(output=folder), replace(SHORT, sets=4)).document
    assert document["schema"] == "tour/v1"
    more = jostle.read_runs(folder / "dataset")
    assert len(more) > len(runs)
    assert set(runs.table.column("run_id").to_pylist()) <= set(
        more.table.column("run_id").to_pylist()
    )
    metrics = document["metrics"]
    assert 0 <= metrics["under_bound_runs"] <= metrics["held_out_runs"]
    for name in ("mape_corun_ratio", "mape_naive_solo_ratio", "mape_naive_share_ratio"):
        assert metrics[name] > 0


def test_what_is_missing_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = importlib.util.find_spec
    for module, extra in (("wasmtime", "measure"), ("jax", "fit")):
        with monkeypatch.context() as patch:
            patch.setattr(
                importlib.util,
                "find_spec",
                lambda name, *rest, gone=module: None if name == gone else known(name, *rest),
            )
            assert run(["tour", "-o", str(tmp_path / "tour")]) == 2
        printed = capsys.readouterr()
        assert f"needs {module}" in printed.err
        assert f"[{extra}]" in printed.err
        assert "Measuring" not in printed.out + printed.err
        assert not (tmp_path / "tour").exists()


def test_few_runs_still_leave_enough_to_calibrate_on() -> None:
    from jostle.learn import Data, Prepared, hold_out
    from tests.small_world import make_world

    for n in (60, 120, 1000):
        held = hold_out(Prepared.of(Data(make_world(n, 0))), 0, "window")
        fitted, validation, calibration = held.learn.runs, held.validation, held.calibration
        assert len(fitted) + len(validation) + len(calibration) == n
        degree = calibration.colocations.number_of_corunners
        assert (degree > 0).sum() >= 9  # what a bound at 90% takes
        assert len(fitted) > n / 3
