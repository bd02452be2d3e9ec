"""`python -m studies alignment`: disjoint workloads, all metrics, figures, and a recorded campaign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import studies
from jostle.data import read_traces, write_traces
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn.learners.counters import Alignment, traced_windows, with_probes
from studies.alignment.answers import renamed
from studies.alignment.folds import folds_of_pairs, folds_of_programs, workload_folds
from studies.alignment.laws import LAWS, stressors
from studies.alignment.rivals import bounds_of
from studies.alignment.simulated import draw_programs, simulate_campaign
from studies.alignment.truth import measured_sets

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
        "alignment",
        *SMALL,
        "--held",
        "2",
        "--folds",
        "1",
        "--learner",
        "ridge",
    ]
    assert studies.run([*arguments, "--no-factorization", "-o", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evaluate/v1"
    metrics = document["metrics"]
    for prefix in ("", "printed_", "section_"):
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
    arguments = ["alignment", "--on", "campaign", "--data", str(tmp_path)]
    arguments += ["--corunners", "loop", "--folds", "1", "--learner", "ridge", "--no-compare"]
    assert studies.run([*arguments, "--no-factorization"]) == 0
    printed = capsys.readouterr().out
    assert "mean slowdown" in printed
    assert "predicted ms" in printed


def test_a_campaign_as_it_was_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rivals on the same rows, intervals over programs and bounds; as campaign.json says, with probes."""
    law = LAWS["smt"]
    programs = draw_programs(5, 2, seconds=0.01, longest_seconds=4e-3, machine=law)
    probes = stressors(law, 0.01)
    write_traces(tmp_path, simulate_campaign(programs, law, loop=True, probes=probes))
    (tmp_path / "campaign.json").write_text('{"corunners": "loop"}')
    monkeypatch.setattr("studies.alignment.study.RECORDED", tmp_path)
    words = ["alignment", "--on", "campaign", "--learner", "mixture", "--no-compare"]
    assert studies.run([*words, "--no-factorization", "--held", "2", "--seeds", "2", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    m = document["metrics"]
    # Seeds and names draw which fifth of the sets is kept to choose by.
    for name in ("seed_spread", "names_difference"):
        assert 0 <= m[f"{name}_mean_ratio"] <= m[f"{name}_max_ratio"] < 0.1
    assert m["seed_spread_max_ratio"] == 0  # the mixture draws nothing, and learns from all
    assert document["settings"]["corunners"] == "loop"
    assert m["tested_programs"] == 4
    for rival in ("no_interference", "mean_slowdown", "median_slowdown", "probes"):
        by = m[f"{rival}_error_mean_ratio"] - m["run_time_error_mean_ratio"]
        assert m[f"closer_than_{rival}_by_ratio"] == pytest.approx(by)
        low, high = (m[f"closer_than_{rival}_by_{end}_ratio"] for end in ("low", "high"))
        assert low <= by <= high
    assert m["cut_of_best_constant_ratio"] > 0.3
    assert "coverage_90_ratio" not in m
    words.append("--no-factorization")
    fewer_probes = ["--held", "2", "--folds", "1", "--stressors", "probe-core", "--json"]
    assert studies.run([*words, *fewer_probes]) == 0
    fewer = json.loads(capsys.readouterr().out)
    assert fewer["settings"]["stressors"] == ["probe-core"]
    for method in ("run_time", "probes"):
        assert fewer["metrics"][f"{method}_error_mean_ratio"] != m[f"{method}_error_mean_ratio"]
    traces = with_probes(read_traces(tmp_path))
    (fold,) = folds_of_pairs(measured_sets(traced_windows(traces), 1e-3), 1, 0)
    method = Alignment(learner="mixture", corunners="loop")
    found = bounds_of(method, traces, fold, 0.5, 0)
    assert found is not None
    assert found[1] == 4
    assert 0 < found[0] <= 4
    assert bounds_of(method, traces, fold, 0.999, 0) is None
    assert studies.run([*words, "--hold-out", "pairs", "--folds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "additive effects" in printed
    assert "best constant is cut" in printed


def test_other_names_for_the_same_runs() -> None:
    programs = draw_programs(3, 1, seconds=0.01, longest_seconds=4e-3)
    traces = simulate_campaign(programs, sets=[(0, 1), (1, 2)])
    other, names, run_ids = renamed(traces, 0)
    assert sorted(names) == [p.name for p in programs]
    assert not set(names) & set(names.values())
    by_id = {t.run_id: t for t in other}
    for one in traces:
        again = by_id[run_ids[one.run_id]]
        assert again.workload == names[one.workload]
        assert sorted(again.corunners) == sorted(names[name] for name in one.corunners)
        assert again.counters is one.counters or all(
            (again[c] == one[c]).all() for c in one.counters
        )
    assert len({t.window_id for t in other}) == len({t.window_id for t in traces})


def test_of_three_programs_one_is_left_out() -> None:
    programs = draw_programs(3, 1, seconds=0.02, longest_seconds=6e-3)
    traces = simulate_campaign(programs, sets=[(0, 1), (0, 2), (1, 2)], loop=True)
    sets = measured_sets(traced_windows(traces), 1e-3)
    folds = folds_of_programs(sets, 2, None, 0)
    assert [fold.held_out for fold in folds] == [(p.name,) for p in programs]
    for fold in folds:
        assert all(fold.held_out[0] in {m.workload for m in one.members} for one in fold.test)
        assert not any(fold.held_out[0] in {m.workload for m in one.members} for one in fold.train)
    with pytest.raises(NotEnoughRuns, match="too few"):
        folds_of_pairs(sets, None, 0)


def test_pairs_are_held_out_once_each() -> None:
    programs = draw_programs(4, 1, seconds=0.01, longest_seconds=4e-3)
    sets = measured_sets(traced_windows(simulate_campaign(programs)), 1e-3)
    folds = folds_of_pairs(sets, None, 0)
    tested = [one.name for fold in folds for one in fold.test]
    assert sorted(tested) == sorted(one.name for one in sets)
    for fold in folds:
        unseen = {tuple(sorted(m.workload for m in one.members)) for one in fold.test}
        assert not any(
            tuple(sorted(m.workload for m in one.members)) in unseen for one in fold.train
        )


def test_wrong_questions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studies.alignment.study.RECORDED", tmp_path / "none")
    assert studies.run(["alignment", "--on", "moon"]) == 2
    assert studies.run(["alignment", "--on", "campaign"]) == 2
    assert studies.run(["alignment", "--on", "campaign", "--data", str(tmp_path)]) == 4
    assert "no traces" in capsys.readouterr().err
