"""What must hold of an ensemble, whatever its base learners say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import jostle
from jostle.conformal import CROSS_VALIDATED
from jostle.data import Colocations, Runs
from jostle.errors import NotEnoughRuns, UnknownName, UsageError
from jostle.extend import Table
from jostle.learn import (
    NEW_NAME,
    NEW_SET,
    Data,
    Ensemble,
    FittedEnsemble,
    FoldFit,
    OutOfFoldPredictions,
    SimpleRules,
    default_method,
    learner_named,
    learner_names,
    weights_of,
)
from jostle.learn.ensemble._cross_validation import CrossValidator
from jostle.learn.ensemble._folds import LEFT_SHARE, NOT_ASKED, folds_of
from tests.limits import assert_closer, errors_of
from tests.packages.learn.ensemble.campaigns import campaign_for
from tests.packages.learn.ensemble.conftest import QUICK, made_runs

ROUNDING = 1e-9


def fitted_to(runs: Runs) -> FittedEnsemble:
    return QUICK.fit(QUICK.prepare(Data.of(runs)), seed=0)


@pytest.fixture(scope="module")
def fitted(of_rules: jostle.Model) -> FittedEnsemble:
    """The same as fitted_to(runs)."""
    return of_rules.predictor


@pytest.fixture(scope="module")
def left_out(runs: Runs) -> tuple[FittedEnsemble, list[FoldFit]]:
    return QUICK.fit_left_out(QUICK.prepare(Data.of(runs)), seed=1)


def rewritten(runs: Runs, order: np.ndarray, spell: dict[str, str], unit: float = 1.0) -> Runs:
    """The same measurements, rows in another order, under other names, in another unit."""
    columns = runs.colocations.take(order).to_columns()
    table = runs.workload_features
    features = None
    if table is not None:
        names = [spell.get(name, name) for name in table.column("workload").to_pylist()]
        features = {"workload": names, "size": table.column("size").to_pylist()}
    return Runs.from_columns(
        workload=[spell.get(str(name), str(name)) for name in columns["workload"]],
        platform=columns["platform"],
        corunners=[[spell.get(str(n), str(n)) for n in names] for names in columns["corunners"]],
        runtime_seconds=runs.runtime_seconds[order] * unit,
        window_id=[f"{code}" for code in runs.window[order].tolist()],
        workload_features=features,
    )


def query_of(runs: Runs, spell: dict[str, str]) -> Colocations:
    columns = runs.colocations.to_columns()
    return Colocations.from_columns(
        workload=[spell.get(str(name), str(name)) for name in columns["workload"]],
        platform=columns["platform"],
        corunners=[[spell.get(str(n), str(n)) for n in names] for names in columns["corunners"]],
    )


def test_order_unit_and_spelling_change_nothing(runs: Runs, fitted: FittedEnsemble) -> None:
    names = runs.colocations.workload_names
    random = np.random.default_rng(3)
    spell = dict(
        zip(names, random.permutation([f"job {n}" for n in range(len(names))]), strict=True)
    )
    before = fitted.predict(runs.colocations)
    other = rewritten(runs, random.permutation(len(runs)), spell, 60.0)
    after = fitted_to(other).predict(query_of(runs, spell)) / 60.0
    assert np.abs(after / before - 1).max() < 1e-6


@pytest.fixture(scope="module")
def of_many(runs: Runs) -> jostle.Model:
    """Of ten copies of every run."""
    return jostle.fit(rewritten(runs, np.repeat(np.arange(len(runs)), 10), {}), QUICK, seed=0)


def test_copies_of_every_row_change_nothing(
    runs: Runs, fitted: FittedEnsemble, of_many: jostle.Model
) -> None:
    before = fitted.predict(runs.colocations)
    assert np.abs(of_many.predict(runs.colocations) / before - 1).max() < ROUNDING


def test_runs_that_took_as_long_to_the_second_are_all_learned_from(runs: Runs) -> None:
    rounded = Runs.from_columns(
        **runs.colocations.to_columns(), runtime_seconds=np.ceil(runs.runtime_seconds)
    )
    assert len(campaign_for(rounded)) == len(runs)
    thrice = rewritten(rounded, np.repeat(np.arange(len(runs)), 3), {})
    assert len(campaign_for(thrice)) == len(runs)


def test_a_fold_never_learns_what_it_is_asked(
    runs: Runs, left_out: tuple[FittedEnsemble, list[FoldFit]]
) -> None:
    whole, parts = left_out
    c = runs.colocations
    sets = [frozenset([w, *k]) for w, k in zip(*names_of(c), strict=True)]
    by_sets = [one for one in parts if one.left_out == "set"]
    halves = [one for one in parts if one.left_out == "larger"]
    largest = np.concatenate([half.runs for half in halves])
    assert sorted(largest.tolist()) == np.flatnonzero(c.number_of_corunners == 2).tolist()
    for half in halves:
        assert (half.fitted.evidence(c.take(half.runs)).same_set == 0).all()
    one, other = ({sets[row] for row in half.runs.tolist()} for half in halves)
    assert not one & other
    seen: list[int] = []
    for one in by_sets:
        counts = one.fitted.evidence(c.take(one.runs)).same_set
        beside = c.number_of_corunners[one.runs] > 0
        assert (counts[beside] == 0).all()
        seen += one.runs[beside].tolist()
    assert sorted(seen) == np.flatnonzero(c.number_of_corunners > 0).tolist()
    fold = {row: number for number, one in enumerate(by_sets) for row in one.runs.tolist()}
    apart: dict[frozenset[str], set[int]] = {}
    for row in seen:
        apart.setdefault(sets[row], set()).add(fold[row])
    assert all(len(folds) == 1 for folds in apart.values())
    assert (whole.evidence(c).same_set > 0).all()


def names_of(c: Colocations) -> tuple[list[str], list[list[str]]]:
    columns = c.to_columns()
    return list(columns["workload"]), [list(names) for names in columns["corunners"]]


def test_a_set_and_a_name_are_never_one_unit(runs: Runs) -> None:
    campaign = campaign_for(runs)
    units: dict[bool, list[int]] = {False: [], True: []}
    for fold in folds_of(campaign, seed=0):
        units[fold.is_of_names] += fold.unit[fold.kind != NOT_ASKED].tolist()
    assert units[False]
    assert units[True]
    assert not set(units[False]) & set(units[True])


def test_what_few_sets_cannot_tell_sets_with_new_names_do() -> None:
    """Two sets of known names are too few to weigh by; where names are new one answer is plainly right."""
    units = 32
    kind = np.where(np.arange(units) < 2, NEW_SET, NEW_NAME)
    truth = np.random.default_rng(1).normal(0.3, 0.1, units)
    trial = OutOfFoldPredictions(
        answer=np.stack([truth, truth + 0.5]),
        log_slowdown=truth,
        unit=np.arange(units),
        kind=kind,
        degree=np.ones(units, np.int64),
        place=np.arange(units),
    )
    weight = weights_of(np.full(2, 0.5), trial, most=1, seed=0)
    assert weight[NEW_SET, 1, 0] > 0.9
    assert weight[NEW_NAME, 1, 0] > 0.9


def test_names_left_out_are_new_to_the_fit(
    runs: Runs, left_out: tuple[FittedEnsemble, list[FoldFit]]
) -> None:
    """Or the workload never ran on the platform."""
    of_names = [one for one in left_out[1] if one.left_out == "name"]
    assert of_names
    for one in of_names:
        evidence = one.fitted.evidence(runs.colocations.take(one.runs))
        fewest = np.minimum(evidence.beside, evidence.corunner)
        assert ((fewest <= most_runs_of_one_set(runs)) | (evidence.there == 0)).all()


def most_runs_of_one_set(runs: Runs) -> int:
    return 2 * 3  # platforms, members: one set stays of every other name


def test_the_explanation_adds_up(runs: Runs, fitted: FittedEnsemble) -> None:
    row = np.flatnonzero(runs.colocations.number_of_corunners == 2)[:1]
    asked = runs.colocations.take(row)
    report = fitted.explain(asked)
    document = report.document
    total = sum(one["log_ratio"] for one in document["added"])
    alone, seconds = document["solo_seconds"], document["runtime_seconds"]
    assert np.isclose(np.log(seconds / alone), total, atol=1e-12)
    assert np.isclose(sum(one["weight"] for one in document["learners"]), 1.0)
    assert seconds == fitted.predict(asked)[0]
    # A person reads words, each once, without the numbers that tell strengths apart.
    (table,) = (p for p in report.tables if isinstance(p, Table) and p.columns[-1] == "says")
    names = [row[0] for row in table.rows]
    assert len(set(names)) == len(names)
    assert not any(char.isdigit() for name in names for char in name)


def test_a_saved_one_answers_alike(tmp_path: Path) -> None:
    runs = made_runs(programs=5, threes=4)
    model = jostle.fit(runs, Ensemble(), seed=0)
    assert set(model.predictor.learners) <= set(learner_names())
    model.save(tmp_path / "model")
    again = jostle.load(tmp_path / "model")
    asked = runs.colocations
    assert np.array_equal(model.predict(asked), again.predict(asked))
    bounds = [one.bound(asked, 0.8) for one in (model, again)]
    assert np.array_equal(bounds[0].seconds, bounds[1].seconds)
    assert model.notes == again.notes
    assert len(model.notes) <= 3


def test_bounds_are_cross_validated(runs: Runs, of_rules: jostle.Model) -> None:
    bounds = of_rules.bound(runs.colocations, 0.8)
    assert set(bounds.outcome.tolist()) == {CROSS_VALIDATED}
    assert bounds.is_calibrated.all()
    assert not bounds.is_guaranteed.any()
    own = of_rules.calibration.runs
    assert len(own.take(np.flatnonzero(~own.held_out))) == len(of_rules.kept.calibration)  # type: ignore[union-attr]


def test_bounds_of_sets_held_out_are_guaranteed() -> None:
    many = made_runs(programs=16, platforms=1, threes=0)
    model = jostle.fit(many, QUICK, seed=0, calibrate_by="together")
    outcomes = model.bound(many.colocations, 0.8).outcome
    assert {"guaranteed"} <= set(outcomes.tolist())
    assert CROSS_VALIDATED not in outcomes


def test_an_update_is_a_fit_to_all(runs: Runs, fitted: FittedEnsemble) -> None:
    random = np.random.default_rng(5)
    units = random.permutation(np.unique(runs.units("together")))
    is_new = np.isin(runs.units("together"), units[:20])
    is_new &= runs.colocations.number_of_corunners > 0
    model = jostle.fit(runs.take(~is_new), QUICK, seed=0)
    updated = model.update(runs.take(is_new))
    assert np.allclose(
        updated.predict(runs.colocations), fitted.predict(runs.colocations), rtol=1e-9
    )
    assert updated.metadata["runs"]["fitted"] == len(runs)
    assert updated.metadata["updates"][-1]["runs"] == int(is_new.sum())


def test_copies_can_be_updated(runs: Runs, of_many: jostle.Model) -> None:
    """Of ten copies of a run one calibrates; the others must not stand before it."""
    counts = of_many.update(runs.take(np.arange(5))).metadata["runs"]
    assert counts["fitted"] == 10 * len(runs) + 5
    assert counts["calibration"] >= (runs.colocations.number_of_corunners > 0).sum()


def test_chosen_runs_never_calibrate(runs: Runs) -> None:
    beside = np.flatnonzero(runs.colocations.number_of_corunners > 0)
    model = jostle.fit(runs.take(np.setdiff1d(np.arange(len(runs)), beside[:30])), QUICK)
    updated = model.update(runs.take(beside[:30]), chosen=True)
    learned, calibrated = (
        set(part.runtime_seconds.tolist())
        for part in (updated.kept.learned, updated.kept.calibration)  # type: ignore[union-attr]
    )
    chosen = set(runs.runtime_seconds[beside[:30]].tolist())
    assert chosen <= learned
    assert not chosen & calibrated


@pytest.mark.parametrize("size", [1, 2, 5])
def test_few_runs_are_learned_from(size: int, runs: Runs) -> None:
    some = runs.take(np.arange(size))
    answer = fitted_to(some).predict(some.colocations)
    assert np.isfinite(answer).all()
    assert (answer > 0).all()


def test_pairs_without_any_run_alone_have_no_answer_or_one_in_seconds(runs: Runs) -> None:
    beside = runs.take(runs.colocations.number_of_corunners > 0)
    answer = fitted_to(beside).predict(beside.colocations)
    assert (answer[np.isfinite(answer)] > 0).all()


@pytest.mark.parametrize("pairs", [0, 3])
def test_runs_alone_have_bounds_where_hardly_any_ran_beside_others(pairs: int) -> None:
    """Repeats on one platform; on several, cells that never ran: what was left out of either tells."""
    every = [(w, p) for w in range(12) for p in range(3) if p == 0 or (w + p) % 4]
    columns: dict[str, list] = {
        "workload": [f"w{w}" for w, _ in every] + [f"w{n}" for n in range(pairs)],
        "platform": [f"p{p}" for _, p in every] + ["p0"] * pairs,
        "corunners": [[] for _ in every] + [[f"w{n + 1}"] for n in range(pairs)],
    }
    size = len(columns["workload"])
    noise = np.exp(0.02 * np.random.default_rng(5).normal(size=(2, size)))
    seconds = [
        (1 + int(w[1:])) * (1 + int(p[1:])) for w, p, _ in zip(*columns.values(), strict=True)
    ]
    grid = Runs.from_columns(**columns, runtime_seconds=seconds * noise[0])
    here = grid.take(grid.colocations.platform == 0)
    again = Runs.from_columns(
        **here.colocations.to_columns(),
        runtime_seconds=here.runtime_seconds * noise[1][: len(here)],
    )
    new = Colocations.from_columns(workload=["w2"], platform=["p2"])
    for runs, query in ((grid, new), (Runs.concatenate([here, again]), here.colocations)):
        model = jostle.fit(runs, QUICK)
        bound = model.bound(query.take(query.number_of_corunners == 0), 0.6)
        assert set(bound.outcome) <= {CROSS_VALIDATED, "held_out_names"}
        assert np.isfinite(bound.seconds).all()


def test_refusals(runs: Runs, fitted: FittedEnsemble) -> None:
    with pytest.raises(UnknownName, match="magic"):
        Ensemble(learners=("magic",))
    with pytest.raises(NotEnoughRuns):
        fitted_to(runs.take([]))
    # A name that was never met is a typical one, and counted as never met.
    asked = Colocations.from_columns(workload=["new"], platform=["machine 0"])
    assert fitted.evidence(asked).workload.tolist() == [0]
    assert runs.runtime_seconds.min() < fitted.predict(asked)[0] < runs.runtime_seconds.max()


def test_the_default_is_the_ensemble_but_for_very_many_runs(runs: Runs, monkeypatch: Any) -> None:
    assert default_method(Data.of(runs)) == "ensemble"
    monkeypatch.setattr("jostle.learn.contract._default.MANY_RUNS", 10)
    assert default_method(Data.of(runs)) == "factorization"


def test_of_very_many_runs_one_fold_leaves_few_sets_out_and_one_has_names_of_a_sample(
    runs: Runs, monkeypatch: Any
) -> None:
    monkeypatch.setattr("jostle.learn.ensemble._folds.MANY_ROWS", 100)
    monkeypatch.setattr("jostle.learn.ensemble._folds.MOST_OF_NAMES", 200)
    campaign = campaign_for(runs)
    by_sets, by_names = folds_of(campaign, seed=0)
    everywhere = campaign.sets(everywhere=True)
    gone = by_sets.kind == NEW_SET
    assert 0 < gone.sum() <= LEFT_SHARE * len(campaign)
    assert (by_sets.left_out == (by_sets.kind != NOT_ASKED)).all()
    assert not set(everywhere[gone]) & set(everywhere[~by_sets.left_out & (campaign.degree > 0)])
    learned = ~by_names.left_out
    assert (by_names.kind == NEW_NAME).any()
    assert learned.sum() + (by_names.kind != NOT_ASKED).sum() <= 200
    model = jostle.fit(runs, QUICK)
    assert any("runs some learn from nearly all" in note for note in model.notes)
    beside = runs.take(runs.colocations.number_of_corunners > 0)
    assert np.isfinite(model.bound(beside.colocations, 0.6).seconds).all()
    c = beside.colocations
    solo = Colocations.from_columns(
        workload=names_of(c)[0], platform=list(c.to_columns()["platform"])
    )
    assert_closer(*(errors_of(model.predict(asked), beside.runtime_seconds) for asked in (c, solo)))


def test_who_is_far_off_after_few_of_many_runs_never_learns_from_all(
    runs: Runs, monkeypatch: Any
) -> None:
    monkeypatch.setattr("jostle.learn.ensemble._folds.MANY_ROWS", 100)
    monkeypatch.setattr("jostle.learn.ensemble._cross_validation.FIRST_ROWS", 30)
    learned: dict[str, list[int]] = {"near": [], "far": []}

    class Off:
        """Off by so much of what was measured."""

        needs = frozenset({"runs"})

        def __init__(self, name: str, log: float) -> None:
            self.name, self.labels, self.log = name, (name,), log

        def fit(self, campaign: Any, wanted: Any, *, seed: int = 0, best: bool = False) -> Any:
            learned[self.name].append(int((campaign.degree > 0).sum()))
            return self

        def log_slowdowns(self, rows: Any, cell_table: Any) -> np.ndarray:
            return (rows.log_slowdown + self.log)[None]

    campaign = campaign_for(runs)
    learners: Any = {"near": Off("near", 0.01), "rules": SimpleRules(), "far": Off("far", 2.0)}
    wanted = {"near": ("near",), "rules": ("none", "effects"), "far": ("far",)}
    tried = CrossValidator(campaign, learners, wanted, seed=0)
    folds = folds_of(campaign, seed=0)
    for fold in folds:
        tried.fit(fold)
    assert learned["far"] == [30]
    beside = campaign.degree > 0
    assert learned["near"] == [30, *(int((beside & ~fold.left_out).sum()) for fold in folds)]
    assert tried.dropped_learners == ("far",)
    assert tried.wanted == {"near": ("near",), "rules": ("none", "effects"), "far": ()}


def test_a_network_that_missed_some_runs_learns_once_more(runs: Runs, monkeypatch: Any) -> None:
    monkeypatch.setattr("jostle.learn.ensemble._folds.MANY_ROWS", 100)
    campaign = campaign_for(runs)
    learners = {name: learner_named(name)() for name in ("network", "rules")}
    tried = CrossValidator(campaign, learners, {}, seed=0)
    (fold, *_), none = folds_of(campaign, seed=0), np.full(len(campaign), NOT_ASKED)
    network: Any = SimpleNamespace(in_unit=lambda seconds: seconds)
    unit = {"network": campaign.unit_seconds}
    for left_out, kept in ((fold.left_out, {}), (none == 0, unit)):
        mine = {"network": network, "rules": network}
        tried.fits = [(replace(fold, left_out=left_out), mine, campaign)]
        assert tried.ready == kept


def test_slowdowns_are_learned_where_the_time_alone_was_measured() -> None:
    """On machine 1 hardly any ran alone: what that would be is a poor guess."""
    every = made_runs(programs=10, threes=0, noise=0.01)
    c = every.colocations
    rare = (c.platform == 1) & (c.number_of_corunners == 0) & (c.workload > 1)
    campaign = campaign_for(every.take(~rare))
    assert not campaign.uses_estimated_solo
    assert campaign.is_training_row.sum() < (campaign.degree > 0).sum()
    assert (campaign.rows.error == 0).all()
    only = campaign_for(every.take(c.number_of_corunners > 0))
    assert only.uses_estimated_solo
    assert (only.is_training_row == (only.degree > 0)).all()
    assert only.rows.error is not None
    assert (only.rows.error > 0).all()


def test_many_names_on_several_platforms_are_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past so many cells what tells them apart is sparse, and is not kept."""
    monkeypatch.setattr("jostle.learn.training._design.MANY_CELLS", 150)
    random = np.random.default_rng(0)
    rows = [(w, p, None) for w in range(52) for p in range(3) if random.random() < 0.5]
    rows += [tuple(random.integers((52, 3, 52)).tolist()) for _ in range(80)]
    runs = Runs.from_columns(
        workload=[f"w{w}" for w, _, _ in rows],
        platform=[f"p{p}" for _, p, _ in rows],
        corunners=[[] if k is None else [f"w{k}"] for *_, k in rows],
        runtime_seconds=np.exp(random.normal(size=len(rows))),
    )
    model = jostle.fit(runs, QUICK, seed=0)
    model.save(tmp_path / "model")
    again = jostle.load(tmp_path / "model").predict(runs.colocations)
    assert np.array_equal(again, model.predict(runs.colocations), equal_nan=True)


def test_where_company_costs_nothing_answers_are_closer_than_runs(runs: Runs) -> None:
    random, c = np.random.default_rng(0), runs.colocations
    cell = c.platform * len(c.workload_names) + c.workload
    truth = np.exp(random.normal(size=cell.max() + 1))[cell]
    seconds = truth * np.exp(0.03 * random.normal(size=len(c)))
    quiet = Runs.from_columns(**c.to_columns(), runtime_seconds=seconds)
    found = fitted_to(quiet).predict(c)
    assert np.abs(found / truth - 1).mean() < np.abs(seconds / truth - 1).mean()


def test_without_any_base_learner_it_is_said_what_to_install(runs: Runs, monkeypatch: Any) -> None:
    monkeypatch.setattr("jostle.learn.ensemble._ensemble_method.learner_names", tuple)
    with pytest.raises(UsageError, match="no base learner is installed"):
        jostle.fit(runs)
