"""What measured co-runs add to the simulator, on made-up worlds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import jostle
from jostle.data import GPUS, Colocations, Runs
from jostle.errors import UnknownName
from jostle.gpu import Application, Device, Task
from jostle.learn import NEW_SET, Data, Ensemble, learn
from jostle.learn.learners.simulation import Accelerator, way_to_share
from jostle.learn.learners.simulation._coruns import CoRuns
from jostle.learn.learners.simulation._covariance import CoRunPlaces
from jostle.learn.learners.simulation._delays import Delays, Sharing
from jostle.learn.learners.simulation._residual_process import fit_corun_process
from tests.packages.learn.simulation.learned_samples import (
    NAMES,
    WAY,
    applications,
    profiles,
    simulated_seconds,
    world,
)

pytest.importorskip("scipy")


def held_out(runs: Runs, every: int = 5) -> tuple[Runs, Runs]:
    """(without every fifth pair, those)."""
    units = runs.units("together")
    beside = runs.colocations.number_of_corunners > 0
    test = beside & np.isin(units, np.unique(units[beside])[::every])
    return runs.take(np.flatnonzero(~test)), runs.take(np.flatnonzero(test))


def test_the_way_to_share_is_found_and_beats_what_knows_no_simulation() -> None:
    train, test = held_out(world(WAY))
    fitted = learn(Accelerator(), Data(train, profiles=profiles()))
    error = np.abs(fitted.predict(test.colocations) / test.runtime_seconds - 1).mean()
    assert error < 0.02
    assert way_to_share(fitted, "v100") == (WAY.sharing, WAY.bus)
    assert any(f"as if kernels shared {WAY.sharing}" in note for note in fitted.notes)
    every = learn(Ensemble(), Data(train, profiles=profiles()))
    assert way_to_share(every, "v100") == (WAY.sharing, WAY.bus)
    bare = learn(Accelerator(sharing="sequential"), Data(train, profiles=profiles()))
    assert error < np.abs(bare.predict(test.colocations) / test.runtime_seconds - 1).mean()


def test_of_ten_pairs_the_way_to_share_has_nearly_all_weight() -> None:
    runs = world(WAY, noise=0.02)
    units, beside = runs.units("together"), runs.colocations.number_of_corunners > 0
    kept = np.random.default_rng(0).permutation(np.unique(units[beside]))[:10]
    known = runs.take(np.flatnonzero(~beside | np.isin(units, kept)))
    found = learn(Accelerator(), Data(known, profiles=profiles()))
    weight = dict(zip(found.state.labels, found.state.weight[NEW_SET, -1], strict=True))
    own = [weight[label] for label, m in simulations(found).items() if m.recipe.way == WAY]
    assert sum(own) > 0.9


def test_three_corunners_are_not_answered_as_one() -> None:
    runs = world(Sharing("sequential", "shared", "repeating"))
    fitted = learn(Accelerator(), Data(runs, profiles=profiles()))
    sets = [["w1"], ["w1", "w2"], ["w1", "w2", "w3"], ["w3", "w2", "w1"]]
    asked = Colocations.from_columns(workload=["w0"] * 4, platform=["v100"] * 4, corunners=sets)
    one, two, three, turned = fitted.predict(asked)
    assert one < two < three
    assert turned == three
    delays = Delays(applications(), Device.of(GPUS["V100"])).of(
        Sharing("sequential", "shared", "repeating"),
        np.array([0]),
        np.array([[0, 1, 1, 1, 0, 0, 0, 0.0]]),
    )
    true = 0.5 + applications()[0].solo_seconds + delays[0]
    assert three == pytest.approx(true, rel=0.2)


def test_without_a_run_beside_others_it_is_the_simulator() -> None:
    runs = world(Sharing("concurrent", "shared", "repeating"))
    alone = runs.take(np.flatnonzero(runs.colocations.number_of_corunners == 0))
    fitted = learn(Accelerator(), Data(alone, profiles=profiles()))
    asked = Colocations.from_columns(workload=["w0"], platform=["v100"], corunners=[["w1"]])
    free = Colocations.from_columns(workload=["w0"], platform=["v100"], corunners=[[]])
    way = Sharing("concurrent", "per_direction", "repeating")
    found: Any = fitted.learners["simulation"]
    of = dict(zip((one.name for one in found.applications), found.idle_seconds, strict=True))
    idle = np.array([of[name] for name in NAMES])
    delays = Delays(applications(), Device.of(GPUS["V100"]), idle)
    later = delays.of(way, np.array([0]), np.eye(8)[[1]])[0]
    assert fitted.predict(asked) == pytest.approx(
        (1 + later / delays.alone(way)[0]) * fitted.predict(free)
    )
    # A run leaves the device idle for what it takes longer than its trace, and delays others less by that.
    named = dict(zip(NAMES, applications(), strict=True))
    raw = [simulated_seconds(named, delays.device, "concurrent", one)[0] for one in (asked, free)]
    assert later < raw[0] - raw[1]
    assert way_to_share(fitted, "v100") == ("concurrent", "per_direction")
    every = jostle.fit(Data(alone, profiles=profiles()))
    assert every.predict(asked) == pytest.approx(fitted.predict(asked))


def test_every_platform_learns_its_own_way() -> None:
    ways = (
        Sharing("time-sliced", "shared", "since start"),
        Sharing("concurrent", "shared", "since start"),
    )
    parts = [world(way, (name,)) for way, name in zip(ways, ("alone", "mps"), strict=True)]
    train, test = held_out(Runs.concatenate(parts))
    fitted = learn(Accelerator(), Data(train, profiles=profiles()))
    off = np.abs(fitted.predict(test.colocations) / test.runtime_seconds - 1)
    assert off.mean() < 0.03
    assert way_to_share(fitted, "alone") != way_to_share(fitted, "mps")


def test_names_without_a_profile_and_old_models_are_refused() -> None:
    runs = world(Sharing("concurrent", "shared", "since start"))
    some = {name: profile for name, profile in profiles().items() if name != "w3"}
    with pytest.raises(UnknownName, match="w3"):
        learn(Accelerator(), Data(runs, profiles=some))
    fitted = learn(Accelerator(), Data(runs, profiles=profiles()))
    arrays, document = fitted.to_arrays()
    old = {name: value for name, value in document.items() if name != "usual_way"}
    with pytest.raises(KeyError, match="usual_way"):
        Accelerator.restore(arrays, old)


def test_a_workload_never_beside_others_has_no_guaranteed_bound() -> None:
    runs = world(Sharing("concurrent", "shared", "since start"))
    columns = runs.colocations.to_columns()
    met = np.array(
        [
            not beside or "w0" not in (workload, *beside)
            for workload, beside in zip(columns["workload"], columns["corunners"], strict=True)
        ]
    )
    kept = runs.take(np.flatnonzero(met))
    model = jostle.fit(Data(kept, profiles=profiles()), Accelerator(), seed=0)
    asked = Colocations.from_columns(
        workload=["w0", "w1", "w2"], platform=["v100"] * 3, corunners=[["w1"], ["w0"], ["w1"]]
    )
    assert model.bound(asked, 0.5).outcome.tolist() == [
        "held_out_names",
        "held_out_names",
        "cross_validated",
    ]


def test_what_never_ran_is_as_long_as_its_trace_tells() -> None:
    runs = world(Sharing("concurrent", "per_direction", "since start"))
    columns = runs.colocations.to_columns()
    without = [
        "w0" not in (w, *o) for w, o in zip(columns["workload"], columns["corunners"], strict=True)
    ]
    kept = Data(runs.take(np.flatnonzero(without)), profiles=profiles())
    asked = Colocations.from_columns(
        workload=["w0", "w0", "w1"], platform=["v100"] * 3, corunners=[[], ["w1"], ["w0"]]
    )
    true = [runs.runtime_seconds[columns["workload"].index("w0")]]
    for method in (Accelerator(), Ensemble()):
        alone, *beside = learn(method, kept).predict(asked)
        # Host work is the same for all, so the trace plus that is closer than the trace times a factor.
        assert alone == pytest.approx(true[0], rel=0.1)
        assert np.isfinite(beside).all()


def simulations(fitted: Any) -> dict[str, Any]:
    return fitted.learners["simulation"].members_of(0)


def interacting(seed: int = 0) -> tuple[CoRuns, np.ndarray, np.ndarray]:
    """(co-runs, extra seconds, features): a smooth function of what both sides are like."""
    random = np.random.default_rng(seed)
    n = 10
    features = random.normal(size=(n, 2))
    i, j = np.nonzero(~np.eye(n, dtype=bool))
    extra = 0.1 * np.tanh(features[i, 0]) * features[j, 1] + 0.05 * features[i, 1]
    extra = extra + random.normal(0, 0.002, len(i))
    zero = np.zeros(len(i), int)
    return CoRuns(i, np.eye(n)[j], zero, np.ones(len(i)), 1 + extra), extra, features


def test_a_process_finds_what_a_simulator_misses() -> None:
    rows, extra, features = interacting()
    places = CoRunPlaces.of(rows, np.zeros(len(rows)))
    test = np.isin(places.together, np.unique(places.together)[::6])

    def fitted(kept: np.ndarray):
        noises = np.ones((2, int(kept.sum())))
        return fit_corun_process(places.take(kept), extra[kept], noises, features)

    model = fitted(~test)
    off = model.predict(places.take(test)) - extra[test]
    assert np.abs(off).mean() < 0.25 * np.abs(extra[test]).mean()
    np.testing.assert_array_equal(fitted(~test).weights, model.weights)
    # Leaving out in closed form is leaving out, with the strengths as they are.
    part = np.flatnonzero(places.together[~test] == places.together[~test][0])
    missed = model.missed_without(part)
    rest = ~test
    rest[np.flatnonzero(~test)[part]] = False
    again = fitted(rest)
    mine = np.flatnonzero(~test)[part]
    np.testing.assert_allclose(missed, extra[mine] - again.predict(places.take(mine)), atol=0.01)
    told = model.without(part).predict(places.take(mine))
    np.testing.assert_allclose(extra[mine] - told, missed, atol=1e-9)
    # A workload never seen is told by its features.
    seen = (rows.target != 3) & (rows.beside[:, 3] == 0)
    off = fitted(seen).predict(places.take(~seen)) - extra[~seen]
    assert np.abs(off).mean() < 0.6 * np.abs(extra[~seen]).mean()


def test_delays_by_hand() -> None:
    """Two kernels of a second in turn; where one leaves the device idle for 1.4 s it delays the other once in
    two runs, but for the first three of 20."""
    kernels = [Application.of(name, Task("kernel", 1.0)) for name in ("a", "b")]
    way = Sharing("sequential", "shared", "repeating")
    for idle, later in ((0.0, 19 / 20), (1.4, 9 / 20)):
        both = Delays(kernels, Device.of(GPUS["V100"]), np.array([0.0, idle]))
        found = both.of(way, np.array([0]), np.eye(2)[[1]])
        np.testing.assert_allclose(found, later, rtol=1e-9)
