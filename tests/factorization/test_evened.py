"""Slopes evened out by covariances."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from jostle.factorization import Factorization
from jostle.factorization.training import _train as jax_side
from jostle.factorization.training._evened import evened, inverses_of
from jostle.factorization.training._members import schedule_of
from jostle.methods.names._features import Features


def test_a_slope_is_longest_where_little_goes_in_and_as_long_as_before() -> None:
    random = np.random.default_rng(0)
    sides = [
        Features(random.normal(size=(n, 3)).astype("f"), np.zeros((n, 0), int), ())
        for n in (40, 30)
    ]
    sides[0].numeric[:, 1] *= 30
    shape = jax_side.Shape("saturating", 8, 3, 2, 16, 4, True)
    parameters = jax_side.initial_parameters(0, shape, *sides)
    inverse = inverses_of(parameters, jax_side.device_features(*sides), 0.1)
    slopes = {
        side: {
            **tower,
            "layers": [{**layer, "w": jnp.ones_like(layer["w"])} for layer in tower["layers"]],
        }
        for side, tower in parameters.items()
    }
    first = np.asarray(evened(slopes, inverse)["workload"]["layers"][0]["w"])
    assert np.linalg.norm(first) == pytest.approx(np.sqrt(first.size), rel=1e-4)
    assert np.abs(first[1]).mean() < 0.2 * np.abs(first[0]).mean()
    assert [len(each) for each in inverse["workload"]] == [7, 16, 16]


def test_only_one_member_of_many_runs_is_trained_so() -> None:
    assert schedule_of(Factorization(), 60_000).ridge is not None
    assert schedule_of(Factorization(members=5), 60_000).ridge is None
    assert schedule_of(Factorization(), 5_000).ridge is None
    assert schedule_of(Factorization(steps=70), 60_000).steps == 70
