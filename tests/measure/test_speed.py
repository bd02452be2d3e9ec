"""What is usual on a core is learned, and windows that turn out to be slow are repeated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jostle.measure import MeasureOptions, Tolerance, measure
from jostle.measure.campaign import _slot_pool as pool_module
from jostle.measure.window._speed import CoreSpeed
from jostle.runs import Dataset


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


class SlowAtFirst(CoreSpeed):
    """A watch that begins in a slow moment: the first windows look usual, and later do not."""

    moments = 0

    def calibrate(self, slot, cores, stopped=lambda: False) -> None:
        for core in cores:
            self.learn(core, [160] * 20)

    def probe(self, by_core):
        type(self).moments += 1
        now = 160 if self.moments <= 6 else 100
        for core in by_core:
            self.learn(core, [now] * 5)
        return dict.fromkeys(by_core, now)


def test_windows_from_a_slow_beginning_are_repeated(
    tmp_path: Path, quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlowAtFirst, "moments", 0)  # also where the test is tried again
    monkeypatch.setattr(pool_module, "CoreSpeed", SlowAtFirst)
    tolerance = replace(Tolerance.anything(), slowdown_ratio=1.25)
    campaign = quick(solo_repeats=2, sets=6, engines=["speed"])
    summary = measure(campaign, tmp_path, MeasureOptions(tolerance=tolerance))
    assert (summary.planned, summary.ok, summary.contaminated) == (10, 10, 3)
    assert summary.finished
    found = Dataset(tmp_path).read().table.to_pylist()
    slow = {row["window_id"] for row in found if row["status"] == "contaminated"}
    assert len(slow) == 3
    assert all(name.endswith("-0") for name in slow)
    assert all("slower than usual" in row["reason"] for row in found if row["window_id"] in slow)
    again = {row["window_id"] for row in found} & {f"{name[:-1]}1" for name in slow}
    assert len(again) == 3
