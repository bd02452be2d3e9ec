"""What is known of a run before it starts, and names that were never met: through the calls of a user."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.errors import BadRows, UsageError
from jostle.learn import Ensemble
from jostle.operations import PredictQuestion
from jostle.operations.model.predict import predict
from tests.limits import share_limits

STEPS = [f"step{n}" for n in range(12)]
METHOD = Ensemble(learners=("rules",))


def tables(seed: int = 0, rows: int = 600) -> tuple[dict[str, Any], dict[str, Any]]:
    """(learned, asked): log runtime = step + slope of the step * log bytes + .2 per co-runner; a class that
    doubles; a column that tells nothing."""
    random = np.random.default_rng(seed)
    level, slope = random.normal(3, 1, 12), 0.5 + 0.1 * random.normal(size=12)
    step, size = random.integers(0, 12, rows), np.exp(random.normal(20, 1, rows))
    many, kind = random.integers(0, 3, rows), random.integers(0, 2, rows)
    seconds = level[step] + slope[step] * (np.log(size) - 20) + 0.2 * many + np.log(2) * kind
    table = {
        "workload": [STEPS[n] for n in step],
        "platform": [f"host{n % 2}" for n in range(rows)],
        "corunners": [[STEPS[n] for n in random.integers(0, 12, k)] for k in many],
        "runtime_seconds": np.exp(seconds + 0.05 * random.normal(size=rows)).tolist(),
        "input_bytes": size.tolist(),
        "kind": np.array(["plain", "double"])[kind].tolist(),
        "luck": random.normal(size=rows).tolist(),
    }
    parts = slice(None, 450), slice(450, None)
    learned, asked = ({name: column[part] for name, column in table.items()} for part in parts)
    return learned, asked


def fitted(learned: dict[str, Any], *covariates: str) -> jostle.Model:
    return jostle.fit(jostle.Runs.from_table(learned, covariates=list(covariates)), METHOD, seed=0)


@pytest.fixture(scope="module")
def model() -> jostle.Model:
    return fitted(tables()[0], "input_bytes", "kind")


def off(model: jostle.Model, asked: dict[str, Any]) -> float:
    seconds = np.array(asked["runtime_seconds"])
    return float(np.abs(model.predict(asked) / seconds - 1).mean())


def without(asked: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: column for name, column in asked.items() if name not in names}


def test_runs_are_closer_by_what_is_known_before_they_start(model: jostle.Model) -> None:
    asked = tables()[1]
    plain = fitted(tables()[0])
    assert model.predictor.covariate_names == ("input_bytes", "kind")
    assert off(model, asked) < off(plain, asked) / 4
    # A question without them is about the usual run of that workload.
    assert off(model, without(asked, "input_bytes", "kind")) > 4 * off(model, asked)
    assert fitted(tables()[0], "luck").predictor.covariate_names == ()


def test_bounds_hold_with_covariates_and_are_narrower(model: jostle.Model) -> None:
    asked, plain = tables()[1], fitted(tables()[0])
    seconds, bound = np.array(asked["runtime_seconds"]), model.bound(asked, 0.9).seconds
    assert np.mean(seconds <= bound) >= share_limits(len(seconds), 0.9)[0]
    assert jostle.conformal.margin(bound, seconds) < jostle.conformal.margin(
        plain.bound(asked, 0.9).seconds, seconds
    )


def test_a_larger_input_takes_longer_and_no_size_is_believed_without_end(
    model: jostle.Model,
) -> None:
    sizes = np.exp(np.linspace(10, 40, 31))
    asked = {
        "workload": ["step1"] * 31,
        "platform": ["host0"] * 31,
        "input_bytes": sizes.tolist(),
        "kind": ["plain"] * 31,
    }
    seconds = model.predict(asked)
    assert (np.diff(seconds) >= -1e-9 * seconds[:-1]).all()
    assert seconds[-1] == pytest.approx(seconds[-5])  # as far beyond what was seen as it goes
    answers = model.answer(asked, 0.9)
    assert np.array_equal(answers.seconds, seconds)


def test_a_workload_is_known_by_its_size_on_a_host_where_it_never_ran() -> None:
    """It never ran alone anywhere, and its inputs are larger than those of all others."""
    learned, asked = tables()
    large = 1e4
    for table in (learned, asked):
        first = np.array(table["workload"]) == STEPS[0]
        table["input_bytes"] = np.where(first, large, 1.0) * table["input_bytes"]
        table["runtime_seconds"] = np.where(first, np.sqrt(large), 1.0) * table["runtime_seconds"]
        first &= np.array(table["platform"]) == "host1"
        alone = np.array([not beside for beside in table["corunners"]])
        kept = first & ~alone
        if table is learned:
            kept = ~(first | alone & (np.array(table["workload"]) == STEPS[0]))
        for name, column in table.items():
            table[name] = [value for value, keep in zip(column, kept, strict=True) if keep]
    assert off(fitted(learned, "input_bytes", "kind"), asked) < 0.5


def test_names_that_were_never_met_are_answered_and_said_to_be_new(model: jostle.Model) -> None:
    asked = tables()[1]
    n = len(asked["workload"])
    for change in (
        {"workload": ["new"] * n},
        {"platform": ["new"] * n},
        {"corunners": [["new"]] * n},
    ):
        some = asked | change
        seconds, bounds = model.predict(some), model.bound(some, 0.9)
        assert np.isfinite(seconds).all()
        assert set(bounds.outcome) == {"held_out_names"}
        answers = model.answer(some, 0.9)
        assert answers.is_answered.all()
        assert all("unknown" in reason for reason in answers.reason)
    # Of a new workload its size tells.
    sizes = {
        "workload": ["new"] * 5,
        "platform": ["host0"] * 5,
        "input_bytes": [1e8, 3e8, 1e9, 3e9, 1e10],
    }
    assert (np.diff(model.predict(sizes)) > 0).all()


def test_a_misspelt_name_is_answered_and_said_with_the_names_that_it_is_like(
    model: jostle.Model,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    rows = {"workload": ["step1", "setp1"], "platform": ["host0"] * 2, "corunners": [[], ["stpe3"]]}
    known = {name: cells[:1] for name, cells in rows.items()}
    warnings.simplefilter("always")
    for ask in (model.predict, model.bound, model.predict_and_bound):
        ask(known)
        ask(jostle.Colocations.from_columns(**known))
        assert not recwarn.list
        for asked in (rows, jostle.Colocations.from_columns(**rows)):
            ask(asked)
            (warned,) = recwarn.list
            assert warned.filename == __file__
            for name, like in (("setp1", "step1"), ("stpe3", "step3")):
                assert f"unknown workload {name!r}. Did you mean {like}" in str(warned.message)
            recwarn.clear()
    reason = model.answer(rows).reason.tolist()
    assert not recwarn.list  # each row says it
    assert "unknown" not in reason[0]
    assert "workload 'setp1'. Did" in reason[1]
    assert "co-runner 'stpe3'. Did" in reason[1]

    model.save(tmp_path / "model")
    (tmp_path / "asked.csv").write_text("workload,platform,corunners\nsetp1,host0,stpe3\n")
    base = ["predict", str(tmp_path / "model"), "--input", str(tmp_path / "asked.csv")]
    assert exit_code(base) == 0
    assert "1 of 1 rows name what the model does not know" in capsys.readouterr().err


def test_bounds_of_names_that_were_never_met_hold() -> None:
    late, number = [], 0
    for seed in range(8):
        learned, asked = tables(seed)
        keep = [n for n, name in enumerate(learned["workload"]) if name not in STEPS[9:]]
        rows = [n for n in keep if not set(learned["corunners"][n]) & set(STEPS[9:])]
        some = {name: [column[n] for n in rows] for name, column in learned.items()}
        new = [n for n, name in enumerate(asked["workload"]) if name in STEPS[9:]]
        questions = {name: [column[n] for n in new] for name, column in asked.items()}
        bound = fitted(some, "input_bytes", "kind").bound(questions, 0.8).seconds
        for name in set(questions["workload"]):
            mine = np.array(questions["workload"]) == name
            late.append(np.mean(np.array(questions["runtime_seconds"])[mine] > bound[mine]))
            number += 1
    assert np.mean(late) <= share_limits(number, 0.2)[1]


def test_it_is_saved_and_updated_with_its_covariates(model: jostle.Model, tmp_path: Path) -> None:
    asked = tables()[1]
    model.save(tmp_path / "model")
    again = jostle.load(tmp_path / "model")
    assert np.array_equal(again.predict(asked), model.predict(asked))
    more = {name: column[:40] for name, column in asked.items()}
    runs = jostle.Runs.from_table(more, covariates=["input_bytes", "kind"])
    updated = again.update(runs)
    assert updated.predictor.covariate_names == ("input_bytes", "kind")
    assert off(updated, asked) < 0.2


def test_a_table_that_asks_nothing_is_refused_by_row(model: jostle.Model) -> None:
    with pytest.raises(BadRows, match="row 1"):
        model.predict({"workload": ["step1", ""], "platform": ["host0", "host0"]})


def test_runs_beside_nobody_knows_whom_are_never_taken_for_runs_alone() -> None:
    """They take twice as long as alone, and tell of sizes all the same."""
    random = np.random.default_rng(0)
    names, size = [STEPS[n] for n in random.integers(0, 6, 400)], random.normal(20, 1, 400)
    unknown = random.random(400) < 0.5
    table = {
        "workload": names,
        "platform": ["host0"] * 400,
        "runtime_seconds": np.exp(
            0.5 * size - 9 + np.log(2) * unknown + 0.02 * random.normal(size=400)
        ),
        "input_bytes": np.exp(size),
        "unknown_corunners": unknown,
    }
    runs = jostle.Runs.from_columns(**table, covariates=["input_bytes"])
    assert runs.unknown_corunners.sum() == unknown.sum()
    model = jostle.fit(runs, METHOD, seed=0)
    alone = np.flatnonzero(~unknown)
    asked = runs.colocations.take(alone)
    assert np.abs(model.predict(asked) / runs.runtime_seconds[alone] - 1).mean() < 0.05
    assert model.predictor.covariate_names == ("input_bytes",)


def test_what_may_come_to_a_run_of_a_log_is_told_by_its_covariates_too() -> None:
    random = np.random.default_rng(0)
    names, size = [STEPS[n] for n in random.integers(0, 6, 300)], random.normal(20, 2, 300)
    seconds = np.exp(0.5 * size - 9 + 0.02 * random.normal(size=300))
    beside = [[STEPS[n]] for n in random.integers(0, 6, 300)]
    table = {
        "workload": names,
        "platform": ["host0"] * 300,
        "runtime_seconds": seconds,
        "stretches": [[(0.0, one), (t / 2, [])] for t, one in zip(seconds, beside, strict=True)],
        "input_bytes": np.exp(size),
    }
    runs = jostle.Runs.from_columns(**table, covariates=["input_bytes"])
    model = jostle.fit(runs, METHOD, seed=0)
    assert model.acts is not None
    asked = {name: table[name] for name in ("workload", "platform", "input_bytes")}
    told = model.predict(asked | {"corunners": beside})
    assert np.median(np.abs(told / seconds - 1)) < 0.1


def test_commands_and_operations_take_them(
    model: jostle.Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model.save(tmp_path / "model")
    base = ["predict", str(tmp_path / "model"), "-w", "step1", "-p", "host0"]
    assert exit_code([*base, "--json", "--set", "input_bytes=3e9", "--set", "kind=double"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    asked = {
        "workload": ["step1"],
        "platform": ["host0"],
        "input_bytes": [3e9],
        "kind": ["double"],
    }
    assert item["runtime_seconds"] == pytest.approx(model.predict(asked)[0])
    assert exit_code(base) == 0
    assert "what is usual of step1 is assumed: --set input_bytes" in capsys.readouterr().err
    assert exit_code([*base, "--set", "inputbytes=1"]) == 4
    assert "Did you mean input_bytes?" in capsys.readouterr().err
    assert exit_code([*base, "--set", "kind=double", "--why"]) == 0
    assert "By kind double it takes" in capsys.readouterr().out
    one = {"workload": "step1", "platform": "host0"}
    items = [
        one | {"covariates": {"input_bytes": 3e9, "kind": "double"}},
        one | {"covariates": {"size": 1}},
        one | {"covariates": [1]},
        one | {"covariates": {"kind": None}},
    ]
    answers = predict.of(model, items, PredictQuestion()).items
    assert answers[0].runtime_seconds == item["runtime_seconds"]
    assert ["covariate" in answer.error for answer in answers[1:]] == [True] * 3


def test_a_new_name_is_answered_from_its_group(tmp_path: Path) -> None:
    """Versions of a program are alike, programs are not: the answer for a new version is within what versions
    differ by."""
    random = np.random.default_rng(0)
    program, version = (each.ravel() for each in np.mgrid[:10, :5].repeat(8, axis=2))
    level = 3 + 1.5 * random.normal(size=10)[:, None] + 0.05 * random.normal(size=(10, 5))
    seconds = np.exp(level[program, version] + 0.02 * random.normal(size=len(program)))
    columns = {
        "workload": [f"p{a}:v{b}" for a, b in zip(program, version, strict=True)],
        "platform": [f"host{n % 2}" for n in range(len(program))],
        "corunners": [f"p{n % 10}:v0" if n % 3 == 0 else "" for n in range(len(program))],
        "runtime_seconds": seconds,
    }
    old = version < 4
    learned, asked = (
        {name: np.array(column)[part].tolist() for name, column in columns.items()}
        for part in (old, ~old)
    )
    runs = jostle.Runs.from_table(learned, group="^[^:]+")
    jostle.Dataset(tmp_path / "d").write(runs)
    runs = jostle.read_runs(tmp_path / "d")
    assert runs.groups == runs[np.arange(len(runs))].groups == ("^[^:]+",)
    model = jostle.fit(runs, METHOD, seed=0)
    assert off(model, asked) < 0.15
    assert off(jostle.fit(jostle.Runs.from_table(learned), METHOD, seed=0), asked) > 0.5
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(jostle.load(tmp_path / "m").predict(asked), model.predict(asked))
    assert np.mean(seconds[~old] <= model.bound(asked, 0.9).seconds) >= share_limits(10, 0.9)[0]
    with pytest.raises(UsageError, match="no regular expression"):
        jostle.Runs.from_table(learned, group="(")
