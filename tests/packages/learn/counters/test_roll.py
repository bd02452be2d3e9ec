"""Rolling forward against small steps of time, and against what must hold in any case."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jostle.errors import UsageError
from jostle.learn.learners.counters import SoloCounters, roll
from tests.packages.learn.counters.traced_samples import a_solo


def law(i: int, own: np.ndarray, others: np.ndarray) -> np.ndarray:
    """A slowdown with an effect of everything on everything."""
    return 1.0 + 0.5 * own[:, 1] * others[:, 1] / (1.0 + others[:, 1]) + 0.1 * i * others[:, 1]


def by_small_steps(
    solos: list[SoloCounters], loop: list[bool], step: float = 1e-2
) -> list[float | None]:
    """Everyone goes on by its rate of this moment; ends of each."""
    place = [0.0] * len(solos)
    ends: list[float | None] = [None] * len(solos)
    now = 0.0
    while any(e is None and not again for e, again in zip(ends, loop, strict=True)):
        rates = []
        for p, at, end in zip(solos, place, ends, strict=True):
            sample = min(int((at % p.duration_seconds) / p.period_seconds), p.periods - 1)
            steps = np.diff(p.cumulative, axis=0) / p.period_seconds
            rates.append(np.zeros(steps.shape[1]) if end is not None else steps[sample])
        for i, p in enumerate(solos):
            if ends[i] is not None:
                continue
            others = np.sum([r for k, r in enumerate(rates) if k != i], axis=0)
            slow = float(law(i, rates[i][None], others[None])[0]) if rates[i][0] > 0 else 1.0
            place[i] += step / slow
            if not loop[i] and place[i] >= p.duration_seconds:
                ends[i] = now + step - (place[i] - p.duration_seconds) * slow
        now += step
    return ends


def some(seed: int, lengths: tuple[int, ...]) -> list[SoloCounters]:
    random = np.random.default_rng(seed)
    return [
        a_solo(np.stack([random.uniform(1, 5, n), random.uniform(0, 1, n)], axis=1), name=f"w{n}")
        for n in lengths
    ]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("lengths", "loop"),
    [
        ((9, 14), (False, False)),
        ((9, 14, 6), (False, False, False)),
        ((11, 4), (False, True)),
        ((7, 3, 4), (False, True, False)),
    ],
)
def test_as_in_small_steps(seed: int, lengths: tuple[int, ...], loop: tuple[bool, ...]) -> None:
    solos = some(seed, lengths)
    expected = by_small_steps(solos, list(loop))
    found = roll(solos, law, loop=loop)
    for e, f in zip(expected, found, strict=True):
        assert (e is None and np.isnan(f)) or f == pytest.approx(e, rel=0.01)


def test_alone_and_with_no_interference_run_times_are_those_alone() -> None:
    solos = some(0, (5, 8))
    free = roll(solos, lambda i, own, others: np.ones(len(own)))
    np.testing.assert_allclose(free, [5.0, 8.0])
    np.testing.assert_allclose(roll(solos[:1], law), [5.0])


@given(st.floats(1.0, 4.0), st.floats(1.0, 4.0), st.integers(2, 30), st.integers(2, 30))
@settings(max_examples=40, deadline=None)
def test_constant_slowdowns_have_a_closed_form(a: float, b: float, n: int, m: int) -> None:
    solos = [a_solo(np.ones((n, 1))), a_solo(np.ones((m, 1)))]
    found = roll(solos, lambda i, own, others: np.full(len(own), (a, b)[i]))
    first, second = (a * n, b * m)
    expected = [first, first + (m - first / b)]
    if second < first:
        expected = [second + (n - second / a), second]
    np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_idle_lasts_as_long_as_alone() -> None:
    idle = a_solo(np.array([[2.0, 1.0], [0.0, 0.0], [0.0, 0.0], [2.0, 1.0]]))
    other = a_solo(np.ones((40, 2)))
    slow = roll([idle, other], lambda i, own, others: np.full(len(own), 2.0))[0]
    assert slow == pytest.approx(2 * 2 + 2)


def test_a_roll_is_exact_where_nothing_changes() -> None:
    solos = [
        a_solo(np.tile([[3.0, 1.0]], (20, 1))),
        a_solo(np.tile([[2.0, 0.5]], (40, 1))),
    ]
    found = roll(solos, law)
    slow = 1 + 0.5 * 0.5 / 1.5
    assert found[0] == pytest.approx(20 * slow, rel=1e-6)


def test_odd_questions() -> None:
    one = some(0, (3,))[0]
    with pytest.raises(UsageError):
        roll([], law)
    with pytest.raises(UsageError, match="loop"):
        roll([one], law, loop=[True])
    with pytest.raises(UsageError, match="periods"):
        roll([one, a_solo(np.ones((3, 2)), 0.5)], law)
