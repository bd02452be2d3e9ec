"""Splits: disjoint, covering, repeatable, and never through a window."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.data import Runs, split_rows
from jostle.errors import UsageError

from .strategies import some_runs

fractions = st.lists(st.integers(0, 5), min_size=1, max_size=4).filter(any)


@given(some_runs(), fractions, st.integers(0, 3), st.sampled_from(["window", "row", "together"]))
def test_parts_are_disjoint_cover_all_and_repeat(runs, weights, seed, by):
    shares = [weight / sum(weights) for weight in weights]
    parts = split_rows(runs, shares, seed, by)
    assert len(parts) == len(shares)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(runs)))
    for part, again, share in zip(parts, split_rows(runs, shares, seed, by), shares, strict=True):
        assert np.array_equal(part, again)
        assert np.all(np.diff(part) > 0)
        assert share > 0 or len(part) == 0


@given(some_runs(), st.integers(0, 3))
def test_a_window_stays_on_one_side(runs, seed):
    parts = split_rows(runs, [0.5, 0.5], seed)
    one, two = (set(runs.window[part].tolist()) for part in parts)
    assert not one & two


def test_shares_are_kept_for_each_number_of_corunners():
    n = 1000
    beside = [["a"] * (row % 3) for row in range(n)]
    runs = Runs.from_columns(
        workload=["a"] * n, platform=["p"] * n, corunners=beside, runtime_seconds=np.ones(n)
    )
    for seed in range(5):
        for part, share in zip(
            split_rows(runs, [0.6, 0.3, 0.1], seed), [0.6, 0.3, 0.1], strict=True
        ):
            counts = np.bincount(runs.colocations.number_of_corunners[part], minlength=3)
            assert np.all(np.abs(counts - share * n / 3) < 2)


def test_rows_by_number_alone():
    parts = split_rows(10, [0.5, 0.5], 0)
    assert sorted(np.concatenate(parts).tolist()) == list(range(10))
    assert len(parts[0]) == 5
    assert not np.array_equal(parts[0], split_rows(10, [0.5, 0.5], 1)[0])


@pytest.mark.parametrize("wrong", [[], [0.5], [0.5, 0.6], [1.5, -0.5]])
def test_fractions_must_sum_to_one(wrong):
    with pytest.raises(UsageError):
        split_rows(10, wrong, 0)


def test_only_by_window_or_row():
    with pytest.raises(UsageError, match="platform"):
        split_rows(10, [1.0], 0, unit="platform")
    with pytest.raises(UsageError, match="together"):
        split_rows(10, [1.0], 0, unit="together")


@given(some_runs(min_size=1), st.integers(0, 3))
def test_the_same_workloads_together_stay_on_one_side(runs, seed):
    first, second = split_rows(runs, [0.5, 0.5], seed, unit="together")
    c = runs.colocations

    def sets(part):
        rows = [c.row(int(i)) for i in part]
        return {(place, tuple(sorted([name, *beside]))) for name, place, beside in rows}

    assert not sets(first) & sets(second)
    unit = runs.units("together")
    expected = [(c.row(i)[1], tuple(sorted([c.row(i)[0], *c.row(i)[2]]))) for i in range(len(runs))]
    for i in range(len(runs)):
        for j in range(i):
            assert (unit[i] == unit[j]) == (expected[i] == expected[j])
