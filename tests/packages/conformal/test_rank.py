"""The conformal rank against exact fractions, and coverage by repetition."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.conformal import conformal_rank
from jostle.conformal._conformal_rank import (
    effective_number,
    one_run_of_each,
    rank_by_weight,
    window_weights,
)
from jostle.errors import UsageError
from jostle.operations import ExplainQuestion, FitQuestion, LimitQuestion, PredictQuestion, evaluate
from jostle.operations.tour import TourPlan
from jostle.placement import Standard
from jostle.server import ServeSettings
from jostle.usage import Peaks, Residents
from tests.limits import mean_limits

SIZES = (5, 9, 10, 19, 20, 50, 99, 100)
REPETITIONS = 1000
NOTHING: Any = None


@given(st.integers(0, 10_000), st.integers(1, 9_999))
def test_rank_is_the_exact_ceiling(n: int, ten_thousandths: int) -> None:
    confidence = ten_thousandths / 10_000
    exact = math.ceil((n + 1) * Fraction(ten_thousandths, 10_000))
    assert conformal_rank(n, confidence) == exact


def test_rank_where_floating_point_goes_wrong() -> None:
    # (9 + 1) * 0.9 and (99 + 1) * 0.99 are whole numbers; binary fractions put some of these above.
    assert [conformal_rank(n, c) for n, c in ((9, 0.9), (99, 0.99), (19, 0.95), (999, 0.999))] == [
        9,
        99,
        19,
        999,
    ]
    assert conformal_rank(8, 0.9) == 9  # above n: no finite bound


@pytest.mark.parametrize(
    "confidence", [0.0, 1.0, -0.1, 1.1, float("nan"), float("inf"), None, [0.9], "0.9", True]
)
def test_confidence_outside_its_range(confidence: Any) -> None:
    with pytest.raises(UsageError, match="not between 0 and 1"):
        conformal_rank(9, confidence)


@pytest.mark.parametrize("confidence", [1.1, "0.9", True])
@pytest.mark.parametrize(
    "door",
    [
        *(PredictQuestion, ExplainQuestion, LimitQuestion, Standard, TourPlan),
        partial(ServeSettings, model=Path("folder")),
        partial(FitQuestion, dataset=Path("folder")),
        partial(evaluate, NOTHING),
        Residents([Peaks.from_items([{"values": [1.0]}] * 9)]).ranked,
    ],
)
def test_every_door_refuses_it_in_the_same_words(door: Any, confidence: Any) -> None:
    with pytest.raises(UsageError, match="not between 0 and 1"):
        door(confidence=confidence)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("n", SIZES)
def test_coverage_at_small_n(n: int, confidence: float) -> None:
    """Scores uniform on (0, 1): the chance that a new one is covered is the threshold itself."""
    random = np.random.default_rng([n, round(confidence * 100)])
    scores = np.sort(random.random((REPETITIONS, n)), axis=1)
    rank = conformal_rank(n, confidence)
    must_be_infinite = Fraction(str(confidence)) * (n + 1) > n
    assert (rank > n) == must_be_infinite
    covered = np.ones(REPETITIONS) if rank > n else scores[:, rank - 1]
    low, high = mean_limits(covered)
    assert high >= confidence
    if rank <= n:  # and no wider than need be: the expected coverage is rank / (n + 1)
        assert low <= rank / (n + 1) <= high


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(1, 99))
def test_windows_weigh_the_same(windows: list[int], hundredths: int) -> None:
    """The rank by weight against its definition in fractions."""
    window = np.array(windows)
    weight, total = window_weights(window)
    sizes = np.bincount(window)
    n_windows = len(set(windows))
    confidence = hundredths / 100
    shares = [Fraction(1, int(sizes[w]) * (n_windows + 1)) for w in windows]
    running, expected = Fraction(0), len(windows) + 1
    for place, share in enumerate(shares, start=1):
        running += share
        if running >= Fraction(hundredths, 100):
            expected = place
            break
    assert rank_by_weight(np.cumsum(weight), total, confidence) == expected


@given(st.integers(1, 300), st.integers(1, 99))
def test_one_run_a_window_is_the_plain_rank(n: int, hundredths: int) -> None:
    weight, total = window_weights(np.arange(n))
    by_weight = rank_by_weight(np.cumsum(weight), total, hundredths / 100)
    assert min(by_weight, n + 1) == min(conformal_rank(n, hundredths / 100), n + 1)


def test_coverage_of_runs_measured_together() -> None:
    """Runs of a window share most of their error: by rows the bound would fall short, by windows not."""
    random = np.random.default_rng(0)
    windows, size, confidence = 16, 5, 0.9
    by_window, by_row = [], []
    for _ in range(4000):
        shared = random.normal(size=(windows + 1, 1))
        scores = shared + 0.1 * random.normal(size=(windows + 1, size))
        order = np.sort(scores[:-1].ravel())
        weight, total = window_weights(np.repeat(np.arange(windows), size))
        rank = rank_by_weight(np.cumsum(weight), total, confidence)
        by_window.append((scores[-1] <= order[rank - 1]).mean())
        plain = conformal_rank(windows * size, confidence)
        by_row.append((scores[-1] <= order[plain - 1]).mean())
    assert mean_limits(by_window)[1] >= confidence
    assert np.mean(by_row) < confidence
    assert mean_limits(np.subtract(by_window, by_row))[0] > 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_one_run_of_each_window_stands_for_it(windows: list[int]) -> None:
    window = np.array(windows)
    rows = one_run_of_each(window)
    assert (np.diff(rows) > 0).all()
    assert sorted(window[rows].tolist()) == sorted(set(windows))


@given(st.integers(0, 2**31), st.integers(3, 30), st.integers(2, 12))
def test_scores_tell_as_much_as_groups_where_alike_and_more_where_not(
    seed: int, groups: int, size: int
) -> None:
    random, group = np.random.default_rng(seed), np.repeat(np.arange(groups), size)
    own, order = random.normal(size=len(group)), random.permutation(len(group))
    assert effective_number(random.normal(size=groups)[group], group) == pytest.approx(groups)
    found = effective_number(own, group)
    assert groups <= found <= np.sqrt(groups * len(group)) + 1e-9
    assert effective_number(own[order], group[order]) == pytest.approx(found)
    assert effective_number(own, np.arange(len(own))) == len(own)


def test_independent_scores_of_many_groups_tell_nearly_as_much_as_half_way_between() -> None:
    group = np.repeat(np.arange(400), 6)
    found = effective_number(np.random.default_rng(0).normal(size=2_400), group)
    assert found > 0.9 * np.sqrt(400 * 2_400)
