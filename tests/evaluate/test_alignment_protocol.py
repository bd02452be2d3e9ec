"""`jostle evaluate alignment`: disjoint workloads, all metrics, figures, and a recorded campaign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jostle.cli import _app
from jostle.errors import UsageError
from jostle.evaluate.alignment._folds import workload_folds
from jostle.evaluate.alignment._simulated import draw_programs, simulate_campaign
from jostle.traces import write_traces

SMALL = ["--programs", "6", "--windows", "12", "--seconds", "0.015", "--longest-ms", "6"]


def test_folds_are_disjoint_and_repeatable() -> None:
    names = [f"w{i}" for i in range(9)]
    folds = workload_folds(names, 2, None, 3)
    assert len(folds) == 4
    assert len({n for fold in folds for n in fold}) == 8
    assert folds == workload_folds(names[::-1], 2, None, 3)
    assert folds[:2] == workload_folds(names, 2, 2, 3)
    with pytest.raises(UsageError):
        workload_folds(names[:3], 2, None, 0)


def test_on_the_simulator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "evaluate",
        "alignment",
        *SMALL,
        "--held",
        "2",
        "--folds",
        "1",
        "--learner",
        "ridge",
    ]
    assert _app.run([*arguments, "--no-factorization", "-o", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evaluate/v1"
    metrics = document["metrics"]
    for prefix in ("", "printed_", "continuous_", "section_"):
        assert (
            metrics[f"{prefix}run_time_error_max_ratio"]
            >= metrics[f"{prefix}run_time_error_mean_ratio"]
        )
        # Nothing is exact to a part in a million, nor off by as much as the run takes, but as printed.
        assert metrics[f"{prefix}instructions_mae_ratio"] > 1e-6
        if prefix != "printed_":
            assert metrics[f"{prefix}run_time_error_mean_ratio"] < 0.5
    assert metrics["mean_slowdown_error_mean_ratio"] > 0
    assert metrics["ridge_core_0_instructions_mae_ratio"] > 0
    (fold,) = document["folds"]
    assert {row["workload"] for row in document["table"]} == set(fold)
    assert metrics["test_runs"] == 4
    for name in ("figure-2-learners", "figure-3-samples", "counters-tree", "counters-prefix"):
        for kind in ("png", "svg"):
            assert (tmp_path / "figures" / f"{name}.{kind}").stat().st_size > 1000


def test_on_a_recorded_campaign(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = draw_programs(5, 1, seconds=0.02, longest_seconds=6e-3)
    write_traces(tmp_path, simulate_campaign(programs, loop=True))
    arguments = ["evaluate", "alignment", "--on", "campaign", "--data", str(tmp_path)]
    arguments += ["--corunners", "loop", "--folds", "1", "--learner", "ridge", "--no-compare"]
    assert _app.run([*arguments, "--no-factorization"]) == 0
    printed = capsys.readouterr().out
    assert "mean slowdown" in printed
    assert "predicted ms" in printed


def test_wrong_questions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _app.run(["evaluate", "alignment", "--on", "moon"]) == 2
    assert _app.run(["evaluate", "alignment", "--on", "campaign"]) == 2
    assert _app.run(["evaluate", "alignment", "--on", "campaign", "--data", str(tmp_path)]) == 4
    assert "no traces" in capsys.readouterr().err
