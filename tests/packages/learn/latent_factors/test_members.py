"""The members of the stack, each against something that was not written with it in mind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from jostle.learn import CellTable, SlowdownRows, fit_effects
from jostle.learn.learners.latent_factors import _slowdown_process as _process
from jostle.learn.learners.latent_factors._slowdown_process import (
    Cells,
    Kernels,
    Settings,
    fit_process,
)


def cell_table_of(platforms: int, workloads: int, seed: int = 0) -> CellTable:
    random = np.random.default_rng(seed)
    cells = platforms * workloads
    return CellTable(platforms, workloads, random.normal(size=(cells, 3)), np.zeros(cells))


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
    rows, cell_table = pairs(1, w), cell_table_of(1, w)
    hit, press = random.normal(0, 0.3, w), random.normal(0, 0.1, w)
    y = 0.4 + hit[rows.target] + press[rows.corunner] + random.normal(0, 0.2, len(rows))
    effects, _ = fit_effects(with_log(rows, y), cell_table)
    table = y.reshape(w, w)
    own, other = table.mean(1) - y.mean(), table.mean(0) - y.mean()
    rest = table - y.mean() - own[:, None] - other[None]
    noise = (rest**2).sum() / (w - 1) ** 2

    def shrunken(means: np.ndarray) -> np.ndarray:
        variance = (means**2).sum() / (w - 1) - noise / w
        return means * variance / (variance + noise / w)

    expected = y.mean() + shrunken(own)[:, None] + shrunken(other)[None]
    assert effects.value(rows, cell_table) == pytest.approx(expected.ravel(), abs=5e-3)


def test_many_effects_are_solved_without_the_inverse(monkeypatch: pytest.MonkeyPatch) -> None:
    random, w = np.random.default_rng(2), 12
    rows, cell_table = pairs(2, w), cell_table_of(2, w)
    y = random.normal(0, 0.3, 24)[rows.target] + random.normal(0, 0.2, 24)[rows.corunner]
    noisy = with_log(rows, y + random.normal(0, 0.02, len(y)))
    exact = fit_effects(noisy, cell_table)[0].value(rows, cell_table)
    monkeypatch.setattr("jostle._base.mixed_effects.DENSE", 5)
    assert fit_effects(noisy, cell_table)[0].value(rows, cell_table) == pytest.approx(
        exact, abs=0.02
    )


NO = -40.0  # logarithm of the weight of a kernel that is left out


def test_the_process_answers_as_scikit_learn_does() -> None:
    random = np.random.default_rng(7)
    cell_table = cell_table_of(2, 3, seed=8)
    target, corunner = random.integers(0, 6, (2, 40))
    rows = SlowdownRows(target, corunner, np.arange(40), random.normal(size=40), np.ones(40))
    own, place, beside, width, other, noise = 0.5, 0.4, 0.3, 1.3, 0.7, 0.02
    weight = np.full(10, NO)
    weight[[3, 7, 8]] = np.log([place, own, beside])
    settings = Settings(weight, np.log([width, other]), np.log(noise))
    cells, none = Cells.of(rows), np.zeros((0, 2))
    kernel = Kernels(cells, cells, cell_table, none).weighed(settings)
    mine = fit_process(rows, none, np.ones(40), settings, kernel)
    # With scikit-learn: a sum of kernels that each see some of the columns, one of them names.
    d = cell_table.design
    x = np.concatenate([d[target], d[corunner], 100.0 * target[:, None]], axis=1)
    far = 1e6
    widths: list[Any] = [
        [width] * 3 + [far] * 4,
        [far] * 3 + [other] * 3 + [far],
        [far] * 6 + [1.0],
    ]
    learner = GaussianProcessRegressor(
        ConstantKernel(own) * RBF(widths[0])
        + ConstantKernel(beside) * RBF(widths[1])
        + ConstantKernel(place) * RBF(widths[2]),
        alpha=noise,
        optimizer=None,  # pyright: ignore[reportArgumentType]
    )
    mean = rows.log_slowdown.mean()
    learner.fit(x, rows.log_slowdown - mean)
    i, j = np.repeat(np.arange(6), 6), np.tile(np.arange(6), 6)
    asked = SlowdownRows(i, j, np.arange(36), np.zeros(36), np.ones(36))
    found = learner.predict(np.concatenate([d[i], d[j], 100.0 * i[:, None]], axis=1))
    expected = np.asarray(found, dtype=np.float64)  # without its standard deviation
    assert mine.value(asked, cell_table) == pytest.approx(mean + expected, abs=1e-5)


def test_several_corunners_are_their_mean_in_any_order_and_chunks_do_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random, cell_table = np.random.default_rng(9), cell_table_of(1, 6)
    row = np.repeat(np.arange(30), 2)
    rows = SlowdownRows(
        random.integers(0, 6, 30),
        random.integers(0, 6, 60),
        row,
        random.normal(size=30),
        np.ones(30),
    )
    settings = Settings(np.log(np.full(8, 0.3)), np.zeros(1), np.log(0.1))
    cells, place = Cells.of(rows), random.normal(size=(6, 2))
    kernel = Kernels(cells, cells, cell_table, place).of_names(settings)
    process = fit_process(rows, place, np.ones(30), settings, kernel)
    target, corunner = random.integers(0, 6, 9), random.integers(0, 6, (9, 2))
    where = np.repeat(np.arange(9), 2)

    def value(beside: np.ndarray) -> np.ndarray:
        asked = SlowdownRows(target, beside.ravel(), where, np.zeros(9), np.ones(9))
        return process.value(asked, cell_table)

    predicted = value(corunner)
    assert value(corunner[:, ::-1]) == pytest.approx(predicted)
    monkeypatch.setattr(_process, "CHUNK", 1)
    assert value(corunner) == pytest.approx(predicted)


def test_the_slopes_of_smooth_kernels_are_theirs() -> None:
    random, cell_table = np.random.default_rng(10), cell_table_of(1, 5)
    cells = Cells(random.integers(0, 5, 6), random.integers(0, 5, 9), np.arange(9) * 6 // 9)
    for place in (np.zeros((0, 2)), random.normal(size=(5, 2))):
        kernels = Kernels(cells, cells, cell_table, place)
        widths = np.array([0.2]) if len(place) else np.array([0.2, -0.1])
        for number, (_, by) in enumerate(kernels.smooth(Settings(widths, widths, widths[0]))):
            for width, slope in by.items():
                step = np.zeros(len(widths))
                step[width] = 1e-6
                up, down = (
                    kernels.smooth(Settings(widths, widths + sign * step, widths[0]))[number][0]
                    for sign in (1, -1)
                )
                assert slope == pytest.approx((up - down) / 2e-6, abs=1e-7)
