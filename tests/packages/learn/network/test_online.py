"""New runs and new names learned without training: slopes against finite differences, one step against the
closed form, names back where full knowledge of them puts them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle.data import Colocations, Runs
from jostle.learn import Features, KeptRuns, learn
from jostle.learn.learners.network import Factorization, FittedFactorization
from jostle.learn.learners.network._codes import Codes
from jostle.learn.learners.network._embeddings import Embeddings, Form
from jostle.learn.learners.network.online._new_embeddings import with_names
from jostle.learn.learners.network.online._prior import prior_of
from jostle.learn.learners.network.online._slopes import (
    PLATFORM,
    WORKLOAD,
    rows_of_names,
    slopes_of,
    with_rows_of_names,
)
from jostle.learn.learners.network.online._steps import step, weights_of
from tests.packages.models.levels import campaign

SMALL = Factorization(steps=100, hidden=16, rank=4)


def embeddings(form: str, seed: int = 0) -> Embeddings:
    """Of five workloads and three platforms, two members' types."""
    random = np.random.default_rng(seed)
    types, k = 4, 3

    def some(*shape: int) -> np.ndarray:
        return random.normal(size=shape)

    slots = 2 if form == "paper" else types
    return Embeddings(
        some(5),
        some(3),
        some(5, 6),
        some(3, 6),
        some(3, 6),
        some(3),
        some(5, slots, k),
        some(5, slots, k),
        some(3, types, k),
        some(3, types, k),
        np.array([0, 0, 1, 1]) if form == "paper" else np.arange(types),
        np.full(types, 0.5),
        np.zeros((0, 0, 0)),
        np.zeros((0, 0)),
        np.zeros((0, 0, 0, 0)),
        np.zeros(5, np.int64),
        np.zeros(3, np.int64),
    )


CODES = Codes(
    np.array([0, 1, 2, 0, 4]),
    np.array([0, 2, 1, 1, 2]),
    np.array([1, 1, 3, 0, 2]),
    np.array([1, 1, 3, 3, 4]),
)


@pytest.mark.parametrize("form", ["paper", "product", "saturating"])
@pytest.mark.parametrize("kind", [WORKLOAD, PLATFORM])
def test_slopes_are_those_of_finite_differences(form: str, kind: str) -> None:
    e = embeddings(form)
    rows = rows_of_names(e, kind)
    basis = np.random.default_rng(1).normal(size=(3, rows.shape[1]))
    found = slopes_of(e, Form(form), CODES, kind, basis)
    for name in range(len(rows)):
        for direction in range(3):

            def at(
                length: float, name: int = name, toward: np.ndarray = basis[direction]
            ) -> np.ndarray:
                moved = rows.copy()
                moved[name] += length * toward
                other = with_rows_of_names(e, kind, moved)
                return slopes_of(other, Form(form), CODES, kind, basis).log_runtime

            by_difference = (at(1e-6) - at(-1e-6)) / 2e-6
            by_slopes = np.zeros(len(CODES))
            mine = found.name == name
            np.add.at(by_slopes, found.row[mine], found.slopes[mine, direction])
            np.testing.assert_allclose(by_slopes, by_difference, atol=2e-7, rtol=1e-6)


def test_a_step_is_the_posterior_mean_of_a_linear_model() -> None:
    random = np.random.default_rng(0)
    j, y = random.normal(size=(30, 4)), random.normal(size=30)
    weight, name = random.uniform(1, 2, 30), np.repeat([0, 2], 15)
    found = step(np.zeros((3, 4)), j, y, weight, name, np.array([0.0, 5.0, 2.0]), np.eye(4) * 0.5)
    for which, before in ((0, np.eye(4)), (2, 2 * np.eye(4))):
        a, b, w = j[name == which], y[name == which], weight[name == which]
        exact = np.linalg.solve(before + a.T @ np.diag(w) @ a, a.T @ (w * b))
        np.testing.assert_allclose(found[which], exact, rtol=1e-9)
    assert not found[1].any()


def test_one_wild_run_weighs_next_to_nothing() -> None:
    weight = weights_of(np.array([0.0, 0.1, 100.0, np.nan]), np.full(4, 0.1))
    assert weight[2] < 1e-4 * weight[0]
    assert weight[3] == 0


def test_a_prior_leaves_each_known_name_out_of_what_is_expected_of_it() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3)).astype(np.float32)
    rows = np.sin(x.astype(float)) @ random.normal(size=(3, 5)) + 0.01 * random.normal(size=(40, 5))
    features = Features(x, np.zeros((40, 0), np.int32), ())
    known = np.ones(40, bool)
    known[7] = False
    found = prior_of(rows, features, known, np.eye(5), 0)
    spread = ((rows - rows[known].mean(0)) ** 2).sum()
    assert ((found.mean - rows) ** 2).sum() < 0.3 * spread
    moved = rows.copy()
    moved[3] += 100.0
    again = prior_of(moved, features, known, np.eye(5), 0)
    assert np.abs(again.mean[3] - found.mean[3]).max() < 10.0  # its own row does not tell of it


def test_without_features_a_prior_is_the_mean_of_the_others() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 3))
    found = prior_of(rows, Features.none(6), np.arange(6) < 5, np.eye(3), 0)
    np.testing.assert_allclose(found.mean[5], rows[:5].mean(0))
    np.testing.assert_allclose(found.mean[0], rows[1:5].mean(0))


@pytest.fixture(scope="module")
def runs() -> Runs:
    return campaign(24, 12)


@pytest.fixture(scope="module")
def fitted(runs: Runs) -> FittedFactorization:
    """Of all names but the last two workloads and the last platform."""
    old, _ = without(runs)
    held = np.arange(len(old)) % 8 == 0
    return learn(SMALL, old.take(~held), validation=old.take(held))


def without(runs: Runs) -> tuple[Runs, Runs]:
    """(runs of the other names, runs with them)."""
    c = runs.colocations
    new = (c.workload >= len(c.workload_names) - 2) | (c.platform == len(c.platform_names) - 1)
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    new[row[c.corunner >= len(c.workload_names) - 2]] = True
    old = runs.take(~new)
    return Runs.from_columns(
        workload=old.table.column("workload"),
        platform=old.table.column("platform"),
        corunners=old.table.column("corunners"),
        runtime_seconds=old.runtime_seconds,
    ), runs.take(new)


def kept(runs: Runs) -> KeptRuns:
    return KeptRuns.of(runs, "window")


def error(fitted: Any, runs: Runs) -> float:
    return float(np.abs(np.log(fitted.predict(runs.colocations) / runs.runtime_seconds)).mean())


def test_more_names_change_no_answer_about_the_others(
    fitted: FittedFactorization, runs: Runs
) -> None:
    old, _ = without(runs)
    wider = with_names(fitted, ("a new one", "zz"), ("other",))
    np.testing.assert_allclose(
        wider.predict(old.colocations), fitted.predict(old.colocations), rtol=1e-6
    )
    assert wider.workload_names == tuple(sorted(wider.workload_names))
    w, p = fitted.workload_names[0], fitted.platform_names[0]
    many = [[*fitted.workload_names[1:8]], ["zz", *fitted.workload_names[1:7]]]
    larger = Colocations.from_columns(workload=[w, w], platform=[p, p], corunners=many)
    assert wider.predict(larger)[0] == pytest.approx(fitted.predict(larger.take([0]))[0])
    assert np.isfinite(wider.predict(larger)).all()
    asked = Colocations.from_columns(workload=["zz"], platform=[fitted.platform_names[0]])
    assert np.isnan(wider.predict(asked)).all()


def test_new_names_are_learned_from_a_few_of_their_runs(
    fitted: FittedFactorization, runs: Runs
) -> None:
    old, new = without(runs)
    random = np.random.default_rng(0)
    place = random.permutation(len(new))
    few, asked = new.take(np.sort(place[:60])), new.take(np.sort(place[60:]))
    learned = Factorization.learned(fitted, kept(few), kept(old))
    more = Factorization.learned(fitted, kept(new.take(np.sort(place[:5]))), kept(old))
    known = asked.take(
        asked.colocations.known_in(more.workload_names, more.platform_names)
        & np.isfinite(more.predict(asked.colocations) if len(more.workload_names) == 24 else 0.0)
    )
    assert error(learned, asked) < 0.12
    assert error(learned, known) <= error(more, known)
    assert np.isfinite(learned.predict(asked.colocations)).all()
    found = learned.evidence(asked.colocations)
    assert found.workload.min() > 0
    again = Factorization.learned(learned, kept(few.take(np.arange(0))), kept(old))
    np.testing.assert_array_equal(
        again.predict(asked.colocations), learned.predict(asked.colocations)
    )


def test_runs_of_known_names_bring_the_model_closer_to_them(
    fitted: FittedFactorization, runs: Runs
) -> None:
    old, _ = without(runs)
    slower = replace(kept(old), runtime_seconds=1.3 * old.runtime_seconds)
    learned = Factorization.learned(fitted, slower, kept(old))
    before = np.median(np.log(slower.runtime_seconds / fitted.predict(old.colocations)))
    after = np.median(np.log(slower.runtime_seconds / learned.predict(old.colocations)))
    assert abs(after) < 0.7 * abs(before)


def test_a_model_that_learned_more_is_read_as_it_was_saved(
    fitted: FittedFactorization, runs: Runs
) -> None:
    old, new = without(runs)
    learned = Factorization.learned(fitted, kept(new), kept(old))
    again = Factorization.restore(*learned.to_arrays())
    np.testing.assert_array_equal(
        again.predict(runs.colocations), learned.predict(runs.colocations)
    )
    joined = again.explained(new.colocations.take([0]))
    assert joined.runtime_seconds == learned.predict(new.colocations.take([0]))[0]


def test_known_names_taken_as_new_ones_are_asked_about_runs_they_did_not_learn(
    fitted: FittedFactorization, runs: Runs
) -> None:
    old, _ = without(runs)
    found = Factorization.folded_again(fitted, kept(old))
    errors = [
        float(np.abs(np.log(model.predict(asked.colocations) / asked.runtime_seconds)).mean())
        for model, asked in found
    ]
    evidence = [int(model.evidence(asked.colocations).workload.min()) for model, asked in found]
    assert len(found) == 8
    assert evidence == [0, 1, 3, 6, *evidence[4:]]
    assert errors[3] < errors[1] < errors[0]
