"""`python -m studies bag` and the commands around bag models, on bags made up here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import studies
from jostle.bag import Bag
from jostle.cli import exit_code
from jostle.errors import UnknownName, UsageError
from jostle.methods import learn
from jostle.runs import Colocations, Dataset, Runs
from studies.bag.evaluation import evaluate_bags
from studies.bag.figures import draw_bags
from studies.bag.held_out import BagTests, benchmarks_of, rows_with
from studies.bag.scores import bag_errors
from studies.rivals.solo_time import SoloTime
from tests.bag.conftest import APPS, make_bags

QUICK = Bag(trees=10, rules=False)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return make_bags(most=1, noise=0.02)


@pytest.fixture(scope="module")
def dataset(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bags") / "dataset"
    Dataset(folder).write(runs)
    return folder


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


def test_benchmarks_are_left_out_with_all_their_runs(runs: Runs) -> None:
    by_kind = rows_with(runs.colocations, benchmarks_of(runs, "kind"))
    assert set(by_kind) == {"a", "b", "c"}
    for i in range(len(runs)):
        w, _, beside = runs.colocations.row(i)
        kinds = {"aabbcc"[APPS.index(name)] for name in (w, *beside)}
        assert kinds == {kind for kind, rows in by_kind.items() if i in rows}
    with pytest.raises(UnknownName, match="colour"):
        benchmarks_of(runs, "colour")


@pytest.mark.usefixtures("sketches")
def test_evaluate_bags_and_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import studies.bag.evaluation as module

    runs = make_bags(most=1, cpu=True, noise=0.02)
    whole = module.bag_methods(runs, "extra", "cpu")
    assert {"mix_and_cpu", "mix_cpu_fairness", "without_fairness", "only_cpu"} <= set(whole)
    few = ("solo", "twice_solo", "solo_constant", "tree")
    quick = {name: whole[name] for name in few} | {"bag": Bag(trees=10, rules=False)}
    quick |= {"slowdown": QUICK, "only_mix": Bag(trees=10, rules=False, groups=("mix",))}
    monkeypatch.setattr(module, "bag_methods", lambda *_: quick)
    found = evaluate_bags(runs, BagTests(cpu_platform="cpu", folds=2, seeds=(0,)))
    m = found.metrics
    assert m["relative_error_mean_pair_twice_solo_ratio"] > m["relative_error_mean_pair_tree_ratio"]
    assert m["runs"] == 36  # what ran on the CPU is not asked about
    assert set(found.errors["tree"]) == set(APPS)
    mean = np.average(
        list(found.errors["solo"].values()),
        weights=[
            len(rows) for rows in rows_with(runs.colocations, benchmarks_of(runs, None)).values()
        ],
    )
    assert mean > 0
    assert 0.5 <= m["coverage_90_pair_bag_ratio"] <= 1
    assert 0.5 <= m["coverage_80_application_bag_ratio"] <= 1
    assert len(found.uses) == len(found.tested) == 6 * 11
    share = {name: part for name, part, _ in found.uses_table()}
    assert max(share.values()) <= 1
    paths = draw_bags(found, tmp_path)
    assert len(paths) == 7
    assert all(path.read_bytes()[:4] == b"<?xm" for path in paths)


def test_commands(dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = str(tmp_path / "model")
    assert exit_code(["fit", "--method=bag", str(dataset), "-o", model, "--json"]) == 0
    fitted = json.loads(capsys.readouterr().out)
    assert fitted["runs"]["calibration"] > 0
    one = ["-w", "app1", "-b", "app2", "-c", "0.5"]
    assert exit_code(["predict", "--why", model, *one, "--dataset", str(dataset), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["schema"] == "explain/v4"
    (one_item,) = printed["items"]
    assert one_item["why"]["corunners"][0]["name"] == "app2"
    assert one_item["method"]["path"]
    assert one_item["method"]["evidence_runs"]["same_colocation"] == 1
    assert exit_code(["predict", "--why", model, *one, "--full"]) == 0
    assert "trees asked" in capsys.readouterr().out

    assert exit_code(["fit", "--method=magic", str(dataset), "-o", model]) == 2
    assert studies.run(["bag", "--data", str(tmp_path / "nowhere")]) == 4


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
    assert benchmarks_of(runs, None) == alone | {"fft-s": "fft", "fft-m": "fft"}
    assert benchmarks_of(runs, "kernel")["a"] == "python"


def test_bags_that_come_with_jostle_are_evaluated(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["bag", "--seeds", "1", "--no-bounds", "--folds", "2", "--on", "vision"]
    assert studies.run([*arguments, "--methods", "solo,twice_solo", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["data"]["dataset"] == "vision"
    assert document["settings"]["target"] == "slowdown"
    listed = {row["feature"]: row for row in document["paper_features"]}
    assert [row["number"] for row in document["paper_features"]] == [*range(1, 12), None]
    assert listed["MEM"]["columns"] == ["mix_memory_read_ratio", "mix_memory_write_ratio"]
    assert listed["CPU_time"]["columns"] == ["cpu_time"]
    assert 0 < listed["Fairness"]["smallest"] < listed["Fairness"]["largest"] <= 1
    assert listed["GPU_time"]["smallest"] == pytest.approx(0.0002, rel=0.2)
    m = document["metrics"]
    # Members that take turns on one core: each waits for all of them.
    assert m["relative_error_mean_application_twice_solo_ratio"] < 0.05
    assert m["log_slowdown_r2_pair_twice_solo"] > 0.9
    assert m["relative_error_mean_application_solo_ratio"] > 0.4
    assert studies.run([*arguments, "--methods", "magic"]) == 4
    capsys.readouterr()
    assert studies.run([*arguments, "--methods", "solo"]) == 0
    assert "Table IV" in capsys.readouterr().out


def test_few_benchmarks_are_asked_for_what_they_can_bound() -> None:
    runs = make_bags(most=1, noise=0.02)
    from studies.bag.bounds import application_coverage

    c = runs.colocations
    asked = np.flatnonzero(c.number_of_corunners > 0)

    def found(column: str | None) -> set[str]:
        held = {
            name: np.intersect1d(rows, asked)
            for name, rows in rows_with(c, benchmarks_of(runs, column)).items()
        }
        return set(application_coverage(runs, "solo_constant", SoloTime("plus"), held, 0))

    assert "coverage_80_application_solo_constant_ratio" in found(None)  # six
    assert found("kind") == set()  # three
