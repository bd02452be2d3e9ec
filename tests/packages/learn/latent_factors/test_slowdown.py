"""The slowdown form: its slope, what it can learn, and what must hold whatever it learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import jostle
from jostle.data import Colocations, Runs, split_rows
from jostle.errors import UsageError
from jostle.learn import CellTable, Ensemble, SlowdownRows, learn
from jostle.learn.learners.latent_factors import Slowdown
from jostle.learn.learners.latent_factors._product_equation import FormLoss, Sizes
from jostle.learn.learners.latent_factors._product_form import (
    SlowdownForm,
    _fitted,
    _random_start,
    fit_forms,
)
from jostle.operations import SimpleRule
from tests.limits import assert_closer, errors_of
from tests.packages.learn.ensemble.campaigns import campaign_for

WORKLOADS = tuple(f"w{i}" for i in range(8))
PLATFORMS = ("p", "q")


FOUR_ROWS = SlowdownRows(
    target=np.array([0, 1, 4, 5]),
    corunner=np.array([1, 2, 0, 3, 3, 4]),
    row=np.array([0, 0, 1, 2, 3, 3]),
    log_slowdown=np.array([0.1, 0.5, 0.9, 0.3]),
    scale=np.array([1.0, 2.0, 0.5, 0.7]),
)


def world(seed: int = 0, most: int = 1, extra: bool = False) -> Runs:
    """Runs that follow the form exactly, all pairs on two platforms, or sets of up to `most`."""
    random = np.random.default_rng(seed)
    hit, press = random.uniform(0.1, 1.0, (8, 2)), random.uniform(0.1, 1.5, (8, 2))
    solo = random.uniform(0.5, 4.0, (2, 8))
    gain = np.array([1.0, 0.5])
    rows = []
    for p in range(2):
        for i in range(8):
            rows.append((i, p, (), solo[p, i]))
            sets = {
                tuple(sorted(random.integers(0, 8, k))) for k in range(1, most + 1) for _ in "abcd"
            }
            for beside in sets if most > 1 else [(j,) for j in range(8)]:
                u = gain[p] * (hit[i] * press[list(beside)].sum(0)).sum()
                seconds = solo[p, i] + 0.3 + u if extra else solo[p, i] * (1 + u)
                rows.append((i, p, beside, seconds))
    return Runs.from_columns(
        workload=[WORKLOADS[i] for i, *_ in rows],
        platform=[PLATFORMS[p] for _, p, *_ in rows],
        corunners=[[WORKLOADS[j] for j in beside] for _, _, beside, _ in rows],
        runtime_seconds=[seconds for *_, seconds in rows],
    )


def twins(runs: Runs, one: str, other: str) -> Runs:
    """Runs in which the other workload behaves as the one does, wherever it stands."""
    c = runs.colocations
    known = {c.row(i): s for i, s in enumerate(runs.runtime_seconds.tolist())}

    def as_one(name: str) -> str:
        return one if name == other else name

    rows = [
        (w, p, beside, known[as_one(w), p, tuple(sorted(map(as_one, beside)))])
        for w, p, beside in known
    ]
    workload, platform, corunners, seconds = zip(*rows, strict=True)
    return Runs.from_columns(
        workload=workload, platform=platform, corunners=corunners, runtime_seconds=seconds
    )


def test_the_slope_is_that_of_the_loss() -> None:
    random = np.random.default_rng(1)
    for exponents, constants in [(False, False), (True, True)]:
        sizes = Sizes(2, 3, 2, random.normal(size=(6, 4)), exponents, constants, 0.6 * exponents)
        x = 0.5 * random.normal(size=sizes.size)
        objective = FormLoss(sizes, FOUR_ROWS, 0.1)
        _, slope = objective(x)
        step = 1e-6
        for at in range(sizes.size):
            up, down = x.copy(), x.copy()
            up[at], down[at] = x[at] + step, x[at] - step
            values = [objective(y)[0] for y in (up, down)]
            assert slope[at] == pytest.approx((values[0] - values[1]) / (2 * step), abs=1e-6)


def test_cells_that_no_row_asks_about_change_nothing() -> None:
    random = np.random.default_rng(3)
    design = random.normal(size=(18, 4))
    few, many = (
        Sizes(platforms, 3, 2, design[: 3 * platforms], True, True, 0.6) for platforms in (2, 6)
    )
    x = 0.5 * random.normal(size=few.size)
    part, more = few.unpack(x), np.zeros(4)
    wide = {**part, **{n: np.append(part[n], more) for n in ("gain", "constant")}}
    y = np.concatenate([wide[name].ravel() for name in many.shapes()])
    (loss, slope), (other, slope_of_many) = (
        FormLoss(few, FOUR_ROWS, 0.1)(x),
        FormLoss(many, FOUR_ROWS, 0.1)(y),
    )
    assert other == pytest.approx(loss, rel=1e-12)
    mine, theirs = few.unpack(slope), many.unpack(slope_of_many)
    for name, expected in mine.items():
        assert theirs[name][: len(expected)] == pytest.approx(expected, abs=1e-12)


def test_numbers_that_no_row_tells_of_are_nothing_and_cost_nothing() -> None:
    """Of a sparse design as of the same one in full, whose search has those that some row tells of alone."""
    design = np.vstack([np.eye(4, 12)[[0, 1, 2, 3, 0, 1]], np.eye(12, 12)])
    many = Sizes(6, 3, 2, csr_matrix(design), True, True, 0.6)
    x, _ = _fitted(FOUR_ROWS, many, 0.1, _random_start(many, seed=0), steps=200)
    part = many.unpack(x)
    met = np.union1d(FOUR_ROWS.target, FOUR_ROWS.corunner)
    told = design[met].any(0)
    assert 0 < told.sum() < told.size
    for name in ("types", "both"):
        assert not part[name][~told].any()
    dense = replace(many, design=design)
    full, _ = _fitted(FOUR_ROWS, dense, 0.1, _random_start(dense, seed=0), steps=200)
    loss = FormLoss(many, FOUR_ROWS, 0.1)
    assert loss(x)[0] == pytest.approx(loss(full)[0], rel=0.01)


def test_forms_of_several_penalties_start_where_the_stronger_one_ended() -> None:
    sizes = Sizes(2, 3, 2, np.eye(6), False, False, 0.0)
    one, two = fit_forms(FOUR_ROWS, sizes, [0.001, 0.1], 0, 1, 200)
    (strong,) = fit_forms(FOUR_ROWS, sizes, [0.1], 0, 1, 200)
    assert np.array_equal(two.pressure, strong.pressure)
    # A weaker ridge is closer to the rows.
    cell_table = CellTable(2, 3)
    away = [
        np.abs(f.log_slowdown(FOUR_ROWS, cell_table) - FOUR_ROWS.log_slowdown) for f in (one, two)
    ]
    assert away[0].sum() < away[1].sum()


@pytest.mark.parametrize("step", [1e2, 1e3, 1e5])
def test_the_loss_of_numbers_far_off_is_finite(step: float) -> None:
    random = np.random.default_rng(2)
    sizes = Sizes(2, 3, 2, random.normal(size=(6, 4)), True, True, 0.6)
    rows = SlowdownRows(
        target=np.array([0, 1, 4, 5]),
        corunner=np.array([1, 2, 0, 3, 3, 4]),
        row=np.array([0, 0, 1, 2, 3, 3]),
        log_slowdown=np.array([-40.0, 0.5, 0.9, 40.0]),
        scale=np.array([1.0, 2.0, 0.5, 0.7]),
    )
    objective = FormLoss(sizes, rows, 0.1)
    for _ in range(50):
        with np.errstate(all="raise", under="ignore"):
            loss, slope = objective(step * random.normal(size=sizes.size))
        assert np.isfinite(loss)
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("extra", [False, True])
def test_it_learns_a_world_of_its_kind(extra: bool) -> None:
    runs = world(extra=extra)
    train, test = (runs.take(part) for part in split_rows(runs, (0.7, 0.3), 0, unit="together"))
    alone = runs.take(runs.colocations.number_of_corunners == 0)
    train = Runs.concatenate([train.take(train.colocations.number_of_corunners > 0), alone])
    test = test.take(test.colocations.number_of_corunners > 0)
    method = Slowdown(rank=2, members=1)
    mine, constant = (
        errors_of(learn(one, train).predict(test.colocations), test.runtime_seconds)
        for one in (method, SimpleRule("level"))
    )
    assert_closer(mine, constant)


def test_it_extrapolates_to_more_corunners() -> None:
    runs = world(most=5)
    degree = runs.colocations.number_of_corunners
    test = runs.take(degree > 3)
    mine, constant = (
        errors_of(
            learn(one, runs.take(degree <= 3)).predict(test.colocations), test.runtime_seconds
        )
        for one in (Slowdown(rank=2, members=1, steps=60), SimpleRule("level"))
    )
    assert_closer(mine, constant)


CELLS = 2 * len(WORKLOADS)


@pytest.fixture(scope="module")
def forms() -> dict[bool, SlowdownForm]:
    """Of factors and of seconds, learned from sets of up to three co-runners."""
    campaign = campaign_for(world(2, most=3))
    out = {}
    for is_timed in (False, True):
        rows = campaign.rows.over_seconds() if is_timed else campaign.rows.over_factors()
        sizes = Sizes(
            2, len(WORKLOADS), 2, campaign.designs["here"], True, is_timed, 0.5 * is_timed
        )
        (out[is_timed],) = fit_forms(rows, sizes, [0.01], 0, 2, 40)
    return out


@given(
    is_timed=st.booleans(),
    target=st.integers(0, CELLS - 1),
    beside=st.lists(st.integers(0, CELLS - 1), min_size=1, max_size=9),
    more=st.integers(0, CELLS - 1),
    turn=st.randoms(use_true_random=False),
)
@settings(max_examples=60, deadline=None)
def test_in_the_form_a_corunner_never_helps_and_order_does_not_matter(
    forms: dict[bool, SlowdownForm],
    is_timed: bool,
    target: int,
    beside: list[int],
    more: int,
    turn: object,
) -> None:
    shuffled = list(beside)
    turn.shuffle(shuffled)  # type: ignore[attr-defined]
    sets = [beside, shuffled, [*beside, more]]
    rows = SlowdownRows(
        np.full(3, target),
        np.concatenate(sets),
        np.repeat(np.arange(3), [len(one) for one in sets]),
        np.zeros(3),
        np.ones(3),
        is_timed,
    )
    cell_table = CellTable(2, len(WORKLOADS))
    one, other, with_more = forms[is_timed].log_slowdown(rows, cell_table)
    assert one == pytest.approx(other, rel=1e-12)
    assert with_more >= one >= -1e-12


def test_features_answer_for_a_workload_without_runs_beside() -> None:
    """w7 is known alone only; its twin w0 shares its class, and its runs."""
    runs = twins(world(2), "w0", "w7")
    names = list(WORKLOADS)
    features = {"workload": names, "kind": ["k" if n in ("w0", "w7") else n for n in names]}
    c = runs.colocations
    w7 = c.workload_names.index("w7")
    row = np.repeat(np.arange(len(runs)), c.number_of_corunners)
    touched = np.bincount(row, c.corunner == w7, len(runs)) > 0
    keep = ~(((c.workload == w7) & (c.number_of_corunners > 0)) | touched)
    columns = {n: runs.table.column(n) for n in ("workload", "platform", "corunners")}
    whole = Runs.from_columns(
        **columns, runtime_seconds=runs.runtime_seconds, workload_features=features
    )
    fitted = learn(Slowdown(rank=2, members=1), whole.take(keep))
    known = [name for name in WORKLOADS if name not in ("w0", "w7")]
    asked = [(name, p, one) for name in ("w7", "w0", *known) for p in PLATFORMS for one in known]
    beside, alone = (
        Colocations.from_columns(
            workload=[name for name, _, _ in asked],
            platform=[p for _, p, _ in asked],
            corunners=[[one] if is_beside else [] for _, _, one in asked],
        )
        for is_beside in (True, False)
    )
    mine, twin, *others = np.log(fitted.predict(beside) / fitted.predict(alone)).reshape(8, -1)
    away = [float(np.abs(mine - other).mean()) for other in others]
    assert float(np.abs(mine - twin).mean()) < np.median(away)


def test_what_it_refuses() -> None:
    runs = world()
    with pytest.raises(UsageError, match="rank"):
        Slowdown(rank=0)
    fitted = learn(Slowdown(members=1, steps=5), runs)
    asked = Colocations.from_columns(workload=["w9"], platform=["p"], corunners=[["w1"]])
    assert np.isfinite(fitted.predict(asked)).all()
    assert fitted.evidence(asked).workload.tolist() == [0]


def test_runs_alone_only_tell_of_no_slowdown() -> None:
    runs = world()
    alone = runs.take(runs.colocations.number_of_corunners == 0)
    fitted = learn(Slowdown(members=1), alone)
    assert any("no run with co-runners" in note for note in fitted.notes)
    assert np.allclose(fitted.predict(alone.colocations), alone.runtime_seconds)
    c = runs.colocations
    same = alone.runtime_seconds.reshape(2, 8)[c.platform, c.workload]
    assert np.allclose(fitted.predict(c), same)


def test_runs_alone_that_come_by_an_update_have_bounds() -> None:
    """All runs alone were needed to fit, so that no way to bound any was chosen then."""
    model = jostle.fit(world(1, 2), Ensemble(learners=("rules",)), seed=1, calibrate_by="together")
    assert "alone" not in [one.category for one in model.calibration.summary()]
    learned = model.update(world(2, 2), seed=1)
    assert "alone" in [one.category for one in learned.calibration.summary()]
