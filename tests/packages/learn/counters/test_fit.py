"""From traces to a saved model: the same answers everywhere, and odd traces named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Trace, Traces, write_traces
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError
from jostle.learn import Data, learn
from jostle.learn.learners.counters import (
    AlignedRows,
    Alignment,
    FittedAlignment,
    SoloIndex,
    aligned_rows,
    select_counters,
    solo_run_ids,
    traced_runs,
    traced_windows,
)
from jostle.learn.learners.counters.learning._select_counters import distances
from jostle.learn.learners.counters.solo._offered import offered_counters
from jostle.models import Model
from studies.alignment.paper.method import RidgeAlignment
from studies.alignment.paper.ridge import features_of, fit_ridge
from studies.alignment.paper.selection import select_counters as select_by_prefix
from tests.packages.learn.counters.conftest import a_trace
from tests.packages.learn.counters.fit_samples import COUNTERS


@pytest.fixture(scope="module")
def model(traces: Traces) -> Model:
    return jostle.fit(traces, Alignment(learner="phases", counters=COUNTERS), seed=0)


@pytest.fixture(scope="module")
def fitted(model: Model) -> FittedAlignment:
    assert isinstance(model.predictor, FittedAlignment)
    return model.predictor


@pytest.fixture(scope="module")
def rows(traces: Traces) -> AlignedRows:
    offered, _ = offered_counters(traces, COUNTERS)
    return aligned_rows(traced_windows(traces), SoloIndex.from_traces(traces, offered))


def executed(window: Sequence[Trace]) -> list[float]:
    """By what windows are put in order."""
    return [float(trace["instructions"].sum()) for trace in window]


def test_rows_are_what_truly_ran(traces: Traces, rows: AlignedRows) -> None:
    windows = sorted(traced_windows(traces).values(), key=executed)
    plain = []
    for number, window in enumerate(windows):
        mine = rows.take(rows.run == 2 * number)
        assert rows.members[2 * number][1] == window[0].workload
        traced = window[0]["instructions"]
        assert mine.count.sum() <= traced.sum() * (1 + 1e-9)
        # But where short stretches are joined, a row is a sample.
        if np.allclose(mine.count, traced[: len(mine)]):
            plain.append(mine)
    assert len(plain) > 0.5 * len(windows)
    mine = plain[0]
    # Inside a sample instructions are taken as even, which they are not where a phase ends.
    assert (rows.slowdown > 0.98).mean() > 0.95
    # A section's mean rate times its length alone is what was executed in it.
    alone = mine.count / mine.own[:, 0]
    np.testing.assert_allclose(np.cumsum(alone)[:-1], mine.begin_seconds[1:], rtol=1e-9)


@pytest.mark.parametrize("form", ["linear", "interacting"])
def test_a_model_answers_what_its_fit_says(rows: AlignedRows, form: str) -> None:
    """By the features spelled out, and by the ridge of scikit-learn."""
    from sklearn.linear_model import Ridge

    few = rows.take(np.arange(0, len(rows), 9))
    learned = fit_ridge(few, form, 1e-2, rounds=0)
    features = features_of(form, few.own, few.others, learned.scale)
    x = (features - learned.mean) / learned.spread
    if form == "linear":
        weight, y = np.ones(len(few)), few.count / few.period_seconds / learned.scale[0]
    else:
        weight = few.solo_seconds / few.solo_seconds.mean()
        y = np.clip(few.slowdown, 0.5, 50) - 1
    theirs = Ridge(1e-2 * len(x)).fit(x, (y - learned.output[0]) / learned.output[1], weight)
    np.testing.assert_allclose(learned.weights, theirs.coef_, rtol=1e-5, atol=1e-8)
    raw = theirs.predict(x) * learned.output[1] + learned.output[0]
    if form == "linear":
        raw = few.own[:, 0] / learned.scale[0] / np.maximum(raw, 1e-30) - 1
    found = learned.slowdown(few.own, few.others)
    np.testing.assert_allclose(found, np.clip(1 + raw, *learned.limits), rtol=1e-6)


def test_nothing_is_answered_that_was_never_seen(rows: AlignedRows) -> None:
    """A weighted sum goes on straight beyond what was learned from; its answers do not."""
    learned = fit_ridge(rows, "linear", 1e-2)
    slow = rows.slowdown
    found = learned.slowdown(1e3 * rows.own, 1e3 * rows.others)
    assert 0.5 <= found.min() <= found.max() <= 1.1 * slow.max()
    # Nearly all that was learned from can be answered.
    low, high = learned.limits
    assert ((slow >= low) & (slow <= high)).mean() > 0.99


def test_beside_nothing_the_interacting_form_slows_nothing(rows: AlignedRows) -> None:
    learned = fit_ridge(rows, strength=1e-2)
    np.testing.assert_allclose(learned.slowdown(rows.own, 0 * rows.others), 1.0)


def test_learns_a_law_that_is_in_its_form() -> None:
    random = np.random.default_rng(0)
    n = 2000
    own, others = random.uniform(0.1, 1, (n, 2)), random.uniform(0, 1, (n, 2))
    slow = 1 + 0.6 * own[:, 1] * others[:, 1]
    one = np.ones(n, int)
    group = np.arange(n) % 10
    sets = tuple((f"a{i}", f"b{i}") for i in range(10))
    rows = AlignedRows(
        ("instructions", "c"),
        sets,
        own,
        others,
        own[:, 0] / slow,
        np.ones(n),
        0 * one,
        one,
        group,
        group,
        np.zeros(n),
    )
    learned = fit_ridge(rows, strength=1e-6)
    np.testing.assert_allclose(learned.slowdown(own, others), slow, rtol=5e-3)


def test_selection_goes_through_its_three_steps(traces: Traces) -> None:
    offered, _ = offered_counters(traces, None)
    rows = aligned_rows(traced_windows(traces), SoloIndex.from_traces(traces, offered))
    found = select_by_prefix(rows, cut=0.15, most=4)
    assert found.zero == ("exceptions",)
    assert set(found.zero) | set(found.clustered) == set(offered)
    assert sorted(n for c in found.clusters for n in c) == sorted(found.clustered)
    together = next(c for c in found.clusters if "dram_busy_cycles" in c)
    assert "dram_read_bytes" in together
    assert len(found.kept) == len(found.clusters)
    assert found.ranked[0] == "instructions"
    assert found.chosen == found.ranked[: len(found.chosen)]
    assert np.nanargmin(found.errors) + 1 == len(found.chosen) <= 4
    json.dumps(found.document())
    # SciPy's own answer to the same question.
    from scipy.stats import spearmanr

    at = [rows.counters.index(n) for n in ("cache_misses", "loads")]
    theirs = 1 - abs(float(np.asarray(spearmanr(rows.own[:, at[0]], rows.own[:, at[1]])[0])))
    assert distances(rows.own[:, at])[0, 1] == pytest.approx(theirs)
    # What is learned from by default: of those that tell the same one, what matters most first.
    chosen = select_counters(rows, 8)
    assert chosen[0] == "instructions"
    assert len(chosen) == len(set(chosen)) == 8
    assert "exceptions" not in chosen
    apart = distances(rows.with_counters(chosen).own) + np.eye(8)
    assert apart.min() > 0.02
    assert select_counters(rows, 3) == chosen[:3]


def test_better_than_no_interference_on_held_out_sets(
    traces: Traces, fitted: FittedAlignment
) -> None:
    runs = traced_runs(traces, solo_run_ids(traces))
    runs = runs.take(runs.colocations.number_of_corunners > 0)
    predicted = fitted.predict(runs.colocations)
    solo = np.array([fitted._alone(*runs.colocations.row(i)[:2]) for i in range(len(runs))])
    error = np.abs(predicted / runs.runtime_seconds - 1).mean()
    assert error < 0.6 * np.abs(solo / runs.runtime_seconds - 1).mean()


def test_bounds_are_calibrated_over_sets_not_over_rows(model: Model) -> None:
    assert model.metadata["runs"]["calibration"] > 0
    pool = model.calibration.pools["1 co-runner"]
    # All windows of one set weigh together what any other set weighs.
    assert (np.asarray(pool.cumulative)[..., -1] < pool.total).all()
    assert pool.total % 1 == 0
    asked = jostle.Colocations.from_columns(
        workload=["program-00"], platform=["simulated"], corunners=[["program-01"]]
    )
    bounds = [model.bound(asked, c).seconds[0] for c in (0.5, 0.7)]
    assert model.predict(asked)[0] * 0.5 < bounds[0] <= bounds[1]
    assert model.bound(asked, 0.999).outcome[0] == "too_few_runs"
    assert "settings" in model.metadata
    assert "traces" not in model.metadata["settings"]


def test_saved_model_answers_the_same_by_numpy_alone(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    asked = jostle.Colocations.from_columns(
        workload=["program-00", "program-03", "program-03"],
        platform=["simulated"] * 3,
        corunners=[["program-01"], [], ["program-02", "program-01"]],
    )
    np.testing.assert_array_equal(jostle.load(tmp_path).predict(asked), model.predict(asked))
    code = (
        "import sys, jostle; m = jostle.load(sys.argv[1])\n"
        "a = jostle.Colocations.from_columns(\n"
        "    workload=['program-00'], platform=['simulated'], corunners=[['program-01']])\n"
        "print(repr(float(m.predict(a)[0])), *(n in sys.modules for n in ('sklearn', 'scipy', 'pyarrow')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [repr(float(model.predict(asked)[0])), "False", "False", "False"]


def test_further_workloads_from_their_traces_alone(traces: Traces, fitted: FittedAlignment) -> None:
    solo = [t for t in traces if t.solo and t.workload == "program-04"]
    new = Traces.from_traces([replace(t, workload="new", run_id=f"new-{t.core}") for t in solo])
    wider = fitted.with_solo(new)
    asked = [
        jostle.Colocations.from_columns(
            workload=[w], platform=["simulated"], corunners=[["program-01"]]
        )
        for w in ("new", "program-04")
    ]
    assert wider.predict(asked[0])[0] == fitted.predict(asked[1])[0]
    assert wider.notes == fitted.notes
    millions = [
        replace(t, counters={name: 1e-6 * counts for name, counts in t.counters.items()})
        for t in new
    ]
    (note,) = fitted.with_solo(Traces.from_traces(millions)).notes[len(fitted.notes) :]
    assert note.endswith("its counts may be in another unit")
    with pytest.raises(UnknownName, match="new"):
        fitted.predict(asked[0])
    poor = Traces.from_traces(
        [
            replace(t, run_id="x", workload="x", counters={"instructions": t["instructions"]})
            for t in solo[:1]
        ]
    )
    with pytest.raises(UnknownName, match="counter"):
        fitted.with_solo(poor)


def test_settings_that_make_no_sense() -> None:
    wrongs: list[dict[str, Any]] = [
        {"learner": "forest"},
        {"learner": "ridge"},
        {"corunners": "never"},
        {"period_seconds": 0.0},
        {"stressors": ()},
        {"most_counters": 0},
    ]
    for wrong in wrongs:
        with pytest.raises(UsageError):
            Alignment(**wrong)


def test_pairs_of_slots_learn_each_for_themselves(traces: Traces) -> None:
    paper = RidgeAlignment.paper(alignment="section", counters=COUNTERS, strength=1e-2)
    fitted = paper.fit(paper.prepare(Data(traces=traces)))
    assert set(fitted.models) == {(0, 1), (1, 0)}
    with pytest.raises(UsageError, match="pooled"):
        fitted.window(["program-00", "program-01", "program-02"], "simulated")


def test_runs_alone_are_inputs_even_where_they_are_given(traces: Traces) -> None:
    runs, inputs = traced_runs(traces), solo_run_ids(traces)
    prepared = Alignment().prepare(Data(runs, traces=traces))
    assert prepared.inputs.sum() == len(inputs) > 0
    own = Alignment().prepare(Data(traces=traces)).runs
    assert not inputs & set(own.table.column("run_id").to_pylist())


def test_windows_that_do_not_hold_together(traces: Traces) -> None:
    alone = [a_trace([5.0] * 4, workload=w, run_id=f"s{w}") for w in "ab"]
    a = a_trace([4.0] * 5, workload="a", run_id="1", corunners=("b",), window_id="x")
    b = a_trace([4.0] * 5, workload="b", run_id="2", corunners=("a",), window_id="x")
    runs = traced_runs(Traces.from_traces([a, b]))

    def fit(*kept: object) -> None:
        data = Data(runs, traces=Traces.from_traces([*alone, *kept]))  # type: ignore[list-item]
        learn(Alignment(learner="phases", corunners="once"), data)

    fit(a, b)
    for windows, message in (
        ((replace(a, window_id=None), b), "no window says"),
        ((a,), "Trace all that run in a window"),
        (
            (replace(a, counters={"instructions": 2 * a["instructions"]}), b),
            "times the instructions",
        ),
        ((replace(a, counters={"misses": a["instructions"]}), b), "instructions"),
    ):
        with pytest.raises(BadData, match=message):
            fit(*windows)
    with pytest.raises(NotEnoughRuns):
        fit()
    missing = [replace(t, counters={**t.counters, "misses": t["instructions"]}) for t in alone[:1]]
    offered, notes = offered_counters(Traces.from_traces([*missing, alone[1]]), None)
    assert offered == ("instructions",)
    assert "misses" in notes[0]


def test_those_that_went_on_after_their_end_say_that_corunners_begin_anew() -> None:
    """Beside a program that is longer nothing tells: two windows in three say nothing here."""
    alone = [
        a_trace([5.0] * n, workload=w, run_id=f"s{w}") for w, n in (("a", 4), ("b", 4), ("c", 99))
    ]

    def window(name: str, other: str, beside: list[float]) -> list[Trace]:
        first = a_trace([4.0] * 5, workload=name, run_id=name + other, corunners=(other,))
        last = a_trace(beside, workload=other, run_id=f"{other}-{name}", corunners=(name,))
        return [replace(run, window_id=name + other) for run in (first, last)]

    def fitted(*windows: list[Trace]) -> FittedAlignment:
        traces = Traces.from_traces([*alone, *(run for one in windows for run in one)])
        return learn(Alignment(learner="phases"), Data(traces=traces), seed=0)  # type: ignore[return-value]

    long = [window("a", "c", [4.0] * 5), window("b", "c", [4.0] * 5)]
    assert fitted(window("a", "b", [6.0] * 5), *long).loop
    assert not fitted(window("a", "b", [10.0] * 2), *long).loop
    with pytest.raises(BadData, match="times the instructions"):
        fitted(
            window("a", "b", [10.0] * 2), window("b", "a", [10.0] * 2), window("b", "b", [6.0] * 5)
        )


def test_commands(traces: Traces, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, output = str(tmp_path / "data"), str(tmp_path / "model")
    write_traces(data, traces)
    command = ["fit", "--method=alignment", data, "-o", output, "--set", "learner=phases", "--json"]
    assert exit_code(command) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["runs"]["calibration"] > 0
    assert document["dataset_version"] is None
    asked = ["predict", output, "-w", "program-02", "-b", "program-03", "-c", "0.6", "--json"]
    assert exit_code([*asked, "--traces", data]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["items"]
    assert answer["bound_seconds"] > 0.5 * answer["runtime_seconds"] > 0
    assert exit_code(["fit", "--method=alignment", data, "-o", output, "--set=learner=tree"]) == 2
    assert exit_code(["predict", output, "-w", "nobody", "-b", "program-03"]) == 4
    assert exit_code(["fit", "--method=alignment", str(tmp_path / "none"), "-o", output]) == 4


def test_beside_more_than_was_seen_losses_are_added_up_at_most(traces: Traces) -> None:
    model = learn(Alignment(learner="phases", counters=COUNTERS), Data(traces=traces), seed=0)
    assert model.most == 2
    names = ["program-00", "program-01", "program-02"]
    asked = jostle.Colocations.from_columns(
        workload=names[:1] * 3,
        platform=["simulated"] * 3,
        corunners=[names[1:], names[1:2], names[2:]],
    )
    both, *each = model.predict(asked)
    alone = model.predict(asked)[0] / model.slowdown(asked)[0]
    assert both <= alone + sum(one - alone for one in each) + 1e-12
    assert model.slowdown(asked).min() > 1
