"""Campaigns in which all runs took longer or shorter: told apart, asked for, no interference of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jostle
from jostle.conformal import CROSS_VALIDATED, UNKNOWN_CAMPAIGN
from jostle.data import Runs
from jostle.errors import UnknownName, UsageError
from jostle.learn.ensemble._campaign_effects import CampaignEffects
from jostle.models import Model
from jostle.operations import PredictQuestion
from jostle.operations.model.predict import predict
from tests.limits import share_limits
from tests.packages.learn.ensemble.campaigns import campaigns_of
from tests.packages.learn.ensemble.conftest import DAYS, QUICK, in_campaigns, made_runs


@pytest.fixture(scope="module")
def model() -> Model:
    return jostle.fit(in_campaigns(DAYS), QUICK)


def test_effects_are_what_repeats_of_one_colocation_say() -> None:
    """Oracle: least squares on differences between runs of the very same co-location."""
    runs = in_campaigns(DAYS)
    found = campaigns_of(runs)
    assert found is not None
    labels = [int(name[-1]) for name in runs.table.column("campaign").to_pylist()]
    campaign, y = np.array(labels), np.log(runs.runtime_seconds)
    group = runs.colocations.group
    design, right = [], []
    for code in np.unique(group):
        first, *rest = np.flatnonzero(group == code)
        for other in rest:
            row = np.zeros(len(DAYS))
            row[campaign[other]] += 1
            row[campaign[first]] -= 1
            design.append(row)
            right.append(y[other] - y[first])
    oracle = np.linalg.lstsq(np.array(design), np.array(right), rcond=None)[0]
    apart = found.effect - found.effect[..., :1]
    # Three standard errors of the oracle's own noise (.02 a run), and what shrinking takes.
    assert np.abs(apart - (oracle - oracle[0])).max() < 0.03
    assert found.cost == pytest.approx(np.abs(np.expm1(DAYS)).mean(), abs=0.05)


def test_runs_that_differ_by_noise_alone_have_no_campaigns() -> None:
    for seed in range(3):
        found = campaigns_of(in_campaigns(np.zeros(3), seed))
        assert found is not None
        assert not found.effect.any()
        assert found.cost == 0


def test_a_platform_of_one_campaign_says_nothing_of_it() -> None:
    found = campaigns_of(in_campaigns(DAYS[:2], whole_platforms=True))
    assert found is not None
    platform = np.arange(2)
    assert any(
        found.effect[:, platform, own] == pytest.approx(np.zeros((2, 2)), abs=1e-9)
        for own in ([0, 1], [1, 0])
    )


def test_a_campaign_in_which_runs_beside_others_alone_take_longer_moves_no_time_alone() -> None:
    runs = in_campaigns(np.zeros(2))
    columns = runs.colocations.to_columns()
    slow = np.where(runs.colocations.number_of_corunners > 0, np.exp(0.1), 1.0)
    both = Runs.from_columns(
        **{name: [*column, *column] for name, column in columns.items()},
        runtime_seconds=np.concatenate([runs.runtime_seconds, runs.runtime_seconds * slow]),
        campaign=["one"] * len(runs) + ["other"] * len(runs),
    )
    found = campaigns_of(both)
    assert found is not None
    alone, beside = found.effect
    assert alone == pytest.approx(np.zeros(alone.shape), abs=0.005)
    assert np.diff(beside, axis=1) == pytest.approx(np.full((2, 1), 0.1), abs=0.01)


def test_one_campaign_is_none(runs: Runs, of_rules: Model) -> None:
    assert campaigns_of(runs) is None
    assert of_rules.campaign_error_ratio == 0
    with pytest.raises(UsageError, match="several campaigns"):
        of_rules.for_campaign("day 0")


def test_a_question_that_names_its_campaign_is_answered_for_it(model: Model) -> None:
    asked = in_campaigns(DAYS, seed=0)
    labels = np.array(asked.table.column("campaign").to_pylist())
    usual = np.abs(model.predict(asked.colocations) / asked.runtime_seconds - 1)
    named, bounds = np.empty(len(asked)), np.empty(len(asked))
    for name in model.campaign_names:
        mine = np.flatnonzero(labels == name)
        about = model.for_campaign(name)
        named[mine], answer = about.predict_and_bound(asked.colocations.take(mine), 0.9)
        bounds[mine] = answer.seconds
        assert about.campaign_error_ratio == 0
        assert about.label["campaign"] == name
    error = np.abs(named / asked.runtime_seconds - 1)
    assert error.mean() < usual.mean() / 2
    # What it costs not to name one is about what it is said to cost.
    assert usual.mean() - error.mean() == pytest.approx(model.campaign_error_ratio, rel=0.5)
    wide = model.bound(asked.colocations, 0.9).seconds
    known = np.isfinite(wide) & np.isfinite(bounds)
    assert np.median(bounds[known] / named[known]) < np.median(
        wide[known] / model.predict(asked.colocations)[known]
    )


def test_every_door_takes_the_campaign(model: Model) -> None:
    item = {"workload": "program 0", "platform": "machine 0", "corunners": ["program 1"]}
    usual = predict.of(model, [item], PredictQuestion())
    named = predict.of(model, [item], PredictQuestion(campaign="day 0"))
    other = predict.of(model, [item], PredictQuestion(campaign="day 1"))
    ratio = named.items[0].runtime_seconds / other.items[0].runtime_seconds
    assert np.log(ratio) == pytest.approx(DAYS[0] - DAYS[1], abs=0.05)
    assert f"costs {model.campaign_error_ratio:.1%}" in usual.report().notes[-1]
    assert not named.report().notes
    with pytest.raises(UnknownName, match="day 9"):
        predict.of(model, [item], PredictQuestion(campaign="day 9"))


def test_campaigns_are_saved_and_outlive_an_update(model: Model, tmp_path: Path) -> None:
    asked = in_campaigns(DAYS).colocations
    model.save(tmp_path / "model")
    read = jostle.load(tmp_path / "model").for_campaign("day 1")
    before = model.for_campaign("day 1")
    assert read.predict(asked) == pytest.approx(before.predict(asked), rel=1e-9)
    assert read.bound(asked, 0.9).seconds == pytest.approx(before.bound(asked, 0.9).seconds)
    more = in_campaigns(DAYS, seed=0).take(np.arange(12))
    updated = model.update(more)
    assert updated.campaign_names == model.campaign_names
    assert updated.campaign_error_ratio == pytest.approx(model.campaign_error_ratio, rel=0.2)


def test_who_names_no_campaign_is_answered_for_those_that_the_names_tell() -> None:
    """Workloads are mostly measured in a campaign of their own, which effects of names tell, too. In the mean
    of three draws."""
    labelled, without = np.mean([errors_without_a_campaign(seed) for seed in (5, 6, 7)], axis=0)
    assert labelled < without


def errors_without_a_campaign(seed: int) -> list[float]:
    """Of the model of labelled runs, and of unlabelled ones."""
    runs, random = made_runs(), np.random.default_rng(seed)
    target, days = np.asarray(runs.colocations.workload), np.linspace(-0.3, 0.3, 8)
    own = random.permutation(8)[target]
    code = np.where(random.random(len(runs)) < 0.85, own, random.integers(0, 8, len(runs)))
    columns = runs.colocations.to_columns()
    seconds = runs.runtime_seconds * np.exp(days[code])
    labels = [f"day {one}" for one in code.tolist()]
    labelled = Runs.from_columns(**columns, runtime_seconds=seconds, campaign=labels)
    without = Runs.from_columns(**columns, runtime_seconds=seconds)
    members = [tuple(sorted((w, *c))) for w, _, c in map(runs.colocations.row, range(len(runs)))]
    sets = np.unique(np.array(list(map(str, members))), return_inverse=True)[1]
    out = (random.permutation(sets.max() + 1)[sets] % 3 == 0) & (
        runs.colocations.number_of_corunners > 0
    )
    asked = np.flatnonzero(out)
    return [
        float(np.abs(model.predict(runs.colocations.take(asked)) / seconds[asked] - 1).mean())
        for model in (
            jostle.fit(given.take(np.flatnonzero(~out)), QUICK) for given in (labelled, without)
        )
    ]


@given(st.integers(0, 10**6))
def test_the_answer_that_names_no_campaign_errs_least_over_the_mixture(seed: int) -> None:
    """Oracle: brute force over a fine grid of shifts, without noise."""
    random = np.random.default_rng(seed)
    effects = random.normal(0, 0.2, (2, 1, 3))
    log_mix = np.log(random.dirichlet(np.ones(3)))
    told = (np.zeros((size, 3)) for size in (2, 1, 1, 1))
    found = CampaignEffects(
        *(("a", "b", "c"), effects, np.array(0.1), np.array(0.0), np.zeros(2), np.array(2.0)),
        *(np.zeros(4), log_mix, *told),
    )
    zero = np.zeros(1, np.int64)
    (shift,) = found.of_unnamed(zero, zero, zero[:0], zero[:0])

    def cost(at: np.ndarray) -> np.ndarray:
        return np.abs(np.expm1(at[:, None] - effects[0, 0])) @ np.exp(log_mix)

    least = cost(np.linspace(-1, 1, 4001)).min()
    assert cost(np.array([shift]))[0] <= least + np.ptp(effects[0]) / 100


def test_a_campaign_never_met_is_as_far_off_as_those_that_are_known() -> None:
    """Oracle: the spread of known factors about their mean, and Student's law of as many."""
    from scipy import stats

    runs = in_campaigns(DAYS)
    found = campaigns_of(runs)
    assert found is not None
    apart = found.effect[0].std(axis=1, ddof=1)
    size = np.bincount([int(name[-1]) for name in runs.table.column("campaign").to_pylist()])
    usual = ((size / size.sum()) ** 2).sum()
    # Runs beside others alone are of about the same campaigns.
    assert found.spread[0] == pytest.approx(np.sqrt((apart**2).mean() * (1 + usual)), rel=0.05)
    later = found.in_unknown(runs, [0])
    log = np.log(later.runtime_seconds / runs.runtime_seconds)
    beside = runs.colocations.number_of_corunners > 0
    known = stats.t(len(DAYS) - 1, scale=found.spread[beside.astype(int)])
    assert np.sort(known.cdf(log)) == pytest.approx((np.arange(len(log)) + 0.5) / len(log))


def test_bounds_of_no_campaign_are_of_the_mixture_or_of_the_next_one(tmp_path: Path) -> None:
    """Of three campaigns too little tells what a fourth is like; five do."""
    for days in (DAYS, np.array([0.2, -0.1, -0.05, 0.1, -0.15])):
        runs = in_campaigns(days)
        model = jostle.fit(runs, QUICK)
        asked = runs.colocations
        bounds, predicted = model.bound(asked, 0.9), model.predict(asked)
        kind = UNKNOWN_CAMPAIGN if len(days) >= 5 else CROSS_VALIDATED
        assert set(bounds.outcome[bounds.is_valid]) <= {kind, "held_out_names"}
        assert bounds.is_calibrated.any()
        assert not bounds.is_guaranteed.any()
        model.save(tmp_path / "model")
        again = jostle.load(tmp_path / "model").bound(asked, 0.9)
        assert again.seconds == pytest.approx(bounds.seconds)
        assert (again.outcome == bounds.outcome).all()
        named = model.for_campaign(model.campaign_names[0])
        own = named.bound(asked, 0.9)
        assert UNKNOWN_CAMPAIGN not in own.outcome
        # Who does not name the campaign knows less.
        known = bounds.is_valid & own.is_valid
        widths = [
            np.median(np.log(each.seconds / centre)[known])
            for each, centre in ((own, named.predict(asked)), (bounds, predicted))
        ]
        assert widths == sorted(widths)
        # Over the campaigns that were measured the bounds hold.
        late = runs.runtime_seconds > bounds.seconds
        assert late[bounds.is_valid].mean() <= share_limits(int(bounds.is_valid.sum()), 0.1)[1]
