"""Requests that cost least: policies by hand, laws that are known, and what a replay may know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.errors import UsageError
from jostle.usage import RULES, LeastCost, RetryPolicy, RunHistory
from jostle.usage import replay as replay_log
from jostle.usage.limits import _least_cost


def history(value: Any, **columns: Any) -> RunHistory:
    """Runs one after the other, an hour each, that asked for 100."""
    value = np.asarray(value, float)
    n = len(value)
    made = RunHistory(
        workload=np.full(n, "a"),
        start=np.arange(n) * 3600.0,
        end=np.arange(1, n + 1) * 3600.0,
        value=value,
        requested=np.full(n, 100.0),
        hours=np.ones(n),
        covariates=np.zeros((0, n)),
        is_open=np.zeros(n, bool),
    )
    return replace(made, **columns)


def by_hand(policy: RetryPolicy, request: float, value: float, most: float) -> float:
    cost = 0.0
    while request < value:
        cost += policy.loses * (policy.gb_hour_price * request + policy.hour_price)
        if policy.retry == "none":
            return cost
        request = 2 * request if policy.retry == "x2" else max(most, value)
    return cost + policy.gb_hour_price * (request - value)


@pytest.mark.parametrize("retry", ["x2", "max", "none"])
def test_a_request_costs_what_its_attempts_hold(retry: Any) -> None:
    policy = RetryPolicy(retry, loses=0.5, gb_hour_price=2.0, hour_price=3.0)
    for request, value in np.random.default_rng(0).uniform(0.1, 20, (200, 2)):
        told = policy.cost_per_hour(request, value, 15.0)
        assert told == pytest.approx(by_hand(policy, request, value, 15.0))
    assert policy.attempts(4.0, 4.0)[0] == 0
    with pytest.raises(UsageError, match="no"):
        RetryPolicy("none")
    with pytest.raises(UsageError, match="loses"):
        RetryPolicy(loses=2.0)


def test_requests_follow_laws_that_are_known() -> None:
    random = np.random.default_rng(1)
    size = np.exp(0.8 * random.standard_normal(60)) * 1e9
    for value in (np.full(60, 5.0), 3 + 4 * size / 1e9, 6 * (size / 1e9) ** 0.5):
        asked, _ = replay_log(history(value, covariates=size[None]), RetryPolicy())
        assert (asked[0, 40:] >= value[40:]).mean() > 0.8
        assert np.median(asked[0, 40:] / value[40:]) < 1.05


def test_a_replay_knows_only_what_had_ended() -> None:
    random = np.random.default_rng(2)
    value = random.gamma(5, 1, 40)
    before, _ = replay_log(history(value), RetryPolicy())
    other, _ = replay_log(history(np.append(value[:25], 9 * value[25:])), RetryPolicy())
    np.testing.assert_array_equal(before[:, :26], other[:, :26])
    # All begin before one has ended: what is requested now, or what others needed.
    wave, _ = replay_log(history(value, start=np.zeros(40)), RetryPolicy())
    assert (wave == 100).all()
    unknown = history(value, start=np.zeros(40), requested=np.full(40, np.nan))
    assert np.isnan(replay_log(unknown, RetryPolicy())[0]).all()
    names = np.where(np.arange(40) < 39, "a", "b")
    new, _ = replay_log(
        history(value, workload=names, requested=np.full(40, np.nan)), RetryPolicy()
    )
    assert np.delete(new[:, 39], RULES.index("requested")) == pytest.approx(value[:39].max())


def test_peaks_that_nobody_knows_teach_nothing_and_deaths_teach_more() -> None:
    value = np.full(30, 5.0)
    unknown = history(np.where(np.arange(30) % 2, np.nan, value))
    told = replay_log(unknown, RetryPolicy())[0][0, 28]
    assert 5 <= told < 5.3
    died = replay_log(history(value, is_open=np.arange(30) % 2 == 0), RetryPolicy())[0][0, -1]
    assert died > 7


def test_what_a_failure_costs_moves_the_request() -> None:
    value = np.exp(0.3 * np.random.default_rng(3).standard_normal(200))
    cheap, plain, dear = (
        replay_log(history(value), policy)[0][0, -1]
        for policy in (RetryPolicy(loses=0.1), RetryPolicy(), RetryPolicy(hour_price=100.0))
    )
    assert cheap < plain < dear


@pytest.mark.parametrize("law", ["constant", "noise", "affine", "two kinds", "drift", "outliers"])
def test_jostle_costs_little_more_than_the_best_simple_rule_on_any_law(law: str) -> None:
    random = np.random.default_rng(4)
    size, noise = np.exp(0.5 * random.standard_normal(200)), random.standard_normal(200)
    value = {
        "constant": 5 * np.exp(0.005 * noise),
        "noise": 5 * np.exp(0.3 * noise),
        "affine": (2 + 3 * size) * np.exp(0.03 * noise),
        "two kinds": np.where(random.random(200) < 0.3, 9.0, 4.0) * np.exp(0.02 * noise),
        "drift": 4 * np.exp(0.01 * np.arange(200) + 0.02 * noise),
        "outliers": 5 * np.exp(0.05 * random.standard_t(2, 200)),
    }[law]
    runs, policy = history(value, covariates=size[None]), RetryPolicy()
    asked, _ = replay_log(runs, policy)
    waste = dict(zip(RULES, policy.cost_per_hour(asked, value).sum(axis=1), strict=True))
    best = min(waste["largest_seen"], waste["largest_seen_x1.2"])
    assert waste["jostle"] <= 1.05 * best, waste


def test_requests_follow_a_step() -> None:
    noise = np.random.default_rng(5).standard_normal(200)
    value = np.where(np.arange(200) < 100, 4.0, 7.0) * np.exp(0.02 * noise)
    asked, _ = replay_log(history(value), RetryPolicy())
    assert (asked[0, 120:] >= value[120:]).mean() > 0.5
    assert np.median(asked[0, 120:] / value[120:]) < 1.3


def test_of_many_workloads_some_tell_what_they_have_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def counted(forms: Any, laws: Any) -> float:
        asked.append(len(laws))
        return 0.0

    monkeypatch.setattr(_least_cost, "learn_in_common", counted)
    monkeypatch.setattr(LeastCost, "_law", lambda self, own: own)
    runs = history(np.ones(900), workload=np.array([f"w{i}" for i in range(900)]))
    learned = LeastCost(runs, RetryPolicy())
    for row in range(900):
        learned.end(row)
    assert asked[0] == 5  # all there were
    assert 150 <= max(asked[-3:]) <= max(asked) <= 300


def test_what_always_needs_the_same_is_soon_asked_for_just_that() -> None:
    asked, learned = replay_log(history(np.full(12, 5.0)), RetryPolicy())
    assert (np.abs(asked[0, 5:] / 5 - 1) < 0.01).all()
    assert 5 <= learned.next_request("a")[0] < 5.02
    # A workload that ran once is expected to do as the others did.
    names = np.repeat([f"w{k}" for k in range(6)], 2)
    others = history(np.repeat([3.0, 5.0, 2.0, 7.0, 4.0, 6.0], 2), workload=names)
    assert 6 <= replay_log(others, RetryPolicy())[0][0, -1] < 6.3


def test_runs_that_began_together_do_not_seem_to_take_longer_and_longer() -> None:
    hours = np.exp(0.2 * np.random.default_rng(3).standard_normal(40))
    one = history(hours, hours=hours, start=np.zeros(40), end=3600 * hours)
    learned = replay_log(one, RetryPolicy(), of_time=True)[1]
    assert (learned.peaks("a")[0] == hours).all()
