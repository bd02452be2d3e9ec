"""`python -m studies accelerator --on magus13` on a made-up folder like it: what is kept, and coverage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jostle.errors import UnknownName
from jostle.runs import Runs
from jostle.traces import GPUS, tasks_from_rows
from studies.accelerator import magus as _magus
from studies.accelerator.magus import Magus, evaluate_accelerator_magus, splits
from studies.cells import Runner

NAMES: tuple[str, ...] = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="module")
def made() -> Magus:
    """Two campaigns of every pair of five, each of which adds half of its own time to the other's."""
    random = np.random.default_rng(0)
    solo = dict(zip(NAMES, (1.0, 1.5, 2.0, 3.0, 4.0), strict=True))
    rows = [(w, [], campaign) for w in NAMES for campaign in ("one", "two")]
    rows += [(w, [o], c) for w in NAMES for o in NAMES if w != o for c in ("one", "two")]
    seconds = [
        (solo[w] + sum(0.5 * solo[o] for o in others)) * np.exp(random.normal(0, 0.02))
        for w, others, _ in rows
    ]
    made = Runs.from_columns(
        workload=[w for w, *_ in rows],
        platform=["gpu"] * len(rows),
        corunners=[others for _, others, _ in rows],
        runtime_seconds=seconds,
    )
    profiles = {
        name: tasks_from_rows(
            [{"kind": "kernel", "start_seconds": 0.1, "duration_seconds": 0.3 * solo[name]}],
            run_id=name,
            gpu=GPUS["GTX 1080 Ti"],
        )
        for name in NAMES
    }
    unit = np.where(made.colocations.number_of_corunners == 0, -1, made.units("together"))
    return Magus(made, profiles, unit, np.array([c for *_, c in rows]))


@pytest.fixture
def data(made: Magus, monkeypatch: pytest.MonkeyPatch) -> Magus:
    monkeypatch.setattr(_magus.Magus, "read", lambda folder: made)
    return made


@pytest.fixture(scope="module")
def kept(made: Magus, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """(where finished fits are kept, what was found) of applications never measured beside others."""
    folder, steps = tmp_path_factory.mktemp("kept"), []

    def progress(done: int, total: int, _: float) -> None:
        steps.append((done, total))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_magus.Magus, "read", lambda folder: made)
        patch.setattr(_magus, "fit", None)  # without names left out nothing else is learned
        found = evaluate_accelerator_magus(
            folder, 0, progress, runner=Runner(folder=folder), tests=["unseen_application"]
        )
    assert steps[-1] == (5, 5)
    return folder, found


def test_finished_fits_are_kept(data: Magus, kept: tuple[Path, Any], monkeypatch) -> None:
    folder, first = kept
    assert len(list(folder.iterdir())) == 5
    monkeypatch.setattr(_magus, "learn", None)  # nothing is fitted again
    again = evaluate_accelerator_magus(
        folder, 0, runner=Runner(folder=folder), tests=["unseen_application"]
    )
    assert again.metrics == first.metrics
    assert first.metrics["targets"] == 40
    assert "constant_unseen_application_error_mean_ratio" in first.metrics
    with pytest.raises(UnknownName, match="test"):
        evaluate_accelerator_magus(folder, tests=["none"])


def test_bounds_are_measured_on_pairs_left_out(data: Magus, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(_magus, "FOLDS", 2)
    found = evaluate_accelerator_magus(tmp_path, tests=["ten_folds"]).metrics
    assert found["ten_folds_error_mean_ratio"] < found["constant_ten_folds_error_mean_ratio"]
    assert 0 <= found["ten_folds_coverage_90_ratio"] <= 1
    assert found["ten_folds_coverage_90_standard_error_ratio"] >= 0
    (_, _, parts), *_ = splits(data, 0)
    assert all(not (part.train & part.test).any() for part in parts)
    assert sum(part.test.sum() for part in parts) == (data.unit >= 0).sum()


def test_bounds_of_applications_never_measured_beside_others(
    data: Magus, kept: tuple[Path, Any], tmp_path: Path, monkeypatch
) -> None:
    """They have an outcome of their own, and each application is one unit."""
    seen: list[bool] = []
    real = _magus.fit

    def spy(source, method, *, seed, new_names):
        seen.append(new_names)
        return real(source, method, seed=seed, new_names=False)

    monkeypatch.setattr(_magus, "fit", spy)
    tests = ["unseen_application"]
    found = evaluate_accelerator_magus(tmp_path, tests=tests, new_names=True).metrics
    assert seen == [True] * len(NAMES)
    added = set(found) - set(kept[1].metrics)
    assert {name.removeprefix("unseen_application_") for name in added} == {
        *("coverage_90_ratio", "coverage_90_standard_error_ratio", "margin_90_ratio"),
        "held_out_names_ratio",
    }
    # Without fits that leave names out nothing is known of a name never measured beside others.
    assert found["unseen_application_held_out_names_ratio"] == 0
