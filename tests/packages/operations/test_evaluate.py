"""`jostle evaluate`: what is left out, what is counted, and that nothing left out reaches an answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Dataset, Runs
from jostle.errors import MissingExtra, NotEnoughRuns, UsageError
from jostle.operations import (
    RULES,
    BoostedQuantiles,
    NameQuantiles,
    SimpleRule,
    left_out_runs,
    quantile_rivals,
)
from tests.packages.learn.bags.conftest import make_bags

QUICK = jostle.Slowdown(rank=1, members=1, steps=20)


@pytest.fixture(scope="module")
def runs() -> Runs:
    return make_bags(most=2, noise=0.02)


def names_of(runs: Runs) -> list[tuple[str, ...]]:
    rows = map(runs.colocations.row, range(len(runs)))
    return [tuple(sorted((workload, *beside))) for workload, _, beside in rows]


@pytest.mark.parametrize("leave_out", ["row", "set", "name"])
def test_every_run_is_either_seen_or_asked_about(runs: Runs, leave_out: str) -> None:
    seen, asked = left_out_runs(runs, leave_out, 0.3, 1)
    ids = [*seen.table.column("run_id").to_pylist(), *asked.table.column("run_id").to_pylist()]
    assert sorted(ids) == sorted(runs.table.column("run_id").to_pylist())
    again = left_out_runs(runs, leave_out, 0.3, 1)[1]
    assert again.table.column("run_id").equals(asked.table.column("run_id"))


def test_sets_are_left_out_on_all_platforms_and_of_every_size(runs: Runs) -> None:
    columns = runs.colocations.to_columns()
    other = Runs.from_columns(
        workload=columns["workload"],
        platform=["other"] * len(runs),
        corunners=columns["corunners"],
        runtime_seconds=runs.runtime_seconds,
    )
    both = Runs.concatenate([runs, other])
    seen, asked = left_out_runs(both, "set", 0.3, 0)
    assert not set(names_of(seen)) & set(names_of(asked))
    assert set(asked.colocations.number_of_corunners.tolist()) == {1, 2}
    assert set(asked.colocations.platform_names) == {"other", *runs.colocations.platform_names}


def test_of_a_name_that_is_left_out_only_runs_alone_are_seen(runs: Runs) -> None:
    seen, asked = left_out_runs(runs, "name", 0.2, 0)
    beside = [set(names) for names in names_of(seen) if len(names) > 1]
    left = set(runs.colocations.workload_names) - set().union(*beside)
    assert len(left) == 1
    assert all(left & set(names) for names in names_of(asked))
    assert asked.colocations.number_of_corunners.all()
    with pytest.raises(UsageError, match="left out"):
        left_out_runs(runs, "column", 0.2, 0)
    with pytest.raises(UsageError, match="between 0 and 1"):
        left_out_runs(runs, "row", 1.0, 0)
    with pytest.raises(NotEnoughRuns, match="empty"):
        left_out_runs(runs.take([0, 1]), "set", 0.5, 0)


def test_the_simple_rules_are_what_they_say() -> None:
    made = Runs.from_columns(
        workload=["a", "b", "a", "b", "b"],
        platform=["p"] * 5,
        corunners=[[], [], ["b"], ["a"], ["b"]],
        runtime_seconds=[2.0, 4.0, 3.0, 5.0, 12.0],
    )
    asked = jostle.Colocations.from_columns(
        workload=["a", "a", "b"], platform=["p"] * 3, corunners=[["b"], ["a"], []]
    )

    def answers(label: str) -> Any:
        return jostle.learn.learn(SimpleRule(label), made).predict(asked)

    assert answers(RULES["the time alone"]) == pytest.approx([2.0, 2.0, 4.0])
    # Slowdowns 1.5, 1.25 and 3, weighted by their inverses: half the weight is reached at 1.5.
    assert answers(RULES["the time alone times a constant"]) == pytest.approx([3.0, 3.0, 4.0])


def test_quantiles_by_name_are_of_its_runs_there_and_of_all_of_them_where_those_are_few() -> None:
    asked = jostle.Colocations.from_columns(
        workload=["a"] * 12 + ["b"] * 3, platform=["p"] * 9 + ["q"] * 3 + ["p"] * 3
    )
    seconds = np.array([*range(9, 0, -1), 30.0, 20.0, 10.0, 5.0, 6.0, 7.0])
    told, most = NameQuantiles(asked, seconds).predict_and_bound(asked.take([0, 9, 12]), 0.9)
    # Ranks 9 of 9 on p; 12 of all 12 of a, as three on q are too few; three of b never are enough.
    assert told.tolist() == [5.0, 6.5, 6.0]
    assert most.tolist() == [9.0, 30.0, np.inf]


def test_boosted_quantiles_are_conformalised_on_what_the_trees_did_not_see() -> None:
    random = np.random.default_rng(0)
    name = random.integers(0, 3, 600)
    asked = jostle.Colocations.from_columns(
        workload=np.array(["a", "b", "c"])[name], platform=["p"] * 600
    )
    seconds = 10.0**name * np.exp(random.normal(0, 0.1, 600))
    rival = BoostedQuantiles(asked, seconds, np.arange(600) >= 480)
    told, most = rival.predict_and_bound(asked, 0.9)
    # Of the 120 that were held back those up to rank ceil(121 x 0.9) are within their bounds.
    assert (seconds[480:] <= most[480:] * (1 + 1e-12)).sum() == 109
    assert np.median(told[name == 2]) == pytest.approx(100, rel=0.1)
    few = BoostedQuantiles(asked, seconds, np.arange(600) >= 595)
    assert np.isinf(few.predict_and_bound(asked, 0.9)[1]).all()
    with pytest.raises(NotEnoughRuns, match="too few for trees"):
        BoostedQuantiles(asked, seconds, np.arange(600) >= 1)


def test_rules_and_method_are_judged_on_the_same_runs_with_the_same_bounds(runs: Runs) -> None:
    found = jostle.evaluate(runs, QUICK, leave_out="set", draws=2, confidence=0.8)
    assert [one.name for one in found.of()] == ["slowdown", *RULES, *quantile_rivals()]
    assert {one.runs for one in found.of()} == {found.asked / 2}
    assert (found.unknown, found.unanswered, found.left_aside) == (0, 0, ())
    mine, alone, *_ = found.of()
    assert mine.mape < alone.mape
    assert all(0.5 < one.coverage <= 1 for one in found.of())
    groups = {one.group for one in found.results}
    assert groups == {"all", "corun", "corun_1", "corun_2"}
    text = found.report().tables
    assert "the time alone" in str(text[0])
    assert "<table>" in found._repr_html_()
    assert jostle.evaluate(runs, QUICK, rules=False).of()[1:] == ()


def test_names_that_stand_only_in_the_rest_are_unknown_and_counted(runs: Runs) -> None:
    """One run of a new host, and one of a new workload beside a known one."""
    columns = runs.colocations.to_columns()
    more = Runs.from_columns(
        workload=[*columns["workload"], *(f"new{n}" for n in range(40))],
        platform=[*columns["platform"], *[columns["platform"][0]] * 39, "new host"],
        corunners=[*columns["corunners"], *[[]] * 40],
        runtime_seconds=[*runs.runtime_seconds, *[1.0] * 40],
    )
    other = Runs.from_columns(
        workload=[f"pair{n}" for n in range(20)],
        platform=[columns["platform"][0]] * 20,
        corunners=[[columns["workload"][0]]] * 20,
        runtime_seconds=[2.0] * 20,
    )
    more = Runs.concatenate([more, other])  # whose names stand in one set alone
    found = jostle.evaluate(more, QUICK, share=0.5)
    assert 0 < found.unknown < 60
    assert not found.left_aside
    assert found.asked > found.unknown
    assert f"Of {found.unknown} a name stands nowhere else" in found.sentence
    assert np.isfinite(found.of()[0].mape)


def test_nothing_of_what_was_left_out_reaches_an_answer(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[np.ndarray] = []
    real = jostle.Model.predict_and_bound

    def watched(model: Any, *asked: Any, **more: Any) -> Any:
        answer = real(model, *asked, **more)
        seen.extend([np.array(answer[0]), np.array(answer[1].seconds)])
        return answer

    monkeypatch.setattr(jostle.Model, "predict_and_bound", watched)
    jostle.evaluate(runs, QUICK, leave_out="set")
    first, seen = seen, []
    ids = left_out_runs(runs, "set", 0.25, 0)[1].table.column("run_id").to_pylist()
    is_asked = np.isin(runs.table.column("run_id").to_pylist(), ids)
    seconds = np.where(is_asked, 7.0, 1.0) * runs.runtime_seconds
    place = runs.table.column_names.index("runtime_seconds")
    field = runs.table.schema.field(place)
    other = Runs(
        runs.table.set_column(place, field, pa.array(seconds)),
        runs.workload_features,
        runs.platform_features,
    )
    jostle.evaluate(other, QUICK, leave_out="set")
    assert len(first) == len(seen) == 2 * (1 + len(RULES))
    for one, two in zip(first, seen, strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_rule_that_cannot_be_learned_is_left_aside_and_a_method_is_not(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(self: Any, *_: Any, **__: Any) -> Any:
        raise MissingExtra("sklearn", "fit")

    monkeypatch.setattr(SimpleRule, "fit_left_out", refuses)
    found = jostle.evaluate(runs, QUICK)
    assert len(found.left_aside) == len(RULES)
    assert [one.name for one in found.of()] == ["slowdown", *quantile_rivals()]
    with pytest.raises(MissingExtra):
        jostle.evaluate(runs, SimpleRule("level"))


def test_the_command_prints_and_writes_what_the_function_finds(
    runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "fleet<b>"
    Dataset(folder).write(runs)
    quick = [f"--set={name}={value}" for name, value in vars(QUICK).items()]
    words = ["evaluate", str(folder), "--method", "slowdown", *quick, "--leave-out", "set"]
    assert exit_code([*words, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evaluate/v2"
    assert document["data_version"] == Dataset(folder).version()
    expected = jostle.evaluate(folder, QUICK, leave_out="set").to_document()
    assert document == json.loads(json.dumps(expected))
    page = tmp_path / "page.html"
    assert exit_code([*words, "--html", str(page)]) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text("utf-8")
    assert "fleet&lt;b&gt;" in text
    assert "<b>" not in text
    assert "http" not in text  # it opens without a network
    assert exit_code([*words, "--html", str(tmp_path / "no" / "page.html")]) == 5
    with pytest.raises(UsageError, match="magic"):
        jostle.evaluate(folder, "magic")
