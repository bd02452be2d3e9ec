"""What stands beside the network: no slowdown without evidence of any, and no regret of a simple rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jostle import fit
from jostle.evaluate import AdditiveEffects, OwnPairs, SoloTime
from jostle.factorization import Factorization, FittedFactorization
from jostle.methods import learn
from jostle.runs import Colocations, Runs
from studies.slowdown.laws import MadeCampaign

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


def test_where_nobody_interferes_chance_is_taken_for_hardly_any_slowdown() -> None:
    model = fit(made("none"), Factorization(members=2, **QUICK), seed=0)
    seconds = model.predict(alone_and_beside(1, 3))
    assert np.abs(seconds / seconds[0] - 1).max() < 0.01


def test_where_nothing_shows_interference_every_slowdown_is_one() -> None:
    runs = MadeCampaign("none", workloads=10, platforms=2, repeats=2).runs(seed=2)
    model = fit(runs, Factorization(members=2, **QUICK), seed=0)
    seconds = model.predict(alone_and_beside(1, 3))
    assert (seconds == seconds[0]).all()
    assert any("no evidence of interference" in note for note in model.notes)


@pytest.mark.parametrize("law", ["worst_of", "additive"])
def test_two_corunners_after_pairs_are_as_close_as_by_simple_rules(law: str) -> None:
    known, asked = by_degree(made(law, corunners=2), 1)
    rivals = [SoloTime("times"), *(OwnPairs(rule) for rule in ("worst", "mean"))]
    least = min(error(learn(rival, known), asked) for rival in rivals)
    fitted = learn(Factorization(members=2, **QUICK), known, seed=0)
    assert error(fitted, asked) < 1.1 * least


def test_pairs_not_seen_are_as_close_as_by_additive_effects() -> None:
    runs = made("additive")
    beside = np.flatnonzero(runs.colocations.number_of_corunners == 1)
    held = np.random.default_rng(0).permutation(beside)[: len(beside) // 2]
    rest = runs.take(np.setdiff1d(np.arange(len(runs)), held))
    least = error(learn(AdditiveEffects(), rest), runs.take(held))
    fitted = learn(Factorization(members=2, **QUICK), rest, seed=0)
    assert error(fitted, runs.take(held)) < 1.1 * least


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


@pytest.mark.parametrize("seed", [0, 1])
def test_a_network_that_few_runs_mislead_is_weighed_on_sets_that_it_has_not_seen(seed: int) -> None:
    """Pairs of two kernels on two cores all take 1.3 times as long: one constant says it all."""
    random = np.random.default_rng(seed)
    alone = np.exp(random.normal(size=(10, 2)))
    rows = [(w, p, [], alone[w, p]) for w in range(10) for p in range(2) for _ in range(2)]
    for _ in range(150):
        w, p, beside = (int(random.integers(n)) for n in (10, 2, 10))
        rows.append((w, p, [f"w{beside}"], 1.3 * alone[w, p]))
    runs = Runs.from_columns(
        workload=[f"w{row[0]}" for row in rows],
        platform=[f"p{row[1]}" for row in rows],
        corunners=[row[2] for row in rows],
        runtime_seconds=np.array([row[3] for row in rows])
        * np.exp(0.04 * random.normal(size=len(rows))),
    )
    held = np.arange(len(rows)) >= len(rows) - 60
    known, test = runs.take(~held), runs.take(held)
    constant = error(learn(SoloTime("times"), known), test)
    fitted = learn(Factorization(**QUICK), known, seed=seed)
    assert fitted.rules is not None
    assert fitted.rules.network.max() < 0.2
    assert error(fitted, test) <= constant
