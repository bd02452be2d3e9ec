"""The commands, and the simulator as a method with bounds, on a small made-up fleet."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.accelerator import Application, Device, Task, Tenant, simulate
from jostle.cli._app import run
from jostle.errors import BadData, UnknownName
from jostle.traces import GPUS, Profile, tasks_from_rows, write_profiles

NAMES = ("asr", "md", "pf", "bp")


def profile_of(name: str) -> Profile:
    """asr and md are compute alone, pf copies, bp does both."""
    kind = {"asr": ["kernel"], "md": ["kernel"], "pf": ["htod"], "bp": ["htod", "kernel"]}[name]
    seconds = {"asr": 0.01, "md": 0.013, "pf": 0.007, "bp": 0.004}[name]
    shape = {"blocks": 80 * 4, "threads_per_block": 256, "registers_per_thread": 32}
    rows = []
    for number, what in enumerate(kind * 3):
        row = {"kind": what, "start_seconds": 0.1 + number * seconds, "duration_seconds": seconds}
        rows.append({**row, **(shape if what == "kernel" else {"bytes": 1000, "pinned": False})})
    return tasks_from_rows(rows, run_id=name, gpu=GPUS["V100"])


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Profiles, and runs whose times are 1.1 times what the simulator says, with 2% noise."""
    folder = tmp_path_factory.mktemp("fleet")
    write_profiles(folder, [profile_of(name) for name in NAMES])
    method = jostle.Accelerator(str(folder))
    random = np.random.default_rng(0)
    sets = [[]] * 8 + [[name] for name in NAMES] * 8 + [["md", "md"], ["pf", "bp"]] * 8
    rows = [(name, beside) for name in NAMES for beside in sets]
    asked = jostle.Colocations.from_columns(
        workload=[name for name, _ in rows],
        platform=["v100"] * len(rows),
        corunners=[beside for _, beside in rows],
    )
    nothing = jostle.Runs.from_columns(
        workload=["asr"], platform=["v100"], corunners=[[]], runtime_seconds=[1.0]
    )
    simulated = method.fit(nothing, None).simulated(asked)
    runs = jostle.Runs.from_columns(
        **asked.to_columns(),
        runtime_seconds=1.1 * simulated * np.exp(random.normal(0, 0.02, len(rows))),
    )
    jostle.Dataset(folder).write(runs)
    return folder


def test_fit_learns_the_offset_and_bounds_hold(fleet: Path, tmp_path: Path) -> None:
    runs = jostle.read_runs(fleet)
    model = jostle.fit(runs, jostle.Accelerator(str(fleet)), seed=1)
    off = model.predict(runs.colocations) / runs.runtime_seconds
    assert np.abs(off - 1).mean() < 0.03
    bound = model.bound(runs.colocations, 0.9)
    assert bound.is_valid.all()
    assert 0.8 < np.mean(runs.runtime_seconds <= bound.seconds) <= 1
    model.save(tmp_path / "model")
    again = jostle.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(runs.colocations), model.predict(runs.colocations))
    with pytest.raises(UnknownName, match="workload"):
        model.predict(
            jostle.Colocations.from_columns(workload=["x"], platform=["v100"], corunners=[[]])
        )


def test_safe(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["safe", str(fleet), "--target", "asr", "--batch"]
    assert run([*ask, "pf", "--qos", "1.0x", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "safe/v1"
    assert document["instances"] == 15
    assert document["safe"] is True
    assert run([*ask, "md", "--qos", "2.0x", "--json"]) in (0, 1)
    document = json.loads(capsys.readouterr().out)
    assert document["instances"] < 15
    assert document["lost_to_kernels_seconds"] > document["lost_to_transfers_seconds"]
    assert run([*ask, "md", "--latency", "1ms"]) == 1
    assert "No md fits" in capsys.readouterr().out
    assert run([*ask, "md", "--instances", "9", "--qos", "2x"]) == 1
    capsys.readouterr()
    assert run([*ask, "nobody"]) == 4
    assert run([*ask, "md", "--latency", "soon"]) == 2
    assert run([*ask, "md", "--gpu", "Voodoo"]) == 4


def test_safe_with_measured_bounds(fleet: Path, tmp_path: Path, capsys) -> None:
    model = tmp_path / "model"
    assert run(["fit", str(fleet), "-o", str(model), "--method", "accelerator"]) == 0
    capsys.readouterr()
    ask = ["safe", str(fleet), "--target", "asr", "--batch", "pf", "--platform", "v100", "--json"]
    code = run([*ask, "--model", str(model), "--qos", "1.5x", "--confidence", "0.9"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert document["guaranteed_instances"] >= 1
    assert document["bounds"][1]["outcome"] == "guaranteed"
    # Three co-runners were never measured: no bound, so no guarantee, whatever the simulator says.
    assert document["guaranteed_instances"] <= 2 < document["instances"]
    assert document["bounds"][3]["bound_seconds"] is None


def test_import_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.traces.test_profiles import NVPROF

    (tmp_path / "sort.csv").write_text(NVPROF)
    ask = ["import", "profile", str(tmp_path / "sort.csv"), "-o", str(tmp_path / "set"), "--json"]
    assert run(ask) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tasks"] == {"htod": 1, "kernel": 1, "memset": 1}
    assert document["devices"] == {"0": "GTX 1080 Ti"}
    assert run(ask) == 4


def test_evaluate_pairs(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "accelerator", "--on", "pairs", "--data", str(fleet), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    metrics = document["metrics"]
    # The world was made by the simulator, so only its noise is left.
    assert metrics["error_mean_ratio"] < 0.03 < metrics["sequential_error_mean_ratio"]
    assert metrics["error_mean_ratio"] < metrics["constant_error_mean_ratio"]
    assert run(["evaluate", "accelerator", "--on", "moon"]) == 2
    assert run(["evaluate", "accelerator", "--on", "v100", "--data", str(fleet)]) == 4


def test_replayed_alone_a_profile_takes_its_own_time() -> None:
    """Also where tasks overlap on several streams."""
    rows = [
        {"kind": "kernel", "start_seconds": 1.0, "duration_seconds": 2.0, "stream": 1},
        {"kind": "htod", "start_seconds": 2.0, "duration_seconds": 2.0, "stream": 2},
        {"kind": "kernel", "start_seconds": 2.5, "duration_seconds": 1.0, "stream": 1},
        {"kind": "dtoh", "start_seconds": 5.0, "duration_seconds": 1.0, "stream": 1},
    ]
    app = Application.from_profile(tasks_from_rows(rows, run_id="a", gpu=GPUS["T4"]))
    assert len(app.tasks) == 3
    assert any("beside others" in note for note in app.notes)
    found = simulate([Tenant(app)], Device.of(GPUS["T4"]), engine="reference")
    assert found.run_ends[0][0] == pytest.approx(5.0)


def test_profiles_of_different_devices_are_not_mixed(tmp_path: Path) -> None:
    rows = [{"kind": "kernel", "start_seconds": 0.0, "duration_seconds": 1.0}]
    write_profiles(tmp_path, [tasks_from_rows(rows, run_id=n, gpu=GPUS[n]) for n in ("T4", "V100")])
    from jostle.accelerator import read_applications

    with pytest.raises(BadData, match="one device"):
        read_applications(tmp_path)
    assert read_applications(tmp_path, "T4")[1].pes == 40


def test_tasks_refuse_what_is_not_a_task() -> None:
    with pytest.raises(BadData, match="kind"):
        tasks_from_rows(
            [{"kind": "dance", "start_seconds": 0.0, "duration_seconds": 1.0}],
            run_id="a",
            gpu=GPUS["T4"],
        )
    with pytest.raises(BadData):
        Application("a", (Task("dance", 1.0),))
