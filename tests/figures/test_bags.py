"""`python -m studies bag` on bags made up here, and on those that come with Jostle."""

from __future__ import annotations

import json

import numpy as np
import pytest

import studies
from jostle.data import Colocations, Runs
from jostle.errors import UsageError
from jostle.learn import learn
from jostle.learn.learners.bags import Bag
from studies.bag import evaluation
from studies.bag.evaluation import bag_errors, benchmarks_of, evaluate_bags
from studies.rivals.solo_time import SoloTime
from tests.packages.learn.bags.conftest import APPS, make_bags


def test_solo_times_by_hand() -> None:
    runs = Runs.from_columns(
        workload=["a", "a", "b", "a", "b", "b"],
        platform=["p"] * 6,
        corunners=[[], [], [], ["b"], ["a"], ["b"]],
        runtime_seconds=[2.0, 2.0, 4.0, 3.0, 5.0, 12.0],
    )
    asked = Colocations.from_columns(
        workload=["a", "b", "a"], platform=["p"] * 3, corunners=[["b"], ["a", "a"], []]
    )

    def answers(kind: str) -> list[float]:
        return learn(SoloTime(kind), runs).predict(asked).tolist()

    assert answers("solo") == [2.0, 4.0, 2.0]
    assert answers("twice") == [4.0, 12.0, 2.0]
    # Extra times 1, 1 and 8, of runs of 3, 5 and 12 s: weights 1/3, 1/5, 1/12.
    assert answers("plus") == [3.0, 5.0, 2.0]
    # Slowdowns 1.5, 1.25 and 3, weighted by their inverses: half the weight is reached at 1.5.
    assert answers("times") == [3.0, 6.0, 2.0]
    with pytest.raises(UsageError):
        SoloTime("half")


def test_the_bag_ends_with_its_last_member() -> None:
    runs = Runs.from_columns(
        workload=["a", "b", "a", "b"],
        platform=["p"] * 4,
        corunners=[["b"], ["a"], ["b"], ["b"]],
        runtime_seconds=[2.0, 5.0, 2.0, 8.0],
        window_id=["x", "x", "y", "z"],
    )
    error = bag_errors(runs, np.arange(4), np.array([4.0, 3.0, 9.0, 6.0]))
    # x: 4 for 5; y has no row of b; z is b beside itself.
    assert sorted(error.tolist()) == pytest.approx([0.2, 0.25])


def test_command_lines_are_left_out_one_by_one() -> None:
    """Two scripts have one interpreter, which makes them no one benchmark; sizes of a kernel are one."""
    names = ["a", "b", "fft-s", "fft-m", "web"]
    runs = Runs.from_columns(
        workload=names,
        platform=["host"] * 5,
        runtime_seconds=[1.0] * 5,
        workload_features={
            "workload": names,
            "kernel": ["python", "python", "fft", "fft", "python"],
            "kind": ["command", "command", "kernel", "kernel", "service"],
        },
    )
    alone = {"a": "a", "b": "b", "web": "web"}
    assert benchmarks_of(runs) == alone | {"fft-s": "fft", "fft-m": "fft"}


def test_errors_of_every_method(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = make_bags(most=1, cpu=True, noise=0.02)
    whole = evaluation.bag_methods(runs, "extra", "cpu")
    assert {"mix_and_cpu", "mix_cpu_fairness", "without_fairness", "only_cpu"} <= set(whole)
    few = ("solo", "twice_solo", "solo_constant", "tree")
    quick = {name: whole[name] for name in few} | {"bag": Bag(trees=10, rules=False)}
    quick |= {"only_mix": Bag(trees=10, rules=False, groups=("mix",))}
    monkeypatch.setattr(evaluation, "bag_methods", lambda *_: quick)
    found = evaluate_bags(runs, "cpu", folds=2)
    m = found.metrics
    assert m["relative_error_mean_pair_twice_solo_ratio"] > m["relative_error_mean_pair_tree_ratio"]
    assert set(found.errors["tree"]) == set(APPS)
    # Time alone, told beforehand: what ran on the CPU is not asked about.
    names = runs.colocations.to_columns()
    rows = list(
        zip(
            names["workload"],
            names["platform"],
            names["corunners"],
            runs.runtime_seconds,
            strict=True,
        )
    )
    alone = {w: seconds for w, p, others, seconds in rows if p == "gpu" and not others}
    beside = {(w, *others): s for w, p, others, s in rows if p == "gpu" and others}
    assert len(beside) == 36
    for app in APPS:
        off = [abs(alone[who[0]] / s - 1) for who, s in beside.items() if app in who]
        assert found.errors["solo"][app] == pytest.approx(np.mean(off))


def test_bags_that_come_with_jostle_are_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bag", "--folds", "2", "--on", "vision", "--methods"]
    assert studies.run([*arguments, "solo,twice_solo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["data"]["dataset"] == "vision"
    m = document["metrics"]
    # Members that take turns on one core: each waits for all of them.
    assert m["relative_error_mean_application_twice_solo_ratio"] < 0.05
    assert m["log_slowdown_r2_pair_twice_solo"] > 0.9
    assert m["relative_error_mean_application_solo_ratio"] > 0.4
    assert studies.run([*arguments, "magic"]) == 4
