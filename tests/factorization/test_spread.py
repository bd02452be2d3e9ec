"""The spread model: finds what is noisy, for whom, and never speaks where it has no evidence."""

from __future__ import annotations

import numpy as np

from jostle.factorization._spread import KINDS, Spread, SpreadRows, fit_spread


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


NO_CATEGORY = (np.zeros((10, 0), int), np.zeros((6, 0), int))


def test_a_noisy_platform_is_found() -> None:
    rows, random = rows_of(4000, 0)
    error = random.normal(size=4000) * np.where(rows.platform == 2, 0.2, 0.05)
    scale = np.exp(fit_spread(rows, error, *NO_CATEGORY).log_sizes(rows))
    for kind in range(KINDS):
        ratio = np.median(scale[kind][rows.platform == 2]) / np.median(
            scale[kind][rows.platform != 2]
        )
        assert 3 < ratio < 5


def test_a_platform_that_rarely_glitches_is_seen_by_the_second_moment() -> None:
    rows, random = rows_of(6000, 1)
    glitch = (rows.platform == 4) & (random.random(6000) < 0.05)
    error = 0.03 * random.normal(size=6000) + 0.5 * glitch
    log_scale = fit_spread(rows, error, *NO_CATEGORY).log_sizes(rows)
    there, usual = rows.platform == 4, rows.platform != 4
    seen = [float(np.median(kind[there]) - np.median(kind[usual])) for kind in log_scale]
    assert seen[0] < 0.4
    assert seen[1] > 1.0


def test_a_noisy_corunner_and_a_category_share_their_effect() -> None:
    rows, random = rows_of(6000, 2)
    loud = np.zeros(6000, bool)
    loud[rows.row[rows.corunner == 7]] = True
    category = (np.arange(10) >= 5).astype(int)[:, None]
    size = 0.05 * np.where(loud, 3.0, 1.0) * np.where(rows.workload >= 5, 2.0, 1.0)
    error = random.normal(size=6000) * size
    spread = fit_spread(rows, error, category, np.zeros((6, 0), int))
    assert spread.corunner[0, 7] - np.median(spread.corunner[0]) > 0.7
    workloads = spread.workload[0] + spread.pair[0, spread.workload_class, 0]
    assert 0.4 < workloads[5:].mean() - workloads[:5].mean() < 1.0


def test_without_evidence_everything_is_the_same() -> None:
    rows, _ = rows_of(50, 3)
    assert (Spread.none(10, 6).log_scales(rows) == 0).all()
    one = SpreadRows(
        *(np.zeros(1, int) for _ in range(2)), *(np.zeros(0, int),) * 2, *(np.zeros(1),) * 2
    )
    spread = fit_spread(one, np.array([0.3]), *NO_CATEGORY)
    assert np.abs(spread.log_scales(rows)).max() < 0.5
