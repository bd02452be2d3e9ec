"""Evidence: counts of runs, by brute force, in memory, from disk and from a saved model."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.data import Colocations, Runs
from jostle.learn import RunCounts

NAMES = ("a", "b", "c", "d")
rows = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.sampled_from("pq"), st.lists(st.sampled_from(NAMES), max_size=3)
    ),
    min_size=1,
    max_size=20,
)


def runs_of(some: list) -> Runs:
    workload, platform, corunners = zip(*some, strict=True)
    return Runs.from_columns(
        workload=workload, platform=platform, corunners=corunners, runtime_seconds=[1.0] * len(some)
    )


@given(rows, rows)
@settings(max_examples=60, deadline=None)
def test_counts_are_those_of_brute_force(learned: list, asked: list) -> None:
    workload, platform, corunners = zip(*asked, strict=True)
    question = Colocations.from_columns(workload=workload, platform=platform, corunners=corunners)
    found = RunCounts.of(runs_of(learned)).evidence(question)
    sets = Counter((p, *sorted([w, *k])) for w, p, k in learned)
    for i, (w, p, k) in enumerate(asked):
        assert found.workload[i] == sum(w == other for other, *_ in learned)
        assert found.beside[i] == sum(w == other and bool(c) for other, _, c in learned)
        assert found.platform[i] == sum(p == other for _, other, _ in learned)
        there = [bool(c) for other, at, c in learned if (other, at) == (w, p)]
        assert (found.there[i], found.alone_there[i]) == (len(there), there.count(False))
        assert found.same_set[i] == sets[(p, *sorted([w, *k]))]
        parts = [sum((other == name) + c.count(name) for other, _, c in learned if c) for name in k]
        assert found.corunner[i] == (min(parts) if k else -1)


def test_saved_counts_are_the_same(runs: Runs) -> None:
    counts = RunCounts.of(runs)
    again = RunCounts.from_arrays(*counts.to_arrays())
    mine, theirs = counts.evidence(runs.colocations), again.evidence(runs.colocations)
    for name, value in vars(mine).items():
        assert np.array_equal(value, getattr(theirs, name))
