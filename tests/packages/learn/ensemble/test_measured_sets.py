"""Bounds about sets that were measured before, and how many runs calibrate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.data import Colocations, Runs
from jostle.learn import Data
from tests.packages.learn.ensemble.conftest import QUICK, made_runs


def test_a_run_that_is_asked_about_twice_counts_once() -> None:
    """Of its set, and of its platform: more were asked about than there are, less are told."""
    runs = made_runs(programs=6, platforms=3, threes=0)
    model = jostle.fit(runs, QUICK, seed=0)
    asked = model.calibration.runs
    assert (~asked.held_out).sum() > model.metadata["runs"]["calibration"]
    assert model.metadata["runs"]["calibration"] <= len(runs)


def repeated_runs(**more: Any) -> Runs:
    every = made_runs(programs=8, platforms=1, noise=0.05, threes=0)
    random = np.random.default_rng(3)
    thrice = every.take(np.repeat(np.arange(len(every)), 3))
    seconds = thrice.runtime_seconds * np.exp(0.05 * random.normal(size=len(thrice)))
    columns = thrice.colocations.to_columns() | {name: one(thrice) for name, one in more.items()}
    return Runs.from_columns(**columns, runtime_seconds=seconds)


BESIDE_ITSELF = Colocations.from_columns(
    workload=["program 0"], platform=["machine 0"], corunners=[["program 0"]]
)


def test_runs_of_measured_sets_are_told_by_other_runs_of_the_same_set() -> None:
    """Half by the other half, each once; nothing that a fit answers is in what it remembers."""
    runs = repeated_runs()
    model = jostle.fit(runs, QUICK, seed=0)
    fitted, parts = QUICK.fit_left_out(QUICK.prepare(Data.of(runs)), seed=0)
    again, memory = [one for one in parts if one.left_out == "again"], fitted.state.memory
    assert memory is not None
    columns = runs.colocations.to_columns()
    names = [(w, tuple(k)) for w, k in zip(columns["workload"], columns["corunners"], strict=True)]
    same_set = [np.array([at for at, one in enumerate(names) if one == own]) for own in names]
    asked = np.concatenate([one.runs for one in again])
    assert sorted(asked.tolist()) == np.flatnonzero(runs.colocations.number_of_corunners).tolist()
    for one in again:
        assert one.fitted.measured(runs.colocations.take(one.runs)).all()
        first = one.fitted.with_state(memory=None).predict(runs.colocations)
        told = one.fitted.predict(runs.colocations)
        left = np.log(runs.runtime_seconds / first)
        for row in one.runs.tolist():
            others = np.setdiff1d(same_set[row], one.runs)
            share = memory.beyond / (memory.beyond + memory.noise / len(others))
            assert np.log(told / first)[row] == pytest.approx(share * left[others].mean(), abs=1e-9)
    beside = runs.colocations.take(np.flatnonzero(runs.colocations.number_of_corunners)[:1])
    assert fitted.measured(beside).all()
    assert not fitted.measured(BESIDE_ITSELF).any()
    assert model.bound(beside, 0.9).pool[0] == "measured set"
    assert model.bound(BESIDE_ITSELF, 0.9).pool[0] == "1 co-runner"


def test_halves_of_a_set_tell_nothing_of_later_runs_of_a_log() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    at = lambda runs: [start + timedelta(minutes=n) for n in range(len(runs))]  # noqa: E731
    runs = repeated_runs(measured_at=at, node=lambda runs: ["n"] * len(runs))
    model = jostle.fit(runs, QUICK, seed=0)
    beside = runs.colocations.take(np.flatnonzero(runs.colocations.number_of_corunners)[:1])
    assert model.predictor.measured(beside).all()
    assert model.bound(beside, 0.9).pool[0] == "1 co-runner"
