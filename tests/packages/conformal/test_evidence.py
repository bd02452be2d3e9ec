"""Evidence classes: runs of a stronger class never bound a weaker one, and each class keeps its promise."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.conformal import (
    OUTCOMES,
    Calibration,
    CalibrationRuns,
    Candidates,
    Selection,
    grades_of,
)
from jostle.data import Colocations, Runs
from jostle.learn import Evidence, RunCounts
from tests.limits import mean_limits


class Counts(NamedTuple):
    workload: np.ndarray
    beside: np.ndarray
    platform: np.ndarray
    platform_beside: np.ndarray
    corunner: np.ndarray
    there: np.ndarray
    alone_there: np.ndarray


def runs_known(name: str) -> int:
    return int(name.removeprefix("solo").removeprefix("far").removeprefix("w"))


class Counting:
    """Predicts 1 s, and says of workload `w7` that it has seven runs, all of them beside others; `solo9` has
    nine alone, `far9` nine on other platforms. Errors of names with few runs are larger: see `made`."""

    def predict(self, asked: Colocations) -> np.ndarray:
        return np.ones(len(asked))

    def evidence(self, asked: Colocations) -> Counts:
        names = np.array([runs_known(name) for name in asked.workload_names], np.int64)
        solo = np.array([name.startswith("solo") for name in asked.workload_names])
        runs = names[asked.workload]
        beside = np.where(solo[asked.workload], 0, runs)
        row = np.repeat(np.arange(len(asked)), asked.number_of_corunners)
        corunner = np.full(len(asked), 10**6)
        met = np.where(solo, 0, names)
        np.minimum.at(corunner, row, met[asked.corunner])
        many = np.full(len(asked), 1000)
        far = np.array([name.startswith("far") for name in asked.workload_names])[asked.workload]
        there = np.where(far, 0, runs)
        return Counts(runs, beside, many, many, corunner, there, there)


def made(seed: int, counts: dict[str, int], corunners: tuple[str, ...] = ()) -> Runs:
    """So many runs of each workload; the log of the runtime spreads by 1 / sqrt(1 + runs known)."""
    random = np.random.default_rng(seed)
    names = [name for name, n in counts.items() for _ in range(n)]
    known = np.array([runs_known(name) for name in names])
    return Runs.from_columns(
        workload=names,
        platform=["p"] * len(names),
        corunners=[list(corunners)] * len(names),
        runtime_seconds=np.exp(random.normal(size=len(names)) / np.sqrt(1 + known)),
    )


def asked(*names: str, beside: tuple[str, ...] = ()) -> Colocations:
    return Colocations.from_columns(
        workload=list(names), platform=["p"] * len(names), corunners=[list(beside)] * len(names)
    )


def calibrated(runs: Runs) -> Calibration:
    return Calibration.fit(Counting(), runs.take([]), runs)


def test_a_run_left_out_is_graded_as_if_its_own_unit_were_not_known() -> None:
    """As loops over the runs of other units count them, which is how a new set is graded."""
    random = np.random.default_rng(0)
    sets = [random.integers(0, 5, size=int(random.integers(1, 4))) for _ in range(60)]
    rows = [
        (number, members, at) for number, members in enumerate(sets) for at in range(len(members))
    ]
    c = Colocations.from_columns(
        workload=[f"w{members[at]}" for _, members, at in rows],
        platform=[f"p{number % 2}" for number, *_ in rows],
        corunners=[[f"w{j}" for j in np.delete(members, at)] for _, members, at in rows],
    )
    unit = np.array([number for number, *_ in rows])
    found = grades_of(Counted(RunCounts.of_coded(c)), c, unit)
    for row, own in enumerate(unit.tolist()):
        rest = RunCounts.of_coded(c.take(np.flatnonzero(unit != own)))
        assert found[row].tolist() == grades_of(Counted(rest), c.take(np.array([row])))[0].tolist()


class Counted:
    def __init__(self, counts: RunCounts) -> None:
        self.counts = counts

    def evidence(self, asked: Colocations) -> Evidence:
        return self.counts.evidence(asked)


def test_a_stronger_class_never_bounds_a_weaker_one() -> None:
    found = calibrated(made(0, {"w500": 500, "w50": 100}))
    names = ("w500", "w50", "w7", "w0")
    bounds = found.bound(Counting(), asked(*names), 0.9)
    assert list(bounds.outcome) == ["guaranteed", "guaranteed", "little_evidence", "new_name"]
    assert list(bounds.is_valid) == [True, True, False, False]
    assert list(bounds.n) == [500, 100, 0, 0]
    assert bounds.seconds[0] < bounds.seconds[1]


def test_a_class_too_thin_is_joined_by_the_next_weaker_one() -> None:
    found = calibrated(made(1, {"w500": 30, "w50": 80, "w7": 40}))
    at = {c: found.bound(Counting(), asked("w500"), c) for c in (0.9, 0.99)}
    assert (at[0.9].outcome[0], at[0.9].n[0]) == ("guaranteed", 30)
    assert (at[0.99].outcome[0], at[0.99].n[0]) == ("guaranteed_pooled", 110)
    weak = found.bound(Counting(), asked("w7"), 0.99)
    assert (weak.outcome[0], np.isinf(weak.seconds[0])) == ("too_few_runs", True)


@pytest.mark.parametrize(
    ("workload", "beside", "reason"),
    [
        ("solo50", ("w50",), "new_beside_others"),
        ("far50", ("w50",), "new_on_platform"),
        ("w50", ("solo50",), "new_corunner"),
        ("w50", ("w50", "w50"), "unseen_group"),
    ],
)
def test_what_was_never_measured_has_no_bound(
    workload: str, beside: tuple[str, ...], reason: str
) -> None:
    runs = Runs.concatenate([made(2, {"w50": 200}), made(3, {"w50": 200}, ("w50",))])
    bounds = calibrated(runs).bound(Counting(), asked(workload, beside=beside), 0.9)
    assert bounds.outcome[0] == reason
    assert np.isinf(bounds.seconds[0])
    assert reason in OUTCOMES


def test_every_class_covers_by_simulation() -> None:
    counts = {"w500": 60, "w50": 40, "w7": 25, "w3": 15}
    covered: dict[str, list[float]] = {name: [] for name in counts}
    for seed in range(300):
        found = calibrated(made(2 * seed, counts))
        test = made(2 * seed + 1, dict.fromkeys(counts, 40))
        late = test.runtime_seconds > found.bound(Counting(), test.colocations, 0.9).seconds
        names = np.array(test.table.column("workload").to_pylist())
        for name, rates in covered.items():
            rates.append(1 - late[names == name].mean())
    for name, rates in covered.items():
        low, high = mean_limits(rates)
        assert high >= 0.9, name
        assert low <= 0.97, name


def test_names_left_out_bound_new_names_only() -> None:
    ordinary = calibrated(made(4, {"w500": 300}))
    left = made(5, {"w0": 300, "w3": 200})
    unit = np.arange(500) // 20
    runs = CalibrationRuns.of(Counting(), left, unit, held_out=True)
    both = ordinary.with_held_out(runs, Selection.of(Counting(), left))
    old, new, few = (both.bound(Counting(), asked(n), 0.9) for n in ("w500", "w0", "w3"))
    assert (old.outcome[0], new.outcome[0]) == ("guaranteed", "held_out_names")
    assert old.seconds[0] == ordinary.bound(Counting(), asked("w500"), 0.9).seconds[0]
    assert (new.n[0], few.n[0]) == (300, 200)
    assert np.isinf(
        both.bound(Counting(), asked("w0"), 0.95).seconds[0]
    )  # fifteen names are too few
    again = Calibration.from_arrays(*both.to_arrays())
    assert again.bound(Counting(), asked("w0"), 0.9).seconds[0] == new.seconds[0]


def test_a_name_weighs_the_same_however_many_runs_it_has() -> None:
    """Eighteen quiet names with one run each, and one noisy name with a thousand, at the edge of the rank."""
    seconds = [1.0] * 18 + [100.0] * 1000
    runs = Runs.from_columns(
        workload=["w0"] * 1018,
        platform=["p"] * 1018,
        runtime_seconds=seconds,
    )
    unit = np.minimum(np.arange(1018), 18)
    held = CalibrationRuns.of(Counting(), runs, unit, held_out=True)
    found = calibrated(runs.take([])).with_held_out(held, Selection.of(Counting(), runs))
    bound = found.bound(Counting(), asked("w0"), 0.9).seconds[0]
    assert bound == pytest.approx(1.0)
    assert found.bound(Counting(), asked("w0"), 0.95).seconds[0] == pytest.approx(100.0)


class Shaped(Counting):
    """Three stages and one way besides, which disagree about who errs."""

    def candidates(self, asked: Colocations) -> Candidates:
        centre = np.zeros((4, len(asked)))
        kind = np.arange(len(asked.workload_names))[asked.workload] % 3
        scale = np.stack([0.2 + kind, 3.0 - kind, 0.5 + 0 * kind, 1.0 + 0 * kind])
        return Candidates(("low", "high", "highest", "same"), centre, scale, (0.9, 0.97, 1.0, 1.0))


def any_calibration(seed: int) -> tuple[Any, Calibration]:
    """Random runs of every class, some of names left out, in random amounts."""
    random = np.random.default_rng(seed)
    predictor = Shaped() if random.random() < 0.5 else Counting()
    names = ("w0", "w1", "w3", "w7", "w50", "solo50", "w500")
    parts = []
    for d in range(int(random.integers(1, 4))):
        counts = {n: int(random.integers(0, 60)) * int(random.random() < 0.6) for n in names}
        if sum(counts.values()):
            beside = tuple(random.choice(names, d))
            parts.append(made(int(random.integers(1 << 30)), counts, beside))
    if not parts:
        return any_calibration(seed + 1)
    runs = Runs.concatenate(parts)
    selection = runs if random.random() < 0.5 else runs.take([])
    found = Calibration.fit(predictor, selection, runs)
    if random.random() < 0.5:
        left = made(seed, {"w0": 40, "w1": 30, "w3": 20})
        unit = random.integers(0, 25, len(left))
        held = CalibrationRuns.of(predictor, left, unit, held_out=True)
        found = found.with_held_out(held, Selection.of(predictor, left))
    return predictor, found


# More of them: JOSTLE_EXAMPLES=10000 python -m pytest tests/packages/conformal/test_evidence.py -k falls
@settings(max_examples=int(os.environ.get("JOSTLE_EXAMPLES", "60")), deadline=None)
@given(st.integers(0, 2**31), st.lists(st.floats(0.02, 0.999), min_size=2, max_size=8))
def test_no_bound_falls_as_confidence_rises(seed: int, confidences: list[float]) -> None:
    """Across every change of class, pool, stage and kind of calibration."""
    predictor, found = any_calibration(seed)
    names = ("w0", "w1", "w3", "w7", "w50", "solo50", "w500")
    questions = [asked(*names, beside=("w50",) * d) for d in range(3)]
    for question in questions:
        at = [found.bound(predictor, question, c).seconds for c in sorted(confidences)]
        assert all((low <= high).all() for low, high in pairwise(at))


def test_what_is_always_the_same_is_never_late() -> None:
    """Whatever the logarithm rounds: 200 programs that take exactly as long every time."""
    random = np.random.default_rng(6)

    class Exact(Counting):
        def __init__(self, seconds: float) -> None:
            self.seconds = seconds

        def predict(self, asked: Colocations) -> np.ndarray:
            return np.full(len(asked), self.seconds * 0.9)

    for seconds in np.exp(random.uniform(-12, 12, 200)):
        runs = Runs.from_columns(
            workload=["w500"] * 40, platform=["p"] * 40, runtime_seconds=[seconds] * 40
        )
        found = Calibration.fit(Exact(seconds), runs.take([]), runs)
        bound = found.bound(Exact(seconds), asked("w500"), 0.9).seconds[0]
        assert seconds <= bound <= seconds * (1 + 1e-6)


def test_the_summary_says_how_sure_a_class_can_be_answered() -> None:
    found = calibrated(made(7, {"w500": 99, "w50": 20}))
    strong, weak = found.summary()
    assert (strong.n, strong.highest) == (99, pytest.approx(119 / 120))
    assert (weak.n, weak.highest) == (20, pytest.approx(20 / 21))
    assert "100+ runs" in strong.evidence
    assert "20-99 runs" in weak.evidence
    for one, name in ((strong, "w500"), (weak, "w50")):
        at = found.bound(Counting(), asked(name), one.highest - 1e-9)
        assert at.is_valid[0]
        assert not found.bound(Counting(), asked(name), one.highest + 1e-4).is_valid[0]
