"""Aligned samples against the algorithm written out by hand, sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.alignment import aligned
from jostle.errors import UsageError
from tests.alignment.conftest import a_solo

tables = st.integers(2, 12).flatmap(
    lambda t: st.lists(st.tuples(st.floats(0.5, 9), st.floats(0, 9)), min_size=t, max_size=t)
)


def by_hand(buffer: np.ndarray, a: float, *, printed: bool, swapped: bool) -> np.ndarray:
    """Algorithm 2. buffer: (T, d) counts per sample; a: the target count."""
    beta = 0
    while beta < len(buffer) - 1 and buffer[: beta + 1, 0].sum() <= a:
        beta += 1
    before = 0.0 if printed else buffer[:beta, 0].sum()
    gamma = (buffer[beta, 0] - (a - before)) / buffer[beta, 0]
    this, following = buffer[max(beta - 1, 0)], buffer[beta]
    if beta == 0:
        following = buffer[0]
    if gamma == 1:
        return this
    if swapped:
        return this * (1 - gamma) + following * gamma
    return this * gamma + following * (1 - gamma)


@given(tables, st.floats(0.001, 0.999))
@settings(deadline=None)
def test_continuous_and_swapped_are_the_blend_written_out(
    rows: list[tuple[float, float]], part: float
) -> None:
    buffer = np.array(rows)
    solo = a_solo(buffer)
    a = part * buffer[:, 0].sum()
    end = solo.seconds_at(np.array([a]))
    # On a boundary the two sides of a jump are both right.
    if abs(end[0] - round(end[0])) < 1e-6:
        return
    for kind in ("continuous", "swapped"):
        found = aligned(kind, solo, end, end)[0]
        expected = by_hand(buffer, a, printed=False, swapped=kind == "swapped")
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(tables, st.floats(0.001, 1.5))
@settings(deadline=None)
def test_printed_is_line_for_line(rows: list[tuple[float, float]], part: float) -> None:
    buffer = np.array(rows)
    a = part * buffer[0, 0]
    found = aligned("printed", a_solo(buffer), np.zeros(1), np.ones(1), count=np.array([a]))[0]
    np.testing.assert_allclose(
        found, by_hand(buffer, a, printed=True, swapped=True), rtol=1e-9, atol=1e-9
    )


def test_continuous_has_no_jumps_and_meets_the_sample_at_its_boundary() -> None:
    solo = a_solo(np.array([[4.0, 1.0], [2.0, 7.0], [8.0, 3.0]]))
    end = np.linspace(1.0, 3.0, 20001)
    found = aligned("continuous", solo, end, end)
    assert np.abs(np.diff(found, axis=0)).max() < 2e-3
    np.testing.assert_allclose(aligned("continuous", solo, end, np.array([2.0]))[0], [2.0, 7.0])
    jumps = np.abs(np.diff(aligned("swapped", solo, end, end), axis=0)).max()
    assert jumps > 1.0


@given(tables, st.integers(1, 20))
@settings(deadline=None)
def test_sections_add_up_to_all_that_was_counted(rows: list[tuple[float, float]], n: int) -> None:
    solo = a_solo(np.array(rows))
    edges = np.sort(np.random.default_rng(n).uniform(0, len(rows), n + 1))
    found = aligned("section", solo, edges[:-1], edges[1:])
    total = solo.at(solo.cumulative, edges[[0, -1]])
    np.testing.assert_allclose(
        (found * np.diff(edges)[:, None]).sum(axis=0), total[1] - total[0], atol=1e-6
    )


def test_unknown_names() -> None:
    solo = a_solo(np.ones((2, 1)))
    with pytest.raises(UsageError, match="section"):
        aligned("sideways", solo, np.zeros(1), np.ones(1))
    with pytest.raises(UsageError, match="count"):
        aligned("printed", solo, np.zeros(1), np.ones(1))
