"""Categories of questions by brute force over the runs, and which never lend a bound to which."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.conformal import CATEGORIES, category_of
from jostle.data import Colocations
from jostle.learn import RunCounts

Row = tuple[str, str, tuple[str, ...]]


class Counting:
    """A predictor that counts the runs it learned from."""

    def __init__(self, rows: list[Row]) -> None:
        self.counts = RunCounts.of_coded(as_asked(rows))

    def evidence(self, asked: Colocations) -> Any:
        return self.counts.evidence(asked)


def as_asked(rows: list[Row]) -> Colocations:
    return Colocations.from_columns(
        workload=[w for w, _, _ in rows],
        platform=[p for _, p, _ in rows],
        corunners=[list(c) for _, _, c in rows],
    )


def by_hand(learned: list[Row], row: Row, most: int) -> str:
    """As one would say it, from the runs themselves."""
    workload, platform, corunners = row
    if workload not in {w for w, _, _ in learned} or platform not in {p for _, p, _ in learned}:
        return "new name"
    if not corunners:
        there = any(r == (workload, platform, ()) for r in learned)
        return "alone" if there else "new on the platform, alone"
    beside = [r for r in learned if r[2]]
    met = {name for w, _, c in beside for name in (w, *c)}
    there = any(r[:2] == (workload, platform) for r in learned)
    if not there or not any(p == platform for _, p, _ in beside):
        return "new on the platform, beside others"
    if workload not in {w for w, _, _ in beside} or not set(corunners) <= met:
        return "new beside others"
    if len(corunners) > most:
        return "more co-runners"
    return ("1 co-runner", "2 co-runners", "3 or more co-runners")[min(len(corunners), 3) - 1]


rows = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from("pq"),
    st.lists(st.sampled_from("abcd"), max_size=4).map(tuple),
)


@settings(deadline=None, max_examples=200)
@given(st.lists(rows, min_size=1, max_size=12), rows)
def test_categories_are_those_of_the_runs(learned: list[Row], row: Row) -> None:
    most = max(len(c) for _, _, c in learned)
    found = category_of(Counting(learned), as_asked([row]), most)
    assert CATEGORIES[found[0]] == by_hand(learned, row, most)


def test_what_does_not_count_its_runs_knows_all_names() -> None:
    asked = as_asked([("a", "p", ()), ("a", "p", ("b",)), ("a", "p", ("b", "c", "d", "a"))])
    assert category_of(object(), asked).tolist() == [0, 1, 3]
    assert category_of(object(), asked, most=3).tolist() == [
        0,
        1,
        CATEGORIES.index("more co-runners"),
    ]
    assert category_of(object(), asked.take(np.zeros(0, int))).tolist() == []


class Remembering(Counting):
    """Which knows the very co-locations that it learned from."""

    def __init__(self, rows: list[Row]) -> None:
        super().__init__(rows)
        self.rows = {(w, p, tuple(sorted(c))) for w, p, c in rows}

    def measured(self, asked: Colocations) -> np.ndarray:
        columns = asked.to_columns()
        each = zip(columns["workload"], columns["platform"], columns["corunners"], strict=True)
        return np.array([(w, p, tuple(sorted(c))) in self.rows for w, p, c in each], bool)


@settings(deadline=None, max_examples=100)
@given(st.lists(rows, min_size=1, max_size=12), st.data())
def test_sets_measured_before_are_a_category_of_their_own(
    learned: list[Row], data: st.DataObject
) -> None:
    """Beside others only; one that cannot be calibrated by left-out runs is not told apart."""
    row = data.draw(st.sampled_from(learned))
    predictor, asked = Remembering(learned), as_asked([row])
    usual = category_of(predictor, asked)
    (found,) = category_of(predictor, asked, tells_measured=True)
    assert CATEGORIES[found] == ("measured set" if row[2] else CATEGORIES[usual[0]])
    assert CATEGORIES[usual[0]] == by_hand(learned, row, most=4)
