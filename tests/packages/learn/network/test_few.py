"""Names with few runs in a campaign of many: left out of training, then learned as names that join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from jostle.data import Runs
from jostle.learn import Data
from jostle.learn.learners.network import Factorization
from jostle.learn.learners.network.online import _few_runs as _few
from jostle.learn.learners.network.online._few_runs import FEW, FEWEST_NAMES, MANY, without_few

WORKLOADS, PLATFORMS = FEWEST_NAMES + 4, 12
NEW, FEATURES_ONLY = "new", "features-only"


def campaign(of_new: int = 3, with_features: bool = True, names: int = WORKLOADS) -> Runs:
    """Log runtimes are a level that a feature tells, one of the platform, and what kinds of workloads take on
    kinds of platforms; `new` has few runs."""
    random = np.random.default_rng(3)
    workloads = [f"w{k:02}" for k in range(names)]
    size = {name: float(random.normal()) for name in [*workloads, NEW, FEATURES_ONLY]}
    speed = {f"p{k:02}": float(0.5 * random.normal()) for k in range(PLATFORMS)}
    kind = {name: k % 3 for k, name in enumerate(size)}
    together = random.normal(size=(3, 3))
    n = 60 * names
    workload = [workloads[k % names] for k in range(n)] + [NEW] * of_new
    platform = [f"p{k:02}" for k in random.integers(0, PLATFORMS, n + of_new)]
    beside = [[workloads[(k // 7) % names]] if k % 3 == 0 else [] for k in range(n)] + [[]] * of_new
    log = np.array(
        [
            2 * size[w] + speed[p] + together[kind[w], int(p[1:]) % 3] + 0.2 * len(b)
            for w, p, b in zip(workload, platform, beside, strict=True)
        ]
    )
    features = pa.table(
        {
            "workload": list(size),
            "size": list(size.values()),
            "kind": [f"k{kind[name]}" for name in size],
        }
    )
    return Runs.from_columns(
        workload=workload,
        platform=platform,
        corunners=beside,
        runtime_seconds=np.exp(log + 0.02 * random.normal(size=len(log))),
        workload_features=features if with_features else None,
    )


def names_of(runs: Runs) -> set[str]:
    c = runs.colocations
    used = np.unique(np.concatenate([c.workload, c.corunner]))
    return {c.workload_names[code] for code in used}


def test_names_with_few_runs_and_with_features_alone_are_taken_out() -> None:
    runs = campaign()
    parts = without_few(runs, runs.take([]))
    assert parts is not None
    learn, watch, few = parts
    assert len(learn) + len(few) == len(runs)
    assert not len(watch)
    assert names_of(few) == {NEW}
    assert NEW not in names_of(learn)
    assert learn.workload_features is not None
    assert few.workload_features is not None
    left = set(learn.workload_features.column("workload").to_pylist())
    assert set(few.workload_features.column("workload").to_pylist()) - left == {NEW, FEATURES_ONLY}


def test_runs_to_watch_tell_of_a_name_too() -> None:
    """One run to learn from and two to watch are three; all of them are learned."""
    runs = campaign(with_features=False)
    new = np.flatnonzero([name == NEW for name in runs.table.column("workload").to_pylist()])
    watched = np.r_[0:50, new[1:]]
    parts = without_few(runs.take(np.setdiff1d(np.arange(len(runs)), watched)), runs.take(watched))
    assert parts is not None
    learn, watch, few = parts
    assert (len(learn), len(watch), len(few)) == (len(runs) - 53, 50, 3)


@pytest.mark.parametrize(
    "runs",
    [
        campaign(of_new=FEW + 1, with_features=False),  # nobody has few
        campaign(with_features=False, names=FEWEST_NAMES - 1),  # nobody knows how names differ
        campaign(with_features=False).take(np.arange(0, 60 * WORKLOADS + 3, 60 // MANY * 2)),
    ],
)
def test_nothing_is_taken_out_where_it_would_not_help(runs: Runs) -> None:
    assert without_few(runs, runs.take([])) is None


def test_so_many_runs_of_such_names_are_no_exception() -> None:
    runs = campaign(with_features=False)
    more = [
        Runs.from_columns(
            workload=[f"x{k}"] * FEW, platform=["p00"] * FEW, runtime_seconds=[1.0] * FEW
        )
        for k in range(60)
    ]
    many = Runs.concatenate([runs, *more])
    assert without_few(many, many.take([])) is None


def test_a_fit_is_nearer_for_such_names(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = campaign()
    method = Factorization(steps=500, hidden=16, rank=8)
    truth = campaign(of_new=60).take(np.arange(60 * WORKLOADS, 60 * WORKLOADS + 60))
    errors = {}
    for way in ("joined", "trained on"):
        if way == "trained on":
            monkeypatch.setattr(_few, "FEWEST_NAMES", 10**6)
        fitted = method.fit(method.prepare(Data.of(runs)), seed=0)
        assert {NEW, FEATURES_ONLY} <= set(fitted.workload_names)
        ratio = fitted.predict(truth.colocations) / truth.runtime_seconds
        errors[way] = float(np.abs(np.log(ratio)).mean())
        told = dict(zip(fitted.counts.workload_names, fitted.counts.workload_runs, strict=True))
        assert told[NEW] == 3
    assert errors["joined"] < 0.7 * errors["trained on"]
