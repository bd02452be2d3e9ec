"""More co-runners than any run had: answers, and bounds as far as sets left out went beyond."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.data import Colocations, Runs
from jostle.learn import learn
from tests.limits import assert_closer, errors_of
from tests.packages.learn.ensemble.conftest import QUICK


def test_larger_sets_than_known_are_answered(runs: Runs) -> None:
    pairs = runs.take(runs.colocations.number_of_corunners < 2)
    three = runs.take(runs.colocations.number_of_corunners == 2)
    fitted = learn(QUICK, pairs)
    two = fitted.predict(pairs.colocations)
    assert np.isfinite(two).all()
    error = np.abs(fitted.predict(three.colocations) / three.runtime_seconds - 1)
    solo = Colocations.from_columns(
        workload=list(three.colocations.to_columns()["workload"]),
        platform=list(three.colocations.to_columns()["platform"]),
    )
    without = np.abs(fitted.predict(solo) / three.runtime_seconds - 1)
    assert error.mean() < without.mean()


def test_what_company_costs_once_and_what_adds_go_on_beyond_the_largest_set() -> None:
    """Pairs alone cannot tell a price paid once from one paid for each co-runner; larger sets can."""
    random, names = np.random.default_rng(0), [f"w{n}" for n in range(8)]
    press = random.uniform(0.05, 0.5, 8)
    sets = [
        (i, tuple(random.integers(0, 8, d)))
        for d in (1, 2, 3, 4)
        for i in range(8)
        for _ in range(8)
    ]
    sets += [(i, ()) for i in range(8)]
    made = Runs.from_columns(
        workload=[names[i] for i, _ in sets],
        platform=["p"] * len(sets),
        corunners=[[names[j] for j in beside] for _, beside in sets],
        runtime_seconds=[
            1 + (0.4 + press[list(beside)].sum() if beside else 0) for _, beside in sets
        ],
    )
    degree = made.colocations.number_of_corunners
    asked = made.take(degree > 2)
    answers = learn(QUICK, made.take(degree <= 2)).predict(asked.colocations)
    rows = [made.colocations.row(at) for at in np.flatnonzero(degree > 2).tolist()]
    pairs = [[0.4 + press[names.index(name)] for name in beside] for _, _, beside in rows]
    for rule in (sum, max, np.mean):
        by_pairs = np.array([1 + rule(own) for own in pairs])
        assert_closer(
            errors_of(answers, asked.runtime_seconds), errors_of(by_pairs, asked.runtime_seconds)
        )


def test_more_co_runners_than_any_run_had_are_bounded_as_far_as_sets_left_out_went_beyond(
    runs: Runs, of_rules: jostle.Model, tmp_path: Path
) -> None:
    names = [f"program {n}" for n in range(8)]
    four = [list(names[k : k + 4]) for k in range(5)]
    asked = Colocations.from_columns(
        workload=[one[0] for one in four],
        platform=["machine 0"] * 5,
        corunners=[one[1:] for one in four],
    )
    turned = replace(asked, corunner=asked.corunner.reshape(5, 3)[:, ::-1].ravel())
    six = Colocations.from_columns(
        workload=names[:1], platform=["machine 0"], corunners=[names[1:6]]
    )
    levels = (0.5, 0.8, 0.9)
    seconds = np.stack([of_rules.bound(asked, level).seconds for level in levels])
    assert set(of_rules.bound(asked, 0.8).outcome.tolist()) == {"larger_sets"}
    assert not of_rules.bound(asked, 0.8).is_calibrated.any()
    assert (np.diff(seconds, axis=0) >= 0).all()
    assert (seconds[-1] >= of_rules.predict(asked)).all()
    assert of_rules.bound(turned, 0.8).seconds == pytest.approx(seconds[1])
    assert of_rules.bound(six, 0.8).outcome.tolist() == ["unseen_group"]
    (listed,) = [p for p in of_rules.calibration.summary() if p.category == "more co-runners"]
    assert np.isfinite(of_rules.bound(asked, listed.highest - 1e-6).seconds).all()
    assert np.isinf(of_rules.bound(asked, (listed.highest + 1) / 2).seconds).all()
    of_rules.save(tmp_path / "model")
    again = jostle.load(tmp_path / "model").bound(asked, 0.8)
    assert np.array_equal(again.seconds, seconds[1])
    pairs = jostle.fit(runs.take(runs.colocations.number_of_corunners < 2), QUICK, seed=0)
    assert set(pairs.bound(asked, 0.8).outcome.tolist()) == {"unseen_group"}


def test_beyond_the_largest_sets_errors_grow_with_the_number_of_co_runners(
    of_rules: jostle.Model,
) -> None:
    names, calibration = [f"program {n}" for n in range(8)], of_rules.calibration
    scales = []
    for most in (2, 3, 6):
        asked = Colocations.from_columns(
            workload=names[:1], platform=["machine 0"], corunners=[names[1 : most + 1]]
        )
        scales.append(float(calibration.scaled(of_rules.predictor, asked)[1][0]))
    assert calibration.most == 2
    assert scales[0] < scales[1] < scales[2]
