"""Sessions in which all runs took longer or shorter: told apart, asked for, no interference of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import jostle
from jostle.conformal import CROSS_VALIDATED, UNKNOWN_SESSION
from jostle.data import Runs
from jostle.errors import UnknownName, UsageError
from jostle.models import Model
from jostle.operations import PredictQuestion
from jostle.operations.model.predict import predict
from tests.limits import share_limits
from tests.packages.learn.ensemble.campaigns import sessions_of
from tests.packages.learn.ensemble.conftest import DAYS, QUICK, in_sessions


@pytest.fixture(scope="module")
def model() -> Model:
    return jostle.fit(in_sessions(DAYS), QUICK)


def test_effects_are_what_repeats_of_one_colocation_say() -> None:
    """Oracle: least squares on differences between runs of the very same co-location."""
    runs = in_sessions(DAYS)
    found = sessions_of(runs)
    assert found is not None
    labels = [int(name[-1]) for name in runs.table.column("campaign").to_pylist()]
    session, y = np.array(labels), np.log(runs.runtime_seconds)
    group = runs.colocations.group
    design, right = [], []
    for code in np.unique(group):
        first, *rest = np.flatnonzero(group == code)
        for other in rest:
            row = np.zeros(len(DAYS))
            row[session[other]] += 1
            row[session[first]] -= 1
            design.append(row)
            right.append(y[other] - y[first])
    oracle = np.linalg.lstsq(np.array(design), np.array(right), rcond=None)[0]
    apart = found.effect - found.effect[:, :1]
    # Three standard errors of the oracle's own noise (.02 a run), and what shrinking takes.
    assert np.abs(apart - (oracle - oracle[0])).max() < 0.03
    assert found.cost == pytest.approx(np.abs(np.expm1(DAYS)).mean(), abs=0.05)


def test_runs_that_differ_by_noise_alone_have_no_sessions() -> None:
    for seed in range(3):
        found = sessions_of(in_sessions(np.zeros(3), seed))
        assert found is not None
        assert not found.effect.any()
        assert found.cost == 0


def test_a_platform_of_one_session_says_nothing_of_it() -> None:
    found = sessions_of(in_sessions(DAYS[:2], whole_platforms=True))
    assert found is not None
    assert found.effect[[0, 1], [0, 1]] == pytest.approx(0, abs=1e-9) or found.effect[
        [0, 1], [1, 0]
    ] == pytest.approx(0, abs=1e-9)


def test_a_session_in_which_runs_beside_others_alone_take_longer_moves_no_time_alone() -> None:
    runs = in_sessions(np.zeros(2))
    columns = runs.colocations.to_columns()
    slow = np.where(runs.colocations.number_of_corunners > 0, np.exp(0.1), 1.0)
    both = Runs.from_columns(
        **{name: [*column, *column] for name, column in columns.items()},
        runtime_seconds=np.concatenate([runs.runtime_seconds, runs.runtime_seconds * slow]),
        campaign=["one"] * len(runs) + ["other"] * len(runs),
    )
    found = sessions_of(both)
    assert found is not None
    assert found.alone == pytest.approx(np.zeros(found.alone.shape), abs=0.005)
    assert np.diff(found.effect, axis=1) == pytest.approx(np.full((2, 1), 0.1), abs=0.01)


def test_one_session_is_none(runs: Runs, of_rules: Model) -> None:
    assert sessions_of(runs) is None
    assert of_rules.session_cost == 0
    with pytest.raises(UsageError, match="several campaigns"):
        of_rules.in_session("day 0")


def test_a_question_that_names_its_session_is_answered_for_it(model: Model) -> None:
    asked = in_sessions(DAYS, seed=0)
    labels = np.array(asked.table.column("campaign").to_pylist())
    usual = np.abs(model.predict(asked.colocations) / asked.runtime_seconds - 1)
    named, bounds = np.empty(len(asked)), np.empty(len(asked))
    for name in model.session_names:
        mine = np.flatnonzero(labels == name)
        about = model.in_session(name)
        named[mine], answer = about.predict_and_bound(asked.colocations.take(mine), 0.9)
        bounds[mine] = answer.seconds
        assert about.session_cost == 0
        assert about.label["session"] == name
    error = np.abs(named / asked.runtime_seconds - 1)
    assert error.mean() < usual.mean() / 2
    # What it costs not to name one is about what it is said to cost.
    assert usual.mean() - error.mean() == pytest.approx(model.session_cost, rel=0.5)
    wide = model.bound(asked.colocations, 0.9).seconds
    known = np.isfinite(wide) & np.isfinite(bounds)
    assert np.median(bounds[known] / named[known]) < np.median(
        wide[known] / model.predict(asked.colocations)[known]
    )


def test_every_door_takes_the_session(model: Model) -> None:
    item = {"workload": "program 0", "platform": "machine 0", "corunners": ["program 1"]}
    usual = predict.of(model, [item], PredictQuestion())
    named = predict.of(model, [item], PredictQuestion(session="day 0"))
    ratio = named.items[0].runtime_seconds / usual.items[0].runtime_seconds
    assert np.log(ratio) == pytest.approx(DAYS[0], abs=0.05)
    assert f"costs {model.session_cost:.1%}" in usual.report().notes[-1]
    assert not named.report().notes
    whole = Model(model.predictor, model.calibration, {}, whole=model.predictor)
    (one,) = predict.of(whole, [item], PredictQuestion(session="day 0")).items
    assert one.runtime_seconds == named.items[0].runtime_seconds
    with pytest.raises(UnknownName, match="day 9"):
        predict.of(model, [item], PredictQuestion(session="day 9"))


def test_sessions_are_saved_and_outlive_an_update(model: Model, tmp_path: Path) -> None:
    asked = in_sessions(DAYS).colocations
    model.save(tmp_path / "model")
    read = jostle.load(tmp_path / "model").in_session("day 1")
    before = model.in_session("day 1")
    assert read.predict(asked) == pytest.approx(before.predict(asked), rel=1e-9)
    assert read.bound(asked, 0.9).seconds == pytest.approx(before.bound(asked, 0.9).seconds)
    more = in_sessions(DAYS, seed=0).take(np.arange(12))
    updated = model.update(more)
    assert updated.session_names == model.session_names
    assert updated.session_cost == pytest.approx(model.session_cost, rel=0.2)


def test_a_session_never_met_is_as_far_off_as_those_that_are_known() -> None:
    """Oracle: the spread of known factors about their mean, and Student's law of as many."""
    from scipy import stats

    runs = in_sessions(DAYS)
    found = sessions_of(runs)
    assert found is not None
    apart = found.effect.std(axis=1, ddof=1)
    size = np.bincount([int(name[-1]) for name in runs.table.column("campaign").to_pylist()])
    usual = ((size / size.sum()) ** 2).sum()
    # Runs beside others alone are of about the same sessions.
    assert found.spread[0] == pytest.approx(np.sqrt((apart**2).mean() * (1 + usual)), rel=0.05)
    later = found.in_unknown(runs, [0])
    log = np.log(later.runtime_seconds / runs.runtime_seconds)
    beside = runs.colocations.number_of_corunners > 0
    known = stats.t(len(DAYS) - 1, scale=np.where(beside, *found.spread))
    assert np.sort(known.cdf(log)) == pytest.approx((np.arange(len(log)) + 0.5) / len(log))


def test_bounds_of_no_session_are_of_the_mixture_or_of_the_next_one(tmp_path: Path) -> None:
    """Of three sessions too little tells what a fourth is like; five do."""
    for days in (DAYS, np.array([0.2, -0.1, -0.05, 0.1, -0.15])):
        runs = in_sessions(days)
        model = jostle.fit(runs, QUICK)
        asked = runs.colocations
        bounds, predicted = model.bound(asked, 0.9), model.predict(asked)
        kind = UNKNOWN_SESSION if len(days) >= 5 else CROSS_VALIDATED
        assert set(bounds.outcome[bounds.is_valid]) <= {kind, "held_out_names"}
        assert bounds.is_calibrated.any()
        assert not bounds.is_guaranteed.any()
        model.save(tmp_path / "model")
        again = jostle.load(tmp_path / "model").bound(asked, 0.9)
        assert again.seconds == pytest.approx(bounds.seconds)
        assert (again.outcome == bounds.outcome).all()
        named = model.in_session(model.session_names[0])
        own = named.bound(asked, 0.9)
        assert UNKNOWN_SESSION not in own.outcome
        # Who does not name the session knows less.
        known = bounds.is_valid & own.is_valid
        widths = [
            np.median(np.log(each.seconds / centre)[known])
            for each, centre in ((own, named.predict(asked)), (bounds, predicted))
        ]
        assert widths == sorted(widths)
        # Over the sessions that were measured the bounds hold.
        late = runs.runtime_seconds > bounds.seconds
        assert late[bounds.is_valid].mean() <= share_limits(int(bounds.is_valid.sum()), 0.1)[1]
