"""The cumulative sum against a plain oracle, and what it is for: steps are told, noise is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jostle.bounds import AdaptiveLevel, DriftLevel, usual_levels
from jostle.bounds._drift import ALLOWED, CLIP, STEP, THRESHOLD


def first_alarm(errors: np.ndarray) -> int | None:
    """Page's two-sided sum, written out: the largest sum over any stretch that ends here."""
    off = np.clip(errors, -CLIP - ALLOWED, CLIP + ALLOWED)
    for end in range(1, len(off) + 1):
        for sign in (1, -1):
            tails = np.cumsum((sign * off[:end] - ALLOWED)[::-1])
            if tails.max() >= THRESHOLD:
                return end - 1
    return None


@given(st.integers(0, 10_000), st.floats(-3, 3))
def test_an_alarm_comes_where_the_largest_stretch_says(seed: int, step: float) -> None:
    errors = np.random.default_rng(seed).normal(size=60) + step
    level, found = DriftLevel(), None
    for place, error in enumerate(errors):
        if level.add(float(error), 1.0) is not None:
            found = place
            break
    assert found == first_alarm(errors)


@pytest.mark.parametrize("spread", [0.01, 0.2])
def test_a_step_is_measured_in_log_seconds_and_learned(spread: float) -> None:
    random, level = np.random.default_rng(3), DriftLevel(usual=0.4)
    noise = spread * (0.4 + random.normal(size=400) / 1.48)
    alarms = [
        alarm
        for place, error in enumerate(noise)
        if (alarm := level.add(error + (4 * spread if place >= 100 else 0.0), spread))
    ]
    assert len(alarms) == 1
    assert alarms[0].runs <= 20
    assert alarms[0].shift == pytest.approx(4 * spread, rel=0.2)
    assert level.shift == pytest.approx(4 * spread, rel=0.1)
    assert (level.alarms, level.since) == (1, 300 - alarms[0].runs)


def test_small_steps_that_last_are_told_where_asked() -> None:
    errors = np.random.default_rng(2).normal(size=3000) * 1.48 + 0.6
    quick, slow = DriftLevel(), DriftLevel(slowly=True)
    assert not any(quick.add(error, 0.1) for error in 0.1 * errors)
    (found,) = [alarm for error in 0.1 * errors if (alarm := slow.add(error, 0.1))]
    assert found.shift == pytest.approx(0.06, rel=0.2)


@pytest.mark.parametrize("slowly", [False, True])
def test_noise_alone_is_not_told(slowly: bool) -> None:
    random, level = np.random.default_rng(0), DriftLevel(slowly=slowly)
    assert not any(level.add(error, 1.0) for error in random.normal(size=30_000) * 1.48)
    assert level.shift == 0.0


@pytest.mark.parametrize("late_at", [0.02, 0.3])
def test_coverage_is_kept_whatever_the_law(late_at: float) -> None:
    """A run is late where a uniform number is under how far bounds are off: the level makes up for it."""
    random, kept, late = np.random.default_rng(1), AdaptiveLevel(0.1), 0
    for _ in range(20_000):
        missed = bool(random.random() < kept.allowed * late_at / 0.1)
        late += missed
        kept.add(missed)
    # As far from a tenth as the level has gone, over the runs times the step, whatever was late; a level
    # that would go past a half stays there, and fewer are late.
    share, expected = late / 20_000, 0.1 + (0.1 - kept.allowed) / (STEP * 0.1 * 20_000)
    assert share == pytest.approx(expected) if late_at > 0.1 / 5 else share <= expected
    assert kept.level == pytest.approx(1 - 0.1 * 0.1 / late_at, abs=0.1)


def test_usual_levels_are_shrunken_by_how_much_names_differ() -> None:
    random = np.random.default_rng(5)
    code = np.repeat(np.arange(40), 6)
    true = 1.2 * random.normal(size=41)
    errors = np.clip(true[code] + 0.5 * random.normal(size=240), -3, 3)
    errors[0] = np.inf
    wide, narrow = usual_levels(errors, [np.zeros(240, int), code], [1, 41])
    errors[0] = 0.0
    # Names differ by far more than their runs: hardly shrunken, and known to what six runs let them.
    means = np.bincount(code, errors - wide.level[0]) / 6
    assert narrow.level[:40] == pytest.approx(means, abs=0.2)
    assert narrow.unsure[:40] == pytest.approx(0.5 / 6**0.5, rel=0.2)
    # Nothing is known of one without runs but how far names lie apart.
    assert narrow.level[40] == 0.0
    assert narrow.unsure[40] == pytest.approx(1.2, rel=0.3)
    # Where names do not differ at all, levels are nearly 0.
    (same,) = usual_levels(random.normal(size=240), [code], [40])
    assert np.abs(same.level).max() < 0.5
    assert same.noise.max() < 1.5
    loud = np.where(code == 3, 4.0, 1.0) * random.normal(size=240) / 2
    (of_each,) = usual_levels(loud, [code], [40])
    assert of_each.noise.argmax() == 3
    assert of_each.noise[3] > 1.5
    assert (of_each.noise >= 1.0).all()


def test_a_level_that_is_hardly_known_is_no_drift() -> None:
    random = np.random.default_rng(4)
    errors = 1.48 * random.normal(size=2000) + 1.6
    known, hardly = DriftLevel(), DriftLevel(unsure=0.8)
    assert any(known.add(error, 1.0) for error in errors)
    assert not any(hardly.add(error, 1.0) for error in errors)
    (found,) = [alarm for error in errors[:60] + 6 if (alarm := hardly.add(error, 1.0))]
    assert found.shift == pytest.approx(7.6, rel=0.1)
    # Nor are single errors of a name whose errors are wide.
    wide, plain = DriftLevel(noise=3.0), DriftLevel()
    far = 4 * random.normal(size=20_000)
    assert any(plain.add(error, 1.0) for error in far)
    assert not any(wide.add(error, 1.0) for error in far)
