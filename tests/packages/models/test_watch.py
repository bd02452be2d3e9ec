"""A watched model: what drifts is told with its name and size, and bounds follow."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jostle
from jostle.conformal import DriftLevels
from jostle.data import Colocations, Runs
from jostle.errors import UnreadableFile
from jostle.models import DriftWatch, Model
from tests.command_line import jostle as command
from tests.documents import read_parts, write_parts
from tests.limits import share_limits
from tests.packages.models.levels import Levels, campaign
from tests.packages.models.watch_samples import names_of, renamed, stream, times

START = 300


@pytest.fixture(scope="module")
def model() -> Model:
    return jostle.fit(renamed(campaign(24, 12)), Levels(), seed=0)


@pytest.mark.parametrize(
    ("kind", "name", "step"),
    [
        ("device", "d2", 1.5),
        ("platform", "y:d1", 1.5),
        ("workload", "w07", 0.6),
        ("fleet", "", 1.4),
    ],
)
def test_the_name_that_drifts_is_told_once(model: Model, kind: str, name: str, step: float) -> None:
    runs = stream(5)
    platform = names_of(runs, "platform")
    inside = {
        "device": np.array([one.partition(":")[2] == name for one in platform]),
        "platform": platform == name,
        "workload": names_of(runs, "workload") == name,
        "fleet": np.ones(len(runs), bool),
    }[kind]
    named, inside = inside, inside & (np.arange(len(runs)) >= START)
    watch = DriftWatch(model)
    (found,) = watch.update(times(runs, np.where(inside, step, 1.0)))
    assert (found.kind, found.name) == (kind, name)
    assert found.ratio == pytest.approx(step, rel=0.1)
    assert found.first <= found.found
    # A sum may have begun by chance before the step; it is the step that takes it over the threshold.
    told = slice(found.first, found.found + 1)
    assert inside[told].sum() > named[told].sum() / 2
    assert 3 <= inside[: found.found + 1].sum() <= 40
    assert watch.drifts == [found]


@pytest.mark.parametrize("family", ["spread", "late"])
def test_a_median_far_off_is_a_mean_that_moved_whichever_bet_won(
    model: Model, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_by = DriftLevels.told_by
    monkeypatch.setattr(DriftLevels, "told_by", lambda *of: (family, told_by(*of)[1]))
    runs = stream(5, 1000)
    inside = np.array([one.partition(":")[2] == "d2" for one in names_of(runs, "platform")])
    inside &= np.arange(len(runs)) >= START
    found = DriftWatch(model).update(times(runs, np.where(inside, 1.5, 1.0)))[0]
    assert (found.kind, found.name, found.change) == ("device", "d2", "mean")
    assert found.ratio == pytest.approx(1.5, rel=0.1)


def test_bounds_follow_where_something_drifted_and_only_there(model: Model) -> None:
    runs = stream(6)
    drifted = np.array([one.partition(":")[2] == "d3" for one in names_of(runs, "platform")])
    watch = DriftWatch(model, 0.9)
    asked = runs.colocations
    assert (watch.bound(asked).seconds == model.bound(asked, 0.9).seconds).all()
    watch.update(times(runs, np.where(drifted, 1.5, 1.0)))
    found, static = watch.bound(asked), model.bound(asked, 0.9)
    bounded = static.is_valid & (asked.number_of_corunners > 0)
    assert set(found.outcome[drifted & bounded]) == {"adapting"}
    assert (found.seconds[~drifted] == static.seconds[~drifted]).all()
    assert (found.outcome[~drifted] == static.outcome[~drifted]).all()
    assert not found.is_guaranteed[drifted].any()
    ratio = watch.predict(asked) / model.predict(asked)
    assert ratio[drifted] == pytest.approx(1.5, rel=0.1)
    assert (ratio[~drifted] == 1.0).all()


@pytest.mark.parametrize(
    ("change", "law"),
    [
        ("spread", lambda r, n: np.exp(0.4 * r.normal(size=n))),
        ("share", lambda r, n: np.where(r.random(n) < 0.25, 2.0, 1.0)),
    ],
)
def test_noise_that_widens_is_told_and_nothing_there_is_guaranteed(
    model: Model, change: str, law: Any
) -> None:
    runs, random = stream(5, 3000), np.random.default_rng(11)
    inside = np.array([one.partition(":")[2] == "d2" for one in names_of(runs, "platform")])
    inside &= np.arange(len(runs)) >= START
    watch, static = DriftWatch(model, 0.9), model.bound(runs.colocations, 0.9)
    noisy = times(runs, np.where(inside, law(random, len(runs)), 1.0))
    late, told = [], False
    for first in range(0, len(runs), 50):
        part = noisy.take(np.arange(first, first + 50))
        bounds, mine = watch.bound(part.colocations), inside[first : first + 50]
        if told:
            assert not bounds.is_guaranteed[mine].any()
            late.append((part.runtime_seconds > bounds.seconds)[mine & bounds.is_valid])
        watch.update(part)
        told = bool(watch.drifts)
    (found, *_) = watch.drifts
    assert (found.name.rpartition(":")[2], found.change) == ("d2", change)  # or a platform of it
    assert found.spread_ratio > 1.5
    assert found.chance < 1e-3
    # The model's own bounds are late far more often.
    missed = np.concatenate(late)
    assert missed.mean() <= share_limits(len(missed), 0.1)[1]
    own = (noisy.runtime_seconds > static.seconds)[inside & static.is_valid]
    assert own.mean() > share_limits(len(own), 0.1)[1]


def test_the_first_sign_takes_the_guarantee_and_no_second(model: Model) -> None:
    """Bounds stay where they are until a drift is told; that they are guaranteed is no longer said."""
    runs = stream(5)
    inside = np.array([one.partition(":")[2] == "d2" for one in names_of(runs, "platform")])
    watch, static = DriftWatch(model, 0.9), model.bound(runs.colocations, 0.9)
    stepped, bounds = times(runs, np.where(inside, 1.3, 1.0)), static
    for place in range(len(runs)):
        if watch.update(stepped.take([place])):
            raise AssertionError("told without a sign before")
        bounds = watch.bound(runs.colocations)
        if (bounds.outcome[inside] == "adapting").any():
            break
    assert (bounds.seconds == static.seconds).all()
    assert watch.changes
    # What was but chance is a guarantee again.
    watch.update(runs)
    assert (watch.bound(runs.colocations).outcome == static.outcome).all()


def repeats(seed: int, n: int) -> Runs:
    """Six workloads on four platforms beside one of the six: each many times, so that bounds come from one
    pool, and runs of one seed are drawn as those of another."""
    random = np.random.default_rng(seed)
    w, p, other = (random.integers(0, names, n) for names in (6, 4, 6))
    return Runs.from_columns(
        workload=[f"w{i}" for i in w],
        platform=[f"p{i}" for i in p],
        corunners=[[f"w{i}"] for i in other],
        runtime_seconds=np.exp(0.3 * w + 0.2 * p + 0.05 * random.normal(size=n)),
    )


def test_the_share_of_late_runs_is_kept_under_a_ramp() -> None:
    """Over all runs since it began, those too that came before anybody knew."""
    n, miscoverage = 1500, 0.1
    runs = times(repeats(1, n), 1 + 0.7 * np.arange(n) / n)
    model = jostle.fit(repeats(0, 3000), Levels(), seed=0)
    watch, late = DriftWatch(model, 1 - miscoverage), []
    for first in range(0, n, 5):
        part = runs.take(np.arange(first, first + 5))
        late.append(part.runtime_seconds > watch.bound(part.colocations).seconds)
        watch.update(part)
    assert watch.drifts[0].kind == "fleet"
    missed = np.concatenate(late)
    assert missed.mean() <= share_limits(n, 0.14)[1]
    assert missed[n // 2 :].mean() <= share_limits(n // 2, miscoverage)[1]
    static = model.bound(runs.colocations, 1 - miscoverage).seconds
    # By a third, where noise is a twentieth.
    assert (runs.runtime_seconds > static)[n // 2 :].all()


@pytest.mark.parametrize("is_cross_conformal", [False, True])
def test_levels_of_fits_that_left_runs_out_are_none_of_the_fit_to_all(
    model: Model, is_cross_conformal: bool
) -> None:
    """They told that all takes longer than answered; of the fit to all that is not known."""
    assert model.usual is not None
    said = replace(model.usual.levels["fleet"], level=np.array([1.5]), unsure=np.array([0.05]))
    other = copy.copy(model)
    other.usual = replace(model.usual, levels=model.usual.levels | {"fleet": said})
    other.calibration = replace(model.calibration, is_cross_conformal=is_cross_conformal)
    found = [(one.kind, one.ratio < 1) for one in DriftWatch(other).update(stream(5, 300))]
    assert found == ([] if is_cross_conformal else [("fleet", True)])


def test_batches_do_not_matter_and_nothing_drifts_in_what_is_the_same(model: Model) -> None:
    runs = stream(8)
    whole, parts = DriftWatch(model), DriftWatch(model)
    whole.update(runs)
    for first in range(0, len(runs), 70):
        parts.update(runs.take(np.arange(first, min(first + 70, len(runs)))))
    assert whole.drifts == parts.drifts == []
    assert whole.checked == parts.checked == len(runs)


def test_unknown_names_failed_runs_and_none_at_all(model: Model) -> None:
    runs = Runs.from_columns(
        workload=["w01", "nobody", "w02", "w03"],
        platform=["x:d0", "x:d0", "nowhere", "x:d0"],
        corunners=[[], [], [], ["stranger"]],
        runtime_seconds=[None, 1.0, 1.0, 1.0],
        status=["failed", "ok", "ok", "ok"],
    )
    watch = DriftWatch(model)
    assert watch.update(runs) == []
    assert (watch.runs, watch.checked, watch.unknown) == (4, 0, 3)
    assert watch.update(runs.take([])) == []
    alone = Colocations.from_columns(workload=["w01"], platform=["x:d0"])
    assert watch.predict(alone) == model.predict(alone)


@pytest.mark.usefixtures("levels_are_loaded")
def test_a_saved_model_watches_the_same(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    runs = times(stream(9), 1.3)
    loaded = DriftWatch(jostle.load(tmp_path / "model"))
    assert loaded.update(runs) == DriftWatch(model).update(runs) != []
    bare = Model(model.predictor, model.calibration, model.metadata)
    bare.save(tmp_path / "bare")
    assert jostle.load(tmp_path / "bare").usual is None
    assert DriftWatch(jostle.load(tmp_path / "bare")).update(runs)[0].kind == "fleet"


@pytest.mark.usefixtures("levels_are_loaded")
def test_odd_usual_levels_are_refused(model: Model, tmp_path: Path) -> None:
    assert model.usual is not None
    model.save(tmp_path / "other")
    document, arrays = read_parts(tmp_path / "other")
    name = next(key for key in arrays if key.startswith("usual.levels.") and key.endswith(".noise"))
    for odd in (np.zeros(3), np.zeros((3, 2, 2))):
        write_parts(tmp_path / "other", document, {**arrays, name: odd})
        with pytest.raises(UnreadableFile, match="usual levels of shape"):
            jostle.load(tmp_path / "other")


@pytest.mark.usefixtures("levels_are_loaded")
def test_the_command(model: Model, tmp_path: Path) -> None:
    model.save(tmp_path / "model")
    runs = stream(10, 400)
    at = [f"2026-03-{1 + i // 20:02}T00:{i % 20:02}:00+00:00" for i in range(400)]
    slow = np.array([i >= 200 for i in range(400)])
    whole = times(runs, np.where(slow, 1.5, 1.0)).table
    column = pa.array(at).cast(pa.timestamp("us", tz="UTC"))
    whole = whole.set_column(whole.column_names.index("measured_at"), "measured_at", column)
    shuffled = Runs(whole).take(np.random.default_rng(0).permutation(400))
    jostle.Dataset(tmp_path / "data").write(shuffled)
    words = ["update", str(tmp_path / "model"), str(tmp_path / "data"), "--dry-run"]
    done = command(*words, "--json")
    assert done.exit_code == 1, done.output
    document = json.loads(done.stdout)
    assert (document["schema"], document["checked"]) == ("drift/v1", 400)
    assert [one["kind"] for one in document["drifts"]] == ["fleet"]
    first, last = (document["drifts"][0][name] for name in ("first", "found"))
    assert last - 200 > 200 - first  # most of what told came after the step
    assert first <= last < 230
    assert document["drifts"][0]["at"].startswith("2026-03-1")
    table = command(*words).stdout
    assert "all of it" in table
