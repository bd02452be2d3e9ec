"""Aligned samples against the algorithm written out by hand, sample by sample."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.alignment.paper.printed import printed
from tests.packages.learn.counters.conftest import a_solo

tables = st.integers(2, 12).flatmap(
    lambda t: st.lists(st.tuples(st.floats(0.5, 9), st.floats(0, 9)), min_size=t, max_size=t)
)


def by_hand(buffer: np.ndarray, a: float) -> np.ndarray:
    """Algorithm 2. buffer: (T, d) counts per sample; a: the target count."""
    beta = 0
    while beta < len(buffer) - 1 and buffer[: beta + 1, 0].sum() <= a:
        beta += 1
    gamma = (buffer[beta, 0] - a) / buffer[beta, 0]
    this, following = buffer[max(beta - 1, 0)], buffer[beta]
    if beta == 0:
        following = buffer[0]
    if gamma == 1:
        return this
    return this * (1 - gamma) + following * gamma


@given(tables, st.floats(0.001, 1.5))
@settings(deadline=None)
def test_printed_is_line_for_line(rows: list[tuple[float, float]], part: float) -> None:
    buffer = np.array(rows)
    a = part * buffer[0, 0]
    found = printed(a_solo(buffer), np.zeros(1), np.ones(1), np.array([a]))[0]
    np.testing.assert_allclose(found, by_hand(buffer, a), rtol=1e-9, atol=1e-9)


@given(tables, st.integers(1, 20))
@settings(deadline=None)
def test_sections_add_up_to_all_that_was_counted(rows: list[tuple[float, float]], n: int) -> None:
    solo = a_solo(np.array(rows))
    edges = np.sort(np.random.default_rng(n).uniform(0, len(rows), n + 1))
    found = solo.section(edges[:-1], edges[1:])
    total = solo.at(solo.cumulative, edges[[0, -1]])
    np.testing.assert_allclose(
        (found * np.diff(edges)[:, None]).sum(axis=0), total[1] - total[0], atol=1e-6
    )
