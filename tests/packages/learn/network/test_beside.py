"""Beside the network: no slowdown without evidence of any, times as measured alone, and larger sets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from jostle import fit
from jostle.data import Colocations, Runs
from jostle.learn import learn
from jostle.learn.learners.network import Factorization, FittedFactorization
from jostle.learn.learners.network.beside._measured_solo import MeasuredAlone
from tests.made_pairs import MadeCampaign

QUICK: dict[str, Any] = {"types": 2, "type_rank": 2, "rank": 8, "hidden": 16, "steps": 100}


def made(law: str, corunners: int = 1) -> Runs:
    return MadeCampaign(law, workloads=10, platforms=2, corunners=corunners, repeats=2).runs(seed=0)


def by_degree(runs: Runs, most: int) -> tuple[Runs, Runs]:
    """(with at most so many co-runners, with more)."""
    degree = runs.colocations.number_of_corunners
    return runs.take(degree <= most), runs.take(degree > most)


def alone_and_beside(*counts: int) -> Colocations:
    beside = [[f"w{k % 9 + 1:03d}" for k in range(count)] for count in (0, *counts)]
    n = len(beside)
    return Colocations.from_columns(workload=["w000"] * n, platform=["p1"] * n, corunners=beside)


def error(fitted: Any, runs: Runs) -> float:
    return float(np.abs(fitted.predict(runs.colocations) / runs.runtime_seconds - 1).mean())


@pytest.mark.parametrize("form", ["paper", "saturating"])
def test_solo_runs_alone_teach_no_slowdown(form: str) -> None:
    solo, _ = by_degree(made("multiplicative"), 0)
    model = learn(Factorization(form=form, **QUICK), solo, seed=0)
    seconds = model.predict(alone_and_beside(1, 2, 15))
    assert (seconds == seconds[0]).all()
    assert any("no run with co-runners" in note for note in model.notes)


@pytest.mark.parametrize("seed", [0, 2])
def test_where_nothing_shows_interference_every_slowdown_is_one(seed: int) -> None:
    runs = MadeCampaign("none", workloads=10, platforms=2, repeats=2).runs(seed=seed)
    model = fit(runs, Factorization(members=2, **QUICK), seed=0)
    seconds = model.predict(alone_and_beside(1, 3))
    assert (seconds == seconds[0]).all()
    assert any("no evidence of interference" in note for note in model.notes)


def test_larger_sets_than_known_cost_once_what_company_costs_whoever_it_is() -> None:
    """Beside anyone a workload takes 1.3 times as long; the network's own form would add that up."""
    random = np.random.default_rng(0)
    alone = np.exp(random.normal(size=(10, 2)))
    beside = [[random.integers(10)] for _ in range(300)]
    where = [(int(random.integers(10)), int(random.integers(2))) for _ in beside]
    where += [(w, p) for w in range(10) for p in range(2)] * 2
    beside += [[]] * 40
    seconds = [alone[at] * (1.3 if names else 1.0) for at, names in zip(where, beside, strict=True)]
    runs = Runs.from_columns(
        workload=[f"w{w}" for w, _ in where],
        platform=[f"p{p}" for _, p in where],
        corunners=[[f"w{k}" for k in names] for names in beside],
        runtime_seconds=np.array(seconds) * np.exp(0.01 * random.normal(size=len(where))),
    )
    fitted = learn(Factorization(members=2, **QUICK), runs, seed=0)
    asked = Colocations.from_columns(
        workload=["w1", "w2"], platform=["p0"] * 2, corunners=[["w3", "w4"], ["w3", "w4", "w5"]]
    )
    truth = 1.3 * alone[[1, 2], 0]
    assert fitted.predict(asked) == pytest.approx(truth, rel=0.1)
    assert (replace(fitted, more=None).predict(asked) > 1.05 * truth).all()


def test_what_a_network_misses_of_times_alone_is_taken_as_measured() -> None:
    solo, _ = by_degree(made("multiplicative"), 0)
    fitted = learn(Factorization(members=2, **QUICK), solo, seed=0)
    alone = replace(fitted, measured=MeasuredAlone.none())
    assert error(fitted, solo) < 0.5 * error(alone, solo)


@pytest.fixture(scope="module")
def saturating() -> FittedFactorization:
    return learn(Factorization(members=2, **QUICK), made("saturating", corunners=2), seed=0)


def test_saved_and_loaded_agree(saturating: FittedFactorization) -> None:
    again = FittedFactorization.from_arrays(*saturating.to_arrays())
    runs = made("saturating", corunners=2)
    for asked in (alone_and_beside(1, 2, 3, 5), runs.colocations):
        assert np.array_equal(again.predict(asked), saturating.predict(asked))


def test_an_explanation_multiplies_to_the_prediction(saturating: FittedFactorization) -> None:
    fitted = saturating
    for count in (0, 1, 2, 4):
        asked = alone_and_beside(count).take([1])
        found = fitted.explained(asked)
        factors = found.baseline_seconds * found.pair_factor * found.corun_factor
        factors *= np.prod([share.factor for share in found.corunners])
        assert factors * found.rules_factor == pytest.approx(fitted.predict(asked)[0], rel=1e-6)


def test_few_runs_that_are_all_slower_are_slowed_down_and_times_alone_are_as_measured() -> None:
    random = np.random.default_rng(1)
    alone, slow = np.array([0.3, 0.8, 0.9]), np.array([1.5, 1.3, 1.4])
    names = [f"w{i}" for i in (0, 1, 2)]
    rows = [(i, ()) for i in range(3) for _ in range(2)]
    rows += [(i, (j,)) for i in range(3) for j in range(3)]
    seconds = [
        alone[i] * (slow[i] if beside else 1.0) * np.exp(0.02 * random.normal())
        for i, beside in rows
    ]
    runs = Runs.from_columns(
        workload=[names[i] for i, _ in rows],
        platform=["p"] * len(rows),
        corunners=[[names[j] for j in beside] for _, beside in rows],
        runtime_seconds=[float(value) for value in seconds],
    )
    model = fit(runs, Factorization(**QUICK), seed=0)
    asked = Colocations.from_columns(
        workload=names * 2, platform=["p"] * 6, corunners=[[]] * 3 + [["w0"]] * 3
    )
    found = model.predict(asked)
    assert np.abs(found[:3] / alone - 1).max() < 0.1
    assert (found[3:] / found[:3] > 1.15).all()
