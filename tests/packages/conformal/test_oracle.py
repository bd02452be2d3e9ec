"""Every part of every answer against bounds worked out run by run in plain Python."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.conformal import (
    Calibration,
    CalibrationRuns,
    Candidates,
    Groups,
    Selection,
    Way,
    candidates_of,
    grades_of,
)
from jostle.conformal._categories import text_of
from jostle.data import Colocations, Runs

from . import oracle
from .test_evidence import Counting, Counts, asked, made

NAMES = ("w0", "w1", "w3", "w7", "w50", "solo50", "solo0", "w500")


class Several(Counting):
    """Two ways: one of three stages, one of a single stage; nothing is known of workload w3 alone."""

    def candidates(self, asked: Colocations) -> Candidates:
        kind = np.arange(len(asked.workload_names))[asked.workload] % 3
        centre = np.stack([0.1 * kind, 0.2 - 0.1 * kind, 0.0 * kind, -0.05 * kind])
        names = np.array(asked.workload_names)[asked.workload]
        centre[:, (names == "w3") & (asked.number_of_corunners == 0)] = np.nan
        scale = np.stack([0.2 + kind, 3.0 - kind, 0.5 + 0 * kind, 1.0 + 0.1 * kind])
        return Candidates(("low", "high", "highest", "same"), centre, scale, (0.9, 0.97, 1.0, 1.0))


def runs_of(random: Any, most: int) -> Runs:
    parts = []
    for d in range(int(random.integers(1, 4))):
        counts = {n: int(random.integers(0, most)) * int(random.random() < 0.6) for n in NAMES}
        counts["w50"] += 1
        beside = tuple(random.choice(["w50", "w7", "w500", "solo50"], d))
        parts.append(made(int(random.integers(1 << 30)), counts, beside))
    return Runs.concatenate([_renamed(part, number) for number, part in enumerate(parts)])


def _renamed(runs: Runs, number: int) -> Runs:
    import pyarrow as pa

    table = runs.table
    for name in ("run_id", "window_id"):
        place = table.column_names.index(name)
        values = [f"{number}-{value}" for value in table.column(name).to_pylist()]
        table = table.set_column(place, name, pa.array(values))
    return Runs(table)


@pytest.mark.parametrize("way", ["plain", "several"])
@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 2**31),
    st.lists(
        st.sampled_from(
            [0.03, 0.3, 0.5, 0.75, 0.8, 0.9, 0.9001, 0.93, 0.95, 0.97, 0.9701, 0.98, 0.99]
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_every_answer(way: str, seed: int, confidences: list[float]) -> None:
    random = np.random.default_rng(seed)
    predictor = Counting() if way == "plain" else Several()
    runs = runs_of(random, 36)
    groups = None
    if random.random() < 0.4:
        groups = Groups.by("workload", "kind", {"w7": "a", "w50": "b", "w500": "b", "w1": "a"})
    selection = runs if random.random() < 0.5 else runs.take([])
    unit = (
        random.integers(0, len(runs), len(runs)) if random.random() < 0.5 else np.arange(len(runs))
    )
    whole = CalibrationRuns.of(predictor, runs, unit, groups=groups)
    found = Calibration.fit(predictor, selection, runs, groups=groups)
    found = Calibration(found.names, whole, found.ways, groups)
    if random.random() < 0.5:
        left = made(
            seed, {"w0": 40, "w1": 30, "w3": 20, "w50": 10}, ("w7",) * int(random.integers(2))
        )
        units = random.integers(3, 30, len(left))
        part = Selection.of(predictor, left)
        held = CalibrationRuns.of(predictor, left, units, groups=groups, held_out=True, part=part)
        found = found.with_held_out(held, part)
    r = found.runs
    assert not set(r.unit[r.held_out]) & set(r.unit[~r.held_out])
    plain = [
        oracle.Run(
            tuple(r.scores[:, i]),
            int(r.degree[i]),
            tuple(r.grades[i].tolist()),
            int(r.unit[i]),
            int(r.group[i]),
            bool(r.held_out[i]),
        )
        for i in range(len(r))
    ]
    beside: list[tuple[str, ...]] = [(), ("w50",), ("solo50",), ("w50", "w1"), ("w7",) * 3]
    questions = Colocations.concatenate([asked(*NAMES, beside=others) for others in beside])
    candidates = candidates_of(predictor, questions)
    grades = grades_of(predictor, questions)
    code = np.zeros(len(questions), int) if groups is None else groups.codes(questions)
    for confidence in confidences:
        bounds = found.bound(predictor, questions, confidence)
        again = Calibration.from_arrays(*found.to_arrays()).bound(predictor, questions, confidence)
        np.testing.assert_array_equal(bounds.seconds, again.seconds)
        for i in range(len(questions)):
            question = (
                int(questions.number_of_corunners[i]),
                tuple(grades[i].tolist()),
                int(code[i]),
            )
            ways = candidates.centre[:, i], candidates.scale[:, i]
            mine = oracle.answer(plain, found.ways, question, ways, confidence)
            told = (
                bounds.outcome[i],
                bounds.pool[i],
                bounds.n[i],
                bounds.rank[i],
            )
            assert told == mine[1:], (questions.row(i), confidence)
            assert bounds.seconds[i] == pytest.approx(np.exp(mine.log_seconds), rel=1e-12)


def margins(part: Selection, stages: dict[float, int], inside: np.ndarray) -> float:
    """The geometric mean over the levels of the mean margin, each calibrated on the very runs."""
    found = []
    for level, place in stages.items():
        centre, scale = part.candidates.centre[place][inside], part.candidates.scale[place][inside]
        error = part.log_runtime[inside] - centre
        ordered = sorted(error / scale)
        rank = min(int(np.ceil((len(ordered) + 1) * level - 1e-12)), len(ordered))
        bound = np.exp(centre + scale * ordered[rank - 1])
        runtime = np.exp(part.log_runtime[inside])
        found.append(np.mean(np.maximum(bound - runtime, 0) / runtime))
    return float(np.exp(np.mean(np.log(found))))


@pytest.mark.parametrize("seed", range(12))
def test_the_way_with_the_least_margin_is_taken(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(50, 120))
    until = 0.93 if seed % 2 else 0.9
    sizes = random.lognormal(size=(4, n)) * random.uniform(0.5, 2, (4, 1))
    centre = random.normal(size=(4, n)) * 0.05
    part = Selection(
        Candidates(("low", "high", "same", "other"), centre, sizes, (until, 1.0, 1.0, 1.0)),
        random.normal(size=n) * sizes[int(random.integers(4))] * 0.3,
        random.integers(0, 2, n),
        np.zeros(n),
        np.arange(n),
    )
    inside = random.random(n) < 0.97
    found = part.way(inside)
    if inside.sum() < 50:
        assert found == Way((0, 1), (until, 1.0))
        return
    every = {
        (0, 1): {0.9: 0, 0.95: 1, 0.99: 1},
        (2,): {0.9: 2, 0.95: 2, 0.99: 2},
        (3,): {0.9: 3, 0.95: 3, 0.99: 3},
    }
    best = min(every, key=lambda way: margins(part, every[way], inside))
    assert found == Way(best, (until, 1.0) if best == (0, 1) else (1.0,))
    some = part.take(np.flatnonzero(inside))
    assert some.way(np.ones(len(some.degree), bool)) == found
    both = Selection.concatenate([part.take(np.arange(20)), part.take(np.arange(20, n))])
    np.testing.assert_array_equal(both.scores, part.scores)
    np.testing.assert_array_equal(both.degree, part.degree)
    assert both.way(inside) == found


def test_a_way_that_few_units_would_blow_up_is_not_taken() -> None:
    """Two runs in a hundred, far off where the scale is small, count by runs for little; of ten units they
    are two, and the rank of a bound for a new unit reaches one of them."""
    scale = np.stack([np.ones(100), np.linspace(0.3, 1.0, 100)])
    scale[1, :2] = 0.02
    error = 0.1 * scale[1]
    error[:2] = 0.15
    unit = np.concatenate([[0, 1], 2 + np.arange(98) % 8])
    candidates = Candidates(("same", "with the slowdown"), np.zeros((2, 100)), scale)
    part = Selection(candidates, error, np.zeros(100, int), np.zeros(100), np.arange(100))
    inside = np.ones(100, bool)
    assert part.way(inside).stages == (1,)
    assert replace(part, unit=unit).way(inside).stages == (0,)


def test_too_few_to_choose_take_the_first_way() -> None:
    """Of 49 runs the first way is taken, whatever its margin; of 50 the better one."""
    random = np.random.default_rng(0)
    for n, expected in ((49, (0,)), (50, (1,))):
        scale = np.stack([np.exp(random.normal(size=n)), np.ones(n)])
        candidates = Candidates(("wild", "same"), np.zeros((2, n)), scale)
        rest = np.zeros(n, int), np.zeros(n), np.arange(n)
        part = Selection(candidates, random.normal(size=n) * 0.1, *rest)
        assert part.way(np.ones(n, bool)).stages == expected


def test_a_way_without_answers_is_not_taken() -> None:
    n = 80
    centre = np.stack([np.full(n, np.nan), np.zeros(n)])
    candidates = Candidates(("none", "same"), centre, np.ones((2, n)))
    rest = np.zeros(n, int), np.zeros(n), np.arange(n)
    part = Selection(candidates, np.random.default_rng(0).normal(size=n), *rest)
    assert part.way(np.ones(n, bool)).stages == (1,)


def test_groups_by_hand() -> None:
    found = Groups.by("platform", "device", {"p2": "nano", "p1": "pi", "p": "nano"})
    assert (found.labels, found.code) == (("nano", "pi"), {"p2": 0, "p1": 1, "p": 0})
    some = Colocations.from_columns(
        workload=["a", "p1", "c", "d"], platform=["p1", "p2", "p9", "p"]
    )
    assert found.codes(some).tolist() == [1, 0, -1, 0]
    assert [found.label(code) for code in (0, 1, -1)] == ["nano", "pi", "names without a group"]
    of_w = Groups.by("workload", "", {"a": "a", "c": "c"})
    assert of_w.codes(some).tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize(
    ("grades", "text"),
    [
        ((5, 5, 1, 1, 4, 2), "workload 100+ runs, platform 100+ runs"),
        ((0, 5, 0, 1, 4, 0), "workload 0 runs, platform 100+ runs"),
        (
            (1, 2, 0, 0, 4, 2),
            "workload 1 run, platform 2-4 runs, workload measured alone only, "
            "nothing measured beside others on the platform",
        ),
        ((3, 0, 1, 0, 4, 0), "workload 5-19 runs, platform 0 runs"),
        (
            (4, 5, 1, 1, 0, 2),
            "workload 20-99 runs, platform 100+ runs, a co-runner never measured beside others",
        ),
        (
            (4, 5, 1, 1, 3, 2),
            "workload 20-99 runs, platform 100+ runs, a co-runner 5-19 runs beside others",
        ),
        (
            (5, 5, 1, 1, 4, 1),
            "workload 100+ runs, platform 100+ runs, the workload only beside others on the platform",
        ),
        (
            (5, 5, 0, 1, 4, 0),
            "workload 100+ runs, platform 100+ runs, the workload never on the platform, "
            "workload measured alone only",
        ),
    ],
)
def test_classes_in_words(grades: tuple[int, ...], text: str) -> None:
    assert text_of(np.array(grades)) == text


def test_every_grade_by_its_definition() -> None:
    """All small counts of runs of workload, platform and co-runner, alone and beside others."""
    edges = (0, 1, 2, 4, 5, 19, 20, 99, 100, 1000)
    random = np.random.default_rng(0)
    n = 400
    drawn = {name: random.choice(edges, n) for name in Counts._fields}

    class Told:
        def evidence(self, asked: Colocations) -> Counts:
            return Counts(**drawn)

    questions = Colocations.from_columns(
        workload=["a"] * n, platform=["p"] * n, corunners=[["b"] * (i % 2) for i in range(n)]
    )
    found = grades_of(Told(), questions)
    assert (grades_of(object(), questions) == [5, 5, 1, 1, 4, 2]).all()

    def grade(runs: Any) -> int:
        return sum(runs >= least for least in (1, 2, 5, 20, 100))

    for i in range(n):
        one = Counts(*(drawn[name][i] for name in Counts._fields))
        met = (one.beside, one.platform_beside) if i % 2 else (one.workload, one.platform)
        expected = [grade(one.workload), grade(one.platform), int(met[0] > 0), int(met[1] > 0)]
        expected.append(min(grade(one.corunner), 4) if i % 2 else 4)
        known = one.there if i % 2 else one.alone_there
        expected.append(2 if known else 1 if one.there else 0)
        assert found[i].tolist() == expected, one
