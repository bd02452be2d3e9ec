"""Parts of an ensemble beside loops over what they are said to be."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from jostle.ensemble import (
    NEW_NAME,
    NEW_SET,
    CanonicalRuns,
    Ensemble,
    SimpleRules,
    Trial,
    weights_in_words,
    weights_of,
)
from jostle.ensemble._explain import MOST_ASKED, MOST_EXACT, shapley
from jostle.ensemble._fit import Learned, _with_levels
from jostle.ensemble._fitted import answers_of, in_parts
from jostle.ensemble._folds import (
    ELSEWHERE,
    FEW_SETS,
    KINDS,
    NEW_CELL,
    NOT_ASKED,
    TrialFold,
)
from jostle.ensemble._rules import RESTS, fit_rules
from jostle.ensemble._tried import FEWEST_CELLS, SHARES, USUAL_SHARE, Learners, Tried
from jostle.ensemble._weights import promising, usual_weights
from jostle.ensemble._words import in_words
from jostle.methods import learn
from jostle.rules import HALF_TRUSTED, LEAST_WEIGHT, OF_OTHER_DATA
from jostle.runs import Colocations
from tests.ensemble.campaigns import campaign_for, sessions_of
from tests.ensemble.conftest import DAYS, in_sessions, made_runs, members_of


def game(press: dict[str, float], together: float) -> Any:
    """Log seconds: what each co-runner presses, and more where both x and y are there."""

    def predict(asked: Colocations) -> np.ndarray:
        names = asked.to_columns()["corunners"]
        both = [together * ("x" in own and "y" in own) for own in names]
        return np.exp([sum(press[n] for n in own) for own in names] + np.array(both))

    return predict


def test_what_each_co_runner_adds_is_the_mean_over_all_orders() -> None:
    press, beside = {"x": 0.1, "y": 0.3, "z": 0.7}, ("y", "x", "z", "x")
    predict, added = game(press, 0.5), np.zeros(4)

    def log(others: list[str]) -> float:
        one = Colocations.from_columns(workload=["w"], platform=["p"], corunners=[others])
        return float(np.log(predict(one))[0])

    for order in permutations(range(4)):
        for n, at in enumerate(order):
            before = [beside[k] for k in order[:n]]
            added[at] += (log([*before, beside[at]]) - log(before)) / 24
    assert shapley(predict, "w", "p", beside) == pytest.approx(added)
    assert shapley(predict, "w", "p", ()).tolist() == []
    many = ("z",) * (MOST_EXACT - 1) + ("x", "y")
    by_orders = shapley(predict, "w", "p", many)
    assert by_orders[:-2] == pytest.approx([0.7] * (MOST_EXACT - 1))
    assert by_orders[-2:] == pytest.approx([0.1 + 0.25, 0.3 + 0.25])  # of pairs exactly


@pytest.mark.parametrize("number", [9, 64, 300])
def test_many_co_runners_cost_hardly_more_than_few(number: int) -> None:
    """They add up whatever the game, and no more are asked about in all."""
    beside, counts = tuple(f"n{at}" for at in range(number)), []

    def predict(asked: Colocations) -> np.ndarray:
        counts.append(int(asked.number_of_corunners.sum()))
        return 1 + np.sqrt(asked.number_of_corunners)

    added = shapley(predict, "w", "p", beside)
    assert added.sum() == pytest.approx(np.log(1 + np.sqrt(number)))
    assert sum(counts) <= max(MOST_ASKED, number * (number + 1))


def trial_of(answer: np.ndarray, truth: np.ndarray, kind: np.ndarray, **more: Any) -> Trial:
    each = np.arange(len(truth))
    usual = {"unit": each, "degree": np.ones(len(truth), int), "place": each, "target": each}
    return Trial(answer=answer, log_slowdown=truth, kind=kind, **usual | more)


def test_each_kind_and_number_has_weights_of_its_own_as_far_as_it_was_tried() -> None:
    """Answer k is right about kind k alone, and among new sets the last about two co-runners."""
    kinds = [NEW_SET, FEW_SETS, NEW_NAME, ELSEWHERE, NEW_SET]
    truth = np.random.default_rng(0).normal(0.4, 0.1, 300)
    group = np.arange(300) % 5
    answer = truth + np.where(group[None] == np.arange(5)[:, None], 0.0, 0.4)
    kind, degree = np.array(kinds)[group], np.where(group == 4, 2, 1)
    trial = trial_of(answer, truth, kind, degree=degree)
    labels = ("new", "few", "name", "elsewhere", "two")
    weight = weights_of(labels, trial, most=3, chance=0.0, seed=0)
    assert weight.shape == (len(KINDS), 4, 5)
    assert weight.sum(-1) == pytest.approx(np.ones((len(KINDS), 4)))
    assert (weight[weight > 0] > LEAST_WEIGHT).all()
    for at, one in enumerate(kinds):
        mine = weight[one, 2 if at == 4 else 1]
        assert mine.argmax() == at
        own = 60 / (60 + HALF_TRUSTED)
        # What stands for others has no more than what was not trusted.
        assert mine[at] > own if at != 2 else mine[at] > 0.99
    assert (weight[FEW_SETS, 1] == weight[FEW_SETS, 3]).all()
    assert not (weight[NEW_SET, 1] == weight[NEW_SET, 2]).all()
    # None was tried with three: what is told of all new sets stands.
    assert weight[NEW_SET, 3, [0, 4]].min() > 0.1
    noise = weights_of(("none", *labels[1:]), trial_of(answer, 0 * truth, kind), 2, 0.5, seed=0)
    assert (noise[..., 0] == 1).all()
    few = trial.take(np.arange(3))
    assert (weights_of(("effects", *labels[1:]), few, 1, 0.0, 0) == [1, 0, 0, 0, 0]).all()


def test_the_usual_weights_are_of_what_is_usual() -> None:
    assert usual_weights(("none", "level", "effects")).tolist() == [0, 0.5, 0.5]
    assert usual_weights(("a", "b")).tolist() == [0.5, 0.5]
    assert usual_weights(()).tolist() == []


def test_who_may_still_matter_goes_on() -> None:
    random = np.random.default_rng(0)
    truth = random.normal(0.3, 0.05, 120)
    noise = random.choice([-1.0, 1.0], 120)
    answer = truth + np.stack([0.05 * noise, 0.052 * noise, 0.3 * noise, 0.3 * noise, -0.3 * noise])
    labels, known = ("best", "close", "far", "plain", "other"), np.full(120, NEW_SET)
    trial = trial_of(answer[:4], truth, known)
    kept = promising(labels[:4], trial, 0, frozenset({"plain"}))
    assert kept == {"best", "close", "plain"}
    # Of whom has learned from few rows the error may halve, and more.
    left = np.array([1.0, 1.0, 0.1, 1.0])
    assert "far" in promising(labels[:4], trial, 0, frozenset(), left)
    new = trial_of(answer[[2, 2, 0, 2]], truth, np.full(120, NEW_NAME))
    both = Trial.concatenate([trial, new])
    assert promising(labels[:4], both, 0, frozenset()) == {"best", "close", "far"}
    assert (len(both), both.of(NEW_NAME).units, both.units) == (240, 120, 120)
    assert promising(labels[:4], trial.take(np.arange(3)), 0, frozenset()) == set(labels[:4])


def test_answers_are_by_label_and_who_has_none_agrees_with_the_others(
    campaign: CanonicalRuns,
) -> None:
    rows = campaign.every_row.take(np.arange(len(campaign)) < 3)

    def expert(labels: tuple[str, ...], value: list[list[float]]) -> Any:
        return SimpleNamespace(labels=labels, log_slowdowns=lambda *_: np.array(value))

    nan = np.nan
    experts = {
        "one": expert(("a", "b"), [[1, 2, nan], [3, 4, nan]]),
        "two": expert(("c", "d"), [[5, nan, nan], [9, 9, 9]]),
        "none": expert(("e",), [[9, 9, 9]]),
    }
    found = answers_of(experts, ("c", "b", "a"), rows, campaign.ground)
    assert found.tolist() == [[5, 3, 0], [3, 4, 0], [1, 2, 0]]


def test_many_rows_are_answered_in_parts(
    campaign: CanonicalRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jostle.ensemble._fitted.ROWS_AT_ONCE", 7)
    sizes, rows = [], campaign.every_row

    def answer(part: Any) -> tuple[np.ndarray, np.ndarray]:
        sizes.append(len(part))
        return part.target.astype(float), part.log_slowdown

    first, second = in_parts(answer, rows)
    assert max(sizes) == 7
    assert first.tolist() == rows.target.tolist()
    assert second.tolist() == rows.log_slowdown.tolist()


def test_the_networks_share_of_times_alone_is_the_one_closest_to_those_left_out(
    campaign: CanonicalRuns,
) -> None:
    """What names suggest is too long by 3, what the network says too short by 1, in log seconds / 10. What is
    still known beside others there does not count."""
    truth = np.full(campaign.size, np.nan)
    truth.ravel()[campaign.cell] = campaign.log_runtime
    tried = Tried(campaign, {}, {}, seed=0)
    part: Any = SimpleNamespace(log_alone=truth + 0.3)
    network: Any = SimpleNamespace(log_alone=lambda: truth - 0.1)
    alone = np.unique(campaign.cell[campaign.degree == 0], return_index=True)[1]
    at = np.flatnonzero(campaign.degree == 0)[alone]
    of_number = {FEWEST_CELLS: 0.75, FEWEST_CELLS - 1: USUAL_SHARE}
    for number, known in ((FEWEST_CELLS, 0), (FEWEST_CELLS - 1, 0), (FEWEST_CELLS, 1)):
        kind = np.full(len(campaign), NOT_ASKED)
        kind[at[:number]] = NEW_CELL
        truth.ravel()[campaign.cell[at]] = campaign.log_runtime[at]
        part.log_alone, part.cell = truth + 0.3, campaign.cell[at[:known]]
        fold = TrialFold(kind, kind == NEW_CELL, kind, is_of_names=True)
        tried.fits = [(fold, {"network": network}, part), (fold, {}, part)]
        assert tried.share() == of_number[number - known]
    assert 0.75 in SHARES
    tried.experts = {"p": SimpleNamespace(needs={"profiles"}), "r": SimpleNamespace(needs={"runs"})}  # type: ignore[dict-item]
    tried.wanted = {"r": ("a",), "p": ("b", "c")}
    assert tried.prior.tolist() == [1.0, OF_OTHER_DATA / 2, OF_OTHER_DATA / 2]


def test_times_alone_are_measured_or_as_names_and_the_network_suggest() -> None:
    runs = made_runs(programs=6, threes=0)
    c = runs.colocations
    hidden = (c.number_of_corunners == 0) & (c.platform == 1) & (c.workload < 3)
    campaign = campaign_for(runs.take(~hidden))
    names, usual = campaign.shared["names"], campaign.shared["usual"]
    of_network = np.arange(12.0).reshape(campaign.size)
    of_network[0, 0] = np.nan
    network: Any = SimpleNamespace(log_alone=lambda: of_network)
    learners = Learners(campaign, {}, {}, 0)
    whole = Learned(campaign, {}, learners, (), np.zeros((0, 0, 0)), 0.25, names, usual, {})
    found, by_names = whole.log_alone({"network": network}, campaign), campaign.log_alone
    for at, measured in enumerate(campaign.ran_alone):
        here = divmod(at, campaign.size[1])
        blend = 0.25 * of_network[here] + 0.75 * by_names[here]
        expected = by_names[here] if measured or np.isnan(of_network[here]) else blend
        assert found[here] == pytest.approx(expected)
    assert campaign.ran_alone.sum() == 12 - 3
    assert whole.log_alone({}, campaign) is by_names
    # What tells cells apart is one for all parts, and kept where some expert needs it.
    part = campaign.take(np.arange(len(campaign)) % 2 == 0)
    assert part.design is campaign.design
    experts: Any = [SimpleNamespace(needs_design=needed) for needed in (True, False)]
    for mine, kept in ((experts, True), (experts[1:], False)):
        campaign.shared["source"] = runs
        ground = whole.ensemble(dict(zip("ab", mine, strict=False)), part).weighed.ground
        assert (ground.design.shape[1] > 0) == kept


def keys_of(rows: Any) -> list[tuple[int, ...]]:
    """Equal for rows of the same target beside the same co-runners."""
    beside = [sorted(rows.corunner[rows.row == at].tolist()) for at in range(len(rows))]
    return [(target, *own) for target, own in zip(rows.target.tolist(), beside, strict=True)]


@pytest.mark.parametrize("noise", [0.01, 0.3])
def test_what_never_ran_alone_is_told_by_its_runs_beside_others(noise: float) -> None:
    """As far as cells differ by more than their runs do."""
    random, every = np.random.default_rng(0), made_runs(programs=12, threes=0)
    c = every.colocations
    runs = every.take((c.number_of_corunners > 0) | (c.platform == 0))
    part = campaign_for(runs)
    alone = part.log_runtime[0] + random.normal(size=part.size)
    level, rest = 0.2 * random.normal(size=part.size), noise * random.normal(size=len(part))
    slow = part.log_runtime - (alone + level).ravel()[part.cell] - rest
    place = {key: at for at, key in enumerate(keys_of(part.every_row))}

    def known(rows: Any) -> Any:
        return np.array([slow[place[key]] for key in keys_of(rows)]), np.zeros(len(rows))

    weighed = SimpleNamespace(log_alone=alone, labels=("x",))
    moved = _with_levels(SimpleNamespace(weighed=weighed, known=known), part) - alone  # type: ignore[arg-type]
    never = ~part.ran_alone.reshape(part.size)
    assert never.sum() == 12
    assert (moved[~never] == 0).all()
    left = np.abs(moved - level)[never].mean() / np.abs(level[never]).mean()
    assert left < (0.1 if noise < 0.1 else 1.0)


def test_canonical_runs_are_in_units_of_their_own(campaign: CanonicalRuns) -> None:
    alone = campaign.log_alone.ravel()[campaign.cell]
    beside = campaign.degree > 0
    extra = np.abs(np.exp(campaign.log_runtime) - np.exp(alone))[beside]
    assert campaign.unit_seconds == pytest.approx(np.median(extra))
    rows = campaign.every_row
    assert rows.scale == pytest.approx(campaign.unit_seconds / np.exp(alone))
    assert rows.log_slowdown == pytest.approx(campaign.log_runtime - alone)
    assert campaign.is_learned.tolist() == beside.tolist()
    members, (_, platform, _) = members_of(campaign), campaign.codes
    for everywhere in (True, False):
        keys = campaign.sets(everywhere)
        known: dict[Any, int] = {}
        for key, own, place in zip(keys.tolist(), members, platform.tolist(), strict=True):
            assert known.setdefault((own, None if everywhere else place), key) == key
        assert len(set(known.values())) == len(known)


def test_words_for_people_name_what_differs_in_strength_alone_once() -> None:
    assert in_words("effects and rest 2") == "additive effects and what pairs differ by"
    assert in_words("level of seconds") == "the mean slowdown, in seconds"
    assert in_words("effects of shares") == "additive effects, in shares of the time alone"
    assert in_words("something new") == "something new"
    given = {"effects and rest 0": 0.2, "none": 0.5, "effects and rest 1": 0.3, "level": 0.1}
    found = weights_in_words(given)
    assert list(found.values()) == pytest.approx([0.5, 0.5, 0.1])
    assert list(found)[2] == "the mean slowdown"


def test_bounds_have_three_ways_of_growing() -> None:
    runs = made_runs(programs=5, platforms=2, threes=0)
    c = runs.colocations
    runs = runs.take((c.platform == 0) | (c.workload > 0) | (c.number_of_corunners > 0))
    fitted = learn(Ensemble(experts=("rules",)), runs)
    assert any(note.startswith("1 pairs of workload and platform") for note in fitted.notes)
    found = fitted.candidates(runs.colocations)
    seconds = fitted.predict(runs.colocations)
    assert found.seconds == pytest.approx(seconds)
    assert np.exp(found.centre) == pytest.approx(np.stack([seconds] * 3))
    alone = runs.colocations.number_of_corunners == 0
    assert (found.scale[0] == 1).all()
    assert found.scale[1:, alone] == pytest.approx(0.02)
    assert (found.scale[1:] >= 0.02).all()
    assert found.scale[2, ~alone].max() > 0.02
    others = ["program 1", "program 2", "program 3"]
    larger = Colocations.from_columns(
        workload=["program 0"], platform=["machine 0"], corunners=[others]
    )
    assert fitted.predict(larger)[0] > 1.05 * fitted.explain(larger).document["solo_seconds"]
    slowdown = np.log(fitted.predict(larger) / fitted.explain(larger).document["solo_seconds"])
    scale = fitted.candidates(larger).scale[1:, 0]
    assert scale == pytest.approx([0.02 + abs(slowdown[0]), 0.02 + abs(slowdown[0]) / 2])


def test_rules_that_nobody_wants_are_not_learned(
    campaign: CanonicalRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = SimpleRules().labels(campaign)
    assert {"none", "effects and rest 0", "effects of shares", "level of seconds"} <= set(every)
    monkeypatch.setattr("jostle.ensemble._rules.MOST_CELLS_OF_REST", 26)
    assert set(every) - set(SimpleRules().labels(campaign)) == set(RESTS)
    limits, wanted = np.array([0.1, 10.0]), ("level", "effects of seconds")
    assert fit_rules(campaign.rows, campaign.ground, wanted, limits, 0).labels == wanted


def test_sessions_are_told_by_all_runs_and_centred_on_each_platform(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gains = []

    def noise(gain: np.ndarray, *_: Any) -> bool:
        gains.append(gain)
        return False

    monkeypatch.setattr("jostle.ensemble._sessions.nothing_but_noise", noise)
    runs = in_sessions(DAYS)
    campaign, found = campaign_for(runs), sessions_of(runs)
    assert found is not None
    assert (gains[0] != 0).mean() > 0.9
    session = [found.names.index(name) for name in campaign.runs.table["campaign"].to_pylist()]
    every, beside = np.zeros_like(found.effect), np.zeros_like(found.effect)
    np.add.at(every, (campaign.codes[1], np.array(session)), 1)
    np.add.at(beside, (campaign.codes[1], np.array(session)), campaign.degree > 0)
    none = pytest.approx(np.zeros(campaign.size[0]))
    assert (found.alone * every).sum(1) == none
    assert ((found.effect - found.alone) * beside).sum(1) == none
    off = np.abs(np.expm1(found.effect))
    assert found.cost == pytest.approx(np.average(off, weights=every > 0))
