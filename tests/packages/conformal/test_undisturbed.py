"""Bounds from runs of a busy machine, whose times are known but for an error, are of undisturbed times."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle.conformal._measurement_error import deconvolved
from jostle.data import Runs
from jostle.learn import Ensemble
from tests.limits import share_limits
from tests.packages.learn.ensemble.conftest import made_runs

CONFIDENCE, DRAWS, CALIBRATION, ASKED = 0.9, 40, 200, 200
SPREAD, ERROR = 0.03, 0.05


def bounds_of(off: np.ndarray, error: np.ndarray) -> tuple[float, float]:
    """Of calibration runs as they are, and with their errors taken off: what they are off by at the rank."""
    n = len(off)
    rank = int(np.ceil(CONFIDENCE * (n + 1))) - 1
    exact = deconvolved(off, error, np.zeros(n, np.int64))
    plain, taken = (np.sort(np.nan_to_num(one, nan=np.inf))[rank] for one in (off, exact))
    return float(plain), float(taken)


def drawn(law: str, told: str, seed: int) -> tuple[float, float, np.ndarray]:
    """(bound as it stands, narrowed, what undisturbed runs are off by)."""
    random = np.random.default_rng(seed)

    def off(n: int) -> np.ndarray:
        normal, skewed = random.normal(size=n), (random.gamma(3, 1, n) - 3) / 3**0.5
        return SPREAD * (normal if law == "normal" else skewed)

    error = ERROR * random.lognormal(0, 0.8, CALIBRATION)
    if told == "all alike":
        error[:] = ERROR
    real = 0 if told == "wrongly" else error
    noisy = off(CALIBRATION) + real * random.normal(size=CALIBRATION)
    return (*bounds_of(noisy, error), off(ASKED))


@pytest.mark.parametrize("law", ["normal", "skewed"])
@pytest.mark.parametrize("told", ["rightly", "wrongly", "all alike"])
def test_undisturbed_times_are_covered_and_bounds_hardly_wider_than_they_need_be(
    law: str, told: str
) -> None:
    # One run asked of each draw, so that all are drawn by themselves.
    held, plain, narrowed, needed = 0, [], [], []
    for seed in range(DRAWS):
        as_it_stands, bound, off = drawn(law, told, seed)
        held += int(off[0] <= bound)
        plain.append(as_it_stands)
        narrowed.append(bound)
        needed.append(float(np.quantile(off, CONFIDENCE)))
    assert held / DRAWS >= share_limits(DRAWS, CONFIDENCE)[0]
    wide, less, true = (float(np.mean(each)) for each in (plain, narrowed, needed))
    assert less >= 0.9 * true
    if told == "rightly":
        assert less - true < (wide - true) / 3
    else:  # what no run confirms is not taken off
        assert less == pytest.approx(wide, rel=0.1)


def test_without_errors_nothing_changes() -> None:
    off = np.random.default_rng(0).normal(size=50)
    assert bounds_of(off, np.zeros(50))[0] == bounds_of(off, np.zeros(50))[1]
    assert np.isfinite(bounds_of(np.zeros(20), np.full(20, 0.1))).all()
    off[3] = np.nan  # no answer
    assert bounds_of(off, np.ones(50))[1] < np.inf


def test_the_default_takes_errors_off_what_it_calibrates_on() -> None:
    """Over four draws of the errors."""
    quiet = made_runs(programs=8, platforms=1, threes=30)
    method = Ensemble(learners=("rules",))
    width: tuple[list[float], list[float]] = ([], [])
    for seed in range(1, 5):
        random = np.random.default_rng(seed)
        error = 0.08 * random.lognormal(0, 0.8, len(quiet))
        seconds = quiet.runtime_seconds * np.exp(error * random.normal(size=len(quiet)))
        told = Runs(
            quiet.table.set_column(
                quiet.table.column_names.index("runtime_seconds"), "runtime_seconds", [seconds]
            ).append_column("runtime_error_ratio", [error])
        )
        untold = Runs(told.table.drop_columns("runtime_error_ratio"))
        for runs, mine in zip((told, untold), width, strict=True):
            model = jostle.fit(runs, method, seed=0)
            bounds = model.bound(quiet.colocations, CONFIDENCE)
            assert set(bounds.outcome[bounds.is_valid]) == {"cross_validated"}
            off = np.log(bounds.seconds / np.asarray(model.predict(quiet.colocations)))
            mine.append(float(np.median(off[bounds.is_valid])))
            within = float((quiet.runtime_seconds <= bounds.seconds).mean())
            assert within >= share_limits(len(quiet), CONFIDENCE)[0]
    assert np.mean(width[0]) < np.mean(width[1])
