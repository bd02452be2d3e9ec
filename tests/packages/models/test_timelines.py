"""Answers over time: against small steps, closed forms, and what comes out on a made node."""

from __future__ import annotations

from collections import Counter
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

import jostle
from jostle.conformal import BEHIND, ON_THE_ACT, conformal_rank
from jostle.data import Colocations, Runs
from jostle.errors import BadRows, UsageError
from jostle.learn import Ensemble
from jostle.models import BusyNodes, Rates, Timelines, ends, no_newcomers, past_and_future
from jostle.models.timelines._timeline_calibration import TimelineCalibration
from tests.limits import assert_covers, mean_limits
from tests.packages.models.over_time_samples import NAMES, SOLO, Lookup, times
from tests.packages.models.timelines_samples import Known, node_log


def test_a_timeline_ends_when_small_steps_say_so() -> None:
    draw = np.random.default_rng(3)
    stretches = []
    for _ in range(12):
        starts = [0.0, *np.cumsum(draw.uniform(1, 9, 4)).tolist()]
        stretches.append([(at, sorted(draw.choice(NAMES, draw.integers(0, 3)))) for at in starts])
    elapsed, done = draw.uniform(0, 8, 12), [None, 0.3] * 6
    asked = Timelines.from_columns(
        workload=[NAMES[n % 6] for n in range(12)],
        platform=["p"] * 12,
        stretches=stretches,
        elapsed_seconds=elapsed,
        done_ratio=done,
    )
    told = asked.runtime(np.log(times(asked.colocations)))
    # Of every stretch as it was given, whether company changed or not.
    target = [NAMES[n % 6] for n, parts in enumerate(stretches) for _ in parts]
    beside = [names for parts in stretches for _, names in parts]
    seconds = times(
        Colocations.from_columns(workload=target, platform=["p"] * len(target), corunners=beside)
    )
    at = np.cumsum([0, *map(len, stretches)])
    for n, parts in enumerate(stretches):
        starts = np.array([start for start, _ in parts])
        step, clock, work, lawful = 2e-3, 0.0, 0.0, 0.0
        while clock < elapsed[n]:
            lawful += step / seconds[at[n] + int((starts <= clock).sum()) - 1]
            clock += step
        share = done[n]
        work = lawful if share is None else share
        pace = 1.0 if share is None else (share + 0.1) / (lawful + 0.1)
        while work < 1:
            work += pace * step / seconds[at[n] + int((starts <= clock).sum()) - 1]
            clock += step
        assert told[n] == pytest.approx(clock, rel=2e-3)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"stretches": [[(1.0, [])]]}, "does not start at 0"),
        ({"stretches": [[(0.0, []), (5.0, []), (5.0, [])]]}, "after the one before"),
        ({"stretches": [[(0.0, []), (float("nan"), [])]]}, "after the one before"),
        ({"stretches": [[(0.0, [])]], "elapsed_seconds": [-1]}, "less than nothing"),
        ({"stretches": [[(0.0, [])]], "done_ratio": [1.0], "elapsed_seconds": [1]}, "such as 0.4"),
        ({"stretches": [[(0.0, [])]], "done_ratio": [0.5]}, "before it started"),
        ({"stretches": [[(0.0, []), (9.0, [])]], "future": True}, "is open before"),
        ({"stretches": [[]]}, "a stretch at least"),
        ({"stretches": [[(0.0, "w2")]]}, "str, not a list of names"),
        ({"stretches": [[(0.0, None)]]}, "NoneType, not a list of names"),
    ],
)
def test_timelines_that_cannot_be_are_told(columns: dict[str, Any], says: str) -> None:
    with pytest.raises((UsageError, BadRows), match=says):
        Timelines.from_columns(workload=["w1"], platform=["p"], **columns)


def test_everybody_on_a_node_ends_as_the_law_says_and_in_another_order_too() -> None:
    members = np.array([[0, 1, -1], [1, 0, -1], [2, -1, -1]])
    left = np.array([[1.0, 0.5, np.nan], [0.5, 1.0, np.nan], [0.25, np.nan, np.nan]])
    out = ends(
        Rates(Known()), BusyNodes(np.zeros(3, int), members, left), no_newcomers(), watched=3
    )
    both = Colocations.from_columns(
        workload=["w0", "w1"], platform=["p", "p"], corunners=[["w1"], ["w0"]]
    )
    a, b = times(both)
    first = min(a, 0.5 * b)
    rest = [first + (1 - first / a) * SOLO[0], first + (0.5 - first / b) * SOLO[1]]
    assert out[0, :2] == pytest.approx([max(first, rest[0]), max(first, rest[1])])
    assert out[1, :2] == pytest.approx(out[0, 1::-1])
    assert out[2, 0] == pytest.approx(0.25 * SOLO[2])
    assert np.isnan(out[2, 1:]).all()


class WithService(Known):
    """w5 was only ever seen beside others."""

    def predict(self, asked: Colocations) -> np.ndarray:
        is_service = np.array([name == "w5" for name in asked.to_columns()["workload"]])
        return np.where(is_service, np.nan, times(asked))


def test_who_was_never_seen_to_end_stays_and_hides_nobody() -> None:
    members, left = np.array([[0, 5, 1], [5, -1, -1]]), np.array([[1, np.nan, 0.2], [1, 1, 1.0]])
    nodes = BusyNodes(np.zeros(2, int), members, left)
    out = ends(Rates(WithService()), nodes, no_newcomers(), watched=3)
    beside = [["w1", "w5"], ["w0", "w5"], ["w5"]]
    asked = Colocations.from_columns(
        workload=["w0", "w1", "w0"], platform=["p"] * 3, corunners=beside
    )
    a, b, alone = times(asked)
    assert 0.2 * b < a
    assert out[0, [0, 2]] == pytest.approx([0.2 * b + (1 - 0.2 * b / a) * alone, 0.2 * b])
    assert np.isnan(out[[0, 1], [1, 0]]).all()


@pytest.fixture(scope="module")
def log() -> Runs:
    return node_log(700, seed=5)


@pytest.fixture(scope="module")
def model(log: Runs) -> jostle.Model:
    return jostle.fit(log.take(np.arange(0, len(log), 2)), Lookup(), seed=1)


def test_bounds_told_over_time_hold_for_as_many_as_they_say(log: Runs, model: jostle.Model) -> None:
    new = np.arange(1, len(log), 2)
    new = new[~log.is_steady[new]]
    for is_open in (False, True):
        asked = past_and_future(log, new, np.zeros(len(new)), is_open=is_open)
        told, bounds = model.predict_and_bound(asked, 0.8)
        assert set(bounds.outcome) == {ON_THE_ACT}
        assert (bounds.seconds >= told).all()
        assert_covers(bounds, log.runtime_seconds[new])
        # Later less is left to be told, and no run is told to be over before now.
        on = new[log.runtime_seconds[new] > 8]
        later = model.bound(past_and_future(log, on, np.full(len(on), 8.0), is_open=is_open), 0.8)
        assert (later.seconds >= 8).all()


def test_what_may_come_does_not_hang_on_what_else_is_asked(model: jostle.Model) -> None:
    asked = Timelines.from_columns(
        workload=["w1", "w4", "w0"],
        platform=["p"] * 3,
        stretches=[[(0.0, ["w2"])], [(0.0, [])], [(0.0, ["w0", "w3"])]],
        future=True,
    )
    told = model.predict(asked)
    for rows in ([0], [1], [2, 0]):
        assert model.predict(asked.take(rows)).tolist() == told[rows].tolist()


def test_company_that_does_not_change_is_one_stretch(model: jostle.Model) -> None:
    parts = [(0.0, ["w2", "w3"]), (3.0, ["w3", "w2"]), (4.0, ["w2"]), (6.0, ["w2"])]
    many, few = (
        Timelines.from_columns(workload=["w1"], platform=["p"], stretches=[some])
        for some in (parts[:2], parts[:1])
    )
    assert many.over == few.over == ["throughout"]
    for one, other in zip(model.predict_and_bound(many), model.predict_and_bound(few), strict=True):
        assert str(one) == str(other)
    assert model.bound(many).outcome.tolist() != [ON_THE_ACT]  # but of calibration runs
    changing = Timelines.from_columns(workload=["w1"], platform=["p"], stretches=[parts])
    assert changing.start_seconds.tolist() == [0.0, 4.0]


def test_newcomers_are_counted_from_what_joined(log: Runs, model: jostle.Model) -> None:
    assert model.acts is not None
    came = model.acts.newcomers
    assert len(came.rate_per_second) == 3
    assert came.rate_per_second[-1] == 0
    assert (came.rate_per_second[:-1] > 0).all()
    assert came.share.sum() == pytest.approx(1)
    parts = log.take(np.arange(0, len(log), 2)).stretches
    joined = 0
    beside = parts.colocations.to_columns()["corunners"]
    for k in range(1, len(beside)):
        if parts.row[k] == parts.row[k - 1]:
            before = list(beside[k - 1])
            joined += sum(not (name in before and not before.remove(name)) for name in beside[k])
    number = parts.colocations.number_of_corunners
    exposure = np.bincount(number, parts.seconds, 3)
    told = (came.rate_per_second[:-1] * exposure[:-1]).sum()
    assert told == pytest.approx(joined)


def test_errors_are_what_runs_took_by_what_was_told_as_they_began(
    log: Runs, model: jostle.Model
) -> None:
    rows = np.arange(0, len(log), 2)
    told = model.predict(past_and_future(log, rows, np.zeros(len(rows)), is_open=False))
    every = np.sort(np.log(log.runtime_seconds[rows] / told))
    assert model.acts is not None
    mine = model.acts.error[(model.acts.kind == 0) & (model.acts.moment == 0)]
    assert len(mine) > 20
    near = np.searchsorted(every, mine - 1e-6)
    assert np.abs(every[np.minimum(near, len(every) - 1)] - mine).max() < 2e-6


def test_a_run_that_is_overdue_has_a_little_left() -> None:
    late = Timelines.from_columns(
        workload=["w1"], platform=["p"], stretches=[[(0.0, [])]], elapsed_seconds=[3 * SOLO[1]]
    )
    (told,) = late.runtime(np.log(times(late.colocations)))
    assert 3 * SOLO[1] < told < 3.2 * SOLO[1]


def test_what_may_come_needs_a_log(log: Runs) -> None:
    steady = log.with_one_company(log.runtime_seconds)
    model = jostle.fit(steady.take(np.arange(200)), Lookup(), seed=1)
    asked = Timelines.from_columns(
        workload=["w1"], platform=["p"], stretches=[[(0.0, ["w2"])]], future=True
    )
    with pytest.raises(UsageError, match="no log"):
        model.predict(asked)
    closed = Timelines.from_columns(
        workload=["w1"], platform=["p"], stretches=[[(0.0, ["w2"]), (3.0, [])]]
    )
    bounds = model.bound(closed, 0.5)
    assert bounds.outcome.tolist() == ["timeline"]
    assert bounds.seconds[0] >= model.predict(closed)[0]


def test_what_was_saved_of_a_log_tells_the_same(model: jostle.Model) -> None:
    assert model.acts is not None
    again = copy(model)
    again.acts = type(model.acts).from_arrays(*model.acts.to_arrays())
    asked = Timelines.from_columns(
        workload=["w1", "w4"],
        platform=["p", "p"],
        stretches=[[(0.0, ["w2"])], [(0.0, ["w0"]), (5.0, [])]],
        elapsed_seconds=[3.0, 0.0],
        future=[True, False],
    )
    told, bounds = model.predict_and_bound(asked)
    assert again.predict(asked).tolist() == told.tolist()
    assert again.bound(asked).seconds.tolist() == bounds.seconds.tolist()
    assert asked.over == ["future", "timeline"]
    why = model.explain(asked.take([1]))
    assert why.over == "timeline"
    assert why.seconds == pytest.approx(told[1])
    assert why.corunners[0].without_seconds == pytest.approx(SOLO[4])


def test_objects_with_stretches_are_answered_and_bad_ones_told(model: jostle.Model) -> None:
    from jostle.operations.model.explain import explain
    from jostle.operations.model.predict import PredictQuestion, predict

    base = {"workload": "w1", "platform": "p"}
    items = [
        {**base, "stretches": [{"start_seconds": 0, "corunners": ["w2"]}, {"start_seconds": 4}]},
        {**base, "corunners": ["w2"]},
        {**base, "corunners": ["w2"], "future": True, "elapsed_seconds": 2},
        {**base, "stretches": []},
        {**base, "corunners": ["nobody"], "future": True},
        {**base, "stretches": [{"start_seconds": "x"}]},
        {**base, "corunners": ["w2"], "elapsed_seconds": True},
        {**base, "corunners": ["w2"], "future": 1},
        {"platform": "p", "future": True},
        {**base, "stretches": [{"start_seconds": 0, "corunner": []}]},
        {"platform": "p"},
    ]
    for verb in (predict, explain):
        answers = verb.of(model, items).items
        assert [one.status == "error" for one in answers] == [False] * 3 + [True] * 8
        assert [one.row for one in answers[3:]] == list(range(3, 11))
        assert "no list of 1 to" in answers[3].error
        assert "nobody" in answers[4].error
        assert "start_seconds" in answers[5].error
    for throughout, plain in ((False, "future"), (True, "throughout")):
        answers = predict.of(model, items, PredictQuestion(throughout=throughout))
        assert [one.over for one in answers.items[:3]] == ["timeline", plain, "future"]


def test_an_updated_model_answers_over_time_by_what_was_said_of_the_new_runs(log: Runs) -> None:
    old = log.take(np.arange(250))
    old = old.take(
        np.flatnonzero([name != "w5" for name in old.table.column("workload").to_pylist()])
    )
    beside = old.stretches.colocations
    has = (
        beside.corunner == beside.workload_names.index("w5")
        if "w5" in beside.workload_names
        else []
    )
    row = np.repeat(old.stretches.row, beside.number_of_corunners)
    old = old.take(np.setdiff1d(np.arange(len(old)), row[has]))
    method = Ensemble(learners=("rules",))
    model = jostle.fit(old, method, seed=1)
    new = node_log(90, seed=11)
    now = model.update(new)
    assert "w5" in now.predictor.workload_names
    assert model.acts is not None
    assert now.acts is not None
    before = type(model.acts).of(model, new, np.arange(len(new)), 0)
    assert now.acts.error.tolist() == [*model.acts.error.tolist(), *before.error.tolist()]
    names = [model.predictor.workload_names[code] for code in before.workload.tolist()]
    added = now.acts.workload[len(model.acts.error) :].tolist()
    assert [now.predictor.workload_names[code] for code in added] == names
    asked = Timelines.from_columns(
        workload=["w5"], platform=["p"], stretches=[[(0.0, ["w2"])]], future=True
    )
    assert now.bound(asked, 0.8).outcome.tolist() == [ON_THE_ACT]
    # Runs that were chosen are no sample, and those of one company bring nobody new.
    chosen = model.update(new, chosen=True).acts
    assert chosen is not None
    assert chosen.error.tolist() == model.acts.error.tolist()
    steady = new.with_one_company(new.runtime_seconds)
    kept = model.update(steady).acts
    assert kept is not None
    assert kept.newcomers.rate_per_second.tolist() == model.acts.newcomers.rate_per_second.tolist()
    assert kept.newcomers.share.sum() == pytest.approx(1)
    # A model of runs of one company knows of nobody who comes until it learns a log.
    plain = jostle.fit(old.with_one_company(old.runtime_seconds), method, seed=1)
    assert plain.acts is None
    assert plain.update(steady).acts is None
    first = plain.update(new).acts
    assert first is not None
    assert first.error.tolist() == type(first).of(plain, new, np.arange(len(new)), 0).error.tolist()


def _beginning(names: list[str], **columns: Any) -> Timelines:
    """Runs beside w2, and whatever may come."""
    n = len(names)
    beside = [[(0.0, ["w2"])]] * n
    made = {"workload": names, "platform": ["p"] * n, "stretches": beside, "future": True}
    return Timelines.from_columns(**made, **columns)


def acts_of(error: np.ndarray, workload: np.ndarray) -> TimelineCalibration:
    """As if known timelines, and what may come, had these errors as runs began."""
    kind, none = np.repeat([0, 1], len(error)), np.zeros(2 * len(error), int)
    return TimelineCalibration(no_newcomers(), kind, none, np.tile(workload, 2), np.tile(error, 2))


def test_names_that_repeat_have_narrow_bounds_and_those_that_vary_keep_theirs() -> None:
    spread = np.array([0.01, 0.03, 0.1, 0.3, 0.6, 0.05])
    shares, narrow = [], []
    for seed in range(30):
        draw = np.random.default_rng(seed)
        code = np.repeat(np.arange(6), 40)
        acts = acts_of(draw.normal(size=240) * spread[code], code)
        asked = _beginning(NAMES)
        told = np.ones(6)
        logs, names = np.zeros(6), np.arange(6)
        bounds = acts.bound(told, asked, logs, names, 0.9)
        assert set(bounds.outcome.tolist()) == {ON_THE_ACT}
        shares.append(norm.cdf(np.log(bounds.seconds) / spread))
        narrow.append(bounds.seconds[0])
    # As one they would all be at some 1.35, of which the first needs 1.013 and the fifth 2.16.
    assert max(narrow) < 1.1
    assert mean_limits([one.mean() for one in shares])[1] >= 0.9
    assert np.mean(shares, axis=0).min() > 0.8


def test_a_name_without_runs_is_bounded_as_wide_as_usual() -> None:
    error = np.linspace(-0.1, 0.1, 39)
    acts = acts_of(np.append(error, 0.01), np.append(np.zeros(39, int), 1))
    told, asked = np.ones(3), _beginning(["w0"] * 3)
    bounds = np.log(acts.bound(told, asked, np.zeros(3), np.array([0, 1, 2]), 0.9).seconds)
    assert bounds[0] == pytest.approx(0.09, rel=0.2)
    assert 0.5 * bounds[0] < bounds[1] < bounds[2] < 2 * bounds[0]


def test_newcomers_are_counted_one_by_one_in_the_last_runs(
    log: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How often somebody joins a run that has so many beside it, per second of such runs."""
    monkeypatch.setattr("jostle.models.timelines._arrival_simulation._LATELY", 100)
    last = log.take(
        np.sort(np.argsort(log.table.column("measured_at").to_numpy(), kind="stable")[-100:])
    )
    joins, seconds, who = np.zeros(9), np.zeros(9), Counter[str]()
    c, begins = last.stretches.colocations, last.stretches.row
    names = [c.row(k)[2] for k in range(len(c))]
    for k, beside in enumerate(names):
        seconds[len(beside)] += last.stretches.seconds[k]
        if k and begins[k] == begins[k - 1]:
            came = Counter(beside) - Counter(names[k - 1])
            joins[len(beside) - came.total()] += came.total()
            who += came
    found = type(no_newcomers()).of(log, tuple(NAMES), ("p",))
    k = len(found.rate_per_second)
    assert found.rate_per_second == pytest.approx(joins[:k] / np.maximum(seconds[:k], 1e-300))
    assert found.share[0] == pytest.approx([who[name] / who.total() for name in NAMES])
    # Who is not known does not come, and to a platform that nobody came to come those of the others.
    some = type(no_newcomers()).of(log, tuple(NAMES[1:4]), ("p", "q")).share
    counts = np.array([who[name] for name in NAMES[1:4]])
    assert some == pytest.approx(np.tile(counts / counts.sum(), (2, 1)))


def test_who_has_no_rate_stays_until_there_is_one() -> None:
    class Unsure(Known):
        def predict(self, asked: Colocations) -> np.ndarray:
            mine = asked.workload == asked.workload_names.index("w1")
            return np.where(mine & (asked.number_of_corunners == 2), np.nan, times(asked))

    def seconds(*names: str) -> list[float]:
        beside = [[*names[:k], *names[k + 1 :]] for k in range(len(names))]
        asked = Colocations.from_columns(
            workload=list(names), platform=["p"] * len(names), corunners=beside
        )
        return times(asked).tolist()

    triple, pair = seconds("w2", "w1", "w3"), seconds("w2", "w1")
    first = 0.1 * triple[2]  # of the third, which has a tenth left
    left = 1 - first / triple[0], 0.5
    until = [share * each for share, each in zip(left, pair, strict=True)]
    rest = min(until)
    if until[1] < until[0]:  # then it is alone
        rest += (left[0] - rest / pair[0]) * seconds("w2")[0]
    codes, shares = np.array([[2, 1, 3]]), np.array([[1.0, 0.5, 0.1]])
    nodes = BusyNodes(np.zeros(1, int), codes, shares)
    told = ends(Rates(Unsure()), nodes, no_newcomers(), watched=2)
    assert told[0, 0] == pytest.approx(first + rest)
    assert np.isnan(told[0, 1])


def test_what_lasts_longer_than_predicted_is_bounded_by_those_that_did() -> None:
    error = np.linspace(-1, 1, 199)
    acts = acts_of(error, np.zeros(199, int))
    told, code, logs = np.full(4, 1.0), np.zeros(4, int), np.zeros(4)
    asked = _beginning(["w0"] * 4, elapsed_seconds=[0.0, 0.8, 1.5, 2.7])
    bounds = acts.bound(told, asked, logs, code, 0.9)
    assert bounds.outcome.tolist() == [ON_THE_ACT, ON_THE_ACT, BEHIND, "too_few_runs"]
    # Until it is overdue the bound of its beginning stays, if nobody came.
    assert bounds.seconds[0] == bounds.seconds[1] < bounds.seconds[2]
    longer = error[np.exp(error) > 1.5]
    rank = conformal_rank(len(longer), 0.9)
    assert (bounds.n[2], bounds.rank[2]) == (len(longer), rank)
    assert bounds.seconds[2] == pytest.approx(np.exp(longer[rank - 1]), rel=0.02)
    assert bounds.is_calibrated.tolist() == [True, True, True, False]


def test_a_count_of_its_own_bounds_the_time_that_is_left(model: jostle.Model) -> None:
    asked = _beginning(["w1"] * 3, elapsed_seconds=[0.0, 10.0, 18.0])
    told = replace(asked, done_ratio=np.array([np.nan, 0.5, 0.92]))
    seconds, bounds = model.predict_and_bound(told, 0.8)
    assert bounds.is_valid.all()
    over = bounds.seconds - seconds
    assert over[0] > over[1] > over[2] >= 0
    assert (bounds.seconds > asked.elapsed_seconds).all()


@pytest.mark.parametrize("late", [0.3, 0.8, 1.0, 1.15, 1.3])
def test_a_run_that_goes_on_is_bounded_by_those_that_last_as_long(late: float) -> None:
    """Without a log: of the runs that are still there as many end by their bound as it says."""
    beside = [[], ["w1"], ["w2"], ["w3"]] * 200
    names = (("workload", "w0"), ("platform", "p"))
    columns: dict[str, Any] = {name: [one] * len(beside) for name, one in names}
    lawful = times(Colocations.from_columns(**columns, corunners=beside))
    shares = []
    for seed in range(12):
        draw = np.random.default_rng(seed)
        made, new = (lawful * np.exp(draw.normal(0, 0.2, len(lawful))) for _ in range(2))
        runs = Runs.from_columns(**columns, corunners=beside, runtime_seconds=made)
        model = jostle.fit(runs, Lookup(), seed=seed)
        on = np.flatnonzero(new > late * lawful)
        asked = Timelines.from_columns(
            **{name: names[: len(on)] for name, names in columns.items()},
            stretches=[[(0.0, beside[k])] for k in on],
            elapsed_seconds=late * lawful[on],
        )
        shares.append((new[on] <= model.bound(asked, 0.8).seconds).mean())
    assert mean_limits(shares)[1] >= 0.8


def test_nothing_bounds_a_run_that_lasts_longer_than_any_unless_it_tells(log: Runs) -> None:
    model = jostle.fit(log.with_one_company(log.runtime_seconds), Lookup(), seed=1)
    late = Timelines.from_columns(
        workload=["w1"], platform=["p"], stretches=[[(0.0, ["w2"])]], elapsed_seconds=[1e4]
    )
    assert model.bound(late, 0.5).outcome.tolist() == ["too_few_runs"]
    assert model.bound(replace(late, done_ratio=np.array([0.9])), 0.5).is_valid.all()
