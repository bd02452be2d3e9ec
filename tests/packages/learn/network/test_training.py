"""Where training starts, and how it ends: against the normal equations, and as parts of a fit."""

from __future__ import annotations

import numpy as np
import pytest

from jostle import Factorization
from jostle.learn import Features
from jostle.learn.learners.network.training._network_members import schedule_of, shape_of
from jostle.learn.learners.network.training._shape import initial_parameters
from jostle.learn.learners.network.training._start import _kernel, _ridge, start_of
from jostle.learn.learners.network.training._train import (
    _last_layer,
    device_features,
    embeddings_of,
    train,
)
from jostle.learn.learners.network.training._training_rows import Rows, TrainingData

WORKLOADS, PLATFORMS = 30, 25


def features_of(count: int, seed: int) -> Features:
    """Two numbers that the law turns on, and one kind of four that it does not."""
    random = np.random.default_rng(seed)
    category = (np.arange(count) % 4)[:, None].astype(np.int32)
    return Features(random.standard_normal((count, 2)).astype(np.float32), category, (4,))


def world(noise: float = 0.0, law: float = 1.0, n: int = 2_000) -> tuple[Rows, np.ndarray]:
    """Rows alone of a law of rank 2, and the law's grid."""
    random = np.random.default_rng(3)
    left, right = (features_of(*side).numeric for side in ((WORKLOADS, 4), (PLATFORMS, 5)))
    grid = 0.4 * law * left @ right.T
    w, p = random.integers(0, WORKLOADS, n), random.integers(0, PLATFORMS, n)
    target = grid[w, p] + noise * random.standard_normal(n)
    return Rows(w, p, np.zeros((n, 0), np.int32), target), grid


def test_the_start_is_the_kernel_ridge_of_the_normal_equations() -> None:
    random = np.random.default_rng(0)
    kernels = _kernel(features_of(6, 1)), _kernel(features_of(5, 2))
    count = random.integers(0, 3, (6, 5)).astype(float)
    mean = random.standard_normal((6, 5)) * (count > 0)
    found = _ridge(kernels, count, mean, 0.3, 200)
    whole = np.kron(kernels[0], kernels[1])
    there = np.flatnonzero(count.ravel() > 0)
    noise = np.diag(0.3 / count.ravel()[there])
    weight = np.linalg.solve(whole[np.ix_(there, there)] + noise, mean.ravel()[there])
    np.testing.assert_allclose(found.ravel(), whole[:, there] @ weight, atol=1e-4)


def test_the_start_tells_cells_without_runs_and_nothing_of_noise() -> None:
    features = features_of(WORKLOADS, 4), features_of(PLATFORMS, 5)
    rows, grid = world(n=1_000)  # some three in four cells
    start = start_of(rows, *features, rank=16, seed=0)
    assert start is not None
    assert start.workload.shape == (WORKLOADS, 16)
    seen = np.zeros_like(grid, dtype=bool)
    seen[rows.workload, rows.platform] = True
    wrong = (start.workload @ start.platform.T - grid)[~seen]
    assert np.square(wrong).mean() < 0.3 * np.square(grid[~seen]).mean()
    assert start_of(world(noise=1.0, law=0.0)[0], *features, rank=16, seed=0) is None
    assert start_of(rows.take(np.arange(300)), *features, rank=16, seed=0) is None


def test_the_last_layer_alone_is_the_same_model() -> None:
    known = features_of(WORKLOADS, 4), features_of(PLATFORMS, 5)
    shape = shape_of(Factorization(rank=8, hidden=16), 2_000, WORKLOADS * PLATFORMS)
    parameters = initial_parameters(0, shape, *known)
    features = device_features(*known)
    before = embeddings_of(parameters, features, shape)
    after = embeddings_of(*_last_layer(parameters, features), shape)
    for name, value in before.items():
        np.testing.assert_allclose(after[name], value, atol=1e-5, err_msg=name)


def test_many_runs_start_in_closed_form_and_end_with_the_last_layer() -> None:
    method = Factorization()
    few, many = (schedule_of(method, n, shape_of(method, n, 57_000)) for n in (8_000, 61_000))
    assert (few.last_layer_steps, few.batch, few.offset_decay) == (0, 4096, 0.3)
    assert many.last_layer_steps * 3 == pytest.approx(many.steps * 2, abs=6)
    wide = schedule_of(method, 61_000, shape_of(method, 61_000, 10**9))
    assert wide.last_layer_steps == 0  # what the layers make of a million names would not fit
    told = schedule_of(
        Factorization(offset_decay=0.1, batch=512, steps=100), 61_000, shape_of(method, 61_000, 9)
    )
    assert (told.offset_decay, told.batch, told.steps + told.last_layer_steps) == (0.1, 512, 100)


def test_both_stages_learn_and_report_every_step() -> None:
    from dataclasses import replace

    known = features_of(WORKLOADS, 4), features_of(PLATFORMS, 5)
    rows, grid = world(noise=0.02)
    beside = replace(rows.take(np.arange(200)), corunner=np.ones((200, 1), np.int32))
    shape = shape_of(Factorization(rank=8, hidden=16), 2_000, WORKLOADS * PLATFORMS)
    schedule = replace(
        schedule_of(Factorization(), 61_000, shape), steps=120, last_layer_steps=80, batch=256
    )
    reported = []
    found = train(
        TrainingData(rows, beside, *known), shape, schedule, 0, lambda *step: reported.append(step)
    )
    assert [done for done, _, _ in reported] == [60, 120, 200]
    assert {total for _, total, _ in reported} == {200}
    e = embeddings_of(found.parameters, found.features, shape)
    answer = e["workload_main"] @ e["platform_main"].T
    answer += e["workload_bias"][:, None] + e["platform_bias"]
    assert np.abs(answer - grid).mean() < 0.25 * np.abs(grid).mean()
