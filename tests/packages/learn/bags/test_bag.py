"""Features, trees and their explanations, against scikit-learn and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import jostle
from jostle.cli import exit_code
from jostle.data import Colocations, Runs
from jostle.errors import NotEnoughRuns, UnknownName, UsageError
from jostle.learn import learn
from jostle.learn.learners.bags import Bag, FittedBag
from jostle.learn.learners.bags._regression_trees import Trees
from tests.packages.learn.bags.conftest import APPS, make_bags


@pytest.fixture(scope="module")
def fitted(bags: Runs) -> dict[str, FittedBag]:
    return {
        learner: learn(Bag(learner=learner, trees=20), bags)
        for learner in ("tree", "forest", "boosting")
    }


def one(workload: str, beside: list[str], platform: str = "gpu") -> Colocations:
    return Colocations.from_columns(workload=[workload], platform=[platform], corunners=[beside])


def test_trees_answer_as_scikit_learn_does() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(80, 4)).astype(np.float32)
    y, weight = random.normal(size=80), random.uniform(0.1, 1, 80)
    ask = random.normal(size=(50, 4)).astype(np.float32)
    tree: Any = DecisionTreeRegressor(random_state=0).fit(x, y, weight)
    path = tree.decision_path(ask).toarray()
    uses = np.zeros((50, 4), int)
    for node in np.flatnonzero(tree.tree_.feature >= 0):
        uses[:, tree.tree_.feature[node]] += path[:, node]
    assert np.array_equal(Trees.of_forest([tree.tree_]).uses(ask, 4), uses)
    forest: Any = RandomForestRegressor(7, random_state=0).fit(x, y, weight)
    trees = Trees.of_forest([one.tree_ for one in forest.estimators_])
    assert np.allclose(trees.value(ask), forest.predict(ask), rtol=1e-12, atol=1e-12)
    boosting: Any = HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=2, max_depth=3)
    trees = Trees.of_boosting(boosting.fit(x, y, weight))
    assert np.allclose(trees.value(ask), boosting.predict(ask), rtol=1e-12, atol=1e-12)
    assert np.array_equal(trees.value(ask[:1]), trees.value(ask)[:1])
    assert trees.value(ask[:0]).shape == (0,)


def test_features_of_a_bag_by_hand() -> None:
    runs = make_bags(most=2, cpu=True)
    fitted = learn(Bag(learner="tree", cpu_platform="cpu"), runs)
    row = dict(
        zip(fitted.feature_names, fitted.features(one("app0", ["app3", "app2"]))[0], strict=True)
    )
    table = runs.workload_features
    assert table is not None
    memory = np.array(table.column("mix_memory_ratio").to_pylist())
    assert row["mix_memory_ratio"] == memory[0]
    assert row["corunners_sum_mix_memory_ratio"] == pytest.approx(memory[2] + memory[3])
    assert row["corunners_max_mix_memory_ratio"] == max(memory[2], memory[3])
    assert row["number_of_corunners"] == 2
    assert row["corunners_sum_threads"] == 2 + 4
    assert row["kind=a"] == 1
    slow = 1 + 2 * memory[[0, 2, 3]]
    assert row["fairness"] == pytest.approx(slow.min() / slow.max())
    lone = {
        runs.colocations.row(i): s
        for i, s in enumerate(runs.runtime_seconds)
        if not runs.colocations.row(i)[2]
    }
    cpu = [lone[app, "cpu", ()] for app in APPS]
    scale = max(cpu) - min(cpu)
    assert row["cpu_time"] == pytest.approx(cpu[0] / scale)
    assert row["solo_time"] == pytest.approx(lone["app0", "gpu", ()] / scale)


def test_unknown_numbers_lie_under_the_known(bags: Runs) -> None:
    fitted = learn(Bag(learner="tree"), bags)
    at = fitted.feature_names.index("threads")
    values = [fitted.features(one(app, ["app1"]))[0, at] for app in APPS]
    assert values[0] < min(values[1:])
    found = fitted.explained(one("app0", ["app1"]))
    assert all(step.value is None for step in found.path if step.feature == "threads")


def test_the_path_leads_to_the_answer(bags: Runs, fitted: dict[str, FittedBag]) -> None:
    tree = fitted["tree"]
    asked = one("app1", ["app4", "app5"])
    found = tree.explained(asked)
    x = dict(zip(tree.feature_names, tree.features(asked)[0], strict=True))
    for step in found.path:
        assert step.value == pytest.approx(x[step.feature], rel=1e-6)
        assert step.is_below == (np.float32(x[step.feature]) <= step.threshold)
    assert sum(found.uses.values()) == len(found.path) > 0
    assert found.runtime_seconds == tree.predict(asked)[0]
    # CART without a limit learns runs that differ in their features by heart.
    learned = tree.predict(bags.colocations)
    assert np.allclose(learned, bags.runtime_seconds, rtol=1e-6)
    uses = fitted["forest"].path_uses(asked)
    named = dict(zip(fitted["forest"].feature_names, uses[0], strict=True))
    counted = fitted["forest"].explained(asked).uses
    assert counted == {name: n for name, n in named.items() if n}
    assert list(counted.values()) == sorted(counted.values(), reverse=True)


def test_alone_it_says_what_was_measured(bags: Runs, fitted: dict[str, FittedBag]) -> None:
    alone = bags.take(bags.colocations.number_of_corunners == 0)
    for model in fitted.values():
        assert np.allclose(model.predict(alone.colocations), alone.runtime_seconds)
    assert fitted["tree"].explained(one("app0", [])).path == ()


@pytest.mark.parametrize("target", ["extra", "slowdown", "runtime"])
def test_it_learns_from_bags(bags: Runs, target: str) -> None:
    c = bags.colocations
    test = (np.arange(len(bags)) % 4 == 0) & (c.number_of_corunners > 0)
    held = bags.take(test)
    fitted = learn(Bag(trees=40, learning_rate=0.2, target=target), bags.take(~test))
    error = np.abs(fitted.predict(held.colocations) / held.runtime_seconds - 1).mean()
    solo = {
        c.row(at)[0]: bags.runtime_seconds[at]
        for at in np.flatnonzero(c.number_of_corunners == 0).tolist()
    }
    own = np.array([solo[held.colocations.row(i)[0]] for i in range(len(held))])
    blind = np.abs(own / held.runtime_seconds - 1).mean()
    assert error < 0.35 * blind


def test_groups_leave_features_out(pairs: Runs) -> None:
    fitted = learn(Bag(learner="tree", groups=("mix",), cpu_platform="cpu"), pairs)
    assert set(fitted.feature_groups) == {"mix"}
    assert all("mix_" in name for name in fitted.feature_names)
    whole = learn(Bag(learner="tree", cpu_platform="cpu"), pairs)
    assert {"solo", "cpu", "fairness", "mix", "other"} <= set(whole.feature_groups)
    lost = learn(Bag(learner="tree"), pairs)
    assert any("cpu, fairness" in note for note in lost.notes)


def test_the_cpu_side_is_neither_answered_nor_calibrated_on() -> None:
    runs = make_bags(most=2, cpu=True, noise=0.02)
    model = jostle.fit(runs, Bag(trees=30, cpu_platform="cpu"), seed=0, calibrate_by="together")
    c = runs.colocations
    on_cpu = (c.platform == c.platform_names.index("cpu")) & (c.number_of_corunners > 0)
    assert np.isnan(model.predict(c.take(on_cpu))).all()
    assert np.isfinite(model.predict(c.take(~on_cpu))).all()
    bound = model.bound(c.take(~on_cpu), 0.8)
    assert (bound.seconds[bound.is_valid] < 3 * runs.runtime_seconds[~on_cpu][bound.is_valid]).all()
    assert bound.is_valid.any()
    # Every bag on the CPU keeps its fairness, whatever was held out.
    beside = runs.take(on_cpu)
    bags = {tuple(sorted((w, *b))) for w, _, b in map(beside.colocations.row, range(len(beside)))}
    trees = learn(Bag(learner="tree", cpu_platform="cpu"), runs).trees
    # Of copies alone, measured once, no fairness is known.
    assert trees is not None
    assert len(trees.described.fairness) == sum(len(set(bag)) > 1 for bag in bags)


def test_what_it_refuses(bags: Runs) -> None:
    for wrong in (
        {"learner": "net"},
        {"target": "speed"},
        {"groups": ("solo", "colour")},
        {"groups": ()},
        {"trees": 0},
        {"fewest": 0},
        {"learning_rate": 0.0},
    ):
        with pytest.raises(UsageError):
            Bag(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="tpu"):
        learn(Bag(cpu_platform="tpu"), bags)
    alone = bags.take(bags.colocations.number_of_corunners == 0)
    with pytest.raises(NotEnoughRuns):
        learn(Bag(), alone)
    fitted = learn(Bag(learner="tree"), bags)
    assert np.isfinite(fitted.predict(one("app0", ["app9"]))).all()
    assert fitted.evidence(one("app0", ["app9"])).corunner.tolist() == [0]
    with pytest.raises(UsageError, match="one co-location"):
        fitted.explained(bags.colocations)


def without_features() -> Runs:
    """Every pair of eight: each adds what it costs."""
    cost = dict(zip("abcdefgh", (0.1, 0.2, 0.4, 0.8, 1.0, 1.5, 2.0, 3.0), strict=True))
    rows = [
        (name, [other] if other else []) for name in cost for other in ("", *cost) if name != other
    ]
    return Runs.from_columns(
        workload=[name for name, _ in rows],
        platform=["gpu"] * len(rows),
        corunners=[others for _, others in rows],
        runtime_seconds=[2.0 + sum(cost[one] for one in others) for _, others in rows],
    )


def test_names_stand_for_workloads_without_features() -> None:
    runs = without_features()
    named = learn(Bag(learner="tree"), runs)
    assert any("names stand for them" in note for note in named.notes)
    beside = np.flatnonzero(runs.colocations.number_of_corunners > 0)
    asked = runs.colocations.take(beside[:1])
    names = [step.feature for step in named.explained(asked).path if "name=" in step.feature]
    assert {name.rpartition("=")[2] for name in names} <= set("abcdefgh")
    assert np.allclose(named.predict(runs.colocations), runs.runtime_seconds)


def test_larger_bags_are_not_answered_as_pairs() -> None:
    model = learn(Bag(trees=20, learning_rate=0.2, rules=False), without_features())
    asked = Colocations.from_columns(
        workload=["a"] * 3, platform=["gpu"] * 3, corunners=[["h"], ["h", "g"], ["f", "g", "h"]]
    )
    one, two, three = model.predict(asked)
    assert one < two < three
    assert three == pytest.approx(2.0 + 6.5, rel=0.1)


def test_fit_and_explain_as_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, dataset = str(tmp_path / "model"), tmp_path / "dataset"
    jostle.Dataset(dataset).write(make_bags(most=1, noise=0.02))
    assert exit_code(["fit", "--method=bag", str(dataset), "-o", model, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"]["calibration"] > 0
    asked = ["predict", model, "--why", "-w", "app1", "-b", "app2", "-c", "0.5"]
    assert exit_code([*asked, "--dataset", str(dataset), "--json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["why"]["corunners"][0]["name"] == "app2"
    assert item["method"]["path"]
    assert item["why"]["evidence"]["same_set"] == 2
    assert exit_code([*asked, "--full"]) == 0
    assert "trees asked" in capsys.readouterr().out
