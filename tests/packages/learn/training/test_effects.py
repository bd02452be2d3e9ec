"""Random effects: shrunken by what they are worth, and hardly moved by runs far off."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from jostle.learn import CellTable, SlowdownRows, fit_effects

WORKLOADS = 12
CELL_TABLE = CellTable(1, WORKLOADS)


def pairs(value: np.ndarray, n: int) -> SlowdownRows:
    """n runs of each workload beside each other one; value: (workloads, workloads, n) log slowdowns."""
    own, other, _ = np.meshgrid(
        *(np.arange(size) for size in (WORKLOADS, WORKLOADS, n)), indexing="ij"
    )
    rows = np.arange(own.size)
    return SlowdownRows(own.ravel(), other.ravel(), rows, value.ravel(), np.ones(own.size))


def test_a_run_far_off_counts_for_little_and_moves_hardly_anything() -> None:
    random = np.random.default_rng(0)
    effect = 0.2 * random.normal(size=(2, WORKLOADS))
    value = (effect[0][:, None] + effect[1][None])[:, :, None] + np.zeros((1, 1, 2))
    value = value + 0.02 * random.normal(size=value.shape)
    far = value.copy()
    far[3, 4] += 5.0
    rows, moved = pairs(value, 2), pairs(far, 2)
    calm = fit_effects(rows, CELL_TABLE)
    found = fit_effects(moved, CELL_TABLE)
    # Least squares would move the two names by a twelfth of 5 each.
    off = np.abs(found.value(rows, CELL_TABLE) - calm.value(rows, CELL_TABLE))
    assert off.max() < 0.1


def test_effects_of_noise_are_none_and_of_something_are_kept() -> None:
    random = np.random.default_rng(1)
    noise = 0.3 * random.normal(size=(WORKLOADS, WORKLOADS, 1))
    rows = pairs(noise, 1)
    found = fit_effects(rows, CELL_TABLE)
    by_name = noise.mean(axis=(1, 2)) - noise.mean()
    # Plain means differ by chance; without shrinkage answers would, as much.
    assert found.value(rows, CELL_TABLE).std() < 0.5 * by_name.std()
    own = np.linspace(-1, 1, WORKLOADS)[:, None, None]
    rows = pairs(own + 0.01 * noise, 1)
    found = fit_effects(rows, CELL_TABLE)
    assert found.value(rows, CELL_TABLE) == pytest.approx(rows.log_slowdown, abs=0.02)


def test_a_run_known_but_for_a_large_error_counts_for_less() -> None:
    random = np.random.default_rng(2)
    effect = 0.2 * random.normal(size=(2, WORKLOADS))
    truth = (effect[0][:, None] + effect[1][None])[:, :, None] + np.zeros((1, 1, 4))
    error = np.where(random.random(truth.shape) < 0.5, 0.3, 0.01)
    rows = pairs(truth + error * random.normal(size=truth.shape), 4)
    told = replace(rows, error=error.ravel())
    assert told.take(np.arange(len(told)) < 5).trust.tolist() == told.trust[:5].tolist()
    off = [
        fit_effects(each, CELL_TABLE).value(each, CELL_TABLE) - truth.ravel()
        for each in (rows, told)
    ]
    assert (off[1] ** 2).mean() < (off[0] ** 2).mean() / 2
