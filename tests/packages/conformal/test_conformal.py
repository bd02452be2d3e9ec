"""Calibration: pools, outcomes, choice of candidates, order in confidence, save and load."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.conformal import OUTCOMES, Bounds, Calibration, coverage, margin
from jostle.data import Colocations, Runs
from tests.limits import coverage_limits, mean_limits


class Noisy:
    """Predicts 1 s for everything; may offer candidates, the second twice as wide for workload b."""

    def __init__(self, several: bool = False, lost: str | None = None) -> None:
        self.several, self.lost = several, lost

    def predict(self, colocations: Colocations) -> np.ndarray:
        out = np.ones(len(colocations))
        names = np.array(colocations.workload_names)[colocations.workload]
        out[names == self.lost] = np.nan
        return out


class Scaled(Noisy):
    def candidates(
        self, colocations: Colocations
    ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
        centre = np.log(self.predict(colocations))
        names = np.array(colocations.workload_names)[colocations.workload]
        wide = np.where(names == "b", 5.0, 1.0)
        return ("plain", "scaled"), np.stack([centre, centre]), np.stack([wide**0, wide])


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


def test_the_bound_is_the_order_statistic() -> None:
    runs = make_runs(0, {0: 99})
    calibration = Calibration.fit(Noisy(), runs, runs)
    bounds = calibration.bound(Noisy(), asked(0), 0.9)
    assert bounds.seconds[0] == pytest.approx(np.sort(runs.runtime_seconds)[89])
    assert (bounds.n[0], bounds.rank[0], bounds.pool[0]) == (99, 90, "alone")
    assert bounds.outcome[0] == "guaranteed"


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
    calibration = Calibration.fit(Noisy(), runs, runs)
    bounds = calibration.bound(Noisy(), asked(0, 1, 2, 3), 0.9)
    assert list(bounds.outcome) == [
        "too_few_runs",
        "guaranteed",
        "guaranteed_pooled",
        "unseen_group",
    ]
    assert list(np.isinf(bounds.seconds)) == [True, False, False, True]
    assert list(bounds.is_valid) == [False, True, True, False]
    assert set(bounds.outcome) <= set(OUTCOMES)
    none = Calibration.fit(Noisy(), runs.take([]), runs.take([]))
    assert np.isinf(none.bound(Noisy(), asked(0, 1), 0.5).seconds).all()


def test_the_better_candidate_is_chosen_on_the_selection_part() -> None:
    spread = {"a": 0.02, "b": 0.1}
    selection, calibration = make_runs(4, {0: 400}, spread), make_runs(5, {0: 400}, spread)
    test = make_runs(6, {0: 4000}, spread)
    scaled = Calibration.fit(Scaled(), selection, calibration)
    plain = Calibration.fit(Noisy(), selection, calibration)
    assert scaled.pools["alone"].way.stages == (1,)
    wide = plain.bound(Noisy(), test.colocations, 0.9).seconds
    tight = scaled.bound(Scaled(), test.colocations, 0.9).seconds
    assert margin(tight, test.runtime_seconds) < margin(wide, test.runtime_seconds)
    assert coverage(tight, test.runtime_seconds) >= coverage_limits(400, 4000, 361)[0]


class Staged(Noisy):
    """Three stages that disagree about who errs, and one way that treats all the same."""

    def candidates(self, colocations: Any) -> tuple[Any, ...]:
        is_a = np.array([colocations.workload_names[w] == "a" for w in colocations.workload])
        centre = np.log(self.predict(colocations))
        scales = [np.where(is_a, wide, 1.0) for wide in (0.2, 3.0, 0.5, 1.0)]
        names = ("low", "high", "highest", "same")
        return names, np.stack([centre] * 4), np.stack(scales), (0.9, 0.97, 1.0, 1.0)


def test_a_staged_bound_covers_at_every_stage() -> None:
    spread = {"a": 0.05, "b": 0.1}
    covered = []
    for seed in range(30):
        calibration = make_runs(2 * seed, {0: 300}, spread)
        test = make_runs(2 * seed + 1, {0: 1000}, spread)
        found = Calibration.fit(Staged(), calibration.take([]), calibration)
        assert found.pools["alone"].way.stages == (0, 1, 2)
        covered.append(
            [
                coverage(found.bound(Staged(), test.colocations, c).seconds, test.runtime_seconds)
                for c in (0.85, 0.95, 0.98)
            ]
        )
    for shares, confidence in zip(np.transpose(covered), (0.85, 0.95, 0.98), strict=True):
        assert mean_limits(shares)[1] >= confidence


def test_coverage_of_the_whole_layer_by_repetition() -> None:
    """Choice and calibration together keep their promise, also where the choice is made on few runs."""
    spread = {"a": 0.05, "b": 0.25}
    covered = []
    for repetition in range(150):
        parts = [make_runs(3 * repetition + k, {0: n}, spread) for k, n in enumerate((60, 39, 200))]
        calibration = Calibration.fit(Scaled(), parts[0], parts[1])
        bound = calibration.bound(Scaled(), parts[2].colocations, 0.9).seconds
        covered.append(coverage(bound, parts[2].runtime_seconds))
    assert mean_limits(covered)[1] >= 0.9


def in_windows(seed: int, windows: int, size: int = 6) -> Runs:
    """Runs of workload a beside b around 1 s, whose windows explain nothing."""
    n = windows * size
    return Runs.from_columns(
        workload=["a"] * n,
        platform=["p"] * n,
        corunners=[["b"]] * n,
        runtime_seconds=np.exp(0.1 * np.random.default_rng(seed).normal(size=n)),
        window_id=[f"w{k // size}" for k in range(n)],
    )


@pytest.mark.parametrize(("windows", "counted"), [(19, 19), (24, 24), (25, 150)])
def test_close_bounds_count_one_run_of_each_of_few_windows(windows: int, counted: int) -> None:
    selection, calibration = in_windows(1, 4), in_windows(2, windows)
    close, plain = (
        Calibration.fit(Noisy(), selection, calibration, is_close=is_close)
        for is_close in (True, False)
    )
    again = Calibration.from_arrays(*close.to_arrays())
    found, other = (one.bound(Noisy(), asked(1), 0.9) for one in (close, plain))
    assert (found.n[0], other.n[0]) == (counted, 6 * windows)
    assert again.bound(Noisy(), asked(1), 0.9).seconds[0] == found.seconds[0]
    assert close.pools["1 co-runner"].n == counted


def test_close_bounds_hold_and_keep_less_of_few_windows() -> None:
    """19 windows: 18 of 20 runs of a new window are kept, 93 to 94% by all runs of each."""
    shares: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(400):
        calibration, new = in_windows(2 * seed, 19), in_windows(2 * seed + 1, 40)
        for is_close, found in shares.items():
            fitted = Calibration.fit(Noisy(), new.take([]), calibration, is_close=is_close)
            bound = fitted.bound(Noisy(), asked(1), 0.9).seconds[0]
            found.append(float((new.runtime_seconds <= bound).mean()))
    low, high = mean_limits(shares[True])
    assert low <= 0.9 <= high
    assert mean_limits(np.subtract(shares[False], shares[True]))[0] > 0


def test_margin_by_hand() -> None:
    assert margin(np.array([2.0, 1.0]), np.array([1.0, 2.0])) == pytest.approx(0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(margin(np.zeros(0), np.zeros(0)))
        assert np.isnan(coverage(np.zeros(0), np.zeros(0)))
    assert coverage(np.array([2.0, 1.0]), np.array([1.0, 2.0])) == 0.5


@pytest.mark.parametrize("share", [0.1, 0.25, 0.6])
def test_what_has_no_answer_is_not_late(share: float) -> None:
    """They have a pool of their own; bounds of the others are as if they were not there."""
    runs = make_runs(3, {0: 400})
    lost = np.random.default_rng(0).random(400) < share
    names = np.where(lost, "b", "a")
    mixed = Runs.from_columns(
        workload=names, platform=["p"] * 400, runtime_seconds=runs.runtime_seconds
    )
    some = Calibration.fit(Noisy(lost="b"), mixed, mixed)
    there = np.flatnonzero(~lost)
    alone = Calibration.fit(Noisy(), mixed.take(there), mixed.take(there))
    both = Colocations.from_columns(workload=["a", "b"], platform=["p", "p"])
    for confidence in (0.5, 0.9, 0.99):
        bounds, own = (
            calibration.bound(predictor, both, confidence)
            for calibration, predictor in ((some, Noisy(lost="b")), (alone, Noisy()))
        )
        assert bounds.seconds[0] == own.seconds[0] < np.inf
        assert (bounds.outcome[0], bounds.n[0]) == ("guaranteed", len(there))
        assert (bounds.outcome[1], bounds.pool[1]) == ("disconnected", "no answer")
        assert (bounds.n[1], bounds.seconds[1]) == (lost.sum(), np.inf)
    (summary,) = some.summary()
    assert summary.n == some.pools["alone"].n == len(there)


def test_rows_of_bounds_put_back_are_the_same() -> None:
    n = np.arange(5)
    bounds = Bounds(n + 1.0, np.array(list("abcde")), n.astype(str), n, n + 7, 0.9, n.astype(str))
    other = replace(bounds, seconds=-bounds.seconds, outcome=np.array(["a long one"] * 5))
    rows = np.array([3, 1])
    found = bounds.put(rows, other.take(rows))
    assert found.seconds.tolist() == [1, -2, 3, -4, 5]
    assert found.outcome.tolist() == ["a", "a long one", "c", "a long one", "e"]
    assert found.rank.tolist() == bounds.rank.tolist()
