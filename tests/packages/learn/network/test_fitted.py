"""The fitted model: JAX and NumPy agree, invariants, what it learns, what it cannot answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from jostle.data import Colocations, Runs
from jostle.errors import NotEnoughRuns, UsageError
from jostle.learn import Baseline, Features, Fitted, RunCounts, fit_baseline, learn
from jostle.learn.learners.network import Factorization, FittedFactorization
from jostle.learn.learners.network import _fit_network as _fit
from jostle.learn.learners.network._embeddings import Form
from jostle.learn.learners.network._fit_network import pad
from jostle.learn.learners.network._fitted_network import far_of
from jostle.learn.learners.network._spread import Spread
from jostle.learn.learners.network.training import _train as jax_side
from jostle.learn.learners.network.training._network_members import combine
from tests.small_world import PLATFORMS, WORKLOADS, make_world

QUICK = Factorization(
    form="paper", types=2, type_rank=4, rank=8, hidden=16, steps=60, learning_rate=7e-3
)


def mape(model: Fitted, runs: Runs) -> float:
    return float(np.mean(np.abs(model.predict(runs.colocations) / runs.runtime_seconds - 1)))


NAMES, PLACES = tuple("abcdefg"), tuple("pqrst")


def untrained(shape: jax_side.Shape, seeds: tuple[int, ...]) -> tuple[FittedFactorization, list]:
    """The average of untrained members, and the members' embeddings."""
    random = np.random.default_rng(0)
    sides = [
        Features(random.normal(size=(n, 3)).astype("f"), np.zeros((n, 0), int), ()) for n in (7, 5)
    ]
    features = jax_side.device_features(*sides)
    members = []
    for seed in seeds:
        parameters = jax_side.initial_parameters(seed, shape, *sides)
        members.append(jax_side.embeddings_of(parameters, features, shape))
    baseline = Baseline(np.zeros(7), np.zeros(5), np.zeros(7, int), np.zeros(5, int))
    embeddings = combine(members, baseline, shape)
    counts = RunCounts.of(Runs.from_columns(workload=[], platform=[], runtime_seconds=[]))
    model = FittedFactorization(
        NAMES, PLACES, embeddings, counts, Spread.none(7, 5), (), Form(shape.form)
    )
    return model, members


def some_colocations(n: int = 40) -> Colocations:
    random = np.random.default_rng(1)
    return Colocations.from_columns(
        workload=list(random.choice(NAMES, n)),
        platform=list(random.choice(PLACES, n)),
        corunners=[list(random.choice(NAMES, k)) for k in random.integers(0, 4, n)],
    )


@pytest.mark.parametrize("form", ["paper", "product", "saturating"])
@pytest.mark.parametrize("grid", [True, False])
def test_jax_and_numpy_agree(form: str, grid: bool) -> None:
    """The function that training differentiates and the one that answers give the same numbers."""
    shape = jax_side.Shape(form, 8, 3, 2, 16, 4, grid)
    model, (e,) = untrained(shape, (3,))
    asked = some_colocations()
    w, p, k = asked.recode(NAMES, PLACES)
    rows = tuple(jnp.asarray(x) for x in (w, p, pad(k, asked.corunner_offsets)))
    theirs = jax_side.residual({name: jnp.asarray(v) for name, v in e.items()}, rows, shape)
    assert np.allclose(np.log(model.predict(asked)), np.asarray(theirs), atol=2e-5)


@pytest.mark.parametrize("form", ["paper", "product"])
def test_the_average_of_members_is_one_model(form: str) -> None:
    shape = jax_side.Shape(form, 8, 3, 2, 16, 4, True)
    asked = some_colocations()
    together = np.log(untrained(shape, (1, 2, 3))[0].predict(asked))
    apart = [np.log(untrained(shape, (seed,))[0].predict(asked)) for seed in (1, 2, 3)]
    assert np.allclose(together, np.mean(apart, axis=0), atol=1e-4)


def test_it_learns_interference(fitted: FittedFactorization, world: Runs) -> None:
    test = make_world(1500, 2)
    alone = test.take(test.colocations.number_of_corunners == 0)
    beside = test.take(test.colocations.number_of_corunners > 0)
    blind = Colocations.from_columns(
        workload=beside.table.column("workload").to_pylist(),
        platform=beside.table.column("platform").to_pylist(),
    )
    naive = np.abs(fitted.predict(blind) / beside.runtime_seconds - 1).mean()
    assert mape(fitted, beside) < naive / 3
    # What workloads and platforms are each does not tell which kinds of workloads a platform suits.
    learned = world.take(world.colocations.number_of_corunners == 0)
    names = fitted.workload_names, fitted.platform_names
    w, p, _ = learned.colocations.recode(*names)
    rule = fit_baseline(w, p, np.log(learned.runtime_seconds), len(names[0]), len(names[1]))
    w, p, _ = alone.colocations.recode(*names)
    by_rule = np.exp(rule.workload[w] + rule.platform[p])
    assert mape(fitted, alone) < np.abs(by_rule / alone.runtime_seconds - 1).mean() / 2


@pytest.mark.parametrize("form", ["product", "saturating"])
def test_a_corunner_more_is_never_faster(form: str) -> None:
    """Whatever the network's numbers are: those that nobody trained."""
    model, _ = untrained(jax_side.Shape(form, 8, 3, 2, 16, 4, True), (1, 2))
    random = np.random.default_rng(0)
    for _ in range(20):
        beside = list(random.choice(model.workload_names, 4))
        rows = Colocations.from_columns(
            workload=[model.workload_names[3]] * 5,
            platform=[model.platform_names[2]] * 5,
            corunners=[beside[:k] for k in range(5)],
        )
        # The co-run effect may be a speed-up; beside one, another never speeds up.
        assert (np.diff(model.predict(rows)[1:]) >= 0).all()


def test_one_by_one_and_in_bulk_agree(
    fitted: FittedFactorization, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = make_world(3000, 5).colocations
    first = FittedFactorization.from_arrays(*fitted.to_arrays()).predict(asked.take([0]))
    fresh = FittedFactorization.from_arrays(*fitted.to_arrays())
    bulk = fresh.predict(asked)
    assert np.array_equal(fresh.predict(asked.take([0])), first)  # whatever was asked before
    monkeypatch.setattr("jostle.learn.learners.network._fitted_network.GRID_CELLS", 0)
    few = [float(fitted.predict(asked.take([i]))[0]) for i in range(40)]
    assert np.allclose(bulk[:40], few, rtol=1e-5)


def test_quantile_heads_are_ordered_on_average(fitted: FittedFactorization, world: Runs) -> None:
    told = fitted.uncertainty(world.colocations)
    assert told.seconds is not None
    assert np.array_equal(told.seconds, fitted.predict(world.colocations))
    assert told.log_widths.shape == (len(told.slopes), len(world))
    codes, heads = fitted.codes(world.colocations), fitted.quantiles
    median, high = (fitted.log_quantile(codes, heads.index(q)) for q in (0.5, 0.9))
    y = np.log(world.runtime_seconds)
    low, much = (y <= median).mean(), (y <= high).mean()
    assert low < much  # trained for a half and for nine tenths
    assert (high - median).mean() > 0


def test_without_features_with_one_degree_only_with_a_workload_seen_once() -> None:
    runs = make_world(300, 0, degrees=(1,), features=False)
    once = runs.take([0])
    name = once.table.column("workload").to_pylist()[0]
    others = runs.take(np.array([w != name for w in runs.table.column("workload").to_pylist()]))
    together = Runs.concatenate([once, others.take(np.arange(1, len(others)))])
    model = learn(
        QUICK, together, validation=make_world(40, 1, degrees=(1,), features=False), seed=0
    )
    assert np.isfinite(model.predict(runs.colocations)).all()
    assert any("without co-runners" in note for note in model.notes)


def test_disconnected_parts_are_not_answered_across() -> None:
    columns = {
        "workload": ["a", "b", "c", "d"] * 10,
        "platform": ["p", "p", "q", "q"] * 10,
        "runtime_seconds": [1.0, 2.0, 100.0, 300.0] * 10,
    }
    runs = Runs.from_columns(**columns)
    model = learn(QUICK, runs, seed=0)
    asked = Colocations.from_columns(workload=["a", "a", "c"], platform=["p", "q", "q"])
    seconds = model.predict(asked)
    assert list(np.isnan(seconds)) == [False, True, False]
    assert any("2 parts" in note for note in model.notes)
    assert seconds[[0, 2]] == pytest.approx([1.0, 100.0], rel=0.5)


def test_a_workload_with_features_alone_is_answered_near_its_kin(world: Runs) -> None:
    left_out = np.array([w != "w05" for w in world.table.column("workload").to_pylist()])
    no_corunner = np.array(["w05" not in k for k in world.table.column("corunners").to_pylist()])
    model = learn(
        Factorization(rank=8, hidden=32, steps=300, quantiles=()),
        world.take(np.flatnonzero(left_out & no_corunner)[:600]),
        validation=make_world(1, 1),
        seed=0,
    )
    test = make_world(1500, 2, degrees=(0,))
    held = test.take(np.array([w == "w05" for w in test.table.column("workload").to_pylist()]))
    error = np.abs(np.log(model.predict(held.colocations) / held.runtime_seconds))
    spread = np.abs(np.log(test.runtime_seconds) - np.log(test.runtime_seconds).mean())
    assert error.mean() < spread.mean()  # better than knowing nothing of it


def test_one_run_and_none() -> None:
    one = Runs.from_columns(workload=["a"], platform=["p"], runtime_seconds=[2.0])
    model = learn(QUICK, one, seed=0)
    assert model.predict(one.colocations)[0] == pytest.approx(2.0, rel=0.3)
    with pytest.raises(NotEnoughRuns):
        learn(QUICK, one.take([]), seed=0)


def test_wrong_settings_are_refused() -> None:
    wrongs: list[dict[str, Any]] = [
        {"form": "linear"},
        {"rank": 0},
        {"steps": 0},
        {"quantiles": (1.5,)},
    ]
    wrongs += [{"objective": "none"}, {"learning_rate": 0.0}]
    for wrong in wrongs:
        with pytest.raises(UsageError):
            Factorization(**wrong)


def test_interference_norm_against_the_full_matrix(fitted: FittedFactorization) -> None:
    e = fitted.embeddings
    full = np.einsum("ptk,ptl,t->pkl", e.susceptibility, e.intensity, e.type_weight)
    assert np.allclose(fitted.interference_norm(), np.linalg.norm(full, 2, axis=(1, 2)), rtol=1e-4)
    assert fitted.interference_norm().shape == (PLATFORMS,)
    assert len(fitted.workload_names) == WORKLOADS


def test_prior_runs_are_learned_from_and_never_calibrated_on() -> None:
    from jostle import fit

    few, test = make_world(60, 11), make_world(800, 12)  # of 84 pairs of workload and platform
    method = Factorization(types=2, rank=8, hidden=16, steps=100)
    without = fit(few, method, seed=0)
    helped = fit(few, method, seed=0, prior=make_world(600, 13))
    assert mape(helped.predictor, test) < 0.85 * mape(without.predictor, test)
    degrees = [np.sort(one.calibration.runs.degree).tolist() for one in (helped, without)]
    assert degrees[0] == degrees[1]
    assert helped.metadata["runs"]["prior"] == 600


def test_members_differ_and_every_second_one_learns_without_the_prior(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Log answers of one model are the means of its members' (see above), which are never further from the
    truth than members are in the mean (the triangle inequality): of one member twice, no nearer either."""
    from jostle import fit

    few, prior = make_world(80, 31), make_world(150, 32)
    seen: list[int] = []
    members: list[dict[str, np.ndarray]] = []
    train = _fit.train_member

    def watched(data: Any, *rest: Any) -> Any:
        seen.append(len(data.solo) + len(data.corun))
        members.append(train(data, *rest))
        return members[-1]

    monkeypatch.setattr(_fit, "train_member", watched)
    method = Factorization(types=2, rank=8, hidden=16, steps=10, members=4)
    model = fit(few, method, seed=0, prior=prior)
    own = sum(model.metadata["runs"][part] for part in ("fitted", "validation")) - len(prior)
    assert min(seen[0], seen[2]) > len(prior)
    assert max(seen[1], seen[3]) < own
    assert model.metadata["runs"]["calibration"] + own == len(few)
    assert not np.array_equal(members[0]["workload_main"], members[2]["workload_main"])


def test_runs_alone_teach_no_slowdown() -> None:
    alone = make_world(200, 0, degrees=(0,))
    model = learn(replace(QUICK, form="saturating"), alone, seed=0)
    seconds = model.predict(
        Colocations.from_columns(
            workload=["w00"] * 3,
            platform=["p1"] * 3,
            corunners=[[], ["w01"], [f"w{k % 14:02d}" for k in range(15)]],
        )
    )
    assert (seconds == seconds[0]).all()
    assert any("no run with co-runners" in note for note in model.notes)


def test_sixteen_co_runners_in_any_order(fitted: FittedFactorization) -> None:
    beside = [f"w{i % WORKLOADS:02d}" for i in range(16)]
    asked = Colocations.from_columns(
        workload=["w00"] * 3,
        platform=["p1"] * 3,
        corunners=[beside, beside[::-1], beside[:15]],
    )
    found = fitted.predict(asked)
    assert np.isfinite(found).all()
    assert found[0] == found[1]


def test_programs_of_many_shapes_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes memory maps, of which a process that fits again and again would run out."""
    monkeypatch.setattr(jax_side, "SHAPES_KEPT", 2)
    monkeypatch.setattr(jax_side, "_shapes_met", set())
    forgotten: list[int] = []

    class Program:
        def clear_cache(self) -> None:
            forgotten.append(1)

    monkeypatch.setattr(jax_side, "PROGRAMS", [Program()])
    # Which shapes are met is asked, not what is learned: nothing is compiled for it.
    monkeypatch.setattr(jax_side, "run_steps", lambda carry, *_, program: (carry, 0.0))
    for size in (60, 80, 60, 100, 60):
        alone = make_world(size, 5, degrees=(0,))
        learn(QUICK, alone, validation=make_world(20, 6, degrees=(0,)))
    assert len(forgotten) == 1  # before the third shape; the first is then met anew


@pytest.mark.parametrize("n", [4, 20, 1500])
def test_how_far_a_name_without_runs_lies(n: int) -> None:
    """Against every distance by brute force."""
    random = np.random.default_rng(n)
    place = random.normal(size=(n, 5))
    met = random.random(n) < 0.8
    found = far_of(place, met)
    gap = np.sqrt(((place[:, None] - place[met]) ** 2).sum(-1))
    near = np.sort(gap, axis=1)
    if met.sum() < 6 or met.all():
        assert (found == 1).all()
        return
    usual = np.median(near[met, 1:4].mean(1))  # the nearest of all is the point itself
    np.testing.assert_allclose(found[~met], np.maximum(near[~met, :3].mean(1) / usual, 0.1))
    assert (found[met] == 1).all()
