"""Never worse than a simple rule: small made campaigns whose laws differ in kind."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from jostle.data import Runs, split_rows
from jostle.learn import learn
from jostle.learn.learners.latent_factors import Slowdown
from jostle.operations import RULES, SimpleRule
from tests.limits import assert_closer, assert_not_farther, errors_of
from tests.made_pairs import MadeCampaign

# Few iterations, so that a fit takes a second.
QUICK: dict[str, Any] = {"rank": 2, "members": 1, "steps": 60}


@cache
def campaign(law: str) -> tuple[Runs, Runs]:
    """(runs alone and half of the sets, the other half)."""
    runs = MadeCampaign(law, workloads=10, platforms=2, noise=0.01).runs(seed=0)
    alone = np.flatnonzero(runs.colocations.number_of_corunners == 0)
    beside = np.flatnonzero(runs.colocations.number_of_corunners > 0)
    first, second = split_rows(runs.take(beside), [0.5, 0.5], 0, unit="together")
    return runs.take(np.concatenate([alone, beside[first]])), runs.take(beside[second])


@cache
def errors(method: Any, law: str) -> np.ndarray:
    """(n,) of the sets that were not learned."""
    train, test = campaign(law)
    return errors_of(learn(method, train).predict(test.colocations), test.runtime_seconds)


@pytest.mark.parametrize("law", ["capacity", "speed_ups", "pair_specific", "platform_constant"])
def test_the_stack_is_not_worse_than_simple_rules(law: str) -> None:
    rules = [SimpleRule(label) for label in RULES.values()]
    mine = errors(Slowdown(**QUICK), law)
    for rule in rules:
        assert_not_farther(mine, errors(rule, law))


def test_where_company_costs_nothing_answers_are_closer_to_none_than_runs() -> None:
    random = np.random.default_rng(0)
    pairs = [(i, j) for i in range(8) for j in range(8)]
    names = [f"w{i}" for i in range(8)]
    runs = Runs.from_columns(
        workload=[*names, *(names[i] for i, _ in pairs)],
        platform=["p"] * (8 + len(pairs)),
        corunners=[*([] for _ in names), *([names[j]] for _, j in pairs)],
        runtime_seconds=[*np.ones(8), *np.exp(random.normal(0, 0.03, len(pairs)))],
    )
    fitted = learn(Slowdown(**QUICK), runs)
    predicted = fitted.predict(runs.colocations)
    assert predicted[:8] == pytest.approx(1.0)
    assert np.abs(predicted - 1).mean() < np.abs(runs.runtime_seconds - 1).mean()


def test_runs_beside_others_alone_are_learned_from() -> None:
    """No workload ever ran alone: runtimes beside others are still answered, and no row is thrown away."""
    train, test = campaign("additive")
    beside = train.take(train.colocations.number_of_corunners > 0)
    fitted = learn(Slowdown(**QUICK), beside)
    constant = errors(SimpleRule("level"), "additive")
    assert_closer(errors_of(fitted.predict(test.colocations), test.runtime_seconds), constant)
    assert any("never ran alone" in note for note in fitted.notes)
    # A few that never ran alone, among others that did.
    names = np.array(train.colocations.workload_names)[train.colocations.workload]
    known = (train.colocations.number_of_corunners > 0) | ~np.isin(names, ["w000", "w001"])
    some = learn(Slowdown(**QUICK), train.take(known)).predict(test.colocations)
    assert_closer(errors_of(some, test.runtime_seconds), constant)
