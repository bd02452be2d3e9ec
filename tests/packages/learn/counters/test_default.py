"""What is answered by default: never worse than plain rules, whatever the names, and true to repeats."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import jostle
from jostle.data import Trace, Traces, write_traces
from jostle.learn import Data, default_method, learn
from jostle.learn.learners.counters import (
    Alignment,
    FittedAlignment,
    SoloIndex,
    equal_repeats,
    quiet_seconds,
    solo_counters,
)
from jostle.learn.learners.counters.solo._quiet import quiet_weights
from tests.packages.learn.counters.conftest import a_trace

PERIOD = 1e-3
DISTURBANCES = ["clock", "two clocks", "bursts", "jitter", "stalls", "drift"]


def disturbed(kind: str, work: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n,) seconds of the samples of a run that would take one period each."""
    n = len(work)
    if kind == "clock":
        return PERIOD * np.full(n, np.exp(0.01 * random.normal()))
    if kind == "two clocks":
        return PERIOD * np.full(n, 1.05 if random.random() < 0.3 else 1.0)
    if kind == "bursts":
        slow = np.ones(n)
        for start in random.integers(0, n, 2):
            slow[start : start + random.integers(5, 30)] = 1.3
        return PERIOD * slow
    if kind == "jitter":
        return PERIOD * np.exp(0.03 * random.normal(size=n))
    if kind == "stalls":
        return PERIOD * (1 + (random.random(n) < 0.02) * random.exponential(1.0, n))
    return PERIOD * np.exp(np.cumsum(0.003 * random.normal(size=n)))  # drifts


def undisturbed_pairs(
    kind: str, alone: int, beside: int, seed: int, *, programs: int = 8, samples: int = 100
) -> list[Trace]:
    """Programs that do nothing to each other, some runs of each alone and of each pair."""
    random = np.random.default_rng(seed)
    work = {f"w{i}": random.uniform(1e5, 1e6, samples) for i in range(programs)}
    traces = []

    def run(name: str, number: str, others: tuple[str, ...], core: int) -> None:
        took = disturbed(kind, work[name], random)
        window = None if not others else number
        traces.append(
            a_trace(
                work[name].tolist(),
                interval=took.tolist(),
                workload=name,
                run_id=f"{name}-{number}-{core}",
                corunners=others,
                window_id=window,
                core=core if others else 0,
                misses=(work[name][::-1] * 0.01).tolist(),
            )
        )

    for name in work:
        for k in range(alone):
            run(name, f"alone{k}", (), k)
    names = sorted(work)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            for k in range(beside):
                run(one, f"{one}{other}{k}", (other,), 0)
                run(other, f"{one}{other}{k}", (one,), 1)
    return traces


@pytest.mark.parametrize("kind", DISTURBANCES)
def test_no_interference_is_no_slowdown_whatever_disturbs(kind: str) -> None:
    traces = undisturbed_pairs(kind, 20, 6, seed=5)
    at = equal_repeats(traces)
    assert at == 6
    ratios = []
    names = sorted({t.workload for t in traces})
    for one in names:
        alone = [t for t in traces if t.solo and t.workload == one]
        seconds = quiet_seconds(alone, PERIOD, at)
        for other in names:
            pair = [t for t in traces if t.workload == one and t.corunners == (other,)]
            if pair:
                ratios.append(quiet_seconds(pair, PERIOD, at) / seconds)
    assert len(ratios) == 56
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.003)
    assert max(quiet_weights(20, 6)) < 0.5  # not one of the twenty, but many


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what learns inside phases, which takes longest."""
    monkeypatch.setattr("jostle.learn.learners.counters._counter_learners.LEAST_INSIDE", 2.0)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", DISTURBANCES)
def test_no_interference_is_answered_as_none(kind: str) -> None:
    """No false slowdown over 0.3%, whatever disturbs."""
    traces = Traces.from_traces(undisturbed_pairs(kind, 20, 5, seed=1, programs=6, samples=40))
    fitted = learn(Alignment(counters=("misses",)), Data(traces=traces), seed=0)
    names = [f"w{i}" for i in range(6)]
    asked = jostle.Colocations.from_columns(
        workload=names, platform=["p"] * 6, corunners=[[name] for name in (*names[1:], "w0")]
    )
    alone = np.array([fitted.solos.of(name, "p", 0).duration_seconds for name in names])
    assert 0.99 < np.mean(fitted.predict(asked) / alone) < 1.003


def test_the_weights_of_repeats_are_means_over_draws() -> None:
    from itertools import combinations

    times = np.sort(np.random.default_rng(0).exponential(size=9))
    for drawn in (1, 3, 5, 6, 9):
        rank = round(0.15 * (drawn - 1))
        expected = np.mean([sorted(some)[rank] for some in combinations(times, drawn)])
        assert quiet_weights(9, drawn) @ times == pytest.approx(expected)
    np.testing.assert_array_equal(quiet_weights(3, 8), quiet_weights(3))


def renamed(traces: Traces, change: dict[str, str]) -> Traces:
    return Traces.from_traces(
        [
            replace(
                t,
                workload=change[t.workload],
                corunners=tuple(sorted(change[name] for name in t.corunners)),
                run_id=f"{hash(t.run_id) % 9973}-{t.run_id}",
            )
            for t in traces
        ]
    )


def test_names_do_not_matter(traces: Traces) -> None:
    names = sorted({t.workload for t in traces})
    change = dict(zip(names, ["zoe", "abe", "mia", "bob", "yan", "cid"], strict=True))
    method = Alignment(learner="phases", counters=("instructions", "cache_misses"))
    answers = []
    for some, called in ((traces, {n: n for n in names}), (renamed(traces, change), change)):
        fitted = learn(method, Data(traces=some), seed=0)
        asked = jostle.Colocations.from_columns(
            workload=[called[names[0]], called[names[3]]],
            platform=["simulated"] * 2,
            corunners=[[called[names[1]]], [called[names[2]]]],
        )
        answers.append(fitted.predict(asked))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6)


@pytest.mark.usefixtures("quick")
@given(st.permutations(["zoe", "abe", "mia", "bob", "yan", "cid"]), st.integers(0, 3))
@settings(
    max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_names_do_not_matter_for_what_is_chosen(called: list[str], seed: int) -> None:
    """Counters, strengths, weights and effects, all chosen by the method itself."""
    every = a_pair_law(seed, programs=6)
    change = dict(zip([f"w{i}" for i in range(6)], called, strict=True))
    answers = []
    for some, names in (
        (Traces.from_traces(every), {n: n for n in change}),
        (renamed(Traces.from_traces(every), change), change),
    ):
        fitted = learn(Alignment(corunners="loop"), Data(traces=some), seed=seed)
        asked = jostle.Colocations.from_columns(
            workload=[names[n] for n in ("w0", "w1", "w2")],
            platform=["p"] * 3,
            corunners=[[names[n]] for n in ("w3", "w4", "w5")],
        )
        answers.append(fitted.predict(asked))
    np.testing.assert_allclose(answers[0], answers[1], rtol=1e-6)


def a_pair_law(seed: int, programs: int = 8) -> list[Trace]:
    """Programs alike in all they count, of which each suffers and presses in its own measure."""
    random = np.random.default_rng(seed)
    names = [f"w{i}" for i in range(programs)]
    suffers, presses = random.uniform(0, 0.4, programs), random.uniform(0, 0.4, programs)
    found = [a_trace([5e5] * 60, interval=PERIOD, workload=n, run_id=f"s{n}") for n in names]
    for i in range(programs):
        for j in range(i + 1, programs):
            for core, (a, b) in enumerate(((i, j), (j, i))):
                slow = float(np.exp(suffers[a] + presses[b]))
                found.append(
                    a_trace(
                        [5e5] * 60,
                        interval=PERIOD * slow,
                        workload=names[a],
                        run_id=f"r{i}{j}{core}",
                        corunners=(names[b],),
                        window_id=f"v{i}{j}",
                        core=core,
                    )
                )
    return found


@pytest.mark.usefixtures("quick")
def test_known_programs_are_told_apart_where_counters_do_not() -> None:
    """Pairs held out, answered while both run."""
    every = a_pair_law(3)
    kept = Traces.from_traces([t for t in every if t.window_id not in ("v01", "v25", "v67")])
    fitted = learn(Alignment(corunners="loop"), Data(traces=kept), seed=0)
    tested = [t for t in every if t.window_id in ("v01", "v25", "v67")]
    errors = [
        abs(
            fitted.window([t.workload, *t.corunners], "p", loop=[False, True]).end_seconds[0]
            / t.runtime_seconds
            - 1
        )
        for t in tested
    ]
    level = np.mean([t.runtime_seconds for t in kept if not t.solo])
    plain = [abs(level / t.runtime_seconds - 1) for t in tested]
    assert np.mean(errors) < 0.25 * np.mean(plain)
    again = FittedAlignment.from_arrays(
        *(
            part if isinstance(part, dict) and number == 0 else json.loads(json.dumps(part))
            for number, part in enumerate(fitted.to_arrays())
        )
    )
    asked = jostle.Colocations.from_columns(workload=["w0"], platform=["p"], corunners=[["w1"]])
    assert again.predict(asked)[0] == fitted.predict(asked)[0]


@pytest.mark.usefixtures("quick")
def test_bounds_rest_on_windows_left_out_and_new_names_are_as_others() -> None:
    threes = [
        a_trace(
            [5e5] * 60,
            interval=PERIOD * 1.5,
            workload=f"w{own}",
            run_id=f"t{number}{core}",
            corunners=tuple(f"w{one}" for one in members if one != own),
            window_id=f"t{number}",
            core=core,
        )
        for number, members in enumerate(([0, 1, 2], [3, 4, 5], [0, 6, 7], [1, 3, 6]))
        for core, own in enumerate(members)
    ]
    beside = [one for one in (*a_pair_law(3), *threes) if one.corunners]
    every = Traces.from_traces([*a_pair_law(3), *threes])
    model = jostle.fit(every, Alignment(corunners="loop"), seed=0)
    scored = model.calibration.runs
    assert (~scored.held_out).sum() <= len(beside)  # each was left out once
    asked = jostle.Colocations.from_columns(
        workload=["w0", "w1"], platform=["p"] * 2, corunners=[["w1"], ["w0"]]
    )
    bound = model.bound(asked, 0.8)
    assert set(bound.outcome) == {"cross_validated"}
    assert (bound.seconds >= model.predict(asked)).all()
    alone = a_trace([5e5] * 60, interval=PERIOD, workload="new", run_id="new")
    assert isinstance(model.predictor, FittedAlignment)
    wider = model.predictor.with_solo(Traces.from_traces([alone]))
    stranger = jostle.Colocations.from_columns(workload=["new"], platform=["p"], corunners=[["w1"]])
    others = jostle.Colocations.from_columns(
        workload=[f"w{i}" for i in (0, 2, 3, 4, 5, 6, 7)],
        platform=["p"] * 7,
        corunners=[["w1"]] * 7,
    )
    known = wider.predict(others)
    assert known.min() < wider.predict(stranger)[0] < known.max()


def test_small_gaps_add_nothing_and_a_long_sample_hides_no_end() -> None:
    whole = a_trace([1e5] * 100)
    gaps = replace(whole, interval_seconds=0.01 / 1.4 * np.ones(100))
    for trace in (whole, gaps):
        assert solo_counters(trace).instructions == pytest.approx(1e7)
    long = a_trace([1e5] * 50, interval=[0.5] + [0.01] * 49, runtime=1.4)
    with pytest.raises(jostle.errors.BadData, match="stops early"):
        SoloIndex.from_traces(Traces.from_traces([long]), ("instructions",))


def test_traces_without_runs_are_learned_from_by_counters(traces: Traces, tmp_path: Path) -> None:
    assert default_method(Data.of(traces)) == "alignment"
    write_traces(tmp_path, traces)
    assert default_method(Data(path=tmp_path)) == "alignment"
    assert default_method(Data(path=tmp_path / "nothing")) == "ensemble"
