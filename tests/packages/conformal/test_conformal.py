"""Calibration: exact ranks, coverage by repetition, categories that borrow, order, save and load."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.conformal import (
    OUTCOMES,
    STATUSES,
    Bounds,
    Calibration,
    LeftOutRuns,
    Uncertainty,
    coverage,
    margin,
)
from jostle.data import Colocations, Runs
from jostle.learn import Evidence
from tests.limits import coverage_limits, mean_limits


class Noisy:
    """Predicts 1 s for everything, but for workload `lost`."""

    def __init__(self, lost: str | None = None) -> None:
        self.lost = lost

    def predict(self, colocations: Colocations) -> np.ndarray:
        out = np.ones(len(colocations))
        names = np.array(colocations.workload_names)[colocations.workload]
        out[names == self.lost] = np.nan
        return out


class Spread(Noisy):
    """Says that workload b errs five times as much."""

    def uncertainty(self, colocations: Colocations) -> Uncertainty:
        names = np.array(colocations.workload_names)[colocations.workload]
        wide = np.log(np.where(names == "b", 5.0, 1.0))[None]
        return Uncertainty(np.log(self.predict(colocations)), wide, np.ones(1))


def make_runs(seed: int, counts: dict[int, int], spread: dict[str, float] | None = None) -> Runs:
    """Runs with lognormal noise around 1 s; counts: {number of co-runners: how many}."""
    random = np.random.default_rng(seed)
    degree = np.repeat(list(counts), list(counts.values()))
    workload = random.choice(["a", "b"], len(degree))
    sigma = np.array([(spread or {}).get(w, 0.1) for w in workload])
    return Runs.from_columns(
        workload=list(workload),
        platform=["p"] * len(degree),
        corunners=[["a"] * d for d in degree],
        runtime_seconds=np.exp(sigma * random.normal(size=len(degree))),
    )


def asked(*degrees: int) -> Colocations:
    return Colocations.from_columns(
        workload=["a"] * len(degrees),
        platform=["p"] * len(degrees),
        corunners=[["b"] * d for d in degrees],
    )


def crossed(runs: Runs, group: np.ndarray | None = None) -> Calibration:
    """As if a fit that left each run out had predicted 1 s."""
    group = np.arange(len(runs)) if group is None else group
    return Calibration.crossed(LeftOutRuns.of(Noisy(), runs, group), most=9)


def test_the_bound_is_the_order_statistic() -> None:
    runs = make_runs(0, {0: 99})
    calibration = Calibration.fit(Noisy(), runs.take([]), runs)
    bounds = calibration.bound(Noisy(), asked(0), 0.9)
    assert bounds.seconds[0] == pytest.approx(np.sort(runs.runtime_seconds)[89])
    assert (bounds.n[0], bounds.rank[0], bounds.pool[0]) == (99, 90, "alone")
    assert bounds.outcome[0] == "guaranteed"


@pytest.mark.parametrize(("runs", "confidence"), [(9, 0.9), (19, 0.95), (99, 0.99)])
def test_the_fewest_runs_for_a_confidence(runs: int, confidence: float) -> None:
    for number, is_bounded in ((runs, True), (runs - 1, False)):
        some = make_runs(0, {0: number})
        found = Calibration.fit(Noisy(), some.take([]), some)
        bound = found.bound(Noisy(), asked(0), confidence)
        assert np.isfinite(bound.seconds[0]) == is_bounded
        (listed,) = found.summary()
        assert (listed.highest >= confidence - 1e-9) == is_bounded


def test_no_bound_lies_under_its_prediction() -> None:
    class TooHigh(Noisy):
        def predict(self, colocations: Any) -> np.ndarray:
            return 3.0 * super().predict(colocations)

    runs = make_runs(0, {0: 99})
    calibration = Calibration.fit(TooHigh(), runs, runs)
    predicted = TooHigh().predict(asked(0))[0]
    for confidence in (0.1, 0.5, 0.9, 0.95):
        bound = calibration.bound(TooHigh(), asked(0), confidence).seconds[0]
        assert bound == pytest.approx(predicted)
        assert bound >= predicted


def test_no_evidence_is_infinite_with_a_reason() -> None:
    runs = make_runs(1, {0: 8, 1: 30, 2: 5})
    calibration = Calibration.fit(Noisy(), runs.take([]), runs)
    bounds = calibration.bound(Noisy(), asked(0, 1, 2, 3), 0.9)
    assert list(bounds.outcome) == [
        "too_few_runs",
        "guaranteed",
        "guaranteed_pooled",
        "unseen_group",
    ]
    assert list(np.isinf(bounds.seconds)) == [True, False, False, True]
    assert list(bounds.is_guaranteed) == [False, True, False, False]
    assert set(bounds.outcome) <= set(OUTCOMES)
    assert bounds.status.tolist() == ["none", "guaranteed", "calibrated", "none"]
    assert bounds.reason[1] == "holds in at least 90 of 100 such answers (30 held-out runs)"
    assert "measure" in bounds.reason[0]
    assert "measure" in bounds.reason[3]
    none = Calibration.fit(Noisy(), runs.take([]), runs.take([]))
    assert np.isinf(none.bound(Noisy(), asked(0, 1), 0.5).seconds).all()


def test_every_outcome_is_one_of_five_statuses_with_a_short_sentence() -> None:
    assert {status for status, _ in OUTCOMES.values()} == set(STATUSES)
    for confidence, share in ((0.9, "90 of 100"), (0.995, "995 of 1000"), (0.5, "50 of 100")):
        n = len(OUTCOMES)
        zeros = np.zeros(n, np.int64)
        bounds = Bounds(
            *(np.ones(n), np.array(list(OUTCOMES)), zeros.astype(str), zeros + 7, zeros),
            *(confidence, zeros.astype(str)),
        )
        for status, reason in zip(bounds.status, bounds.reason, strict=True):
            assert len(reason.split()) <= 20
            assert "{" not in reason
            assert (share in reason) == (status != "none")


def test_what_is_said_of_the_spread_makes_bounds_narrower() -> None:
    spread = {"a": 0.02, "b": 0.1}
    selection, calibration = make_runs(4, {0: 400}, spread), make_runs(5, {0: 400}, spread)
    test = make_runs(6, {0: 4000}, spread)
    none = selection.take([])
    said, plain, learned = (
        Calibration.fit(one, chosen, calibration).bound(one, test.colocations, 0.9).seconds
        for one, chosen in ((Spread(), none), (Noisy(), none), (Noisy(), selection))
    )
    seconds = test.runtime_seconds
    assert margin(said, seconds) < margin(plain, seconds)
    assert margin(learned, seconds) < margin(plain, seconds)
    for bound in (said, learned):
        assert coverage(bound, seconds) >= coverage_limits(400, 4000, 361)[0]


def test_coverage_of_the_whole_by_repetition() -> None:
    """Scale and calibration together keep their promise, also where the scale is learned from few runs."""
    spread = {"a": 0.05, "b": 0.25}
    covered = []
    for repetition in range(150):
        parts = [make_runs(3 * repetition + k, {0: n}, spread) for k, n in enumerate((60, 39, 200))]
        calibration = Calibration.fit(Noisy(), parts[0], parts[1])
        bound = calibration.bound(Noisy(), parts[2].colocations, 0.9).seconds
        covered.append(coverage(bound, parts[2].runtime_seconds))
    assert mean_limits(covered)[1] >= 0.9


def test_runs_left_out_hold_too_and_a_small_category_borrows() -> None:
    """Of twelve runs beside two others none could tell 95% by themselves."""
    covered = []
    for repetition in range(100):
        runs = make_runs(2 * repetition, {1: 150, 2: 12})
        test = make_runs(2 * repetition + 1, {2: 200})
        bounds = crossed(runs).bound(Noisy(), test.colocations, 0.95)
        assert set(bounds.outcome) == {"cross_validated"}
        covered.append(coverage(bounds.seconds, test.runtime_seconds))
    assert mean_limits(covered)[1] >= 0.95


def test_under_nine_groups_there_is_no_bound_however_many_runs() -> None:
    runs = make_runs(0, {1: 200})
    for groups, is_bounded in ((8, False), (12, True)):
        found = crossed(runs, np.arange(200) % groups).bound(Noisy(), asked(1), 0.8)
        assert np.isfinite(found.seconds[0]) == is_bounded
        assert (found.outcome[0] == "too_few_runs") != is_bounded


@pytest.mark.parametrize(("groups", "is_largest"), [(12, True), (40, False)])
def test_of_few_groups_left_out_the_largest_error_is_the_bound(
    groups: int, is_largest: bool
) -> None:
    runs = make_runs(0, {1: 4 * groups})
    found = crossed(runs, np.repeat(np.arange(groups), 4)).bound(Noisy(), runs.colocations, 0.5)
    assert (found.rank == found.n).all() == is_largest


def test_a_small_category_is_as_wide_as_the_shape_of_all_not_as_its_largest_error() -> None:
    runs = make_runs(0, {1: 150, 2: 24})
    seconds = runs.runtime_seconds.copy()
    seconds[np.argmax(np.where(runs.colocations.number_of_corunners == 2, seconds, 0))] = 50.0
    odd = Runs.from_columns(**runs.colocations.to_columns(), runtime_seconds=seconds)
    assert crossed(odd).bound(Noisy(), asked(2), 0.9).seconds[0] < 5.0


def test_no_borrowed_bound_is_wider_than_the_largest_error() -> None:
    """Ten runs of b that are hundreds of times as long as predicted make a wild scale, not a wild bound."""
    runs = make_runs(3, {1: 120, 2: 12}, {"a": 0.01, "b": 2.0})
    found = crossed(runs)
    largest = float(np.abs(np.log(runs.runtime_seconds)).max())
    for workload in "ab":
        query = Colocations.from_columns(
            workload=[workload] * 2, platform=["p"] * 2, corunners=[["b"], ["b", "b"]]
        )
        seconds = found.bound(Noisy(), query, 0.95).seconds
        assert (np.log(seconds) <= largest + 1e-6).all()


@pytest.mark.parametrize("few", [1, 2])
def test_runs_that_are_mostly_shorter_than_predicted_lend_and_borrow_a_size(few: int) -> None:
    """The usual score of one of the two categories is under zero, which is no size to divide by."""
    runs = make_runs(1, {few: 12, 3 - few: 200})
    shorter = runs.colocations.number_of_corunners == 2
    seconds = np.where(shorter, runs.runtime_seconds * np.exp(-0.4), runs.runtime_seconds)
    odd = Runs.from_columns(**runs.colocations.to_columns(), runtime_seconds=seconds)
    found = Calibration.fit(Noisy(), odd.take([]), odd).bound(Noisy(), asked(few), 0.95)
    assert found.outcome[0] == "guaranteed_pooled"
    largest = np.abs(np.log(seconds)).max()
    assert 0.1 * largest < np.log(found.seconds[0]) < 2 * largest


class NewElsewhere(Noisy):
    """Knows by its evidence that b ran beside others on no platform but p."""

    workload_names, platform_names = ("a", "b"), ("p", "q")

    def evidence(self, query: Colocations) -> Evidence:
        n, there = len(query), (query.platform == query.platform_names.index("p")).astype(int)
        many = np.full(n, 9)
        return Evidence(many, many, many, many, many, 9 * there, 9 * there, 9 * there)


def test_what_was_measured_borrows_no_error_of_what_was_not() -> None:
    """Of cells that were left out some take e^3 times as long, of sets of measured names none."""
    runs = make_runs(5, {1: 200})
    elsewhere = np.arange(200) % 2 == 1
    columns = runs.colocations.to_columns() | {"platform": np.where(elsewhere, "q", "p").tolist()}
    far = np.where(np.arange(200) % 20 == 1, np.exp(3.0), 1.0)
    both = Runs.from_columns(**columns, runtime_seconds=runs.runtime_seconds * far)
    left_out = LeftOutRuns.of(NewElsewhere(), both, np.arange(200))
    found = Calibration.crossed(left_out, most=9)
    query = Colocations.from_columns(
        workload=["a", "a"], platform=["p", "q"], corunners=[["b"], ["b"]]
    )
    known, new = found.bound(NewElsewhere(), query, 0.985).seconds
    largest = both.runtime_seconds[~elsewhere].max()
    assert known <= largest * 1.001
    assert new > 3 * largest


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.integers(0, 60), st.integers(0, 60), st.booleans())
def test_bounds_rise_with_confidence(
    seed: int, ones: int, twos: int, is_cross_conformal: bool
) -> None:
    runs = make_runs(seed, {0: 5, 1: ones, 2: twos}, {"a": 0.3})
    found = crossed(runs) if is_cross_conformal else Calibration.fit(Noisy(), runs, runs)
    before = np.zeros(4)
    for confidence in (0.3, 0.5, 0.72, 0.8, 0.9, 0.93, 0.95, 0.97, 0.99, 0.999):
        seconds = found.bound(Noisy(), asked(0, 1, 2, 3), confidence).seconds
        assert (seconds >= before).all()
        before = seconds


def test_what_was_saved_answers_the_same() -> None:
    runs = make_runs(3, {0: 40, 1: 60, 2: 20}, {"b": 0.3})
    for found in (crossed(runs), Calibration.fit(Noisy(), runs, runs)):
        again = Calibration.from_arrays(*found.to_arrays())
        for confidence in (0.5, 0.9, 0.99):
            one, other = (c.bound(Noisy(), asked(0, 1, 2, 3), confidence) for c in (found, again))
            assert one.seconds.tolist() == other.seconds.tolist()
            assert one.outcome.tolist() == other.outcome.tolist()
        assert found.summary() == again.summary()


def test_the_summary_says_up_to_which_confidence_there_are_bounds() -> None:
    runs = make_runs(2, {0: 99, 1: 30})
    alone, beside = Calibration.fit(Noisy(), runs.take([]), runs).summary()
    assert (alone.category, alone.n, alone.groups) == ("alone", 99, 99)
    assert alone.highest == pytest.approx(0.99)
    assert (beside.category, beside.n) == ("1 co-runner", 30)
    found = Calibration.fit(Noisy(), runs.take([]), runs)
    assert np.isfinite(found.bound(Noisy(), asked(1), beside.highest - 1e-6).seconds[0])
    assert np.isinf(found.bound(Noisy(), asked(1), 0.98).seconds[0])


def test_margin_by_hand() -> None:
    assert margin(np.array([2.0, 1.0]), np.array([1.0, 2.0])) == pytest.approx(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(margin(np.zeros(0), np.zeros(0)))
        assert np.isnan(coverage(np.zeros(0), np.zeros(0)))
    assert coverage(np.array([2.0, 1.0]), np.array([1.0, 2.0])) == 0.5


@pytest.mark.parametrize("share", [0.1, 0.25, 0.6])
def test_what_has_no_answer_is_not_late(share: float) -> None:
    """Bounds of the others are as if they were not there."""
    runs = make_runs(3, {0: 400})
    lost = np.random.default_rng(0).random(400) < share
    names = np.where(lost, "b", "a")
    mixed = Runs.from_columns(
        workload=names, platform=["p"] * 400, runtime_seconds=runs.runtime_seconds
    )
    some = Calibration.fit(Noisy(lost="b"), mixed.take([]), mixed)
    there = np.flatnonzero(~lost)
    alone = Calibration.fit(Noisy(), mixed.take([]), mixed.take(there))
    both = Colocations.from_columns(workload=["a", "b"], platform=["p", "p"])
    for confidence in (0.5, 0.9, 0.99):
        bounds, own = (
            calibration.bound(predictor, both, confidence)
            for calibration, predictor in ((some, Noisy(lost="b")), (alone, Noisy()))
        )
        assert bounds.seconds[0] == own.seconds[0] < np.inf
        assert (bounds.outcome[0], bounds.n[0]) == ("guaranteed", len(there))
        assert (bounds.outcome[1], bounds.pool[1]) == ("disconnected", "no answer")
        assert bounds.seconds[1] == np.inf
    (summary,) = some.summary()
    assert summary.n == len(there)


def test_rows_of_bounds_put_back_are_the_same() -> None:
    n = np.arange(5)
    bounds = Bounds(n + 1.0, np.array(list("abcde")), n.astype(str), n, n + 7, 0.9, n.astype(str))
    other = replace(bounds, seconds=-bounds.seconds, outcome=np.array(["a long one"] * 5))
    rows = np.array([3, 1])
    found = bounds.put(rows, other.take(rows))
    assert found.seconds.tolist() == [1, -2, 3, -4, 5]
    assert found.outcome.tolist() == ["a", "a long one", "c", "a long one", "e"]
    assert found.rank.tolist() == bounds.rank.tolist()
