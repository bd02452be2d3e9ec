"""What is usual on a core is learned."""

from __future__ import annotations

import pytest

from jostle.measure.window._speed import CoreSpeed


def test_slowdown_is_against_what_is_usual() -> None:
    speed = CoreSpeed()
    assert speed.slowdown({0: 100}) is None
    speed.learn(0, [100] * 50 + [160] * 50)
    assert speed.slowdown({0: 150}) == pytest.approx(1.5)
    assert speed.slowdown({0: 90}) == 1.0
    assert speed.slowdown({0: 150}, {0: 110}) == pytest.approx(1.1)  # one quiet moment is enough
    assert speed.slowdown({}, {}) is None
    assert speed.slowdown({0: 100, 7: 100}) is None  # core 7 is not known


def test_the_slowest_core_counts() -> None:
    speed = CoreSpeed()
    speed.learn(0, [100] * 20)
    speed.learn(1, [200] * 20)
    assert speed.slowdown({0: 120, 1: 300}) == pytest.approx(1.5)
