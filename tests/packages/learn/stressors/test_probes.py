"""Answers about pairs from runs beside stressors alone, and bounds from whatever pairs there are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.cli import exit_code
from jostle.data import Runs, add_runs
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn import Data, Ensemble, FittedEnsemble, learn
from jostle.learn.learners.stressors import Probes, mixture_weights
from tests.limits import assert_closer, assert_not_farther, errors_of
from tests.packages.learn.stressors.probes_samples import STRESSORS, law


def pairs_of(runs: Runs) -> np.ndarray:
    c = runs.colocations
    names = [c.row(i) for i in range(len(c))]
    return np.array(
        [bool(o) and not any(n.startswith("probe") for n in (w, *o)) for w, _, o in names]
    )


def test_mixtures_are_found_again() -> None:
    beside = np.array([[0.5, 0.1, 0.0], [0.1, 0.4, 0.2], [0.0, 0.3, 0.6]])
    for weights in ([0.2, 0.3, 0.1], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]):
        found = mixture_weights(beside, beside @ np.array(weights))
        np.testing.assert_allclose(found, weights, atol=0.02)
    # No more than all of it, no less than nothing, and what was not measured is not asked for.
    assert mixture_weights(beside, 9 * beside[:, 0]).sum() == pytest.approx(1.0, abs=1e-3)
    assert mixture_weights(beside, -beside[:, 0]).max() == pytest.approx(0.0, abs=1e-9)
    some = mixture_weights(beside, np.where([True, True, False], beside[:, 1], np.nan))
    np.testing.assert_allclose(some, [0, 1, 0], atol=0.05)
    assert mixture_weights(beside, np.full(3, np.nan)).sum() == 0


def test_one_stressor_is_a_share_of_its_pressure() -> None:
    for pressed, expected in ((0.2, 0.5), (0.8, 1.0), (-0.1, 0.0)):
        found = mixture_weights(np.array([[0.4]]), np.array([pressed]))
        np.testing.assert_allclose(found, [expected], atol=2e-3)


def test_pairs_are_answered_from_stressors_alone() -> None:
    every, _ = law(8, 1)
    tested = pairs_of(every)
    fitted = learn(Probes(), Data(every.take(~tested)), seed=0)
    truth = every.runtime_seconds[tested]
    error = np.abs(fitted.predict(every.take(tested).colocations) / truth - 1)
    solo = {every.colocations.row(i)[0]: every.runtime_seconds[i] for i in range(10)}
    alone = np.array([solo[every.colocations.row(int(i))[0]] for i in np.flatnonzero(tested)])
    nothing = np.abs(alone / truth - 1)
    constant = np.abs(alone * np.mean(truth / alone) / truth - 1)
    assert_closer(error, nothing)
    assert_closer(error, constant)
    assert any("added up" in note for note in fitted.notes)


def test_several_are_added_up_and_pairs_of_programs_only_help() -> None:
    every, _ = law(8, 2, triples=30, noise=0.005)
    tested = pairs_of(every)
    several = every.colocations.number_of_corunners > 1
    asked = every.take(several)
    errors = {}
    for name, kept in (("alone", ~tested), ("pairs", ~several), ("all", np.ones(len(every), bool))):
        fitted = learn(Probes(), Data(every.take(kept)), seed=0)
        errors[name] = errors_of(fitted.predict(asked.colocations), asked.runtime_seconds)
        nothing = fitted.predict(asked.colocations) / fitted.slowdown(asked.colocations)
        assert_closer(errors[name], errors_of(nothing, asked.runtime_seconds))
    assert_not_farther(errors["all"], errors["alone"])


def test_no_interference_is_no_slowdown() -> None:
    """What stressors do to each other is no reason to think that programs suffer."""
    every, _ = law(7, 3)
    quiet = pairs_of(every)
    alone = {every.colocations.row(i)[0]: every.runtime_seconds[i] for i in range(9)}
    seconds = every.runtime_seconds.copy()
    for i in np.flatnonzero(quiet).tolist():
        seconds[i] = alone[every.colocations.row(i)[0]]
    columns = every.colocations.to_columns()
    windows = [str(number) for number in every.units("window").tolist()]
    runs = Runs.from_columns(**columns, runtime_seconds=seconds, window_id=windows)
    fitted = learn(Probes(), Data(runs), seed=0)
    slow = fitted.slowdown(runs.take(quiet).colocations)
    plain = learn(Probes(learn_weights=False), Data(runs), seed=0)
    assert_closer(slow, plain.slowdown(runs.take(quiet).colocations))


def with_seconds(runs: Runs, seconds: np.ndarray) -> Runs:
    windows = [str(number) for number in runs.units("window").tolist()]
    columns = runs.colocations.to_columns()
    return Runs.from_columns(**columns, runtime_seconds=seconds, window_id=windows)


def by_effects_of_names(runs: Runs, learned: np.ndarray, alone: dict[str, float]) -> np.ndarray:
    """(n,) seconds of all runs beside one by additive effects, an oracle of its own: ridge."""
    rows = [runs.colocations.row(i) for i in range(len(runs))]
    names = sorted(alone)
    design = np.zeros((len(rows), 2 * len(names)))
    for at, (target, _, others) in enumerate(rows):
        design[at, names.index(target)] = 1
        for other in others:
            design[at, len(names) + names.index(other)] = 1
    solo = np.array([alone[target] for target, *_ in rows])
    log = np.log(runs.runtime_seconds / solo)[learned]
    x = design[learned]
    gram = x.T @ x + 0.5 * np.eye(x.shape[1])
    effects = np.linalg.solve(gram, x.T @ (log - log.mean()))
    return solo * np.exp(log.mean() + design @ effects)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_no_stressor_shows_is_learned_from_names(sign: float) -> None:
    """Waiting for a disk, or finding data that others have fetched: effects of who runs beside whom, never
    much worse than the plain rule, with as many pairs and with few; and of new names nothing is known."""
    every, _ = law(14, 10, noise=0.01)
    random = np.random.default_rng(10)
    c = every.colocations
    rows = [c.row(i) for i in range(len(c))]
    hit, press = ({f"w{i}": random.uniform(0, 0.3) for i in range(14)} for _ in range(2))
    more = [
        sign * (hit[w] + press[o[0]]) if p else 0.0
        for (w, _, o), p in zip(rows, pairs_of(every), strict=True)
    ]
    runs = with_seconds(every, every.runtime_seconds * np.exp(more))
    alone = {w: runs.runtime_seconds[i] for i, (w, _, o) in enumerate(rows) if not o}
    pair, unit = pairs_of(runs), runs.units("together")
    for share in (2, 5):
        learned = pair & (unit % share == 0)
        test = pair & ~learned
        fitted = learn(Probes(), Data(runs.take(~pair | learned)), seed=0)
        truth = runs.runtime_seconds[test]
        errors = errors_of(fitted.predict(runs.take(test).colocations), truth)
        assert_not_farther(
            errors, errors_of(by_effects_of_names(runs, learned, alone)[test], truth)
        )
        plain = learn(Probes(learn_weights=False), Data(runs.take(~pair | learned)), seed=0)
        assert_closer(errors, errors_of(plain.predict(runs.take(test).colocations), truth))


def test_a_new_name_beside_a_known_one_is_told_by_the_known_one() -> None:
    every, _ = law(14, 11, noise=0.005)
    c = every.colocations
    rows = [c.row(i) for i in range(len(c))]
    press = {f"w{i}": 0.5 * (i % 2) for i in range(14)}
    pair = pairs_of(every)
    more = [press[o[0]] if p else 0.0 for (_, _, o), p in zip(rows, pair, strict=True)]
    runs = with_seconds(every, every.runtime_seconds * np.exp(more))
    new = np.array([w == "w0" or "w0" in o for w, _, o in rows]) & pair
    fitted = learn(Probes(), Data(runs.take(~new)), seed=0)
    asked = np.array([w == "w0" and "w0" not in o for w, _, o in rows]) & new
    error = np.abs(fitted.predict(runs.take(asked).colocations) / runs.runtime_seconds[asked] - 1)
    assert error.mean() < 0.1


def test_pairs_tell_what_stressors_beside_each_other_would() -> None:
    """Stressors that never ran beside each other leave no scale for pressures; pairs of programs give one,
    also for programs in none of them."""
    every, _ = law(18, 14, noise=0.01)
    rows = [every.colocations.row(i) for i in range(len(every))]
    new = {f"w{i}" for i in range(7)}
    between = np.array([w in STRESSORS and bool(set(STRESSORS) & set(o)) for w, _, o in rows])
    unseen = np.array([not new.isdisjoint((w, *o)) for w, _, o in rows]) & pairs_of(every)
    asked = np.array([new.issuperset((w, *o)) for w, _, o in rows]) & unseen
    runs, test = every.take(~between & ~unseen), every.take(asked)
    mine, plain = (
        errors_of(
            learn(Probes(learn_weights=learned), Data(runs), seed=0).predict(test.colocations),
            test.runtime_seconds,
        )
        for learned in (True, False)
    )
    assert_closer(mine, plain)


def test_noise_of_stressors_is_no_slowdown_and_a_slowdown_stays() -> None:
    """Repeated windows say how far what was measured beside stressors is noise; where none was repeated, what
    is quicker beside them than alone does."""
    for repeats in (3, 1):
        answers = {}
        for size in (0.0, 1.0):
            parts = []
            for number in range(repeats):
                every, _ = law(12, 12, pairs=False)
                random = np.random.default_rng([12, number])
                c = every.colocations
                solo = {c.row(i)[0]: every.runtime_seconds[i] for i in range(14)}
                usual = np.array([solo[c.row(i)[0]] for i in range(len(c))])
                slow = usual * (every.runtime_seconds / usual) ** size
                runs = with_seconds(every, slow * np.exp(0.03 * random.normal(size=len(c))))
                columns = runs.colocations.to_columns()
                windows = [f"{number}-{w}" for w in runs.units("window").tolist()]
                parts.append(
                    Runs.from_columns(
                        **columns, runtime_seconds=runs.runtime_seconds, window_id=windows
                    )
                )
            fitted = learn(Probes(), Data(Runs.concatenate(parts)), seed=0)
            asked = jostle.Colocations.from_columns(
                workload=[f"w{i}" for i in range(12) for _ in range(12)],
                platform=["p"] * 144,
                corunners=[[f"w{j}"] for _ in range(12) for j in range(12)],
            )
            answers[size] = fitted.slowdown(asked)
        assert np.abs(answers[0.0] - 1).mean() < 0.01
        assert answers[1.0].mean() > 1.1


def test_few_pairs_are_all_learned_from_however_many_ran_beside_stressors() -> None:
    runs, _ = law(12, 13, noise=0.01)
    model = jostle.fit(runs, Probes(), seed=0)
    assert model.metadata["runs"]["calibration"] == pairs_of(runs).sum()


def test_bounds_come_from_pairs_of_programs() -> None:
    runs, _ = law(12, 5, noise=0.02)
    model = jostle.fit(runs, Probes(), seed=0)
    asked = runs.take(pairs_of(runs)).colocations
    bound = model.bound(asked, 0.8)
    assert np.isfinite(bound.seconds).all()
    assert (bound.seconds >= model.predict(asked)).all()
    none, _ = law(6, 5, pairs=False)
    with_none = jostle.fit(none, Probes(), seed=0)
    refused = with_none.bound(asked.take(np.arange(1)), 0.9)
    assert np.isinf(refused.seconds).all()
    assert refused.outcome[0] in ("new_beside_others", "new_on_platform")


def test_who_ran_beside_stressors_alone_has_no_guarantee() -> None:
    """However often: pairs of known programs are another thing. Leaving names out gives a bound."""
    every, _ = law(10, 9, noise=0.02)
    c = every.colocations
    new = {f"w{i}" for i in range(7, 10)}
    rows = [c.row(i) for i in range(len(c))]
    pair = pairs_of(every)
    unseen = np.array([w in new or bool(new.intersection(o)) for w, _, o in rows])
    tested = pair & np.array([w in new and new.issuperset(o) for w, _, o in rows])
    seldom = pair & ~unseen & (every.units("together") % 3 == 0)
    parts = []
    for number, part in enumerate([every.take(~pair)] * 3 + [every.take(seldom)]):
        windows = [f"{number}-{window}" for window in part.units("window").tolist()]
        parts.append(
            Runs.from_columns(
                **part.colocations.to_columns(),
                runtime_seconds=part.runtime_seconds,
                window_id=windows,
            )
        )
    runs, asked = Runs.concatenate(parts), every.take(tested)
    confidence = 0.7  # which so few names can tell
    for new_names in (False, True):
        model = jostle.fit(runs, Probes(), seed=0, new_names=new_names)
        bound = model.bound(asked.colocations, confidence)
        assert set(bound.outcome) == {"held_out_names"}
        assert (asked.runtime_seconds <= bound.seconds).mean() >= confidence
        assert np.median(bound.seconds / asked.runtime_seconds) < 1.6


def test_what_was_not_measured_is_typical_or_refused() -> None:
    runs, _ = law(6, 6, pairs=False)
    c = runs.colocations
    rows = [c.row(i) for i in range(len(c))]
    beside = np.array([(w == "w0" and bool(o)) or "w0" in o for w, _, o in rows])
    fitted = learn(Probes(), Data(runs.take(~beside)), seed=0)
    asked = jostle.Colocations.from_columns(
        workload=["w0", "w1"], platform=["p", "p"], corunners=[["w1"], ["w0"]]
    )
    slow = fitted.slowdown(asked)
    assert (slow > 1.02).all()
    assert (slow < 2).all()
    assert any("beside no stressor" in note for note in fitted.notes)
    columns = runs.take(c.number_of_corunners == 0).colocations.to_columns()
    columns["platform"] = ["q"] * len(columns["platform"])
    further = Runs.concatenate([runs, Runs.from_columns(**columns, runtime_seconds=[5.0] * 8)])
    both = learn(Probes(), Data(further), seed=0)
    there = jostle.Colocations.from_columns(workload=["w1"], platform=["q"], corunners=[["w2"]])
    here = jostle.Colocations.from_columns(workload=["w1"], platform=["p"], corunners=[["w2"]])
    # Nobody was probed on q: there it is as on p, and not as if nothing happened.
    np.testing.assert_allclose(both.slowdown(there), both.slowdown(here))
    hogs = [
        jostle.Colocations.from_columns(workload=["w1"], platform=[p], corunners=[["probe-bus"]])
        for p in "pq"
    ]
    slow = [both.slowdown(hog)[0] for hog in hogs]
    assert slow[0] == pytest.approx(slow[1])
    assert slow[0] > 1
    no_time = np.array([w == "w0" and not o for w, _, o in rows])
    unknown = learn(Probes(), Data(runs.take(~no_time)), seed=0).predict(asked)
    # A time alone is as others are on the platform.
    assert np.isfinite(unknown).all()
    new = jostle.Colocations.from_columns(workload=["nobody"], platform=["p"], corunners=[["w1"]])
    assert np.isfinite(fitted.predict(new)).all()
    assert fitted.evidence(new).workload.tolist() == [0]


def test_data_without_stressors_are_refused_with_names_that_would_do() -> None:
    runs, _ = law(4, 7)
    with pytest.raises(
        NotEnoughRuns, match=r"(?s)no name fits bus-\*.*stressors`: probe-bus, probe-cache"
    ):
        learn(Probes(stressors=("bus-*",)), Data(runs), seed=0)
    alone = runs.colocations.number_of_corunners == 0
    with pytest.raises(NotEnoughRuns, match="alone"):
        learn(Probes(), Data(runs.take(alone)), seed=0)
    for wrong in ((), (" ",)):
        with pytest.raises(UsageError):
            Probes(stressors=wrong)
    named = learn(Probes(("w0", "w1"), learn_weights=False), Data(runs), seed=0)
    assert isinstance(named, FittedEnsemble)
    assert named.state.labels == ("mixture 1",)


def test_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs, _ = law(6, 8, noise=0.01)
    data, output = str(tmp_path / "data"), str(tmp_path / "model")
    add_runs(data, runs, "made up")
    assert exit_code(["fit", "--method=probes", data, "-o", output, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["runs"]["calibration"] > 0
    assert exit_code(["predict", output, "-w", "w1", "-b", "w2", "-c", "0.5", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["items"]
    assert answer["runtime_seconds"] > 0
    assert exit_code(["fit", "--method=probes", data, "-o", output, "--set=stressors=none-*"]) == 3
    assert "beside probes (jostle measure)" in capsys.readouterr().err


def test_the_default_hears_stressors_and_asks_nothing_about_them() -> None:
    """Runs beside stressors are inputs: pairs of programs alone are left out, and alone taught to rules."""
    runs, _ = law(12, 15, noise=0.01)
    pair = pairs_of(runs)
    learned = runs.take(~pair | (runs.units("together") % 5 == 0))
    data, test = Data(learned), runs.take(pair & (runs.units("together") % 5 != 0))
    default = Ensemble(("rules", "probes"))
    fitted, left_out = default.fit_left_out(default.prepare(data), seed=0)
    beside = np.concatenate([one.runs for one in left_out])
    beside = beside[learned.colocations.number_of_corunners[beside] > 0]
    assert pairs_of(learned)[beside].all()
    assert (
        sum(
            share for name, share in fitted.shares(test.colocations)[0].items() if "mixture" in name
        )
        > 0.5
    )
    plain = learn(Ensemble(("rules",)), data, seed=0)
    truth = test.runtime_seconds
    mine = errors_of(fitted.predict(test.colocations), truth)
    assert_closer(mine, errors_of(plain.predict(test.colocations), truth))


def test_without_weights_pairs_calibrate_and_change_no_answer() -> None:
    runs, _ = law(12, 16, noise=0.02)
    model = jostle.fit(runs, Probes(learn_weights=False), seed=0)
    asked = runs.take(pairs_of(runs)).colocations
    alone = learn(Probes(learn_weights=False), Data(runs.take(~pairs_of(runs))), seed=0)
    np.testing.assert_allclose(model.predict(asked), alone.predict(asked), rtol=1e-9)
    assert np.isfinite(model.bound(asked, 0.9).seconds).all()
