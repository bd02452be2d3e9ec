"""What `fit` hands to a method, what it keeps of it, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import jostle
from jostle.conformal import name_codes
from jostle.data import Dataset, Runs
from jostle.errors import NotEnoughRuns, UnreadableFile, UsageError
from jostle.learn import DEFAULT_METHOD, Data, Prepared, hold_out, method_of
from jostle.models import _new_names
from jostle.models._grouped_names import groups_of
from jostle.models._new_names import ALONE, FEW_RUNS, _Plan, runs_of_names_left_out
from jostle.models._training_recipe import WayToLearn
from tests.documents import write_parts
from tests.limits import mean_limits
from tests.packages.models.levels import FittedLevels, Levels, campaign


@dataclass(frozen=True)
class Recorded(Levels):
    """Levels, and a list of what each fit was given."""

    seen: Any = None

    def fit(self, prepared: Prepared, *, seed: int = 0, progress: Any = None) -> FittedLevels:
        self.seen.append((ids(prepared.runs), ids(prepared.validation), seed))
        if progress is not None:
            progress(1, 1, 0.5)
        return super().fit(prepared, seed=seed)


@dataclass(frozen=True)
class Choosing(Recorded):
    """With several ways to bound, or with one."""

    offers_choice: bool = True


@dataclass(frozen=True)
class KnowsPrior(Recorded):
    def fit_with_prior(
        self, prepared: Prepared, prior: Runs, *, seed: int = 0, progress: Any = None
    ) -> FittedLevels:
        self.seen.append(("prior", ids(prior), ids(prepared.runs)))
        return self.fit(prepared, seed=seed, progress=progress)


def ids(runs: Runs) -> set[str]:
    return set(runs.table.column("run_id").to_pylist())


def test_what_is_learned_validated_and_calibrated_is_apart() -> None:
    runs, seen = campaign(12, 6), []
    model = jostle.fit(runs, Recorded(seen), seed=4, fitted_at="noon")
    ((learned, watched, seed),) = seen
    held = hold_out(Prepared.of(Data(runs)), 4, "window")
    assert seed == 4
    assert learned == ids(held.learn.runs)
    # Half of what validates is kept from the method: the way to bound is chosen on it.
    assert watched < ids(held.validation)
    assert 0 < len(watched) < len(held.validation)
    c = model.calibration.runs
    assert len(c) == len(held.calibration)
    order = np.log(held.calibration.runtime_seconds / model.predict(held.calibration.colocations))
    np.testing.assert_allclose(c.residual, order)
    assert model.metadata["runs"] == {
        "fitted": len(learned),
        "validation": len(held.validation),
        "calibration": len(held.calibration),
        "prior": 0,
    }
    kept = {key: model.metadata[key] for key in ("method", "seed", "fitted_at", "by", "new_names")}
    assert kept == {
        "method": "levels",
        "seed": 4,
        "fitted_at": "noon",
        "by": None,
        "new_names": False,
    }
    assert model.metadata["calibrated_by"] == "window"
    assert model.metadata["jostle_version"] == jostle.__version__
    assert model.metadata["settings"] == {"seen": seen}
    assert model.metadata["data_version"] is None


@pytest.mark.parametrize("offers", [True, False])
def test_without_a_choice_all_that_validates_is_the_methods(offers: bool) -> None:
    runs, seen = campaign(12, 6), []
    jostle.fit(runs, Choosing(seen, offers), seed=4)
    held = hold_out(Prepared.of(Data(runs)), 4, "window")
    watched = seen[0][1]
    assert (watched == ids(held.validation)) is not offers
    assert watched


def test_runs_held_out_by_the_caller_are_taken() -> None:
    runs, seen = campaign(12, 6), []
    validation, calibration = runs.take(np.arange(20)), runs.take(np.arange(20, 60))
    rest = runs.take(np.arange(60, len(runs)))
    model = jostle.fit(rest, Recorded(seen), validation=validation, calibration=calibration)
    assert seen[0][0] == ids(rest)
    assert seen[0][1] < ids(validation)
    assert len(model.calibration.runs) == 40
    # One of the two alone does not do: both are then drawn.
    drawn = jostle.fit(rest, Recorded(seen), validation=validation)
    assert len(drawn.calibration.runs) == drawn.metadata["runs"]["calibration"] != 40
    drawn = jostle.fit(rest, Recorded(seen), calibration=calibration)
    assert len(drawn.calibration.runs) != 40


def test_rows_can_be_the_unit() -> None:
    runs = campaign(12, 6)
    pairs = [f"window {i // 2}" for i in range(len(runs))]
    columns = {
        n: runs.table.column(n) for n in ("workload", "platform", "corunners", "runtime_seconds")
    }
    runs = Runs.from_columns(**columns, window_id=pairs)
    by_row = jostle.fit(runs, Levels(), calibrate_by="row")
    assert len(np.unique(by_row.calibration.runs.group)) == len(by_row.calibration.runs)
    by_window = jostle.fit(runs, Levels())
    assert len(np.unique(by_window.calibration.runs.group)) < len(by_window.calibration.runs)
    assert by_row.metadata["calibrated_by"] == "row"
    with pytest.raises(UsageError, match="calibrate by 'day'"):
        jostle.fit(runs, Levels(), calibrate_by="day")


def test_runs_measured_elsewhere_are_learned_from_and_never_calibrated_on() -> None:
    runs, prior, seen = Runs(campaign(12, 6).table), _elsewhere(), []
    model = jostle.fit(runs, Recorded(seen), prior=prior)
    held = hold_out(Prepared.of(Data(runs)), 0, "window")
    assert seen[0][0] == ids(held.learn.runs) | ids(prior)
    assert len(model.calibration.runs) == len(held.calibration)
    assert model.metadata["runs"]["prior"] == len(prior)
    assert model.metadata["runs"]["fitted"] == len(held.learn.runs) + len(prior)
    apart: list[Any] = []
    jostle.fit(runs, KnowsPrior(apart), prior=prior)
    assert apart[0] == ("prior", ids(prior), ids(held.learn.runs))


def _elsewhere() -> Runs:
    found = campaign(12, 3, seed=9)
    place = [f"far{name}" for name in found.table.column("platform").to_pylist()]
    columns = {n: found.table.column(n) for n in ("workload", "corunners", "runtime_seconds")}
    return Runs.from_columns(platform=place, **columns)


def test_bounds_of_small_campaigns_cover() -> None:
    """Over many campaigns, runs that were not there are within bounds as often as was asked for."""
    covered = []
    for seed in range(60):
        runs = campaign(10, 8, seed)
        random = np.random.default_rng(seed)
        shown = random.permutation(len(runs))
        model = jostle.fit(runs.take(np.sort(shown[:110])), Levels(), seed=seed)
        rest = runs.take(np.sort(shown[110:]))
        found = model.bound(rest.colocations, 0.8)
        good = found.is_valid
        covered.append(np.mean(rest.runtime_seconds[good] <= found.seconds[good]))
    low, high = mean_limits(covered)
    assert low < 0.92  # and no wider than need be
    assert high > 0.8


def test_progress_of_leaving_names_out_is_half_of_the_whole() -> None:
    told: list[float] = []
    seen: list[Any] = []
    jostle.fit(
        campaign(8, 8),
        Recorded(seen),
        new_names=True,
        progress=lambda d, n, loss: told.append(d / n),
    )
    assert told[0] == pytest.approx(1 / 2)
    assert told[-1] == 1.0
    steps = np.diff(told)
    assert len(told) == len(seen)
    np.testing.assert_allclose(steps, steps[0])


def test_groups_of_names_and_features() -> None:
    runs = campaign(4, 4)
    of_names = groups_of(runs, "platform")
    assert (of_names.of, of_names.labels) == ("platform", ("p00", "p01", "p02", "p03"))
    assert groups_of(runs, "workload").of == "workload"
    kind = groups_of(runs, "kind")
    assert (kind.of, kind.feature, kind.labels) == ("platform", "kind", ("new", "old"))
    assert kind.code == {"p00": 0, "p01": 1, "p02": 0, "p03": 1}
    size = groups_of(runs, "size")
    assert (size.of, len(size.labels)) == ("workload", 4)
    with pytest.raises(UsageError, match=r"neither .* 'colour' .* features: kind, size, speed"):
        groups_of(runs, "colour")
    assert runs.workload_features is not None
    both = Runs(
        runs.table,
        runs.workload_features.append_column("kind", runs.workload_features.column("workload")),
        runs.platform_features,
    )
    with pytest.raises(UsageError, match="both kinds of names have a feature 'kind'"):
        groups_of(both, "kind")
    bare = Runs(runs.table)
    with pytest.raises(UsageError, match=r"Known: platform, workload[.]"):
        groups_of(bare, "kind")
    some = Runs.from_columns(
        workload=["a"],
        platform=["p"],
        runtime_seconds=[1.0],
        platform_features={"platform": ["p", "q"], "kind": [None, "x"]},
    )
    assert groups_of(some, "kind").code == {"q": 0}


def test_what_further_fits_score() -> None:
    """Each score is of a run that its fit had not seen, under a name left out, by that very fit."""
    runs, seen = campaign(10, 5), []
    method = Recorded(seen)
    prepared = Prepared.of(Data(runs))
    found = runs_of_names_left_out(WayToLearn(method, "window", 3), prepared).runs
    assert found.held_out.all()
    assert np.isfinite(found.residual).all()
    assert [seed for _, _, seed in seen] == list(range(3, 3 + len(seen)))
    again = runs_of_names_left_out(WayToLearn(Recorded([]), "window", 3), prepared).runs
    np.testing.assert_array_equal(again.residual, found.residual)
    np.testing.assert_array_equal(again.group, found.group)
    other = runs_of_names_left_out(WayToLearn(Recorded([]), "window", 4), prepared).runs
    assert len(other) != len(found) or (other.residual != found.residual).any()
    c = runs.colocations
    names = {*range(len(c.workload_names) + len(c.platform_names))}
    assert set(found.group.tolist()) == names  # every workload and every platform, each one group
    codes = name_codes(c.workload_names), name_codes(c.platform_names)
    width = len(c.workload_names)
    # By brute force: what a group's runs may be of, as the codes of names tell.
    for code in names:
        mine = found.take(np.flatnonzero(found.group == code))
        if code < width:
            beside = {
                (codes[0][w], codes[1][p])
                for w, p, others in zip(
                    c.workload, c.platform, c.to_columns()["corunners"], strict=True
                )
                if c.workload_names[code] in (c.workload_names[w], *others)
            }
            assert set(zip(mine.workload, mine.platform, strict=True)) <= beside
        else:
            assert set(mine.platform) == {codes[1][code - width]}


def test_a_name_is_asked_about_at_most_so_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_new_names, "RUNS_PER_NAME", 3)
    runs = campaign(10, 5)
    left = runs_of_names_left_out(WayToLearn(Levels(), "window", 0), Prepared.of(Data(runs)))
    found, fits = left.runs, 5 * 4
    assert np.bincount(found.group).max() <= 3 * fits
    monkeypatch.setattr(_new_names, "RUNS_PER_NAME", 100)
    more = runs_of_names_left_out(WayToLearn(Levels(), "window", 0), Prepared.of(Data(runs)))
    assert len(more) > 1.5 * len(found)


def test_there_are_as_many_fits_as_the_rarer_names_need() -> None:
    """Eighty workloads are enough in three rounds, four platforms take all four."""
    seen: list[Any] = []
    runs = campaign(80, 4)
    runs_of_names_left_out(WayToLearn(Recorded(seen), "window", 0), Prepared.of(Data(runs)))
    assert len(seen) == 5 * 4


def test_alone_only_where_there_are_runs_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[int, ...]] = []
    original = _Plan.drawn.__func__  # pyright: ignore[reportFunctionMemberAccess]

    def recorded(cls: Any, names: Any, few: Any, *rest: Any, **more: Any) -> Any:
        drawn.append(few)
        return original(cls, names, few, *rest, **more)

    monkeypatch.setattr(_Plan, "drawn", classmethod(recorded))
    runs = campaign(10, 5)
    alone = runs.take(runs.colocations.number_of_corunners == 0)
    runs_of_names_left_out(WayToLearn(Levels(), "window", 0), Prepared.of(Data(alone)))
    runs_of_names_left_out(WayToLearn(Levels(), "window", 0), Prepared.of(Data(runs)))
    assert drawn == [FEW_RUNS, FEW_RUNS, (ALONE, *FEW_RUNS), FEW_RUNS]


def test_names_with_features_alone_are_not_left_out() -> None:
    runs = campaign(10, 5)
    met = np.array([name < "w06" for name in runs.table.column("workload").to_pylist()])
    near = np.array(
        [all(n < "w06" for n in row) for row in runs.table.column("corunners").to_pylist()]
    )
    some = runs.take(met & near)
    found = runs_of_names_left_out(WayToLearn(Levels(), "window", 0), Prepared.of(Data(some)))
    assert len(np.unique(found.runs.group)) == 6 + 5


def test_inputs_are_kept_with_names_that_are_there_at_all() -> None:
    runs = campaign(10, 5)
    on = np.array([name == "p00" for name in runs.table.column("platform").to_pylist()])
    alone = on & (runs.colocations.number_of_corunners == 0)

    def learned_with(inputs: Any) -> list[Any]:
        seen: list[Any] = []
        prepared = replace(Prepared.of(Data(runs)), inputs=inputs)
        runs_of_names_left_out(WayToLearn(Recorded(seen), "window", 0), prepared)
        return [learned for learned, _, _ in seen]

    kept, seen = ids(runs.take(alone)), learned_with(alone)
    assert any(kept & learned and not kept <= learned for learned in seen)
    few = seen[5:]
    assert sum(kept <= learned for learned in few) >= 0.7 * len(few)
    # Those beside others say all there is of a name: a round of its own comes with nothing else.
    kept = ids(runs.take(on))
    whole = [kept <= learned or not kept & learned for learned in learned_with(on)]
    assert not all(whole[:5])
    assert all(whole[-5:])


def test_too_few_names_are_an_error_with_what_to_do() -> None:
    with pytest.raises(
        NotEnoughRuns, match=r"3 workloads and 3 platforms are too few .* Measure more names"
    ):
        runs_of_names_left_out(WayToLearn(Levels(), "window", 0), Prepared.of(Data(campaign(3, 3))))


def test_what_is_no_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"no model here. Fit it again with jostle fit"):
        jostle.load(tmp_path / "none")
    # A document that is whole, but not that of a model.
    write_parts(tmp_path / "odd", {"method": "factorization"}, {})
    with pytest.raises(UnreadableFile, match=r"not a readable model.*Fit it again"):
        jostle.load(tmp_path / "odd")
    model = jostle.fit(campaign(12, 6), jostle.Bag(learner="tree"))
    model.save(tmp_path / "m")
    kept = jostle.load(tmp_path / "m").metadata
    assert kept == json.loads(json.dumps(model.metadata))
    assert jostle.load(tmp_path / "m").notes == model.notes


def test_a_method_is_a_value_a_class_a_name_or_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"levels": Levels, DEFAULT_METHOD: Levels}
    monkeypatch.setattr("jostle.learn.contract._method_registry.method_named", names.__getitem__)
    runs = campaign(5, 3)
    expected = jostle.fit(runs, Levels(), seed=2).predict(runs.colocations)
    for method in (None, "levels", Levels):
        model = jostle.fit(runs, method, seed=2)
        assert np.array_equal(model.predict(runs.colocations), expected)
    assert method_of().name == Levels.name
    for odd in (3, dict):
        with pytest.raises(UsageError, match="a method cannot be a"):
            method_of(odd)


def test_data_is_a_folder_a_dataset_runs_or_a_table(tmp_path: Path) -> None:
    runs = campaign(5, 3)
    dataset = Dataset(tmp_path / "fleet")
    dataset.write(runs)
    columns = runs.colocations.to_columns() | {"runtime_seconds": runs.runtime_seconds}
    table = pa.table(columns)
    for data in (tmp_path / "fleet", str(tmp_path / "fleet"), dataset, runs, table, columns):
        model = jostle.fit(data, Levels())
        assert len(model.predict(runs.colocations)) == len(runs)
    with pytest.raises(UsageError, match="data cannot be a int"):
        jostle.fit(3)


@pytest.mark.parametrize("seed", [-1, "x", 0.5, True, None])
def test_a_seed_that_is_none_is_refused(seed: Any) -> None:
    with pytest.raises(UsageError, match="no whole number from 0 on"):
        jostle.fit(campaign(5, 3), Levels(), seed=seed)
