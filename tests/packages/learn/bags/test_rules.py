"""Simple rules beside the trees: never worse than they are, and weighed by the question."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from jostle.data import Colocations, Runs, all_names, solo_core_shares
from jostle.learn import Fitted, learn, weights_in_words
from jostle.learn.learners.bags import Bag, FittedBag
from tests.packages.learn.bags.conftest import make_bags

# Rules are asked here, not trees: few of these, each of which counts for more.
QUICK = Bag(trees=20, learning_rate=0.2)
NAMES_HERE = tuple(f"p{i:02}" for i in range(14))


def made(law: str, seed: int = 0, noise: float = 0.03, repeats: int = 1) -> Runs:
    """Fourteen programs with six features that say nothing, alone thrice and in bags of two and three.

    turns: each member takes its turn; none: nobody disturbs anybody; effects: what moves memory slows
    others.
    """
    random = np.random.default_rng(seed)
    solo = np.exp(random.normal(size=len(NAMES_HERE)))
    heavy = random.uniform(0.0, 0.6, len(NAMES_HERE))
    bags = list(combinations_with_replacement(range(len(NAMES_HERE)), 2))
    bags += [tuple(random.choice(len(NAMES_HERE), 3, replace=False).tolist()) for _ in range(40)]
    rows: list[tuple[int, tuple[int, ...], float]] = []
    rows += [(own, (), solo[own]) for own in range(len(NAMES_HERE)) for _ in range(3)]
    for bag in bags * repeats:
        for at, own in enumerate(bag):
            beside = tuple(other for place, other in enumerate(bag) if place != at)
            slow = {
                "turns": 1.0 + len(beside),
                "none": 1.0,
                "effects": 1.0 + heavy[list(beside)].sum(),
            }[law]
            rows.append((own, beside, solo[own] * slow))
    seconds = np.array([row[2] for row in rows]) * np.exp(noise * random.normal(size=len(rows)))
    features = {f"f{k}": random.normal(size=len(NAMES_HERE)).tolist() for k in range(6)}
    return Runs.from_columns(
        workload=[NAMES_HERE[row[0]] for row in rows],
        platform=["host"] * len(rows),
        corunners=[[NAMES_HERE[other] for other in row[1]] for row in rows],
        runtime_seconds=seconds,
        workload_features={"workload": list(NAMES_HERE), **features},
    )


def without(runs: Runs, names: set[str]) -> tuple[Runs, Runs]:
    """(runs in which none of them is beside others, those in which one is)."""
    c = runs.colocations
    held = np.array([bool(b) and bool(names & {w, *b}) for w, _, b in map(c.row, range(len(runs)))])
    return runs.take(~held), runs.take(held)


def said(fitted: FittedBag, runs: Runs) -> dict[str, float]:
    """What the first answer about runs beside others is made of."""
    at = np.flatnonzero(runs.colocations.number_of_corunners > 0)[:1]
    return weights_in_words(fitted.shares(runs.colocations.take(at))[0])


def by_names(weights: dict[str, float]) -> float:
    return sum(weight for words, weight in weights.items() if "effects" in words)


def error(fitted: Fitted, runs: Runs) -> float:
    return float(np.abs(fitted.predict(runs.colocations) / runs.runtime_seconds - 1).mean())


def test_where_members_take_turns_new_programs_are_answered_by_that_rule() -> None:
    known, held = without(made("turns"), set(NAMES_HERE[:3]))
    fitted, trees = learn(QUICK, known), learn(replace(QUICK, rules=False), known)
    single = known.take(known.colocations.number_of_corunners == 0)
    names = single.colocations.to_columns()["workload"]
    alone = dict(zip(names, single.runtime_seconds.tolist(), strict=True))
    columns = held.colocations.to_columns()
    members = np.array([1 + len(beside) for beside in columns["corunners"]])
    by_rule = np.array([alone[name] for name in columns["workload"]]) * members
    rule = float(np.abs(by_rule / held.runtime_seconds - 1).mean())
    assert error(fitted, held) <= 1.05 * rule
    assert error(fitted, held) < error(trees, held)


def test_where_nothing_disturbs_the_time_alone_stands() -> None:
    known, held = without(made("none"), set(NAMES_HERE[:3]))
    fitted = learn(QUICK, known)
    c = held.colocations
    alone = Colocations.from_columns(
        workload=c.to_columns()["workload"], platform=["host"] * len(c), corunners=[[]] * len(c)
    )
    off = np.abs(fitted.predict(alone) / held.runtime_seconds - 1).mean()  # noise
    assert error(fitted, held) < 1.05 * off
    assert fitted.predict(c) == pytest.approx(fitted.predict(alone), rel=0.05)


def test_weights_know_programs_that_ran_beside_others_from_new_ones() -> None:
    known, held = without(made("effects"), {NAMES_HERE[0]})
    fitted = learn(QUICK, known)
    new, old = said(fitted, held), said(fitted, known)
    assert sum(new.values()) == pytest.approx(1.0)
    assert by_names(old) > 0.5
    assert new != old
    first = held.colocations.take(np.zeros(1, np.int64))
    assert fitted.explained(first).weights == new
    assert "the answer is made of" in str(fitted.explain(first))


def test_a_bag_that_was_measured_is_answered_by_its_own_runs() -> None:
    runs = made("none", noise=0.01, repeats=3)
    seconds = runs.runtime_seconds.copy()
    c = runs.colocations
    rows = [c.row(at) for at in range(len(runs))]
    odd = np.array([row == (NAMES_HERE[2], "host", (NAMES_HERE[5],)) for row in rows])
    assert odd.sum() == 3
    random = np.random.default_rng(3)
    for at, (own, _, beside) in enumerate(rows):  # every set has a slowdown of its own
        if beside:
            code = sum(ord(letter) for letter in "".join(sorted((own, *beside))))
            seconds[at] *= np.exp(np.random.default_rng(code).normal() * 0.3)
    seconds[odd] *= 1.5
    noisy = seconds * np.exp(0.01 * random.normal(size=len(seconds)))
    columns = c.to_columns()
    names = {name: columns[name] for name in ("workload", "platform", "corunners")}
    learned = learn(QUICK, Runs.from_columns(**names, runtime_seconds=noisy))
    asked = c.take(np.flatnonzero(odd)[:1])
    assert learned.predict(asked)[0] == pytest.approx(seconds[odd].mean(), rel=0.08)


def test_the_papers_tree_stands_alone() -> None:
    runs = make_bags()
    for alone in (Bag(learner="tree"), Bag(learner="forest", trees=5), Bag(rules=False)):
        assert set(learn(alone, runs).learners) == {"trees"}
    assert "rules" in learn(Bag(learner="tree", rules=True), runs).learners


@pytest.mark.parametrize("bags", [1, 5])
def test_few_bags_are_enough_to_answer(bags: int) -> None:
    runs = make_bags(most=1)
    beside = np.flatnonzero(runs.colocations.number_of_corunners > 0)
    kept = np.setdiff1d(np.arange(len(runs)), beside[bags:])
    fitted = learn(QUICK, runs.take(kept))
    asked = runs.colocations
    assert np.isfinite(fitted.predict(asked)).all()
    assert (fitted.predict(asked) > 0).all()


def on_one_core(seed: int, told: bool = True) -> Runs:
    """Sixteen programs that are on a core for different parts of their time alone, in pairs, threes and
    copies on one core, and on a platform where each has a core and nobody waits. told: whether runs
    alone tell their CPU time."""
    random = np.random.default_rng(seed)
    names = [f"p{i:02}" for i in range(16)]
    on = dict(zip(names, random.uniform(0.1, 1.0, 16).tolist(), strict=True))
    solo = dict(zip(names, np.exp(random.normal(size=16)).tolist(), strict=True))
    bags = list(combinations_with_replacement(names, 2))
    bags += [tuple(random.choice(names, 3).tolist()) for _ in range(40)]
    rows = [(p, own, (), 1.0) for p in ("one", "own") for own in names for _ in range(2)]
    for bag in bags:
        for at, own in enumerate(bag):
            beside = tuple(other for place, other in enumerate(bag) if place != at)
            wanted = on[own] * sum(on[other] for other in beside)
            rows += [("one", own, beside, 1 + wanted), ("own", own, beside, 1.0)]
    noise = np.exp(0.02 * random.normal(size=len(rows)))
    seconds = [solo[own] * slow * n for (_, own, _, slow), n in zip(rows, noise, strict=True)]
    cpu = [on[own] * s for (_, own, _, _), s in zip(rows, seconds, strict=True)]
    return Runs.from_columns(
        workload=[row[1] for row in rows],
        platform=[row[0] for row in rows],
        corunners=[row[2] for row in rows],
        runtime_seconds=seconds,
        **({"cpu_seconds": cpu, "window_seconds": seconds} if told else {}),
    )


def test_a_program_that_never_ran_beside_others_is_known_by_its_share_of_the_core() -> None:
    """The error of its noise alone where runs tell their CPU time, and more than twice it without."""
    found = {}
    for told in (True, False):
        runs = on_one_core(1, told)
        c = runs.colocations
        strange = {"p03", "p08", "p12"}
        rows = [c.row(row) for row in range(len(runs))]
        held = np.array([bool(r[2]) and bool(strange & {r[0], *r[2]}) for r in rows])
        fitted = learn(QUICK, runs.take(~held))
        found[told] = error(fitted, runs.take(held))
        turns = [word for word in said(fitted, runs.take(held)) if "turns" in word]
        assert bool(turns) is told
        again = Bag.restore(*fitted.to_arrays())
        assert again.predict(c).tolist() == fitted.predict(c).tolist()
    assert found[True] < min(0.03, 0.5 * found[False])


def test_half_known_shares_are_no_obstacle() -> None:
    """A program of which no run tells its CPU time, and rows of odd numbers, are answered all the same."""
    runs = on_one_core(3)
    cpu = runs.table.column("cpu_seconds").to_pylist()
    workload = runs.table.column("workload").to_pylist()
    odd = {"p01": None, "p02": float("nan"), "p04": -1.0, "p05": float("inf")}
    cpu = [odd.get(name, value) for name, value in zip(workload, cpu, strict=True)]
    at = runs.table.column_names.index("cpu_seconds")
    table = runs.table.set_column(at, "cpu_seconds", [cpu])
    runs = Runs(table, runs.workload_features, runs.platform_features)
    fitted = learn(QUICK, runs)
    named = all_names(runs)
    known = np.asarray(np.isfinite(solo_core_shares(runs, *named)).any(0))
    assert {
        name for name, is_known in zip(named[0], known.tolist(), strict=True) if not is_known
    } == set(odd)
    assert np.isfinite(fitted.predict(runs.colocations)).all()
    assert error(fitted, runs.take(runs.colocations.number_of_corunners > 0)) < 0.05


def test_added_seconds_are_no_slowdown_of_hundreds_to_a_job_of_milliseconds() -> None:
    """Everyone loses .1 s; of a job a hundred times shorter than any known nobody can tell: it may be
    answered nine times the largest slowdown of the others."""
    random = np.random.default_rng(0)
    names = [f"p{i}" for i in range(10)]
    solo = {name: 0.05 * 1.3**i for i, name in enumerate(names)} | {"short": 0.0005}
    rows = [(name, ()) for name in solo for _ in range(2)]
    rows += [(a, (b,)) for a in names for b in names]
    seconds = [solo[a] + 0.1 * len(b) for a, b in rows]
    runs = Runs.from_columns(
        workload=[a for a, _ in rows],
        platform=["host"] * len(rows),
        corunners=[b for _, b in rows],
        runtime_seconds=np.array(seconds) * np.exp(0.02 * random.normal(size=len(rows))),
    )
    fitted = learn(replace(QUICK, target="slowdown"), runs)
    asked = [["short", *names], ["host"] * 11, [("p3",)] * 11]
    asked = Colocations.from_columns(workload=asked[0], platform=asked[1], corunners=asked[2])
    short, *others = fitted.predict(asked) / np.array(
        [solo[name] for name in asked.to_columns()["workload"]]
    )
    assert 1 < short < 9 * max(others)
