"""Parts of the rules beside loops over their definitions, and laws that they should find."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from jostle.data import Runs
from jostle.learn import (
    Answer,
    CellTable,
    SlowdownRows,
    design_of,
    fit_effects,
    fit_extrapolation,
    looked_up,
    solo_runtimes,
)
from jostle.learn.ensemble._degree_extrapolation import PART

P, W = 2, 5
PRESS = np.array([0.05, 0.1, 0.2, 0.4, 0.6, 0.6, 0.4, 0.3, 0.2, 0.1])
CELL_TABLE = CellTable(P, W)
LAWS = {"sum": np.sum, "worst": np.max, "mean": np.mean}


def drawn(n: int, seed: int, most: int = 2, least: int = 1) -> SlowdownRows:
    """n rows of any workloads on any platform beside so many others there."""
    random = np.random.default_rng(seed)
    place, target = random.integers(0, P, n), random.integers(0, W, n)
    row = np.repeat(np.arange(n), random.integers(least, most + 1, n))
    corunner = place[row] * W + random.integers(0, W, len(row))
    return SlowdownRows(place * W + target, corunner, row, np.zeros(n), np.ones(n))


def company(rows: SlowdownRows) -> list[np.ndarray]:
    return [rows.corunner[rows.row == at] for at in range(len(rows))]


def with_log(rows: SlowdownRows, log: np.ndarray) -> SlowdownRows:
    return SlowdownRows(rows.target, rows.corunner, rows.row, log, rows.scale, rows.timed)


def by_law(name: str, rows: SlowdownRows) -> np.ndarray:
    return np.log1p([LAWS[name](PRESS[beside]) for beside in company(rows)])


def test_what_is_looked_up_beyond_every_key_is_the_default() -> None:
    key, value = np.array([2, 5]), np.array([0.2, 0.5])
    assert looked_up(key, value, np.array([1, 2, 4, 5, 9]), -1.0).tolist() == [-1, 0.2, -1, 0.5, -1]
    assert looked_up(key[:0], value[:0], np.array([1])).tolist() == [0]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("largest", [1, 2])
def test_larger_sets_follow_the_law_of_those_known(law: str, largest: int) -> None:
    """Pairs and threes are answered exactly; which law goes on is told by the largest alone."""
    rows = drawn(160, 3, most=2)
    rows = with_log(rows, by_law(law, rows))
    rows = rows.take(rows.degree <= largest)
    asked = drawn(60, 4, most=4, least=3)
    kept: list[np.ndarray] = []

    def fewer(keep: np.ndarray) -> tuple[Answer, None]:
        kept.append(keep)
        return (lambda query: by_law(law, query)), None

    found, _ = fit_extrapolation(rows, CELL_TABLE, lambda query: by_law(law, query), fewer)
    assert found.most == largest
    assert found.weight.sum() == pytest.approx(1.0)
    answer = found.log_slowdown(asked, CELL_TABLE, lambda query: by_law(law, query))
    off = np.abs(answer - by_law(law, asked))
    if largest == 1:  # pairs alone cannot tell which law it is
        assert not kept
        assert (by_law("mean", asked) <= answer).all()
        assert (answer <= by_law("sum", asked)).all()
        return
    assert (kept[0] == (rows.degree == 1)).all()
    wrong = [np.abs(by_law(other, asked) - by_law(law, asked)).mean() for other in LAWS]
    assert off.mean() < 0.25 * sorted(wrong)[1]


def test_parts_that_are_right_about_the_largest_answer_larger_ones() -> None:
    rows = drawn(160, 3)
    rows = with_log(rows, 0.7 * by_law("sum", rows) ** 2)

    def parts(query: SlowdownRows) -> np.ndarray:
        return np.stack([by_law("worst", query), 0.7 * by_law("sum", query) ** 2])

    def answer(query: SlowdownRows) -> np.ndarray:
        return parts(query)[1]

    asked = drawn(40, 4, most=4, least=3)
    plain, grown = (
        fit_extrapolation(*(rows, CELL_TABLE, answer, lambda _: (answer, parts)), untried=untried)[
            0
        ]
        for untried in (None, np.array([1.0, 0.0]))
    )
    truth = answer(asked)
    assert plain.log_slowdown(asked, CELL_TABLE, answer, parts) == pytest.approx(truth)
    assert plain.rule.tolist() == [[PART, 0, 1]]
    # Half of what grows is believed untried.
    assert grown.rule.tolist() == [[PART, 0, 0], [PART, 0, 1]]
    assert grown.weight == pytest.approx([0.5, 0.5])


def test_what_is_the_same_for_all_grows_with_their_number() -> None:
    """A level in proportion to the log of the number, beyond the most known, on either platform."""
    rows, slope = drawn(600, 6, most=4), np.array([0.3, -0.1])

    def law(asked: SlowdownRows) -> np.ndarray:
        return 0.2 + slope[asked.target // W] * np.log(asked.degree)

    found = fit_effects(with_log(rows, law(rows)), CELL_TABLE)
    asked = drawn(100, 7, most=9, least=5)
    assert found.value(asked, CELL_TABLE) == pytest.approx(law(asked), abs=0.01)


def test_times_never_measured_alone_are_additive_where_runs_connect_names() -> None:
    """d and q are of another world; e never ran alone."""
    times = {("a", "p"): 1.0, ("b", "p"): 2.0, ("a", "r"): 3.0, ("d", "q"): 7.0}
    rows = [(w, p, s, []) for (w, p), s in times.items() for _ in range(3)]
    names = ("a", "b", "d", "e"), ("p", "q", "r")

    def runs(rows: list) -> Runs:
        names = ("workload", "platform", "runtime_seconds", "corunners")
        columns = zip(names, zip(*rows, strict=True), strict=True)
        return Runs.from_columns(**{name: list(values) for name, values in columns})

    found = solo_runtimes(runs(rows), names)
    assert np.exp(found[[0, 0, 2, 1], [0, 1, 0, 2]]) == pytest.approx([1, 2, 3, 7])
    assert found[2, 1] == pytest.approx(np.log(6), abs=0.3)
    assert np.isfinite(found).sum() == 5
    beside = [("a", "p", 1.5, ["b"]), ("b", "p", 3.0, ["a"]), ("e", "p", 15.0, ["a"])]
    found = solo_runtimes(runs(rows + beside), names)
    assert found[0, 3] == pytest.approx(np.log(10), abs=0.05)


def test_features_tell_cells_apart_everywhere_and_on_one_platform() -> None:
    """Products of rows of the design, by loops."""
    names = ("a", "b", "c", "d"), ("p", "q")
    table = pa.table({"workload": list("abcd"), "kind": list("xxyy"), "size": [1.0, 2.0, 3.0, 4.0]})
    solo = np.log(np.outer([1.0, 2.0], [1.0, 3.0, 9.0, 1.0]))
    design = design_of(names, solo, table, 0.3, 0.6)
    plain = design_of(names, solo, None, 0.3, 0.6)
    extra = design @ design.T - plain @ plain.T
    level = solo - solo.mean(1, keepdims=True)
    level = (level / level.std()).ravel()
    size = np.array([1.0, 2.0, 3.0, 4.0])
    size = (size - size.mean()) / size.std()
    kind = np.array([0, 0, 1, 1])

    def inside(values: np.ndarray, group: np.ndarray) -> np.ndarray:
        left = values - [values[group == one].mean() for one in group]
        return left / left.std()

    of_level = inside(level, np.concatenate([kind, kind + 2]))
    of_size = inside(size, kind)
    for i, j in permutations(range(8), 2):
        (p, a), (q, b) = divmod(i, 4), divmod(j, 4)
        together = (kind[a] == kind[b]) * (1 + (p == q))
        expected = 0.25 * size[a] * size[b] + together + 0.25 * of_level[i] * of_level[j]
        expected += 0.25 * together * of_size[a] * of_size[b]
        assert extra[i, j] == pytest.approx(expected, abs=1e-4)
