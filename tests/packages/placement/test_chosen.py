"""The promise of what is chosen: the choice is replayed on calibration runs, which are found again."""

from __future__ import annotations

from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.data import Runs
from jostle.errors import UsageError
from jostle.learn import Data, held_out_again
from jostle.learn.learners.network import Factorization
from jostle.models import Model
from jostle.placement import Node, Request, calibration_runs, level_of_chosen, place
from jostle.placement.chosen._replay_choice import CAREFUL, FLEETS, Replay, _log_ratios


class _Made(Replay):
    """n runs of one workload, answered with errors of one spread that differ by `apart` in truth; bounds are
    exact quantiles of a normal law."""

    def __init__(self, n: int, apart: float, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.workload = self.platform = np.zeros(n, int)
        truth = apart * random.normal(size=n)
        self.log_runtime = truth + random.normal(size=n)
        self.log_predicted, self.usual = truth, np.zeros(n)
        self.log_bound = lambda c: self.log_predicted + NormalDist().inv_cdf(c)


def _late(replay: _Made, level: float, width: int, limit: float = np.inf) -> float:
    """The share of firsts over their bound, one fleet after the other, by hand."""
    random, late, taken = np.random.default_rng(7), 0, 0
    bound = replay.log_bound(level)
    for _ in range(4000):
        fleet = random.permutation(len(replay))[:width]
        mine = [i for i in fleet.tolist() if bound[i] <= limit]
        if mine:
            first = min(mine, key=lambda i: bound[i])
            taken, late = taken + 1, late + bool(replay.log_runtime[first] > bound[first])
    return late / max(taken, 1)


@pytest.mark.parametrize(("width", "limit"), [(8, np.inf), (20, np.inf), (1, 1.0), (8, 0.0)])
def test_the_level_is_the_boldest_at_which_few_of_the_firsts_are_late(
    width: int, limit: float
) -> None:
    replay = _Made(4000, 0.0, 3)
    replay.log_predicted = np.random.default_rng(4).normal(size=4000) + replay.log_runtime
    limits = np.full((1, 4000), limit)
    level = replay.level(0.9, width, limits)
    assert level is not None
    assert level > 0.9  # what is chosen by its bound is late more often than it says
    levels = [round(1 - 0.1 * careful, 12) for careful in CAREFUL]
    bolder = levels[levels.index(level) - 1]
    n = 4000 // width
    # Shares of 4 000 fleets drawn anew, within what they can be off by chance at one in a million.
    assert _late(replay, level, width, limit) <= 0.1 + 4.8 * np.sqrt(0.09 / 4000)
    assert _late(replay, bolder, width, limit) >= 0.1 - 1 / n - 4.8 * np.sqrt(0.09 / 600)


def test_where_nothing_is_gained_by_choosing_bounds_stay() -> None:
    """Bounds that differ by truth alone, and errors that no prediction knows of: no curse."""
    replay = _Made(4000, 1.0, 5)
    assert replay.level(0.9, 1, np.full((1, 4000), np.inf)) in (0.9, 0.925)


def test_too_few_calibration_runs_promise_nothing() -> None:
    """Five fleets of 20, where one more counts as late: at best a sixth."""
    replay = _Made(100, 0.0, 6)
    none = np.full((1, 100), np.inf)
    assert replay.level(0.9, 20, none) is None
    assert replay.level(0.8, 20, none) is not None
    assert replay.level(0.9, 1, np.full((1, 100), -np.inf)) is None  # nobody is ever accepted


@pytest.mark.parametrize(("width", "others"), [(1, 0), (5, 0), (20, 10)])
def test_fleets_are_of_one_workload_as_far_as_it_has_runs(width: int, others: int) -> None:
    replay = _Made(100, 0.0, 8)
    replay.workload = np.repeat([0, 1], [10, 90])
    fleets = replay._fleets(width)
    assert replay._fleets(width) is fleets
    assert len(fleets) >= FLEETS
    assert all(len(set(row)) == width for row in fleets.tolist())
    of_second = replay.workload[fleets].sum(axis=1)
    assert set(of_second.tolist()) == {others, width}
    assert (of_second == others).mean() == pytest.approx(0.1, abs=0.06)


def test_bounds_are_compared_by_what_is_usual_of_their_workload() -> None:
    """Half of 40 workloads take no time, are always late, and always longer than usual: none of them is
    taken where one of the others is there."""
    replay = _Made(400, 0.0, 9)
    replay.workload = np.repeat(np.arange(40), 10)
    is_late = replay.workload % 2 == 0
    replay.usual = np.where(is_late, -10.0, 0.0)
    replay.log_predicted = replay.usual + is_late
    replay.log_runtime = replay.usual + np.where(is_late, 99.0, -99.0)
    none, without = np.full((1, 400), np.inf), np.where(is_late, np.inf, -np.inf)[None]
    assert replay.level(0.9, 20, none) == 0.9
    assert replay.level(0.9, 10, none) is None  # there half of the fleets have no other
    assert replay.level(0.9, 20, without) is None
    # Each kind of limits counts for as many fleets.
    assert replay.level(0.9, 20, np.concatenate([none] * 99 + [without])) == 0.9
    assert replay.level(0.9, 20, np.concatenate([without, none])) is None


class _Known:
    """A Replay of three runs that remembers what was asked of it."""

    platform, workload = np.array([1, 0, 1]), np.array([0, 1, 1])

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self.platform)

    def level(self, *given: Any) -> float:
        self.asked.append(given)
        return 0.95


def test_limits_are_ratios_of_times_alone_and_alike_nodes_are_one_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two platforms and two workloads, which alone take 1, 2 and 4, 8 seconds."""
    solo = np.array([[1.0, 4.0], [2.0, 8.0], [np.nan, np.nan]])
    sets: Any = SimpleNamespace(
        platform_code={"p": 0, "q": 1},
        workload_code={"u": 0, "v": 1},
        workload_names=("u", "v"),
        solo=lambda platforms: solo[platforms],
        model=None,
        standard=SimpleNamespace(confidence=0.9),
    )
    one, two = Node("a", "p", 2), Node("b", "q", 2, tenants=(Request("u"), Request("v")))
    elsewhere = Node("c", "nowhere", 2)
    asked = [
        Request("u", slowdown=3.0),
        Request("v", deadline_seconds=3.0),
        Request("v", slowdown=1.5, deadline_seconds=30.0),
        Request("u"),
        Request("nobody", deadline_seconds=1.0),
        Request("v", slowdown=9.0, deadline_seconds=12.0),
    ]
    for nodes, median in (([one, elsewhere], 4.0), ([one, two], 6.0)):
        ratios = np.exp(_log_ratios(sets, asked, nodes))
        expected = [3.0, 3.0 / median, 1.5, np.inf, np.inf, min(9.0, 12.0 / median)]
        assert ratios == pytest.approx(sorted(expected))
    assert np.exp(_log_ratios(sets, asked[1:2], [elsewhere])) == np.inf
    assert _log_ratios(sets, [], [one]).tolist() == [np.inf]

    known = _Known()
    monkeypatch.setattr(Replay, "of", lambda model: known)
    same = Node("d", "q", 5, tenants=(Request("v"), Request("u")))
    for is_least, options in ((True, 2), (False, 1)):
        nodes = [one, two, same]
        assert level_of_chosen(sets, asked[:1], nodes, is_least=is_least) == 0.95
        confidence, number, limits = known.asked[-1]
        assert (confidence, number) == (0.9, options)
        assert np.exp(limits) == pytest.approx(3.0 * np.array([[2.0, 4.0, 8.0]]))
    monkeypatch.setattr(Replay, "of", lambda model: None)
    assert level_of_chosen(sets, asked, [one], is_least=True) is None


def test_calibration_runs_are_drawn_again(model: Model, world: Runs) -> None:
    found = calibration_runs(model, world)
    assert len(found) == model.metadata["runs"]["calibration"]
    counts = np.bincount(found.colocations.number_of_corunners)
    assert counts[0] == int((model.calibration.runs.degree == 0).sum())
    with pytest.raises(UsageError, match="fitted to"):
        calibration_runs(model, world.take(np.arange(500)))


def test_calibration_runs_of_groups_are_drawn_again(
    world: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that bounds within groups keeps calibration runs that others would rather learn from."""
    monkeypatch.setattr("jostle.learn.contract._prepared.MOST_CALIBRATION", 20)
    prepared = Factorization().prepare(Data.of(world))
    drawn = {
        by: held_out_again(prepared, 0, prepared.calibrate_by, grouped=by is not None).calibration
        for by in (None, "platform")
    }
    assert len(drawn[None]) < len(drawn["platform"])
    for by, runs in drawn.items():
        metadata = {
            "method": "factorization",
            "settings": {},
            "seed": 0,
            "calibrated_by": prepared.calibrate_by,
            "by": by,
            "runs": {"calibration": len(runs)},
        }
        known: Any = SimpleNamespace(metadata=metadata)
        assert calibration_runs(known, world).colocations == runs.colocations


def test_answers_say_what_holds_of_the_chosen(model: Model) -> None:
    nodes = [Node(f"n{i}", f"p{i % 6}", tenants=(Request(f"w0{i}"),)) for i in range(6)]
    asked = [Request(f"w{i:02d}", f"r{i}", slowdown=s) for i, s in enumerate([1.5, 3.0, 9.0])]
    plain, placed = place(model, nodes, promise="each"), place(model, nodes)
    for one, other in zip(placed.rank(asked), plain.rank(asked), strict=True):
        assert len(one) <= len(other)
        every = {row.node: row.bound_seconds for row in other.rows()}
        assert all(row.bound_seconds >= every[row.node] for row in one.rows())
    best = [one for one in placed.rank(asked) if len(one)]
    assert best
    assert all("10%" in one.promise and "replayed" in one.promise for one in best)
    assert all("nothing is promised" in one.promise for one in plain.rank(asked) if len(one))
    assert "10% of the requests that are placed" in (promise := placed.assign(asked).promise)
    assert "for these co-runners to the end" in promise  # it is not one about whoever may come
    assert "nothing is promised:" in plain.assign(asked).promise
    many = [Node(f"n{i}", f"p{i % 6}", tenants=(Request(f"w{i % 14:02d}"),)) for i in range(500)]
    assert "too few" in place(model, many, confidence=0.99).rank(asked[2])[0].promise


def test_predictions_of_calibration_runs_know_nothing_of_them(model: Model, world: Runs) -> None:
    """What is replayed are the model's own answers without its calibration runs."""
    replay = Replay.of(model)
    assert replay is not None
    apart = model
    runs = calibration_runs(model, world)
    order = np.argsort(runs.runtime_seconds)
    mine = np.argsort(replay.log_runtime)
    np.testing.assert_allclose(
        replay.log_predicted[mine], np.log(apart.predict(runs.take(order).colocations)), atol=1e-9
    )
    bound = np.log(apart.bound(runs.take(order).colocations, 0.9).seconds)
    np.testing.assert_allclose(replay.log_bound(0.9)[mine], bound, atol=1e-9)
    for code in np.unique(replay.workload):
        own = replay.workload == code
        np.testing.assert_allclose(replay.usual[own], replay.log_predicted[own].mean())
