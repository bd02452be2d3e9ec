"""What corrects answers over time, on answers whose errors are made by a known rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.data import Colocations
from jostle.models import Timelines
from jostle.models.timelines._told_correction import (
    FEWEST,
    LATEST,
    MIDDLE,
    Signs,
    ToldCorrection,
    after,
)

NAMES = ("a", "b", "c"), ("p", "q")
TREND = np.array([0.6, 0.0, -0.4])


def answers(n: int, seed: int, noise: float = 0.05) -> tuple[Signs, np.ndarray]:
    """Answers about jobs as they began, whose errors turn on the name's trend and on who is there."""
    draw = np.random.default_rng(seed)
    workload, platform = draw.integers(0, 3, n), draw.integers(0, 2, n)
    number, now = draw.integers(0, 4, n).astype(float), np.exp(draw.normal(5, 1, n))
    told = now * np.exp(draw.normal(0, 0.2, n))
    age = np.sort(draw.random(n)) - 1
    signs = Signs(workload, platform, number, now, told, np.zeros(n), age)
    error = 0.1 * number + 0.2 * platform + TREND[workload] * age + noise * draw.normal(size=n)
    return signs, error


def test_what_repeats_is_corrected_and_the_trend_followed_to_the_end_of_the_log() -> None:
    signs, error = answers(600, seed=1)
    learned = ToldCorrection.fit(signs, error, np.arange(600), NAMES)
    assert learned is not None
    correction, crossed = learned
    assert np.abs(error - crossed).mean() < 0.5 * np.abs(error).mean()
    later, _ = answers(300, seed=2, noise=0)
    expected = 0.1 * later.number + 0.2 * later.platform
    told = correction.log_ratio(replace(later, age=np.full(300, LATEST)))
    assert np.abs(told - expected).max() < 0.1
    middle = correction.log_ratio(replace(later, age=np.full(300, MIDDLE)))
    assert middle - told == pytest.approx(-0.5 * TREND[later.workload], abs=0.1)
    # A name or a platform that is not known adds nothing of its own.
    unknown = np.full(300, -1)
    assert np.isfinite(correction.log_ratio(replace(later, workload=unknown))).all()
    assert np.isfinite(correction.log_ratio(replace(later, platform=unknown))).all()
    again = ToldCorrection.from_arrays(*correction.to_arrays())
    assert again.log_ratio(later).tolist() == correction.log_ratio(later).tolist()


def test_no_answer_is_corrected_by_what_has_seen_its_run() -> None:
    signs, error = answers(200, seed=3)
    # Each run is asked about twice; one of a run far off says nothing of the other.
    twice = Signs.concatenate([signs, replace(signs, elapsed=0.5 * signs.told)])
    both, run = np.concatenate([error, error]), np.tile(np.arange(200), 2)
    first = ToldCorrection.fit(twice, both, run, NAMES)
    off = both.copy()
    off[[7, 207]] += 3.0
    second = ToldCorrection.fit(twice, off, run, NAMES)
    assert first is not None
    assert second is not None
    moved = np.abs(second[1] - first[1])
    assert moved[7] <= np.median(moved) + 0.02
    assert moved[207] <= np.median(moved) + 0.02


def test_few_answers_and_those_that_nothing_shows_are_not_corrected() -> None:
    signs, error = answers(FEWEST - 1, seed=4)
    assert ToldCorrection.fit(signs, error, np.arange(FEWEST - 1), NAMES) is None
    signs, _ = answers(400, seed=5)
    noise = 0.1 * np.random.default_rng(0).standard_t(3, 400)
    found = ToldCorrection.fit(signs, noise, np.arange(400), NAMES)
    assert found is None or np.abs(found[1]).max() < 0.1


def test_only_what_is_left_is_corrected_and_only_of_open_questions() -> None:
    signs, error = answers(300, seed=6)
    learned = ToldCorrection.fit(signs, error, np.arange(300), NAMES)
    assert learned is not None
    c = Colocations.from_columns(workload=["a"] * 4, platform=["q"] * 4, corunners=[["b"]] * 4)
    asked = replace(
        Timelines.of_colocations(c),
        elapsed_seconds=np.array([0.0, 50.0, 50.0, 50.0]),
        done_ratio=np.array([np.nan, np.nan, 0.5, np.nan]),
        is_open=np.array([True, True, True, False]),
    )
    told, log_times = np.full(4, 100.0), np.log(np.full(4, 90.0))
    none = np.zeros(4, bool)
    found = learned[0].corrected(asked, log_times, told, none)
    ratio = found[0] / 100
    assert ratio > 1.1
    assert found[1:] == pytest.approx([50 + 50 * ratio, 100, 100])
    # What follows drift since the middle of the log by itself has the trend only up to there.
    followed = learned[0].corrected(asked, log_times, told, ~none)
    assert followed[0] / found[0] == pytest.approx(np.exp(-0.5 * TREND[0]), rel=0.1)


def test_a_run_is_never_told_to_end_before_now() -> None:
    signs = replace(answers(50, seed=7)[0], elapsed=np.full(50, 1.0))
    signs = replace(signs, told=np.full(50, 1.0 + 1e-9))
    assert (after(signs, np.full(50, -1.0)) >= 1.0).all()
