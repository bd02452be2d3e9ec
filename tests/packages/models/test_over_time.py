"""Learning from runs whose company changed: the equations, and a made law of another form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jostle
from jostle.conformal import CHANGED_COMPANY, Calibration
from jostle.data import Colocations, PlainLaw, Runs, stands_for_longest
from jostle.learn import Data, Ensemble, Prepared, RunCounts
from jostle.models.timelines._timeline_training import OverTime, taken_by
from jostle.models.updates._cross_conformal import fit_crossed
from tests.packages.models.over_time_samples import (
    NAMES,
    FittedLookup,
    Lookup,
    seen,
    times,
)
from tests.packages.models.timelines_samples import Known, node_log


def made(n: int, seed: int, *, noise: float = 0.0, least: int = 1) -> Runs:
    """n runs of up to four stretches each; how long they last in all follows from the law."""
    draw = np.random.default_rng(seed)
    stretches, own, runtime = [], [], []
    for _ in range(n):
        shares = draw.dirichlet(np.ones(draw.integers(least, 5)))
        companies = [sorted(draw.choice(NAMES, draw.integers(0, 4))) for _ in shares]
        name = str(draw.choice(NAMES))
        asked = Colocations.from_columns(
            workload=[name] * len(shares), platform=["p"] * len(shares), corunners=companies
        )
        seconds = np.exp(noise * draw.normal()) / (shares / times(asked)).sum()
        starts = seconds * np.concatenate([[0], np.cumsum(shares)[:-1]])
        stretches.append(list(zip(starts.tolist(), companies, strict=True)))
        own.append(name)
        runtime.append(seconds)
    return Runs.from_columns(
        workload=own, platform=["p"] * n, runtime_seconds=runtime, stretches=stretches
    )


def constant(n: int, seed: int) -> Colocations:
    return made(n, seed, least=4).with_one_company(np.ones(n)).colocations


def test_by_the_true_law_each_run_is_what_its_longest_company_takes() -> None:
    runs = made(200, seed=1)
    taken = stands_for_longest(runs, np.log(times(runs.stretches.colocations)))
    assert not taken.is_stretched
    assert taken.table.schema.metadata[b"schema"] == b"runs/v1"
    assert taken.runtime_seconds == pytest.approx(times(taken.colocations))
    assert taken.colocations == runs.colocations
    # Where nothing is known of a company, and where there was but one, the time stays.
    unknown = stands_for_longest(runs, np.full(len(runs.stretches.row), np.nan))
    assert unknown.runtime_seconds.tolist() == runs.runtime_seconds.tolist()
    assert taken.runtime_seconds[runs.is_steady] == pytest.approx(
        runs.runtime_seconds[runs.is_steady]
    )


def test_the_plain_law_is_nearer_than_any_set_of_a_run() -> None:
    runs, asked = made(600, seed=2, noise=0.03), constant(400, seed=3)
    true = np.log(times(asked))

    def error(some: Runs) -> float:
        off = PlainLaw.of(some).log_times(asked) - true
        return float(np.median(np.abs(off - np.median(off))))

    longest = runs.with_one_company(runs.runtime_seconds)
    steady = longest.take(runs.is_steady)
    assert error(runs) < min(error(longest), error(steady))


def test_calibration_runs_have_the_errors_of_their_timelines() -> None:
    runs = made(300, seed=4, noise=0.1)
    seen.clear()
    model = jostle.fit(runs, Lookup(), seed=0)
    assert not any(part.is_stretched for part in seen)
    assert model.metadata["runs"]["changing"] == int((~runs.is_steady).sum())
    assert any("changed company" in note for note in model.notes)
    over_time = OverTime.of(Data.of(runs), frozenset({"runs"}), 0)
    assert over_time is not None
    held = jostle.learn.hold_out(Prepared.of(over_time.data), 0, "window")
    calibration = over_time.calibrated(held, model.predictor).calibration
    place = {name: i for i, name in enumerate(runs.table.column("run_id").to_pylist())}
    at = [place[name] for name in calibration.table.column("run_id").to_pylist()]
    parts = runs.stretches
    timeline = parts.log_runtime(np.log(times(parts.colocations)))
    assert np.log(calibration.runtime_seconds / times(calibration.colocations)) == pytest.approx(
        (np.log(runs.runtime_seconds) - timeline)[at]
    )


def test_bounds_of_changed_company_are_never_guaranteed() -> None:
    model = jostle.fit(made(240, 3, noise=0.05), Lookup(), seed=0)
    bounds = model.bound(constant(60, 4), 0.8)
    assert bounds.is_valid.any()
    assert not bounds.is_guaranteed.any()
    assert set(bounds.outcome[bounds.is_valid].tolist()) == {CHANGED_COMPANY}
    assert bounds.is_calibrated[bounds.is_valid].all()
    assert Calibration.from_arrays(*model.calibration.to_arrays()).has_changing_corunners


def test_runs_of_one_company_are_learned_from_as_ever() -> None:
    plain = made(80, seed=5, noise=0.1)
    plain = plain.with_one_company(plain.runtime_seconds)
    one_each = Runs(
        plain.table.append_column(
            "stretches",
            Runs.from_columns(
                workload=["w0"] * 80,
                platform=["p"] * 80,
                runtime_seconds=plain.runtime_seconds,
                stretches=[[(0.0, names)] for names in plain.table.column("corunners").to_pylist()],
            ).table.column("stretches"),
        )
    )
    assert one_each.is_stretched
    asked = constant(50, seed=6)
    first, second = (jostle.fit(some, Lookup(), seed=1) for some in (plain, one_each))
    assert first.bound(asked).seconds.tolist() == second.bound(asked).seconds.tolist()
    assert "changing" not in second.metadata["runs"]


def test_a_name_that_is_not_known_keeps_the_time_of_its_run() -> None:
    fitted = FittedLookup(tuple(NAMES), ("p",), RunCounts.of(made(5, seed=7)))
    runs = Runs.from_columns(
        workload=["w0", "w0"],
        platform=["p", "p"],
        runtime_seconds=[15.0, 15.0],
        stretches=[[(0.0, ["new"]), (9.0, [])], [(0.0, ["w1"]), (9.0, [])]],
    )
    taken = taken_by(fitted, runs).runtime_seconds
    assert taken[0] == 15.0
    assert taken[1] > 15.0  # beside w1 throughout it takes longer than beside it for a while


def test_what_leaves_runs_out_learns_from_all_of_a_log_and_bounds_by_what_was_left_out() -> None:
    runs = made(300, seed=7, noise=0.05)
    method = Ensemble(learners=("rules",))
    model = jostle.fit(runs, method, seed=0)
    counts = model.metadata["runs"]
    assert counts["fitted"] == len(runs)
    assert counts["changing"] == int((~runs.is_steady).sum())
    bounds = model.bound(constant(60, 4), 0.8)
    assert CHANGED_COMPANY in bounds.outcome
    assert not bounds.is_guaranteed.any()
    # Each run is asked about as it began and later, of a known timeline and of what may come.
    assert model.acts is not None
    assert counts["calibration"] > 0.8 * len(runs)
    assert (model.acts.moment == 0).sum() > 1.6 * min(len(runs), counts["calibration"])
    loaded = type(model.acts).from_arrays(*model.acts.to_arrays())
    assert loaded.error.tolist() == model.acts.error.tolist()


def test_runs_that_were_left_out_are_asked_about_in_proportion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jostle.models.timelines._timeline_training.MOST", 180)
    runs = node_log(200, seed=3)
    over_time = OverTime.of(Data.of(runs), frozenset({"runs"}), 0)
    assert over_time is not None
    parts = [(Known(), np.arange(150)), (Known(), np.arange(150, 200))]
    acts = over_time.acts(runs, parts, seed=0)
    begun = (acts.moment == 0) & (acts.kind == 0)
    assert begun.sum() == 135 + 45


def test_runs_left_out_are_what_was_learned_without_them_says() -> None:
    over_time = OverTime.of(Data.of(made(200, seed=8, noise=0.05)), frozenset({"runs"}), 0)
    assert over_time is not None
    method = Ensemble(learners=("rules",))
    prepared = method.prepare(over_time.data)
    asked: list[tuple[Any, set[str]]] = []

    def twice_as_long(fitted: Any, runs: Runs) -> Runs:
        asked.append((fitted, set(runs.table.column("run_id").to_pylist())))
        return runs.with_one_company(2 * runs.runtime_seconds)

    how: dict[str, Any] = {"unit": "together", "seed": 0}
    plain = fit_crossed(method, prepared, **how)
    double = fit_crossed(method, prepared, taken_by=twice_as_long, **how)
    assert plain is not None
    assert double is not None
    some = constant(40, seed=9)
    one, two = (each.calibration.bound(each.fitted, some, 0.8) for each in (plain, double))
    assert (two.seconds > one.seconds)[one.is_valid].all()
    errors = (each.calibration.runs.residual for each in (double, plain))
    assert np.subtract(*errors) == pytest.approx(np.log(2))
    assert len({id(fitted) for fitted, _ in asked}) > 1
    of_sets = [
        set(prepared.runs.take(at).table.column("run_id").to_pylist()) for _, at in double.without
    ]
    assert all(any(ids <= mine for _, mine in asked) for ids in of_sets)
    assert sum(map(len, of_sets)) == len(set().union(*of_sets)) == len(double.calibration_runs)
