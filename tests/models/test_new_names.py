"""Leaving names out: what each further fit sees and is asked about, and what users get from it."""

from __future__ import annotations

import numpy as np
import pytest

import jostle
from jostle.bounds import GUARANTEED
from jostle.errors import NotEnoughRuns, UsageError
from jostle.methods import Data, Prepared
from jostle.models import _new_names
from jostle.models._new_names import ALONE, FOLDS, NOTHING, WHOLE, _LeftOut, _Plan
from jostle.runs import Runs

QUICK = jostle.Factorization(steps=40, hidden=16, rank=8)


def campaign(workloads: int = 24, platforms: int = 12, seed: int = 0) -> Runs:
    """Every workload on every platform, alone and beside another; features tell the levels but for noise."""
    random = np.random.default_rng(seed)
    w, p = np.divmod(np.arange(workloads * platforms), platforms)
    level_w, level_p = random.normal(size=workloads), random.normal(size=platforms)
    noise = random.normal(size=(2, len(w))) * 0.05
    beside = random.integers(0, workloads, len(w))
    alone = level_w[w] + level_p[p] + noise[0]
    together = level_w[w] + level_p[p] + 0.2 + noise[1]
    return Runs.from_columns(
        workload=[f"w{i:02}" for i in np.concatenate([w, w])],
        platform=[f"p{i:02}" for i in np.concatenate([p, p])],
        corunners=[[]] * len(w) + [[f"w{i:02}"] for i in beside],
        runtime_seconds=np.exp(np.concatenate([alone, together])),
        workload_features={
            "workload": [f"w{i:02}" for i in range(workloads)],
            "size": level_w + random.normal(size=workloads) * 0.3,
        },
        platform_features={
            "platform": [f"p{i:02}" for i in range(platforms)],
            "speed": level_p + random.normal(size=platforms) * 0.3,
            "kind": ["old" if i % 2 else "new" for i in range(platforms)],
        },
    )


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


def test_new_names_have_finite_bounds_that_cover(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FOLDS", 3), ("MOST_ROUNDS", 1), ("FEW_RUNS", (3,))):
        monkeypatch.setattr(_new_names, name, value)  # six fits, not twenty
    runs = campaign(30, 14)
    names = np.array(runs.table.column("workload").to_pylist())
    beside = runs.table.column("corunners").to_pylist()
    new = {"w03", "w11", "w17", "w23", "w29"}
    is_new = np.array([n in new for n in names])
    touched = is_new | np.array([bool(new & set(b)) for b in beside])
    asked = runs.take(is_new & ~np.array([bool(new & set(b)) for b in beside]))
    plain = jostle.fit(runs.take(~touched), QUICK, seed=0)
    bounds = plain.bound(asked.colocations, 0.9)
    assert set(bounds.outcome) == {"new_name"}
    assert np.isinf(bounds.seconds).all()
    model = jostle.fit(runs.take(~touched), QUICK, seed=0, new_names=True)
    bounds = model.bound(asked.colocations, 0.9)
    assert set(bounds.outcome) == {"held_out_names"}
    assert not bounds.is_guaranteed.any()
    assert np.mean(asked.runtime_seconds <= bounds.seconds) >= 0.6  # five names: few for a rate
    old = runs.take(~touched).colocations
    assert set(model.bound(old, 0.8).outcome) <= {*GUARANTEED, "held_out_names"}
    np.testing.assert_array_equal(model.predict(old), plain.predict(old))


def test_too_few_names_to_leave_out() -> None:
    runs = campaign(3, 3)
    with pytest.raises(NotEnoughRuns, match="too few to leave"):
        jostle.fit(runs, QUICK, seed=0, new_names=True)


def test_bounds_within_groups() -> None:
    runs = campaign(30, 12)
    model = jostle.fit(runs, QUICK, seed=0, by="kind")
    assert model.calibration.groups is not None
    assert model.calibration.groups.labels == ("new", "old")
    again = {one.group for one in model.calibration.summary()}
    assert again == {"new", "old"}
    bounds = model.bound(runs.colocations, 0.8)
    whole = jostle.fit(runs, QUICK, seed=0).bound(runs.colocations, 0.8)
    assert (bounds.n < whole.n).all()
    with pytest.raises(UsageError, match="neither workloads nor platforms have a feature 'colour'"):
        jostle.fit(runs, QUICK, seed=0, by="colour")


def test_a_model_says_what_made_it(tmp_path: object) -> None:
    runs = campaign(12, 6)
    model = jostle.fit(runs, QUICK, seed=3, fitted_at="2026-01-02T03:04:05+00:00")
    model.save(f"{tmp_path}/model")
    kept = jostle.load(f"{tmp_path}/model").metadata
    assert kept["fitted_at"] == "2026-01-02T03:04:05+00:00"
    assert kept["jostle_version"] == jostle.__version__
    assert kept["seed"] == 3
    assert kept["data_version"] is None  # runs in memory are in no folder
