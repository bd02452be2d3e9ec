"""The spread model: finds what is noisy, for whom, and never speaks where it has no evidence."""

from __future__ import annotations

import numpy as np
import pytest

from jostle.learn.learners.network._spread import LEVELS, Spread, fit_spread
from jostle.learn.learners.network._spread_effects import Keys, SpreadRows, backfitted, columns_of

NO_CATEGORY = (np.zeros((10, 0), int), np.zeros((6, 0), int))


def rows_of(n: int, seed: int) -> tuple[SpreadRows, np.random.Generator]:
    random = np.random.default_rng(seed)
    row = np.flatnonzero(random.random(n) < 0.5)
    return SpreadRows(
        workload=random.integers(0, 10, n),
        platform=random.integers(0, 6, n),
        corunner=random.integers(0, 10, len(row)),
        row=row,
        log_runtime=random.normal(size=n),
        log_slowdown=np.abs(random.normal(size=n)),
    ), random


Errors = tuple[SpreadRows, np.ndarray]


def halves(rows: SpreadRows, error: np.ndarray, held_out: int) -> tuple[Errors, Errors]:
    """((held out, their errors), (trained on, theirs)), the first `held_out` rows being held out."""
    first = np.arange(len(rows)) < held_out
    return (rows.take(first), error[first]), (rows.take(~first), error[~first])


def difference(values: np.ndarray, there: np.ndarray) -> float:
    return float(np.median(values[there]) - np.median(values[~there]))


def test_a_noisy_platform_is_found() -> None:
    rows, random = rows_of(8000, 0)
    error = random.normal(size=8000) * np.where(rows.platform == 2, 0.2, 0.05)
    for log_size in fit_spread(*halves(rows, error, 4000), *NO_CATEGORY).log_sizes(rows):
        assert 3 < np.exp(difference(log_size, rows.platform == 2)) < 5


def test_what_the_model_saw_and_could_not_learn_tells_where_few_held_out_errors_do_not() -> None:
    """300 held-out errors cannot tell 10 workloads on 6 platforms apart; with 20 000 of training they can."""
    rows, random = rows_of(20_300, 5)
    category = np.arange(6)[:, None]
    noisy = (rows.workload + rows.platform) % 3 == 0
    error = random.normal(size=len(rows)) * np.where(noisy, 0.3, 0.03)
    held_out, training = halves(rows, error, 300)
    nothing = (training[0].take(np.zeros(20_000, bool)), training[1][:0])
    with_training = fit_spread(held_out, training, np.zeros((10, 0), int), category).log_sizes(
        training[0]
    )[0]
    without = fit_spread(held_out, nothing, np.zeros((10, 0), int), category).log_sizes(
        training[0]
    )[0]
    at = noisy[300:]
    assert difference(with_training, at) > 1.2  # of log 10 = 2.3
    assert difference(with_training, at) > 1.5 * difference(without, at)


def test_a_platform_that_rarely_glitches_gets_wider_bounds_at_high_confidence_only() -> None:
    rows, random = rows_of(24_000, 1)
    glitch = (rows.platform == 4) & (random.random(24_000) < 0.09)
    error = 0.03 * random.normal(size=24_000) + 0.5 * glitch
    spread = fit_spread(*halves(rows, error, 12_000), *NO_CATEGORY)
    wider = [difference(scale, rows.platform == 4) for scale in spread.log_scales(rows)]
    assert LEVELS[0] == 0.9
    assert wider[0] < 0.5
    assert wider[-1] > 1.0


def test_a_noisy_corunner_and_a_category_share_their_effect() -> None:
    rows, random = rows_of(6000, 2)
    loud = np.zeros(6000, bool)
    loud[rows.row[rows.corunner == 7]] = True
    category = (np.arange(10) >= 5).astype(int)[:, None]
    size = 0.05 * np.where(loud, 3.0, 1.0) * np.where(rows.workload >= 5, 2.0, 1.0)
    error = random.normal(size=6000) * size
    keys = Keys.of(rows, category, np.zeros((6, 0), int), 6000)
    usual, _ = backfitted(keys, rows, error, category, np.zeros((6, 0), int))
    assert usual.corunner[0, 7] - np.median(usual.corunner[0]) > 0.7
    assert 0.4 < usual.workload[0, 5:].mean() - usual.workload[0, :5].mean() < 1.0
    spread = fit_spread(*halves(rows, error, 3000), category, np.zeros((6, 0), int))
    beside = rows.degree > 0
    assert difference(spread.log_sizes(rows)[0, beside], loud[beside]) > 0.7


def test_columns_are_shrunken_means_by_name_and_category() -> None:
    rows, random = rows_of(500, 7)
    error = random.normal(size=500)
    category = (np.arange(6) % 3)[:, None]
    keys = Keys.of(rows, np.zeros((10, 0), int), category, 500)
    columns = columns_of(keys, rows, error, (10, 6))
    size = np.log(np.minimum(np.abs(error) + 0.003, 1.0))
    alone = rows.degree == 0
    size[alone] -= size[alone].mean()
    size[~alone] -= size[~alone].mean()
    own = rows.workload == 3
    assert columns[0].workload[0, 3] == pytest.approx(size[own].sum() / (own.sum() + 5))
    here = alone & own & (category[rows.platform, 0] == 2)
    table = columns[-2].workload_table[0, 3, 2]
    assert table == pytest.approx(size[here].sum() / (here.sum() + 5))


def test_categories_of_too_many_levels_have_no_table() -> None:
    rows, _ = rows_of(50, 3)
    many = np.arange(6)[:, None]
    assert Keys.of(rows, np.zeros((10, 0), int), many, 14).platform_level.shape == (6, 0)
    assert Keys.of(rows, np.zeros((10, 0), int), many, 15).platform_level.shape == (6, 1)


def test_without_evidence_everything_is_the_same() -> None:
    rows, _ = rows_of(50, 3)
    assert (Spread.none(10, 6).log_scales(rows) == 0).all()
    one = SpreadRows(
        *(np.zeros(1, int) for _ in range(2)), *(np.zeros(0, int),) * 2, *(np.zeros(1),) * 2
    )
    spread = fit_spread((one, np.array([0.3])), (one, np.array([0.1])), *NO_CATEGORY)
    assert (spread.log_scales(rows) == 0).all()
