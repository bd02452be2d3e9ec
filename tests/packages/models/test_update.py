"""A model that learns what came since: bounds hold, names join, nothing is learned twice, one step back."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import jostle
from jostle.data import Dataset, Runs, add_runs, runs_since
from jostle.errors import JostleError, NotPermitted, UnknownName, UnreadableFile, UsageError
from jostle.learn.learners.stressors import Probes
from jostle.models import DriftWatch, Model, save_over, step_back, usual_questions
from jostle.models.updates import _update_model as _update
from tests.command_line import jostle as command
from tests.documents import read_parts
from tests.limits import assert_covers
from tests.packages.models.levels import campaign

SMALL = jostle.Factorization(steps=100, hidden=16, rank=4)


@dataclass(frozen=True)
class Parts:
    """old: without the last workload. new: with it. later: more of the others."""

    old: Runs
    new: Runs
    later: Runs


@pytest.fixture(scope="module")
def parts() -> Parts:
    runs = campaign(24, 12)
    c, random = runs.colocations, np.random.default_rng(0)
    last = len(c.workload_names) - 1
    new = c.workload == last
    row = np.repeat(np.arange(len(c)), c.number_of_corunners)
    beside = np.zeros(len(c), bool)
    beside[row[c.corunner == last]] = True
    later = (random.random(len(c)) < 0.3) & ~new & ~beside
    old = runs.take(~new & ~beside & ~later)
    features = runs.workload_features
    assert features is not None
    others = np.array([name != f"w{last:02}" for name in features.column(0).to_pylist()])
    known = features.filter(others), runs.platform_features
    return Parts(Runs(old.table, *known), runs.take(new), Runs(runs.take(later).table, *known))


@pytest.fixture(scope="module")
def model(parts: Parts) -> Model:
    return jostle.fit(parts.old, SMALL, seed=0)


def test_more_runs_are_learned_and_calibrated_on(model: Model, parts: Parts) -> None:
    found = model.update(parts.later, updated_at="now", data_version="v")
    record = found.metadata["updates"][-1]
    assert record["learned"] + record["calibration"] == len(parts.later)
    assert 0.05 < record["calibration"] / len(parts.later) < 0.4
    own = found.calibration.runs.held_out
    assert int((~own).sum()) == len(model.calibration.runs) + record["calibration"]
    assert found.metadata["data_version"] == "v"
    assert "updates" not in model.metadata  # the old one stays as it was
    assert_covers(found.bound(parts.old.colocations, 0.8), parts.old.runtime_seconds)
    again = model.update(parts.later, updated_at="now", data_version="v")
    asked = parts.old.colocations
    np.testing.assert_array_equal(again.bound(asked).seconds, found.bound(asked).seconds)


def test_a_name_by_its_features_alone_and_by_ten_of_its_runs(model: Model, parts: Parts) -> None:
    alone = parts.new.take(parts.new.colocations.number_of_corunners == 0)
    features = Runs(parts.new.table.slice(0, 0), parts.new.workload_features)
    with pytest.raises(UnknownName):
        model.predict(alone.colocations)
    by_features, by_runs = model.update(features), model.update(alone.take(np.arange(10)))

    def error(found: Model) -> float:
        return float(
            np.abs(np.log(found.predict(alone.colocations) / alone.runtime_seconds)).mean()
        )

    assert error(by_runs) < error(by_features) < 1.0
    assert set(by_features.bound(alone.colocations, 0.8).outcome) == {"held_out_names"}
    assert not set(by_runs.bound(alone.colocations, 0.8).outcome) & {"guaranteed", "new_name"}
    assert by_features.metadata["updates"][-1]["new_workloads"] == 1


def test_an_updated_model_is_read_as_it_was_saved_and_learns_on(
    model: Model, parts: Parts, tmp_path: Path
) -> None:
    found = model.update(parts.new)
    found.save(tmp_path)
    again = jostle.load(tmp_path)
    asked = parts.new.colocations
    # A small question is not summed up in the same order as one of a large one's grid.
    np.testing.assert_allclose(
        again.bound(asked, 0.8).seconds, found.bound(asked, 0.8).seconds, rtol=1e-6
    )
    assert again.metadata["updates"] == found.metadata["updates"]
    more = again.update(parts.later)
    np.testing.assert_allclose(
        more.predict(asked), found.update(parts.later).predict(asked), rtol=1e-6
    )


def test_nothing_new_changes_no_prediction(model: Model, parts: Parts) -> None:
    found = model.update(parts.later.take(np.zeros(0, int)))
    asked = parts.later.colocations
    np.testing.assert_allclose(found.predict(asked), model.predict(asked), rtol=1e-6)


def test_a_failed_run_teaches_nothing_until_it_comes_again_with_a_time(model: Model) -> None:
    named: dict[str, Any] = {"workload": ["w00"], "platform": ["p00"], "run_id": ["again"]}
    failed = Runs.from_columns(**named, runtime_seconds=[None], status=["failed"])
    ended = Runs.from_columns(**named, runtime_seconds=[0.5])
    updates = model.update(failed).update(ended).update(ended).metadata["updates"]
    assert [(one["runs"], one["known"]) for one in updates] == [(0, 0), (1, 0), (0, 1)]


def test_what_cannot_learn_says_so(model: Model, parts: Parts) -> None:
    named = {**model.metadata, "method": "alignment"}
    other = Model(model.predictor, model.calibration, named, model.usual, model.kept)
    with pytest.raises(UsageError, match="the method alignment does not learn new runs"):
        other.update(parts.later)


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, None, "3"])
def test_a_count_that_is_none_is_refused(model: Model, wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"`most` is .*, no whole number from 1 on"):
        model.suggest(most=wrong)


def test_what_is_no_runs_and_no_question_is_refused(model: Model, parts: Parts) -> None:
    asked: Any = parts.old.colocations.take(np.arange(1))
    wrong: Any
    for wrong in (None, 0, "runs", asked):
        for learns in (model.update, DriftWatch(model).update, DriftWatch(model).replay):
            with pytest.raises(UsageError, match="is no runs"):
                learns(wrong)
    with pytest.raises(UsageError, match="is no runs"):
        model.explain(asked, runs=asked)
    for wrong in (0, "w00", parts.old):
        for asks in (model.suggest, model.explain, model.for_mix):
            with pytest.raises(UsageError, match="is no co-locations"):
                asks(wrong)
    for wrong in (-1, 1.5):
        with pytest.raises(UsageError, match=r"`seed` is .*, no whole number from 0 on"):
            model.update(parts.later, seed=wrong)


def test_a_method_that_fits_quickly_learns_as_by_a_fit_to_all(tmp_path: Path) -> None:
    runs = campaign(10, 12)
    method = Probes(stressors=("w00", "w01", "w02"), learn_weights=False)
    first = np.arange(len(runs)) % 3 > 0
    old, new = runs.take(first), runs.take(~first)
    model = jostle.fit(old, method, seed=0)
    model.save(tmp_path / "model")
    chosen = jostle.load(tmp_path / "model").update(new, chosen=True)
    assert chosen.kept is not None
    assert model.kept is not None
    # The same as a fit to what was learned from and the new runs, and bounded by the runs of before.
    held = renumbered(model.kept.calibration.as_runs(), "held")
    kept = Runs.concatenate([model.kept.learned.as_runs(), held, renumbered(new)])
    anew = jostle.learn.learn(method, kept)
    bounded = chosen
    assert (bounded.predict(runs.colocations) == anew.predict(runs.colocations)).all()
    assert (chosen.predict(runs.colocations) != model.predict(runs.colocations)).any()
    assert len(chosen.kept.learned) + len(chosen.kept.calibration) == len(runs)
    # All of more runs are learned from, and none that is an input calibrates.
    twice = chosen.update(renumbered(new, "a")).update(renumbered(new, "b"))
    assert twice.kept is not None
    record = twice.metadata["updates"][-1]
    assert record["learned"] == len(new)
    held = twice.kept.calibration.as_runs().colocations
    single = held.number_of_corunners == 1
    assert not single.any() or not {"w00", "w01", "w02"} & {
        name for i in np.flatnonzero(single) for name in (held.row(int(i))[0], *held.row(int(i))[2])
    }
    twice.save(tmp_path / "twice")
    again = jostle.load(tmp_path / "twice")
    assert (again.predict(runs.colocations) == twice.predict(runs.colocations)).all()
    assert (
        again.update(renumbered(new, "c")).predict(new.colocations)
        == twice.update(renumbered(new, "c")).predict(new.colocations)
    ).all()


def renumbered(runs: Runs, start: str = "new") -> Runs:
    """With run_ids that no kept run has."""
    table, place = runs.table, runs.table.column_names.index("run_id")
    ids = pa.array([f"{start}{row}" for row in range(len(runs))])
    return Runs(
        table.set_column(place, "run_id", ids), runs.workload_features, runs.platform_features
    )


def test_runs_that_hold_all_that_was_learned_are_refused(model: Model, parts: Parts) -> None:
    again = renumbered(parts.old)
    for runs in (again, Runs.concatenate([parts.later, again])):
        with pytest.raises(UsageError, match="would count twice"):
            model.update(runs)
    part = again.take(np.arange(1, len(again)))  # rounded times may be the same by chance
    assert len(model.update(part).metadata["updates"]) == 1


@pytest.mark.parametrize("is_cross_conformal", [False, True])
def test_a_run_is_learned_once(
    model: Model, parts: Parts, tmp_path: Path, is_cross_conformal: bool
) -> None:
    old, later = parts.old, parts.later
    if is_cross_conformal:
        old, later = old.take(np.arange(60)), old.take(np.arange(60, 80))
        model = jostle.fit(old, jostle.learn.Ensemble(), seed=0)
        assert model.calibration.is_cross_conformal
    half = later.take(np.arange(0, len(later), 2))
    once = model.update(half)
    once.save(tmp_path)
    asked = old.colocations
    for known in (once, jostle.load(tmp_path)):
        # All of the fit, all of the update, and the rest that is new.
        twice = known.update(Runs.concatenate([old, later]))
        record = twice.metadata["updates"][-1]
        rest = later.take(np.arange(1, len(later), 2))
        assert (record["runs"], record["known"]) == (len(rest), len(old) + len(half))
        np.testing.assert_allclose(
            twice.bound(asked, 0.8).seconds, known.update(rest).bound(asked, 0.8).seconds
        )
        assert known.update(half).metadata["runs"] == known.metadata["runs"]


def test_a_model_that_was_saved_without_ids_learns_on(model: Model, parts: Parts) -> None:
    assert model.kept is not None
    arrays, document = model.kept.to_arrays()
    kept = type(model.kept).from_arrays(arrays, {k: v for k, v in document.items() if k != "ids"})
    older = Model(model.predictor, model.calibration, model.metadata, model.usual, kept)
    once = older.update(parts.later)
    assert once.metadata["updates"][-1]["known"] == 0
    assert once.update(parts.later).metadata["updates"][-1]["known"] == len(parts.later)


def test_a_model_without_runs_says_so(model: Model, parts: Parts) -> None:
    bare = Model(model.predictor, model.calibration, model.metadata, model.usual)
    with pytest.raises(UsageError, match="keeps none of its runs"):
        bare.update(parts.later)


def test_a_model_that_learns_for_ever_does_not_grow(
    model: Model, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_update, "MOST_CALIBRATION", 30)
    sizes = []
    for seed in range(6):
        model = model.update(renumbered(parts.later, f"{seed}-"), seed=seed)
        kept = model.kept
        assert kept is not None
        own = int((~model.calibration.runs.held_out).sum())
        assert own == len(kept.calibration) <= 60
        sizes.append((own, len(kept.learned)))
    assert sizes[-1][1] <= len(parts.old) + 6 * len(parts.later)
    assert max(own for own, _ in sizes[3:]) == min(own for own, _ in sizes[3:])
    # The last ones stay.
    newest = set(parts.later.runtime_seconds.tolist())
    assert model.kept is not None
    assert model.kept.calibration.runtime_seconds[-1] in newest


def test_one_step_back(model: Model, parts: Parts, tmp_path: Path) -> None:
    place = tmp_path / "model"
    model.save(place)
    with pytest.raises(UsageError, match="keeps no model of before"):
        step_back(place)
    save_over(model.update(parts.later), place)
    assert len(jostle.load(place).metadata["updates"]) == 1
    step_back(place)
    assert "updates" not in jostle.load(place).metadata
    with pytest.raises(UsageError):
        step_back(place)


def test_a_journal_of_models_to_go_back_in(model: Model, parts: Parts, tmp_path: Path) -> None:
    place, said = tmp_path / "model", []
    for at in range(13):
        metadata = {**model.metadata, "fitted_at": str(at)}
        save_over(Model(model.predictor, model.calibration, metadata, model.usual), place)
    (place / ".previous-new").mkdir()  # of a writer that was killed
    with suppress(UsageError):
        while True:
            said.append(step_back(place).metadata["fitted_at"])
    assert said == [str(at) for at in reversed(range(2, 12))]  # ten before the last
    assert jostle.load(place).metadata["fitted_at"] == "2"
    assert not any(path.is_dir() for path in place.iterdir())


def test_a_model_is_saved_over_the_one_that_it_comes_of_alone(model: Model, tmp_path: Path) -> None:
    place = tmp_path / "model"
    model.save(place, only_over="")
    was = read_parts(place)[0]["sha256"]
    named = Model(model.predictor, model.calibration, {**model.metadata, "fitted_at": "1"})
    for save in (named.save, partial(save_over, named)):
        with pytest.raises(NotPermitted, match="another model came"):
            save(place, only_over="")
    assert read_parts(place)[0]["sha256"] == was
    assert not (place / "previous").exists()
    save_over(named, place, only_over=was)
    assert jostle.load(place).metadata["fitted_at"] == "1"


def test_runs_since_a_version_are_those_of_files_written_after(
    parts: Parts, tmp_path: Path
) -> None:
    add_runs(tmp_path, parts.old.take(np.arange(50)), "one")
    version = Dataset(tmp_path).version()
    assert len(runs_since(tmp_path, version)) == 0
    add_runs(tmp_path, parts.later.take(np.arange(7)), "two")
    found = runs_since(tmp_path, version)
    assert (
        found.table.column("run_id").to_pylist()
        == (parts.later.table.column("run_id").to_pylist()[:7])
    )
    with pytest.raises(UsageError, match="never had the version 0123"):
        runs_since(tmp_path, "0123")


def test_the_command_learns_only_what_is_new_and_steps_back(
    model: Model, parts: Parts, tmp_path: Path
) -> None:
    data, place = tmp_path / "data", tmp_path / "model"
    add_runs(data, parts.old, "one")
    known = Model(
        model.predictor,
        model.calibration,
        {**model.metadata, "data_version": Dataset(data).version()},
        model.usual,
        model.kept,
    )
    known.save(place)
    assert "nothing is new" in command("update", place, data).stdout
    add_runs(data, parts.later, "two")
    document = json.loads(command("update", place, data, "--json").stdout)
    assert document["schema"] == "update/v1"
    assert document["runs"] == len(parts.later)
    assert document["error_before"] > 0
    assert "nothing is new" in command("update", place, data).stdout
    # Elsewhere lie the same runs, too.
    add_runs(tmp_path / "copy", Runs.concatenate([parts.old, parts.later]), "all")
    shown = command("update", place, tmp_path / "copy", "-o", tmp_path / "same").stdout
    assert "learned 0 of 0 new runs" in shown
    assert f"knew {len(parts.old) + len(parts.later)} more already" in shown
    add_runs(data, parts.new.take(np.arange(12)), "three")
    shown = command("update", place, data, "-o", tmp_path / "other").stdout
    assert "learned 12 of 12 new runs" in shown
    assert "1 new workload" in shown
    assert "the model of before is back" in command("update", place, "--back").stdout
    assert "updates" not in jostle.load(place).metadata
    assert len(jostle.load(tmp_path / "other").metadata["updates"]) == 2


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], UsageError),
        (["DATA", "--back"], UsageError),
        (["DATA", "--since", "never"], UsageError),
        (["nowhere"], UnreadableFile),
    ],
)
def test_a_wrong_command_line_is_explained(
    model: Model, parts: Parts, tmp_path: Path, arguments: list[str], error: type[JostleError]
) -> None:
    model.save(tmp_path / "model")
    add_runs(tmp_path / "data", parts.old, "one")
    given = [str(tmp_path / "data") if a == "DATA" else a for a in arguments]
    assert command("update", tmp_path / "model", *given).exit_code == error.exit_code
    assert isinstance(jostle.load(tmp_path / "model"), Model)


def test_bounds_of_an_updated_model_hold_for_runs_drawn_alike(model: Model, parts: Parts) -> None:
    for seed in range(6):
        half = np.random.default_rng(seed).random(len(parts.later)) < 0.5
        found = model.update(parts.later.take(half), seed=seed)
        asked = parts.later.take(~half)
        assert_covers(found.bound(asked.colocations, 0.8), asked.runtime_seconds)


def test_what_is_suggested_narrows_more_than_what_is_drawn(model: Model, parts: Parts) -> None:
    features = Runs(parts.new.table.slice(0, 0), parts.new.workload_features)
    known = model.update(features)
    alone = parts.new.take(parts.new.colocations.number_of_corunners == 0)
    found = known.suggest(alone.colocations, asked=alone.colocations, most=3)
    doubts = [found.doubt, *(run.doubt for run in found.runs)]
    assert doubts == sorted(doubts, reverse=True)
    assert doubts[-1] < doubts[0]
    assert {run.workload for run in found.runs} == {"w23"}
    assert all(run.seconds > 0 for run in found.runs)
    # One at a time, no other candidate lowers the doubt more than the first one.
    each = [
        known.suggest(alone.colocations.take([row]), asked=alone.colocations, most=1).runs[0].doubt
        for row in range(len(alone))
    ]
    assert found.runs[0].doubt == pytest.approx(min(each), rel=1e-9)
    # Nor does any other after it lower it by more than a trace: what one tells may grow a little when others
    # are chosen, and only the one that leads is looked at anew.
    places = [run.platform for run in found.runs]
    names = np.array(alone.table.column("platform").to_pylist())
    first = int(np.flatnonzero(names == places[0])[0])
    for row in range(len(alone)):
        both = alone.colocations.take([first, row])
        after = known.suggest(both, asked=alone.colocations, most=2).runs[-1].doubt
        assert found.runs[1].doubt <= after * 1.002


def test_a_run_that_was_suggested_leaves_the_doubt_that_was_promised(
    model: Model, parts: Parts
) -> None:
    features = Runs(parts.new.table.slice(0, 0), parts.new.workload_features)
    alone = parts.new.take(parts.new.colocations.number_of_corunners == 0)
    asked = alone.colocations
    for row in range(0, len(alone), 5):
        promised = model.update(features).suggest(asked.take([row]), asked=asked, most=1)
        after = model.update(alone.take([row]), chosen=True).suggest(asked, asked=asked).doubt
        (run,) = promised.runs
        assert abs(np.log(after / run.doubt)) < abs(np.log(after / promised.doubt))


def test_a_whole_fleet_is_asked_about_where_all_have_runs_enough(model: Model) -> None:
    questions = usual_questions(model)
    workloads, platforms = model.predictor.workload_names, model.predictor.platform_names
    assert len(questions) == len(workloads) * len(platforms)
    assert not questions.number_of_corunners.any()
    beside = usual_questions(model, beside=True)
    assert set(beside.number_of_corunners.tolist()) == {0, 1}
    found = model.suggest(most=40)
    assert len(found.runs) == 40
    doubts = [found.doubt, *(run.doubt for run in found.runs)]
    assert doubts == sorted(doubts, reverse=True)
    # What was chosen for one place is not chosen there again while others are unknown.
    assert len({(run.workload, run.platform) for run in found.runs}) == 40
    assert len({run.workload for run in found.runs}) > 10


def test_a_new_name_has_bounds_before_it_has_calibration_runs_enough() -> None:
    """It may join with so many runs that a few are held out, which are too few for a bound."""
    runs = campaign(30, 96)
    runs = runs.take(runs.colocations.number_of_corunners == 0)
    c = runs.colocations
    last = len(c.workload_names) - 1
    new, row = c.workload == last, np.repeat(np.arange(len(c)), c.number_of_corunners)
    beside = np.bincount(row, c.corunner == last, len(c)) > 0
    model, mine = jostle.fit(runs.take(~new & ~beside), SMALL, seed=0), runs.take(new & ~beside)
    assert len(mine) > _update.KNOWN_WELL + 5
    for number in (_update.KNOWN_WELL - 1, _update.KNOWN_WELL + 5, len(mine)):
        found = model.update(mine.take(np.arange(number)))
        bounds = found.bound(mine.colocations, 0.8)
        assert bounds.is_valid.mean() > 0.9, (number, set(bounds.outcome.tolist()))


def test_chosen_runs_calibrate_nothing(model: Model, parts: Parts) -> None:
    assert model.update(parts.later, chosen=True).metadata["updates"][-1]["calibration"] == 0
    assert model.update(parts.later).metadata["updates"][-1]["calibration"] > 0
    column = pa.array([True] * len(parts.later))
    marked = Runs(parts.later.table.append_column("chosen", column))
    assert model.update(marked).metadata["updates"][-1]["calibration"] == 0


def test_the_command_suggests_and_writes_a_table(
    model: Model, parts: Parts, tmp_path: Path
) -> None:
    model.save(tmp_path / "model")
    table = tmp_path / "next.csv"
    words = (
        "suggest",
        tmp_path / "model",
        "--workload",
        "w01",
        "--on",
        "p03",
        "-n",
        "2",
        "-o",
        table,
    )
    document = json.loads(command(*words, "--json").stdout)
    assert document["schema"] == "suggest/v1"
    assert {one["platform"] for one in document["runs"]} == {"p03"}
    assert pyarrow.csv.read_csv(table).column_names == ["workload", "platform", "corunners"]
    assert "doubt after it" in command(*words).stdout
    assert (
        command("suggest", tmp_path / "model", "--on", "nowhere").exit_code == UnknownName.exit_code
    )
    assert (
        command("suggest", tmp_path / "model", "--workload", "x").exit_code == UnknownName.exit_code
    )
