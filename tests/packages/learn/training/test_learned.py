"""What rules learn, by closed forms, brute force and finite differences."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from jostle.learn import (
    CellTable,
    SlowdownRows,
    design_of,
    error_weight,
    fit_effects,
    fit_group_median,
    relative_medians,
)
from jostle.learn.training._design import _inside, design_of_names

P, W = 2, 5


def drawn(n: int, seed: int, most: int = 3, timed: bool = False) -> SlowdownRows:
    """n rows of any workloads on any platform beside one to `most` others there."""
    random = np.random.default_rng(seed)
    place, target = random.integers(0, P, n), random.integers(0, W, n)
    row = np.repeat(np.arange(n), random.integers(1, most + 1, n))
    corunner = place[row] * W + random.integers(0, W, len(row))
    log, scale = 0.3 * random.normal(size=n), random.uniform(0.5, 2, n)
    return SlowdownRows(place * W + target, corunner, row, log, scale, timed)


ON = CellTable(P, W)


def test_few_runs_of_a_cell_are_weighed_by_their_trust() -> None:
    times, cell = np.log([1.0, 1.0, 2.0, 2.0]), np.zeros(4, int)
    for trust, closest in (([1, 1, 0.1, 0.1], 1.0), ([0.1, 0.1, 5, 5], 2.0)):
        assert np.exp(relative_medians(cell, times, 1, np.array(trust))[0]) == pytest.approx(
            closest, rel=0.1
        )
    assert error_weight(np.array([0.0, 0.05, 0.15])) == pytest.approx([1.0, 0.5, 0.1])


def test_a_design_is_of_names_places_times_and_classes() -> None:
    """Squared distances of cells, in closed form."""
    table = None
    solo = np.log(np.outer([1.0, 2.0], [1.0, 3.0, 9.0]))
    names = ("a", "b", "c"), ("p", "q")
    design = design_of(names, solo, table, 0.3, 0.6)
    level = np.tile([-1.0, 0.0, 1.0], 2) / np.sqrt(2 / 3)
    for one, other in permutations(range(6), 2):
        apart = 2 * 0.3**2 * (one % 3 != other % 3) + 2 * 0.6**2
        apart += (0.3 * (level[one] - level[other])) ** 2 + 2 * (one // 3 != other // 3)
        assert ((design[one] - design[other]) ** 2).sum() == pytest.approx(apart)
    sparse = design_of_names(3, 2, solo, 0.3, 0.6).toarray()
    assert sparse @ sparse.T == pytest.approx(design @ design.T)
    classes = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    inside = _inside(classes, np.array([[1.0], [3.0], [10.0], [10.0]]))
    assert inside.ravel() == pytest.approx(np.array([-1, 1, 0, 0]) / np.sqrt(0.5))


@pytest.mark.parametrize("timed", [False, True])
def test_a_level_is_of_platform_and_number_where_three_rows_are(timed: bool) -> None:
    rows, on = drawn(90, 6, timed=timed), ON
    few = rows.take((rows.target // W == 0) | (np.arange(90) % 9 == 0) & (rows.degree == 2))
    found = fit_group_median(few, on).place
    weight = np.sqrt(few.weight) if timed else np.exp(-few.log_slowdown)
    place = few.target // W
    for p, d in np.ndindex(found.shape):
        here = (place == p) & (few.degree == d)
        if here.sum() < 3:
            here = place == p if (place == p).sum() >= 3 else few.degree == d
        if here.sum() < 3:
            continue
        values, mine = few.value[here], weight[here]
        costs = [float((mine * np.abs(values - value)).sum()) for value in values]
        cost = float((mine * np.abs(values - found[p, d])).sum())
        assert cost == pytest.approx(min(costs))


def test_co_runners_that_add_up_go_on_beyond_the_most_known() -> None:
    """d times the mean effect of the co-runners, on either platform; the power is found."""
    rows, on, random = drawn(500, 7, most=2), ON, np.random.default_rng(0)
    own, effect = 0.1 * random.normal(size=P * W), random.uniform(0.1, 0.5, P * W)

    def law(asked: SlowdownRows) -> np.ndarray:
        return own[asked.target] + np.bincount(asked.row, effect[asked.corunner], len(asked))

    known = SlowdownRows(
        rows.target, rows.corunner, rows.row, law(rows), rows.scale, error=np.zeros(500)
    )
    found = fit_effects(known, on)
    assert found.power == 1.0
    asked = drawn(200, 8, most=4)
    assert found.value(asked, on) == pytest.approx(law(asked), abs=0.02)


def test_of_several_co_runners_the_strongest_alone_may_count() -> None:
    """In any order, also with one more beside than was known."""
    rows, on, random = drawn(600, 9, most=3), ON, np.random.default_rng(1)
    own, effect = 0.1 * random.normal(size=P * W), random.uniform(0.0, 1.0, P * W)

    def law(asked: SlowdownRows) -> np.ndarray:
        return own[asked.target] + [
            effect[asked.corunner[asked.row == n]].max() for n in range(len(asked))
        ]

    known = SlowdownRows(
        rows.target, rows.corunner, rows.row, law(rows), rows.scale, error=np.zeros(600)
    )
    found = fit_effects(known, on)
    assert found.power == np.inf
    asked = drawn(200, 10, most=4)
    assert found.value(asked, on) == pytest.approx(law(asked), abs=0.02)


def test_what_platforms_repeat_of_a_set_is_one_witness() -> None:
    """Where each set costs something of its own, alike on all platforms, four tell nothing more of
    other sets than one."""
    w, random = 8, np.random.default_rng(3)
    beside = [pair for pair in permutations(range(w), 2) if random.random() < 0.6]
    target, other = np.array(beside).T
    own = 0.3 * random.normal(size=len(beside))

    def learned(platforms: int) -> np.ndarray:
        place = np.repeat(np.arange(platforms), len(beside))
        codes = np.tile(target, platforms), place, np.tile(other, platforms)
        one = np.ones(len(place))
        rows = SlowdownRows.coded(codes, one.astype(int), w, np.tile(own, platforms), one)
        on = CellTable(platforms, w)
        found = fit_effects(rows, on)
        return found.value(rows.take(place == 0), on)

    once, again = learned(1), learned(4)
    assert np.abs(again - once).mean() < 0.15 * np.abs(own).mean()
