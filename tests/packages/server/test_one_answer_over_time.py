"""A model of a log means whatever may come, whoever is asked: commands, placement, the service, Slurm."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import jostle
from jostle.cli import exit_code
from jostle.learn import Ensemble, method_named
from tests.packages.models.timelines_samples import node_log
from tests.packages.server.conftest import Start

LEVEL = 0.8


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "model"
    jostle.fit(node_log(160, seed=2), method_named("slowdown")(), seed=0).save(path)
    return path


def test_the_same_job_is_told_the_same_seconds_by_all(
    folder: Path, start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*words: str) -> Any:
        capsys.readouterr()
        exit_code([words[0], *words[1:], "-c", str(LEVEL), "--json"])
        return json.loads(capsys.readouterr().out)["items"][0]

    model, here = str(folder), ("-p", "p", "-b", "w2", "-b", "w4")
    told = printed("predict", model, "-w", "w1", *here)
    assert told["over"] == "future"
    bound, seconds = told["bound_seconds"], told["runtime_seconds"]
    walltime = printed("place", "walltime", model, "-w", "w1", *here)
    assert walltime["over"] == "future"
    at = printed("place", "at", model, "-w", "w1", *here)
    row = {"workload": "w1", "platform": "p", "corunners": ["w4", "w2"]}
    table = tmp_path / "asked.json"
    table.write_text(json.dumps([row]))
    listed = printed("predict", model, "-i", str(table))
    python = jostle.load(folder)
    fleet = tmp_path / "one.csv"
    fleet.write_text("name,platform,slots,tenants\nn,p,3,w2;w4\n")
    service = start(model=folder, fleet=fleet, confidence=LEVEL)
    (served,) = service.post("/v1/predict", {"items": [row]})["items"]
    (timed,) = service.post("/v1/walltime", {"items": [{"workload": "w1"}]})["items"]
    job = service.post("/v1/slurm/submit", {"workload": "w1", "limit_confidence": str(LEVEL)})
    bounds = [at, walltime, listed, served, timed, job]
    assert [one["bound_seconds"] for one in bounds] == [pytest.approx(bound)] * 6
    assert [one["runtime_seconds"] for one in (at, listed, served)] == [pytest.approx(seconds)] * 3
    assert job["time_limit_minutes"] == math.ceil(bound / 60)
    assert python.predict([row])[0] == pytest.approx(seconds)
    assert python.bound([row], LEVEL).seconds[0] == pytest.approx(bound)
    again = printed("predict", model, "-w", "w1", *here, "--future")
    assert again["bound_seconds"] == pytest.approx(bound)

    # Those co-runners to the end are asked about by an option, and are another question.
    stays = printed("predict", model, "-w", "w1", *here, "--throughout")
    assert stays["over"] == "throughout"
    assert stays["runtime_seconds"] != pytest.approx(seconds)
    asked = {"items": [row], "throughout": True, "confidence": LEVEL}
    (same,) = service.post("/v1/predict", asked)["items"]
    limit = printed("place", "walltime", model, "-w", "w1", *here, "--throughout")
    assert [one["runtime_seconds"] for one in (stays, same)] == [stays["runtime_seconds"]] * 2
    assert limit["over"] == "throughout"
    assert limit["bound_seconds"] >= stays["bound_seconds"] * (
        1 - 1e-9
    )  # as beside fewer, at least
    elapsed = printed("predict", model, "-w", "w1", *here, "--elapsed", "1s")
    assert elapsed["over"] == "future"
    named = printed("predict", model, "-w", "w1", *here, "--then", "2s=w3")
    assert named["over"] == "timeline"
    why = printed("predict", model, "-w", "w1", *here, "--why")
    assert why["why"]["seconds"] == pytest.approx(seconds)


@pytest.mark.parametrize(("name", "beside"), [("w0", "w5"), ("w1", "w2"), ("w4", "w3")])
def test_a_command_that_asks_again_tells_no_wider_bound_or_that_the_job_is_behind(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, beside: str
) -> None:
    def printed(*words: str) -> Any:
        capsys.readouterr()
        asked = ["predict", str(folder), "-w", name, "-p", "p", "-b", beside, *words]
        exit_code([*asked, "-c", str(LEVEL), "--json"])
        return json.loads(capsys.readouterr().out)["items"][0]

    begun = printed()
    before = begun["bound_seconds"]
    for share in (0.1, 0.3, 0.5, 0.7, 0.9, 0.97, 1.05, 1.2):
        now = printed("--elapsed", f"{share * begun['runtime_seconds']:.6f}s")
        if now["bound_seconds"] is None:
            break
        if now["bound_seconds"] > before * (1 + 1e-6):
            assert now["outcome"] == "behind"
            assert now["evidence"].endswith(("later than before", "ended by now"))
        before = now["bound_seconds"]
    half = printed("--elapsed", f"{begun['runtime_seconds'] / 2:.6f}s", "--done", "0.5")
    assert half["bound_seconds"] < begun["bound_seconds"]


def test_a_name_that_was_never_met_is_answered_the_same_by_all(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And a bad item beside it has its own reason."""
    folder = tmp_path / "typical"
    jostle.fit(node_log(160, seed=2), Ensemble(learners=("rules",)), seed=0).save(folder)
    rows: list[dict[str, Any]] = [
        {"workload": "w9", "platform": "p", "corunners": ["w2", "x"]},
        {"workload": "w1", "platform": "p", "corunners": ["y", "x"]},
        {"workload": "w1", "platform": "q", "corunners": []},
        {"workload": "w1", "platform": "p", "corunners": ["w2"]},
    ]
    (tmp_path / "asked.json").write_text(json.dumps(rows))
    exit_code(
        ["predict", str(folder), "-i", str(tmp_path / "asked.json"), "-c", str(LEVEL), "--json"]
    )
    told = json.loads(capsys.readouterr().out)["items"]
    service = start(model=folder, fleet=None, confidence=LEVEL)
    bad = [
        {"workload": "new", "platform": "p", "corunners": [""]},
        {"workload": 3, "platform": "p"},
    ]
    for some in (rows, rows[::-1], rows):  # codes of new names are those of one request
        found = service.post("/v1/predict", {"items": [*some, *bad]})["items"]
        expected = told if some is rows else told[::-1]
        for name in ("status", "reason", "outcome", "bound_seconds", "runtime_seconds"):
            assert [one[name] for one in found[:4]] == [
                pytest.approx(one[name]) if isinstance(one[name], float) else one[name]
                for one in expected
            ]
        assert found[4]["error"] == "co-runner is '', not a name"
        assert found[5]["error"] == "workload is 3, not a name"
    assert [one["status"] for one in told[:3]] == ["extrapolated"] * 3
    assert "; unknown workload 'w9'. Known: " in told[0]["reason"]
    timed = {
        "workload": "w9",
        "platform": "p",
        "stretches": [{"start_seconds": 0, "corunners": []}],
    }
    (one,) = service.post("/v1/predict", {"items": [timed]})["items"]
    assert "unknown workload 'w9'" in one["reason"]


def test_of_names_that_drift_the_bound_follows_over_time_too(folder: Path) -> None:
    model, row = jostle.load(folder), {"workload": "w1", "platform": "p", "corunners": ["w2"]}
    usual = model.predict(
        jostle.Runs.from_columns(**_many(row, 60), runtime_seconds=[1.0] * 60).colocations
    )
    watch = jostle.DriftWatch(model)
    watch.update(jostle.Runs.from_columns(**_many(row, 60), runtime_seconds=3 * usual))
    assert watch.drifts
    before, after = model.bound([row], LEVEL), watch.following().bound([row], LEVEL)
    assert before.outcome.tolist() == ["on_the_act"]
    assert after.outcome.tolist() == ["adapting"]
    assert after.seconds[0] > 2 * before.seconds[0]


def _many(row: dict[str, Any], n: int) -> dict[str, list[Any]]:
    return {name: [value] * n for name, value in row.items()}
