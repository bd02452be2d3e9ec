"""The members of the stack, each against something that was not written with it in mind."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.learn import CellTable, SlowdownRows, fit_effects


def pairs(platforms: int, workloads: int) -> SlowdownRows:
    """Every workload beside every other on each platform, with no slowdown yet."""
    place, i, j = (x.ravel() for x in np.indices((platforms, workloads, workloads)))
    n = len(place)
    target, corunner = place * workloads + i, place * workloads + j
    return SlowdownRows(target, corunner, np.arange(n), np.zeros(n), np.ones(n))


def with_log(rows: SlowdownRows, log: np.ndarray) -> SlowdownRows:
    return SlowdownRows(rows.target, rows.corunner, rows.row, log, rows.scale, rows.timed)


def test_effects_are_those_of_the_analysis_of_variance(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a balanced two-way layout the best linear predictor has shrunken means, with variances that the
    mean squares give (Searle, Casella and McCulloch, Variance Components, Sec. 4.7)."""
    monkeypatch.setattr("jostle._base.mixed_effects.HUBER", 100.0)
    random, w = np.random.default_rng(0), 40
    rows, cell_table = pairs(1, w), CellTable(1, w)
    hit, press = random.normal(0, 0.3, w), random.normal(0, 0.1, w)
    y = 0.4 + hit[rows.target] + press[rows.corunner] + random.normal(0, 0.2, len(rows))
    effects = fit_effects(with_log(rows, y), cell_table)
    table = y.reshape(w, w)
    own, other = table.mean(1) - y.mean(), table.mean(0) - y.mean()
    rest = table - y.mean() - own[:, None] - other[None]
    noise = (rest**2).sum() / (w - 1) ** 2

    def shrunken(means: np.ndarray) -> np.ndarray:
        variance = (means**2).sum() / (w - 1) - noise / w
        return means * variance / (variance + noise / w)

    expected = y.mean() + shrunken(own)[:, None] + shrunken(other)[None]
    assert effects.value(rows, cell_table) == pytest.approx(expected.ravel(), abs=5e-3)
