"""From traces to a saved model: the same answers everywhere, and odd traces named."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Trace, Traces, write_traces
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError
from jostle.learn import Data, default_method, learn, method_named
from jostle.learn.learners.counters import (
    AlignedRows,
    Alignment,
    FittedAlignment,
    Solos,
    aligned_rows,
    fit_learner,
    offered_counters,
    select_counters,
    traced_runs,
    traced_windows,
)
from jostle.learn.learners.counters._counter_learners import PhasesLearner
from jostle.models import Model
from tests.packages.learn.counters.traced_samples import COUNTERS, PERIOD, a_trace, traced_programs


@pytest.fixture(scope="module")
def traces() -> Traces:
    return traced_programs()


@pytest.fixture(scope="module")
def model(traces: Traces) -> Model:
    return jostle.fit(traces, Alignment(learner="phases", counters=COUNTERS), seed=0)


@pytest.fixture(scope="module")
def fitted(model: Model) -> FittedAlignment:
    assert isinstance(model.predictor, FittedAlignment)
    return model.predictor


def rows_of(traces: Traces) -> AlignedRows:
    offered, _ = offered_counters(traces, None)
    return aligned_rows(traced_windows(traces), Solos.from_traces(traces, offered))


def asked(*members: tuple[str, ...], platform: str = "p") -> jostle.Colocations:
    """Ask about the first of each of these beside the others."""
    return jostle.Colocations.from_columns(
        workload=[one[0] for one in members],
        platform=[platform] * len(members),
        corunners=[list(one[1:]) for one in members],
    )


def test_a_law_of_memory_is_learned_and_answered_within_its_limits() -> None:
    """Of programs in no window that was learned from."""
    pairs = [(a, (a + step) % 12) for a in range(12) for step in (1, 3, 4)]
    every = traced_programs(17, 5, [*pairs, *((a, b) for a in range(12, 17) for b in range(12, a))])
    new = {f"program-{i}" for i in range(12, 17)}
    windows = traced_windows(every)
    solos = Solos.from_traces(every, COUNTERS)
    learned, tested = (
        aligned_rows({k: v for k, v in windows.items() if (v[0].workload in new) == is_new}, solos)
        for is_new in (False, True)
    )
    assert 0.3 < learned.inside_share < 1
    network = fit_learner(learned, "phases", seed=0)
    truth, found = (
        tested.run_logs(each)
        for each in (None, np.log(network.slowdown(tested.own, tested.others)))
    )
    assert np.abs(found - truth).mean() < 0.2 * np.abs(truth).mean()
    far = network.slowdown(1e6 * tested.own, 1e6 * tested.others)
    assert network.limits[0] <= far.min() <= far.max() <= network.limits[1]
    np.testing.assert_array_equal(network.slowdown(tested.own, 0 * tested.others), 1.0)


def test_rows_are_what_truly_ran(traces: Traces) -> None:
    rows = rows_of(traces)
    assert (rows.slowdown > 0.98).mean() > 0.95
    for number in np.unique(rows.run).tolist():
        mine = rows.take(rows.run == number)
        # A section's mean rate times its length alone is what was executed in it.
        np.testing.assert_allclose(
            np.cumsum(mine.solo_seconds)[:-1], mine.begin_seconds[1:], rtol=1e-9
        )


def test_counters_that_tell_the_same_stand_once() -> None:
    twice = Traces.from_traces(
        [
            replace(
                t,
                counters={
                    **t.counters,
                    "faults": 0 * t["misses"],
                    "again": 3 * t["misses"],
                    "cpu_seconds": t.interval_seconds,
                },
            )
            for t in traced_programs(4)
        ]
    )
    chosen = select_counters(rows_of(twice), 8)
    assert chosen[0] == "instructions"
    assert len({"misses", "again"}.intersection(chosen)) == 1
    assert set(chosen) == {"instructions", "loads", chosen[1 + (chosen[1] == "loads")]}
    assert select_counters(rows_of(twice), 2) == chosen[:2]


def test_better_than_no_interference(traces: Traces, fitted: FittedAlignment) -> None:
    runs = traced_runs(traces, {t.run_id for t in traces if t.solo})
    error = np.abs(fitted.predict(runs.colocations) / runs.runtime_seconds - 1).mean()
    solo = fitted.predict(runs.colocations) / fitted.slowdown(runs.colocations)
    assert error < 0.6 * np.abs(solo / runs.runtime_seconds - 1).mean()


def test_a_saved_model_answers_the_same_by_numpy_alone(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path)
    about = asked(
        ("program-00", "program-01"), ("program-03",), ("program-03", "program-02", "program-01")
    )
    np.testing.assert_array_equal(jostle.load(tmp_path).predict(about), model.predict(about))
    code = (
        "import sys, jostle; m = jostle.load(sys.argv[1])\n"
        "a = jostle.Colocations.from_columns(\n"
        "    workload=['program-00'], platform=['p'], corunners=[['program-01']])\n"
        "print(repr(float(m.predict(a)[0])), *(n in sys.modules for n in ('sklearn', 'scipy', 'pyarrow')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert run.stdout.split() == [repr(float(model.predict(about)[0])), "False", "False", "False"]


def test_further_workloads_from_their_traces_alone(traces: Traces, fitted: FittedAlignment) -> None:
    (solo,) = [t for t in traces if t.solo and t.workload == "program-04"]
    new = replace(solo, workload="new", run_id="new")
    wider = fitted.with_solo(Traces.from_traces([new]))
    answer = wider.predict(asked(("new", "program-01")))
    assert answer == fitted.predict(asked(("program-04", "program-01")))
    assert wider.notes == fitted.notes
    millions = {name: 1e-6 * counts for name, counts in new.counters.items()}
    (note,) = fitted.with_solo(Traces.from_traces([replace(new, counters=millions)])).notes[
        len(fitted.notes) :
    ]
    assert note.endswith("its counts may be in another unit")
    with pytest.raises(UnknownName, match="new"):
        fitted.predict(asked(("new", "program-01")))
    poor = replace(new, counters={"instructions": new["instructions"]})
    with pytest.raises(UnknownName, match="counter"):
        fitted.with_solo(Traces.from_traces([poor]))


def test_settings_that_make_no_sense() -> None:
    wrongs: list[dict[str, Any]] = [
        {"learner": "forest"},
        {"corunners": "never"},
        {"period_seconds": 0.0},
        {"stressors": ()},
        {"most_counters": 0},
    ]
    for wrong in wrongs:
        with pytest.raises(UsageError):
            Alignment(**wrong)


def test_runs_alone_are_inputs_even_where_they_are_given(traces: Traces) -> None:
    inputs = {t.run_id for t in traces if t.solo}
    prepared = Alignment().prepare(Data(traced_runs(traces), traces=traces))
    assert prepared.inputs.sum() == len(inputs) > 0
    own = Alignment().prepare(Data(traces=traces)).runs
    assert not inputs & set(own.table.column("run_id").to_pylist())


def test_a_program_traced_alone_is_as_long_as_its_trace(traces: Traces) -> None:
    """Where the runs to learn from are all beside others, and it is in none of them."""
    once = next(t for t in traces if t.solo)
    slow = {name: 10 * each for name, each in once.counters.items()}
    long = replace(
        once,
        workload="long",
        run_id="l",
        runtime_seconds=10 * once.runtime_seconds,
        time_seconds=10 * once.time_seconds,
        interval_seconds=10 * once.interval_seconds,
        counters=slow,
    )
    every = Traces.from_traces([*traces, long])
    runs = traced_runs(every, {t.run_id for t in every if t.solo})
    data = Data(runs, traces=every)
    model = learn(method_named("ensemble")(), data, seed=0)
    found = model.predict(asked(("long",), ("long", "program-0"), ("long", "program-3")))
    # Nothing here is slowed down four times, and nothing made faster.
    assert (found > 5 * once.runtime_seconds).all()
    assert (found < 40 * once.runtime_seconds).all()
    elsewhere = replace(once, platform="q", run_id="q")
    data = Data(traces=Traces.from_traces([*traces, elsewhere]))
    assert PhasesLearner().trace_seconds(data, {}) == {}


def test_a_trace_alone_tells_the_time_alone_where_no_run_does(traces: Traces) -> None:
    """Runs beside others suggest a time alone as well, of which what they lose there is a part."""
    kept = {t.run_id for t in traces if not t.solo or t.workload < "program-03"}
    data = Data(traced_runs(traces, set(traces.run_ids) - kept), traces=traces)
    alone = {(t.workload,): t.runtime_seconds for t in traces if t.solo}
    found = learn(method_named("ensemble")(), data, seed=0).predict(asked(*alone))
    np.testing.assert_allclose(found, list(alone.values()), rtol=1e-9)


def test_windows_that_do_not_hold_together() -> None:
    alone = [a_trace([5.0] * 4, workload=w, run_id=f"s{w}") for w in "ab"]
    a = a_trace([4.0] * 5, workload="a", run_id="1", corunners=("b",), window_id="x")
    b = a_trace([4.0] * 5, workload="b", run_id="2", corunners=("a",), window_id="x")
    runs = traced_runs(Traces.from_traces([a, b]))

    def fit(*kept: Trace) -> None:
        data = Data(runs, traces=Traces.from_traces([*alone, *kept]))
        learn(Alignment(learner="phases", corunners="once"), data)

    fit(a, b)
    twice = {"instructions": 2 * a["instructions"]}
    for windows, message in (
        ((replace(a, window_id=None), b), "no window says"),
        ((a,), "Trace all that run in a window"),
        ((replace(a, counters=twice), b), "times the instructions"),
        ((replace(a, counters={"misses": a["instructions"]}), b), "instructions"),
    ):
        with pytest.raises(BadData, match=message):
            fit(*windows)
    with pytest.raises(NotEnoughRuns):
        fit()
    missing = replace(alone[0], counters={**alone[0].counters, "misses": alone[0]["instructions"]})
    offered, notes = offered_counters(Traces.from_traces([missing, alone[1]]), None)
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


def test_beside_more_than_was_seen_losses_are_added_up_at_most(fitted: FittedAlignment) -> None:
    assert fitted.most == 2
    first, *others = ("program-00", "program-01", "program-02")
    about = asked((first, *others), *((first, other) for other in others))
    both, *each = fitted.predict(about)
    alone = both / fitted.slowdown(about)[0]
    assert both <= alone + sum(one - alone for one in each) + 1e-12
    assert fitted.slowdown(about).min() > 1


def test_commands(traces: Traces, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, output = str(tmp_path / "data"), str(tmp_path / "model")
    write_traces(data, traces)
    assert default_method(Data(path=data)) == default_method(Data.of(traces)) == "alignment"
    command = ["fit", "--method=alignment", data, "-o", output, "--set", "learner=phases", "--json"]
    assert exit_code(command) == 0
    assert json.loads(capsys.readouterr().out)["runs"]["calibration"] > 0
    about = ["predict", output, "-w", "program-02", "-b", "program-03", "-c", "0.6", "--json"]
    assert exit_code([*about, "--traces", data]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["items"]
    assert answer["bound_seconds"] > 0.5 * answer["runtime_seconds"] > 0
    assert exit_code(["fit", "--method=alignment", data, "-o", output, "--set=learner=tree"]) == 2


def a_pair_law(seed: int, programs: int = 8) -> list[Trace]:
    """Make programs alike in all they count, of which each suffers and presses in its own measure."""
    random = np.random.default_rng(seed)
    names = [f"w{i}" for i in range(programs)]
    suffers, presses = random.uniform(0, 0.4, programs), random.uniform(0, 0.4, programs)
    found = [a_trace([5e5] * 60, interval=PERIOD, workload=n, run_id=f"s{n}") for n in names]
    for a, b in ((a, b) for a in range(programs) for b in range(programs) if a != b):
        window = f"v{min(a, b)}{max(a, b)}"
        facts = {"window_id": window, "core": int(a > b), "corunners": (names[b],)}
        took = PERIOD * float(np.exp(suffers[a] + presses[b]))
        facts |= {"workload": names[a], "run_id": f"r{a}{b}"}
        found.append(a_trace([5e5] * 60, interval=took, **facts))
    return found


def test_known_programs_are_told_apart_where_counters_do_not() -> None:
    """Pairs held out, answered while both run, whatever the programs are called."""
    every, out = a_pair_law(3), ("v01", "v25", "v67")
    called = {f"w{i}": f"{(5 * i) % 8}-{i}" for i in range(8)}
    other = [
        replace(t, workload=called[t.workload], corunners=tuple(called[n] for n in t.corunners))
        for t in every
    ]
    answers = []
    for some in (every, other):
        tested = [t for t in some if t.window_id in out]
        kept = Traces.from_traces([t for t in some if t.window_id not in out])
        fitted = learn(Alignment(corunners="loop"), Data(traces=kept), seed=0)
        answers.append(fitted.predict(asked(*((t.workload, *t.corunners) for t in tested))))
    truth = np.array([t.runtime_seconds for t in every if t.window_id in out])
    level = np.mean([t.runtime_seconds for t in every if t.corunners and t.window_id not in out])
    assert np.abs(answers[0] / truth - 1).mean() < 0.25 * np.abs(level / truth - 1).mean()
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6)
    again = FittedAlignment.from_arrays(*json_round_trip(fitted))
    about = asked((called["w0"], called["w1"]))
    assert again.predict(about)[0] == fitted.predict(about)[0]


def json_round_trip(fitted: Any) -> tuple[Any, Any]:
    arrays, document = fitted.to_arrays()
    return arrays, json.loads(json.dumps(document))


def test_bounds_rest_on_windows_left_out_and_new_names_are_as_others() -> None:
    every = Traces.from_traces(a_pair_law(3))
    model = jostle.fit(every, Alignment(corunners="loop"), seed=0)
    about = asked(("w0", "w1"), ("w1", "w0"))
    bound = model.bound(about, 0.8)
    assert set(bound.outcome) == {"cross_validated"}
    assert (bound.seconds >= model.predict(about)).all()
    alone = a_trace([5e5] * 60, interval=PERIOD, workload="new", run_id="new")
    assert isinstance(model.predictor, FittedAlignment)
    wider = model.predictor.with_solo(Traces.from_traces([alone]))
    known = wider.predict(asked(*((f"w{i}", "w1") for i in (0, 2, 3, 4, 5, 6, 7))))
    assert known.min() < wider.predict(asked(("new", "w1")))[0] < known.max()
