"""The promise among chosen ones: selection keeps its level, calibration runs are found, too few refuse."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.errors import NotEnoughRuns, UsageError
from jostle.factorization import Factorization
from jostle.methods import Data, held_out_again
from jostle.models import Model
from jostle.placement import (
    ChosenPromise,
    Node,
    Request,
    SetBounds,
    Standard,
    calibration_runs,
    measured_sets,
    pack_measured,
    place,
)
from jostle.placement.chosen._selection import Scored, select, upper_limit
from jostle.runs import Runs

RATIOS = np.array([1.2, 1.5, 2.0, 4.0])


def test_selection_keeps_its_level_over_many_draws() -> None:
    """Late with a probability that falls with the score: of those selected few are, whatever is asked."""
    random, share = np.random.default_rng(0), 0.1

    def drawn(n: int) -> tuple[np.ndarray, np.ndarray]:
        score = random.normal(size=n)
        return score, random.random(n) < 1 / (1 + np.exp(3 * score))

    shares = []
    for _ in range(300):
        scored, (score, late) = Scored(*drawn(150)), drawn(60)
        chosen = select(scored.p_values(score), share)
        shares.append(late[chosen].mean() if chosen.any() else 0.0)
    error = float(np.std(shares) / np.sqrt(len(shares)))
    assert np.mean(shares) <= share + 2 * error
    assert np.mean(shares) > 0.02  # it does choose


def test_p_values_and_limits_by_hand() -> None:
    scored = Scored(np.array([1.0, 2.0, 3.0]), np.array([True, False, True]))
    assert scored.p_values(np.array([0.0, 2.5, 3.0, 4.0])).tolist() == [0.75, 0.5, 0.5, 0.25]
    assert select(np.array([0.01, 0.9, 0.04]), 0.05).tolist() == [True, False, False]
    assert select(np.zeros(0), 0.05).tolist() == []
    assert upper_limit(0, 59) == pytest.approx(1 - 0.05 ** (1 / 59))
    assert upper_limit(0, 0) == 1.0


def test_calibration_runs_are_drawn_again(model: Model, world: Runs) -> None:
    found = calibration_runs(model, world)
    assert len(found) == model.metadata["runs"]["calibration"]
    counts = np.bincount(found.colocations.number_of_corunners)
    assert counts[0] == model.calibration.pools["alone"].n
    with pytest.raises(UsageError, match="fitted to"):
        calibration_runs(model, world.take(np.arange(500)))


def test_calibration_runs_of_groups_are_drawn_again(
    world: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that bounds within groups keeps calibration runs that others would rather learn from."""
    monkeypatch.setattr("jostle.methods._prepared.MOST_CALIBRATION", 20)
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


def test_measured_sets_hold_what_was_measured(model: Model) -> None:
    runs = Runs.from_columns(
        workload=["w01", "w02", "w01", "w03", "w01", "nobody"],
        platform=["p0"] * 6,
        corunners=[["w02"], ["w01"], [], ["w01"], ["w02"], ["w01"]],
        runtime_seconds=[2.0, 3.0, 1.0, 5.0, 9.0, 1.0],
        window_id=["a", "a", "b", "c", "d", "e"],
    )
    alone, pairs = measured_sets(runs, model)
    assert alone.seconds.tolist() == [[1.0]]
    names = model.predictor.workload_names
    both = {tuple(names[code] for code in row): n for n, row in enumerate(pairs.members)}
    assert pairs.seconds[both["w01", "w02"]].tolist() == [2.0, 3.0]
    assert np.isnan(pairs.seconds[both["w01", "w03"], 0])
    assert pairs.solo[both["w01", "w02"], 0] == 1.0
    assert pairs.late(np.full((len(pairs), 2), 2.5))[both["w01", "w02"]]


def test_packing_takes_each_request_once(model: Model) -> None:
    runs = Runs.from_columns(
        workload=["w01", "w01", "w02", "w01"],
        platform=["p0", "p0", "p0", "p1"],
        corunners=[["w02"], ["w03"], ["w04"], ["w02"]],
        runtime_seconds=[1.0] * 4,
    )
    parts = measured_sets(runs, model, fewest=2)
    chosen = pack_measured(parts, [np.ones(len(part), bool) for part in parts])
    names = model.predictor.workload_names
    (part,), (some,) = parts, chosen
    taken = {tuple(names[c] for c in row) for row in part.members[some & (part.platform == 0)]}
    assert taken == {("w01", "w03"), ("w02", "w04")}
    assert some.sum() == 3
    assert not pack_measured(parts, [np.zeros(len(part), bool) for part in parts])[0].any()


def test_answers_among_the_chosen(model: Model, world: Runs) -> None:
    nodes = [Node(f"n{i}", f"p{i % 6}", tenants=(Request(f"w0{i}"),)) for i in range(6)]
    asked = [Request(f"w{i:02d}", f"r{i}", slowdown=s) for i, s in enumerate([1.0, 1.5, 3.0, 9.0])]
    placed = place(model, nodes, among_chosen=0.2, data=world)
    found = placed.safe(asked)
    yes = {(one.request, one.node) for one in found.answers if one.is_safe}
    assert yes
    assert not any(request == "r0" for request, _ in yes)
    assert {one.reason for one in found.answers} <= {"ok", "not_chosen"}
    assert "20%" in found.promise
    ranked = placed.rank(asked)
    assert {(r.request, row.node) for r in ranked for row in r.rows()} == yes
    assert all("20%" in ranking.promise for ranking in ranked)
    crowd = Node("crowd", "p0", tenants=tuple(Request(f"w0{i}") for i in range(3)))
    ground = place(model, crowd, among_chosen=0.2, data=world).safe(asked[3])
    assert ground.answers[0].reason == "no_ground"


def test_too_few_calibration_sets_refuse(model: Model, world: Runs) -> None:
    node = Node("n", "p0", tenants=(Request("w01"),))
    with pytest.raises(NotEnoughRuns, match="too few"):
        place(model, node, among_chosen=0.001, data=world).safe(Request("w00", slowdown=2.0))
    with pytest.raises(NotEnoughRuns, match="at least 299"):
        place(model, node, among_chosen=0.01, data=world).assign([Request("w00", slowdown=1.2)])
    with pytest.raises(UsageError, match="calibration runs"):
        place(model, node, among_chosen=0.1)
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(UsageError, match="share"):
            place(model, node, among_chosen=share, data=world)


def test_the_level_after_an_optimiser_hurts_few_calibration_sets(model: Model, world: Runs) -> None:
    chosen = ChosenPromise.of(SetBounds(model, Standard(0.9), world), 0.25, world)
    level = chosen.level(RATIOS)
    placed, late = chosen._replayed(level, RATIOS)
    assert upper_limit(int(np.ceil(late)), int(placed)) <= 0.25
    requests = [Request("w00", slowdown=4.0), Request("w01", slowdown=4.0)]
    placement = place(model, [Node("n", "p0", 2)], among_chosen=0.25, data=world)
    assert placement.chosen is not None
    found = placement.assign(requests)
    assert "25%" in found.promise
    assert found.standard.confidence == placement.chosen.level(np.array([4.0]))
