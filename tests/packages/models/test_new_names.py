"""Leaving names out: what each further fit sees and is asked about, and what users get from it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import jostle
from jostle.data import Runs
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn import Data, Prepared
from jostle.models._new_names import ALONE, FOLDS, NOTHING, WHOLE, _LeftOut, _Plan
from tests.limits import mean_limits
from tests.packages.models.levels import Levels, campaign

QUICK = jostle.Factorization(steps=40, hidden=16, rank=8)


def of_names(runs: Runs, new: set[str], what: str) -> np.ndarray:
    """(n,) bool: runs of these workloads or platforms, which are not beside each other."""
    names = np.array(runs.table.column(what).to_pylist())
    return np.array([name in new for name in names])


def beside(runs: Runs, new: set[str]) -> np.ndarray:
    return np.array([bool(new & set(b)) for b in runs.table.column("corunners").to_pylist()])


def few_of(runs: Runs, new: set[str], what: str, amount: int, seed: int) -> np.ndarray:
    """(n,) bool: all runs without these names, and so many of each, alone or beside old names."""
    of, near = of_names(runs, new, what), beside(runs, new)
    kept = ~of & ~near
    random = np.random.default_rng(seed)
    names = np.array(runs.table.column(what).to_pylist())
    for name in sorted(new):
        mine = np.flatnonzero((names == name) & ~near)
        kept[random.permutation(mine)[:amount]] = True
    return kept


def test_names_left_out_are_asked_about_runs_that_were_drawn() -> None:
    runs = campaign(12, 8)
    chosen = np.random.default_rng(0).random(len(runs)) < 0.5
    marked = Runs(runs.table.append_column("chosen", pa.array(chosen.tolist())))
    prepared = Prepared.of(Data(marked))
    c, random = runs.colocations, np.random.default_rng(0)
    workloads = _Plan.drawn(c.workload_names, (1, 3), random)
    platforms = _Plan.drawn(c.platform_names, (1, 3), random)
    for number in range(5):
        left = _LeftOut.of(prepared, workloads, platforms, number, random)
        assert left.asked.any()
        assert not (left.asked & chosen).any()


def test_what_one_fit_sees() -> None:
    """By brute force over all runs: nothing of a name beyond what its amount says."""
    runs = campaign()
    c = runs.colocations
    random = np.random.default_rng(1)
    workloads = _Plan.drawn(c.workload_names, (ALONE, 1, 3), random)
    platforms = _Plan.drawn(c.platform_names, (1, 3), random)
    assert (workloads.kept[0] == NOTHING).all()
    for number in range(FOLDS * workloads.rounds):
        left = _LeftOut.of(Prepared.of(Data(runs)), workloads, platforms, number, random)
        of_w = dict(zip(workloads.names, workloads.of(number), strict=True))
        of_p = dict(zip(platforms.names, platforms.of(number), strict=True))
        seen: dict[str, int] = {}
        for i in range(len(runs)):
            workload, platform, beside = c.row(i)
            mine, there = of_w[workload], of_p[platform]
            whole_beside = all(of_w[name] == WHOLE for name in beside)
            if mine == there == WHOLE and whole_beside:
                assert left.kept[i]
                assert not left.asked[i]
            if not left.kept[i]:
                continue
            assert whole_beside
            assert NOTHING not in (mine, there)
            assert mine != ALONE or not beside
            for name, amount in ((workload, mine), (platform, there)):
                if 0 < amount < WHOLE:
                    seen[name] = seen.get(name, 0) + 1
                    assert seen[name] <= amount
        assert not (left.kept & left.asked).any()
    each = np.stack([workloads.of(number) < WHOLE for number in range(FOLDS)])
    assert (each.sum(0) == 1).all()  # in a round every name is left out once


def test_new_names_have_finite_bounds_that_cover() -> None:
    """Mean coverage over names that never ran, as workload, platform or co-runner."""
    rates: dict[str, list[float]] = {"workload": [], "platform": [], "co-runner": []}
    for seed in range(10):
        runs = campaign(30, 20, seed)
        new = {"w03", "w11", "w17", "p03", "p11", "p17"}
        new_w, new_p = of_names(runs, new, "workload"), of_names(runs, new, "platform")
        near = beside(runs, new)
        learned = runs.take(~new_w & ~new_p & ~near)
        model = jostle.fit(learned, Levels(), seed=seed, new_names=True)
        for what, rows in (
            ("workload", new_w & ~new_p & ~near),
            ("platform", ~new_w & new_p & ~near),
            ("co-runner", ~new_w & ~new_p & near),
        ):
            asked = runs.take(rows)
            bounds = model.bound(asked.colocations, 0.9)
            assert set(bounds.outcome) == {"held_out_names"}
            assert not bounds.is_guaranteed.any()
            rates[what].append(float(np.mean(asked.runtime_seconds <= bounds.seconds)))
    for what, found in rates.items():
        assert mean_limits(found)[1] >= 0.9, what


@pytest.mark.parametrize("what", ["workload", "platform"])
@pytest.mark.parametrize("amount", [1, 10])
def test_names_with_few_runs_are_covered(what: str, amount: int) -> None:
    rates = []
    for seed in range(6):
        runs = campaign(30, 20, seed)
        new = {what[0] + number for number in ("03", "11", "17")}
        kept = few_of(runs, new, what, amount, seed)
        model = jostle.fit(runs.take(kept), Levels(), seed=seed, new_names=True)
        asked = runs.take(of_names(runs, new, what) & ~kept & ~beside(runs, new))
        bounds = model.bound(asked.colocations, 0.9)
        assert np.isfinite(bounds.seconds).all()
        rates.append(float(np.mean(asked.runtime_seconds <= bounds.seconds)))
    assert mean_limits(rates)[1] >= 0.9


def test_by_default_new_names_have_no_bound_and_old_ones_are_as_before() -> None:
    runs = campaign(30, 14)
    new = {"w03", "w11", "w17", "w23", "w29"}
    learned = runs.take(~of_names(runs, new, "workload") & ~beside(runs, new))
    asked = runs.take(of_names(runs, new, "workload") & ~beside(runs, new))
    plain = jostle.fit(learned, Levels(), seed=0)
    bounds = plain.bound(asked.colocations, 0.9)
    assert set(bounds.outcome) == {"new_name"}
    assert np.isinf(bounds.seconds).all()
    model = jostle.fit(learned, Levels(), seed=0, new_names=True)
    old = learned.colocations
    np.testing.assert_array_equal(model.predict(old), plain.predict(old))
    valid = plain.bound(old, 0.9).is_calibrated
    assert valid.mean() > 0.5
    for confidence in (0.5, 0.8, 0.9):
        np.testing.assert_array_equal(
            model.bound(old, confidence).seconds[valid], plain.bound(old, confidence).seconds[valid]
        )


def test_factorization_bounds_new_names() -> None:
    runs = campaign(16, 8)
    runs = runs.take(runs.colocations.number_of_corunners == 0)
    new = {"w03", "w07", "w11", "w15"}
    learned = runs.take(~of_names(runs, new, "workload") & ~beside(runs, new))
    asked = runs.take(of_names(runs, new, "workload") & ~beside(runs, new))
    done: list[float] = []
    model = jostle.fit(
        learned,
        QUICK,
        seed=0,
        new_names=True,
        progress=lambda now, total, _: done.append(now / total),
    )
    assert sorted(done) == done
    assert done[-1] == pytest.approx(1.0)
    bounds = model.bound(asked.colocations, 0.8)
    assert set(bounds.outcome) == {"held_out_names"}
    assert np.isfinite(bounds.seconds).all()


def test_too_few_names_to_leave_out() -> None:
    runs = campaign(3, 3)
    with pytest.raises(NotEnoughRuns, match="too few to leave"):
        jostle.fit(runs, Levels(), seed=0, new_names=True)


def test_bounds_within_groups() -> None:
    runs = campaign(30, 12)
    model = jostle.fit(runs, Levels(), seed=0, by="kind")
    assert model.calibration.groups is not None
    assert model.calibration.groups.labels == ("new", "old")
    again = {one.name_group for one in model.calibration.summary()}
    assert again == {"new", "old"}
    # Each group's bounds rest on its own runs: with only those of the other group wild, they stay narrow.
    assert runs.platform_features is not None
    old = {row["platform"] for row in runs.platform_features.to_pylist() if row["kind"] == "old"}
    is_old = of_names(runs, old, "platform")
    wild = np.exp(np.random.default_rng(0).normal(size=len(runs)) * 0.5 * is_old)
    columns = runs.table.set_column(
        runs.table.column_names.index("runtime_seconds"),
        "runtime_seconds",
        pa.array(runs.runtime_seconds * wild),
    )
    unlike = Runs(columns, runs.workload_features, runs.platform_features)
    model = jostle.fit(unlike, Levels(), seed=0, by="kind")
    bounds = model.bound(runs.colocations, 0.8)
    room = np.log(bounds.seconds / model.predict(runs.colocations))
    assert np.median(room[is_old]) > 2 * np.median(room[~is_old])
    with pytest.raises(UsageError, match="neither workloads nor platforms have a feature 'colour'"):
        jostle.fit(runs, Levels(), seed=0, by="colour")


def test_a_model_says_what_made_it(tmp_path: object) -> None:
    runs = campaign(12, 6)
    model = jostle.fit(
        runs, jostle.Bag(learner="tree"), seed=3, fitted_at="2026-01-02T03:04:05+00:00"
    )
    model.save(f"{tmp_path}/model")
    kept = jostle.load(f"{tmp_path}/model").metadata
    assert kept["fitted_at"] == "2026-01-02T03:04:05+00:00"
    assert kept["jostle_version"] == jostle.__version__
    assert kept["seed"] == 3
    assert kept["data_version"] is None  # runs in memory are in no folder
