"""What stressors show becomes counters of the run alone; without any, nothing changes."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import jostle
from jostle.data import Traces
from jostle.errors import BadData, NotEnoughRuns, UnknownName, UsageError
from jostle.learn import Data, learn
from jostle.learn.learners.counters import Alignment, FittedAlignment, with_probes
from tests.packages.learn.counters.traced_samples import (
    HOG,
    SAMPLES,
    STEP,
    a_hog,
    probed_programs,
    traced_programs,
    two_halves,
)


def test_losses_are_told_phase_by_phase() -> None:
    alone = two_halves("a", 1.0, 1.0, run_id="sa")
    facts = {"window_id": "v"}
    pair = [
        two_halves("a", 1.0, 1.5, run_id="va", corunners=(HOG,), **facts),
        a_hog(1.0, 1.25, run_id="vh", corunners=("a",), core=1, runtime=np.nan, **facts),
    ]
    found = list(with_probes(Traces.from_traces([alone, *pair, a_hog(1.0, 1.0, run_id="sh")])))
    assert [trace.run_id for trace in found] == ["sa"]
    lost, taken = (
        found[0][f"seconds_{name}_{HOG}"] / STEP for name in ("lost_beside", "taken_from")
    )
    np.testing.assert_allclose(lost[: SAMPLES // 2], 0.0, atol=1e-9)
    np.testing.assert_allclose(lost[SAMPLES // 2 :], 0.5, rtol=1e-6)
    np.testing.assert_allclose(taken, 0.2, rtol=1e-6)
    assert with_probes(found_again := Traces.from_traces([alone])) is found_again
    with pytest.raises(BadData, match="only stressors"):
        with_probes(Traces.from_traces([a_hog(1.0, 1.0, run_id="sh")]))


def test_a_program_without_probes_has_no_such_counter() -> None:
    alone = [two_halves(name, 1.0, 1.0, run_id=f"s{name}") for name in "ab"]
    pair = [
        two_halves("a", 1.2, 1.2, run_id="va", corunners=(HOG,), window_id="v"),
        a_hog(0.96, 1.1, run_id="vh", corunners=("a",), core=1, window_id="v"),
    ]
    found = {t.workload: t for t in with_probes(Traces.from_traces([*alone, *pair]))}
    assert f"seconds_lost_beside_{HOG}" in found["a"].counters
    # Nobody knows how fast the stressor is alone.
    assert f"seconds_taken_from_{HOG}" not in found["a"].counters
    assert set(found["b"].counters) == {"instructions"}


def test_programs_that_count_alike_are_told_apart_by_probes() -> None:
    suffers, presses, every = probed_programs()
    held = ("w5", "w6")
    kept = [t for t in every if t.solo or not {t.workload, *t.corunners}.intersection(held)]
    kept += [t for t in every if t.run_id[0] in "ph" and t not in kept]
    method = Alignment(learner="mixture", corunners="loop")
    fitted = learn(method, Data(traces=Traces.from_traces(kept)), seed=0)
    assert any("lost_beside" in name for name in fitted.counters)
    arrays, document = fitted.to_arrays()
    again = FittedAlignment.from_arrays(arrays, json.loads(json.dumps(document)))
    errors, nothing = [], []
    for a, b in ((5, 6), (6, 5)):
        asked = ([f"w{a}", f"w{b}"], "p")
        rolled = fitted.window(*asked, loop=[False, True])[0]
        assert again.window(*asked, loop=[False, True])[0] == rolled
        truth = SAMPLES * STEP * (1 + suffers[a] * presses[b])
        errors.append(abs(rolled / truth - 1))
        nothing.append(1 - SAMPLES * STEP / truth)
    assert np.mean(errors) < 0.2 * np.mean(nothing)
    alone = Traces.from_traces([replace(kept[1], workload="new", run_id="new")])
    with pytest.raises(jostle.errors.UnknownName, match="counter"):
        fitted.with_solo(alone)


def test_the_mixture_needs_probes() -> None:
    with pytest.raises(UsageError, match="beside some"):
        learn(Alignment(learner="mixture"), Data(traces=traced_programs(3)), seed=0)


def test_only_the_stressors_named_count() -> None:
    """The others' windows are left out, as if they had not been recorded; what none fits is said."""
    every = [two_halves(name, 1.0, 1.0, run_id=f"s{name}") for name in "ab"]
    for stressor in ("probe-x", "probe-y", "mine"):
        every.append(replace(a_hog(1.0, 1.0, run_id=f"s{stressor}"), workload=stressor))
        facts = {"window_id": f"v{stressor}"}
        every.append(
            two_halves("a", 1.5, 1.5, run_id=f"a{stressor}", corunners=(stressor,), **facts)
        )
        other = a_hog(0.5, 1.1, run_id=f"h{stressor}", corunners=("a",), core=1, **facts)
        every.append(replace(other, workload=stressor))
    traces = Traces.from_traces(every)

    def counted(wanted: tuple[str, ...]) -> set[str]:
        found = with_probes(traces, wanted)
        assert not any(name.startswith("probe-") for t in found for name in t.corunners)
        return {n.partition("beside_")[2] for t in found for n in t.counters if "beside_" in n}

    assert counted(("probe-*",)) == {"probe-x", "probe-y"}
    assert counted(("probe-y",)) == {"probe-y"}
    assert counted(("mine", "probe-x")) == {"mine", "probe-x"}
    with pytest.raises(UnknownName, match="probe-z"):
        with_probes(traces, ("probe-x", "probe-z"))
    plain = Traces.from_traces([t for t in every if t.workload in "ab" and t.solo])
    with pytest.raises(NotEnoughRuns, match="no program was traced beside mine"):
        learn(Alignment(stressors=("mine",)), Data(traces=plain), seed=0)
    with pytest.raises(UsageError, match="no stressors"):
        Alignment(stressors=("",))
