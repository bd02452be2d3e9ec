"""Limits where peaks turn on their order: what is given is kept, by trends, since steps, or not at all."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.operations.forecasts.limit import limit
from jostle.usage import Peaks
from jostle.usage.limits._peak_order import limit_in_order, over_in_order, turns_on_order
from jostle.usage.limits._rank_limits import limit_of
from tests.limits import share_limits
from tests.packages.usage.conftest import nobody


def test_orders_like_any_other_are_called_otherwise_seldom() -> None:
    """Each of five tests errs once in a hundred orders, on one side or both."""
    random = np.random.default_rng(5)
    for n in (10, 40, 200):
        told = [turns_on_order(random.permutation(n).astype(float)) for _ in range(400)]
        assert np.mean(told) <= share_limits(400, 0.05)[1]
    assert not turns_on_order(np.ones(40))


@pytest.mark.parametrize("growth", ["by 1%", "by as much", "not at all"])
@pytest.mark.parametrize("n", [40, 100])
def test_a_limit_follows_a_trend(growth: str, n: int) -> None:
    random, inside, outcomes = np.random.default_rng(6), 0, set()
    shape = {
        "by 1%": 1.01 ** np.arange(n + 1),
        "by as much": 1 + 0.05 * np.arange(n + 1),
        "not at all": np.ones(n + 1),
    }[growth]
    given = 0
    for _ in range(300):
        peaks = 1e9 * shape * np.exp(0.02 * random.standard_normal(n + 1))
        told = limit_in_order(peaks[:n], nobody(n), 0.9)
        outcomes.add(told.outcome)
        given += np.isfinite(told.value)
        inside += bool(peaks[n] <= told.value and np.isfinite(told.value))
    assert inside / given >= share_limits(300, 0.9)[0]
    assert ("guaranteed" in outcomes) == (growth == "not at all")
    exact = limit_in_order(1.01 ** np.arange(n), nobody(n), 0.9)
    assert exact.value == pytest.approx(1.01**n)


def test_noise_that_stays_as_it_is_does_not_grow_with_the_level() -> None:
    """Half as high, the same noise is twice as much of the level: of its logs it would be that later, too."""
    noise = 0.3 * np.random.default_rng(0).permutation(np.linspace(-1, 1, 40))
    told = limit_in_order(1e9 * (1 + 0.1 * np.arange(40) + noise), nobody(40), 0.95)
    assert told.outcome == "follows_trend"
    assert 1e9 * 5.0 < told.value < 1e9 * (5.0 + 2 * 0.3)


# Logs of peaks whose later runs are not like the earlier ones, as plain as 25 runs can hide, by place, place
# over all, noise and a walk.
TRENDS = {
    "grows by 1%": lambda i, share, noise, walk: 0.01 * i + 0.02 * noise,
    "grows by as much": lambda i, share, noise, walk: np.log1p(0.02 * i + 0.06 * noise),
    "grows slowly": lambda i, share, noise, walk: 0.01 * i + 0.2 * noise,
    "grows faster": lambda i, share, noise, walk: np.log1p(5e-4 * i**2 + 0.05 * noise),
    "falls": lambda i, share, noise, walk: 0.1 * noise - 0.01 * i,
    "a late step": lambda i, share, noise, walk: 0.1 * noise + 0.26 * (share >= 0.85),
    "a step": lambda i, share, noise, walk: 0.1 * noise + 0.1 * (share >= 0.8),
    "walks": lambda i, share, noise, walk: 0.03 * walk + 0.05 * noise,
    "spreads": lambda i, share, noise, walk: (0.05 + 0.1 * share) * noise,
    "shared load": lambda i, share, noise, walk: 0.15 * np.sin(i / 2 + walk[-1]) + 0.1 * noise,
    "like any other": lambda i, share, noise, walk: 0.2 * noise,
}


@pytest.mark.parametrize("n", [25, 40, 100])
@pytest.mark.parametrize("law", TRENDS)
def test_what_is_given_is_kept_however_peaks_trend(law: str, n: int) -> None:
    random, kept = np.random.default_rng(6), []
    for _ in range(400):
        noise, walk = random.standard_normal(n + 1), random.standard_normal(n + 1).cumsum()
        peaks = np.exp(TRENDS[law](np.arange(n + 1), np.arange(n + 1) / (n + 1), noise, walk))
        told = limit_in_order(peaks[:n], nobody(n), 0.95)
        assert told.raised_ratio >= 1
        kept += [peaks[n] <= told.value] if np.isfinite(told.value) else []
    if kept:
        assert np.mean(kept) >= share_limits(len(kept), 0.95)[0]


def test_a_limit_that_is_raised_says_so() -> None:
    peaks = np.r_[1.1, np.random.default_rng(3).permutation(np.linspace(0.9, 1.1, 22)), 1.05, 1.099]
    answer = limit.of(Peaks.from_items([{"values": [one]} for one in peaks]), confidence=0.95)
    plain = limit_of(peaks, nobody(25), 0.95)
    assert (answer.outcome, answer.limit) == ("guaranteed", plain.value * answer.raised_ratio)
    assert answer.raised_ratio > 1
    assert "higher, as their order may be a trend" in answer.promise


def test_curves_and_spreads_that_grow_are_no_lines_and_no_random_orders() -> None:
    random, n = np.random.default_rng(8), np.arange(101)
    curve = np.exp(4e-4 * n**2 + 0.03 * random.standard_normal((20, 101)))
    wider = np.exp(np.linspace(0.02, 0.3, 101) * random.standard_normal((20, 101)))
    for peaks in (*curve, *wider):
        assert limit_in_order(peaks, nobody(101), 0.9).outcome == "unsteady"


def test_a_limit_is_from_the_runs_since_a_step() -> None:
    random = np.random.default_rng(7)
    noise = np.exp(0.03 * random.standard_normal((3, 60)))
    late = np.where(np.arange(60) < 55, 1.0, 1.5) * noise[0]
    middle = np.where(np.arange(60) < 30, 1.0, 1.5) * noise[1]
    walk = np.exp(0.2 * random.standard_normal(60).cumsum()) * noise[2]
    told = limit_in_order(middle, nobody(60), 0.9)
    assert (told.outcome, told.runs, told.runs_before) == ("guaranteed", 30, 30)
    assert told.value >= limit_of(middle[30:], nobody(30), 0.9).value
    few = limit_in_order(late, nobody(60), 0.9)
    assert (few.outcome, few.runs, few.confidence_now) == ("too_few_runs", 5, 0.8333)
    none = limit_in_order(walk, nobody(60), 0.9)
    assert (none.outcome, none.value) == ("unsteady", np.inf)
    assert over_in_order(walk, nobody(60), walk.max()) == (0.0, 1.0)
    answer = limit.of(Peaks.from_items([{"values": [value]} for value in late]), over=2.0)
    assert (answer.exit_code, answer.best_limit) == (3, late[55:].max())
    assert "5 runs since peaks stepped (the 55 before are left out)" in answer.promise
    # Of sixty peaks fifty-five would be far below.
    assert (answer.over_low_ratio, answer.over_high_ratio) == (0.0, pytest.approx(11 / 61))
    answer = limit.of(Peaks.from_items([{"values": [value]} for value in walk]))
    assert answer.exit_code == 3
    assert "turn on their order" in answer.promise


@pytest.mark.parametrize("size", [0.7, 1.3, 2.0])
def test_limits_since_steps_are_kept(size: float) -> None:
    """Old and new runs in one rank would be kept too seldom after a step up; without one there is none."""
    random, kept = np.random.default_rng(9), []
    for _ in range(200):
        stepped = np.arange(81) >= random.integers(20, 50)
        peaks = size**stepped * np.exp(0.1 * random.standard_normal(81))
        told = limit_in_order(peaks[:80], nobody(80), 0.95)
        kept += [peaks[80] <= told.value] if np.isfinite(told.value) else []
    assert len(kept) > 100
    assert np.mean(kept) >= share_limits(len(kept), 0.95)[0]


@pytest.mark.parametrize("shape", ["steady", "grows", "steps"])
def test_what_goes_over_is_what_limits_leave(shape: str) -> None:
    """A limit of a confidence is exceeded at most as often; a new peak is told to go over by the same law."""
    random, n = np.random.default_rng(4), 60
    course = {"steady": 1.0, "grows": 1.02 ** np.arange(n), "steps": 1.0 + (np.arange(n) > 30)}
    peaks = course[shape] * np.exp(0.05 * random.standard_normal(n))
    for confidence in (0.5, 0.8, 0.9):
        told = limit_in_order(peaks, nobody(n), confidence)
        low, high = over_in_order(peaks, nobody(n), told.value * (1 + 1e-9))
        assert low <= 1 - confidence
        assert high <= 1 - confidence + 2 / (told.runs + 1)
