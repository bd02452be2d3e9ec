"""Bounds widened where a platform or a length of run is covered less often than the others."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.learn.learners.network._spread_even import POWER, evened

LEVEL = 0.9


def usual(scaled: np.ndarray) -> np.ndarray:
    return scaled / np.quantile(scaled, LEVEL)


def test_many_errors_speak_for_themselves() -> None:
    """Three platforms of 20 000 errors each, one of them twice as wide: the quantiles by NumPy."""
    random = np.random.default_rng(0)
    member = np.repeat(np.arange(3), 20_000)
    scaled = usual(random.normal(size=60_000) * np.array([1.0, 1.0, 2.0])[member])
    found = evened(scaled, np.ones(60_000), (member, np.zeros(3, np.int64)), (3, 1), LEVEL)
    expected = [POWER * np.log(np.quantile(scaled[member == m], LEVEL)) for m in range(3)]
    assert found == pytest.approx(expected, abs=0.03)
    assert found[2] > 0 > found[0]


def test_without_errors_a_platform_is_as_those_alike() -> None:
    random = np.random.default_rng(1)
    member = np.repeat([0, 1, 2], 5000)
    scaled = usual(random.normal(size=15_000) * np.array([1.0, 1.0, 2.0])[member])
    group = np.array([0, 0, 1, 1])  # the last has no error and is of the kind of the third
    found = evened(scaled, np.ones(15_000), (member, group), (4, 2), LEVEL)
    assert found[3] == pytest.approx(found[2], abs=0.05)
    assert found[3] > found[0]


def test_few_errors_say_little() -> None:
    random = np.random.default_rng(2)
    member = np.concatenate([np.zeros(5000, np.int64), np.ones(3, np.int64)])
    scaled = np.concatenate([usual(random.normal(size=5000)), np.full(3, 5.0)])
    few = evened(scaled, np.ones(5003), (member, np.zeros(2, np.int64)), (2, 1), LEVEL)[1]
    member = np.concatenate([member, np.ones(297, np.int64)])
    scaled = np.concatenate([scaled, np.full(297, 5.0)])
    many = evened(scaled, np.ones(5300), (member, np.zeros(2, np.int64)), (2, 1), LEVEL)[1]
    assert 0 < few < 0.6 * many


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 200), st.sampled_from([0.9, 0.95, 0.99]))
def test_always_finite_and_bounded(seed: int, n: int, level: float) -> None:
    random = np.random.default_rng(seed)
    scaled = random.standard_cauchy(n)
    codes = random.integers(0, 5, n), random.integers(0, 2, 5)
    found = evened(scaled, random.choice([0.3, 1.0], n), codes, (5, 2), level)
    assert found.shape == (5,)
    assert np.isfinite(found).all()
