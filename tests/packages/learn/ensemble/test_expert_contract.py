"""What every base learner must hold, whatever its idea: one law a test, on data that each
can learn from.

A new base learner needs one more entry in WORLDS."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest

from jostle.data import Runs, Traces
from jostle.learn import (
    BaseLearner,
    Common,
    Data,
    FittedBaseLearner,
    SlowdownRows,
    TrainingRuns,
    learner_named,
    learner_names,
)
from tests.packages.learn.counters.traced_samples import probed_programs, traced_programs
from tests.packages.learn.ensemble.campaigns import campaign_for
from tests.packages.learn.ensemble.conftest import made_runs
from tests.packages.learn.simulation.learned_samples import WAY, profiles, world
from tests.packages.learn.stressors.probes_samples import law as probed_law

ROUNDING = 1e-7  # log seconds, of answers in single precision
CLOSED = sorted(name for name in learner_names() if hasattr(learner_named(name), "leaves_out"))
OF_DATA = {"runs", "traces", "profiles", "probes"}


def of_runs() -> Data:
    return Data.of(made_runs(programs=6, threes=6))


def of_a_log() -> Data:
    """Nothing ran alone."""
    runs = made_runs(programs=6, threes=6)
    return Data.of(runs.take(runs.colocations.number_of_corunners > 0))


def of_traces() -> Data:
    return of_traced(traced_programs(5))


def of_traced(traces: Traces) -> Data:
    from jostle.learn.learners.counters import traced_runs

    return Data(traced_runs(traces), traces=traces)


def of_profiles() -> Data:
    runs = world(WAY, noise=0.02)
    return Data(runs, profiles=profiles())


def of_probes() -> Data:
    return Data(probed_law(6, 4, triples=12, noise=0.01)[0])


WORLDS: dict[str, Callable[[], Data]] = {
    "effects": of_a_log,
    "network": of_runs,
    "phases": of_traces,
    "probes": of_probes,
    "product": of_runs,
    "rules": of_runs,
    "simulation": of_profiles,
    "stretches": lambda: of_traced(Traces.from_traces(probed_programs()[2])),
    "traces": of_profiles,
    "trees": of_runs,
}
EVERY = pytest.mark.parametrize("name", WORLDS)


@dataclass(frozen=True)
class OutOfFoldPredictions:
    """A base learner on its data. part: without every third set of workloads beside others."""

    name: str

    @cached_property
    def learner(self) -> BaseLearner:
        return learner_named(self.name)()

    @cached_property
    def campaign(self) -> TrainingRuns:
        return campaign_for(WORLDS[self.name]())

    @cached_property
    def given(self) -> Common:
        """What the campaign came with, without what a base learner has kept there."""
        return campaign_for(WORLDS[self.name]()).common

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return self.learner.labels(self.campaign)

    @cached_property
    def fitted(self) -> FittedBaseLearner:
        return self.learner.fit(self.campaign, self.labels, seed=0)

    @cached_property
    def is_left_out(self) -> np.ndarray:
        sets = self.campaign.sets(everywhere=True)
        return self.campaign.beside & np.isin(sets, np.unique(sets[self.campaign.beside])[::3])

    @cached_property
    def asked(self) -> SlowdownRows:
        return self.campaign.every_row.take(self.campaign.degree > 0)

    def answers(self, fitted: FittedBaseLearner, asked: SlowdownRows | None = None) -> np.ndarray:
        return fitted.log_slowdowns(
            self.asked if asked is None else asked, self.campaign.cell_table
        )


trial = cache(OutOfFoldPredictions)


def assert_alike(one: np.ndarray, other: np.ndarray, within: float = ROUNDING) -> None:
    np.testing.assert_allclose(one, other, rtol=0.0, atol=within, equal_nan=True)


def rows_at(rows: SlowdownRows, order: np.ndarray) -> SlowdownRows:
    """The rows (n,) of these numbers, each as often as it stands there, all co-runners mixed."""
    mine = [np.flatnonzero(rows.row == at) for at in order.tolist()]
    mixed = np.random.default_rng(1).permutation(sum(map(len, mine)))
    once = {name: value for name, value in vars(rows).items() if name not in ("corunner", "row")}
    return replace(
        rows,
        **{name: v[order] if isinstance(v, np.ndarray) else v for name, v in once.items()},
        corunner=rows.corunner[np.concatenate(mine)][mixed],
        row=np.repeat(np.arange(len(order)), [len(one) for one in mine])[mixed],
    )


def whole_of(campaign: TrainingRuns, given: Common, **changes: Any) -> TrainingRuns:
    """The same runs as a whole campaign, of which nothing is known but what was given."""
    common = replace(given, learned=dict(given.learned), **changes)
    return replace(campaign, common=common, of=None)


def test_every_installed_expert_is_here() -> None:
    assert set(WORLDS) == set(learner_names())


@EVERY
def test_it_is_a_frozen_record_with_a_name_that_says_what_it_needs(name: str) -> None:
    learner: Any = trial(name).learner
    fields = dataclasses.fields(learner)
    for field in fields:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(learner, field.name, getattr(learner, field.name))
    assert learner.name == name
    assert {"runs"} <= learner.needs <= OF_DATA


@EVERY
def test_its_labels_are_names_and_what_is_wanted_is_learned_alone(name: str) -> None:
    one = trial(name)
    assert len(set(one.labels)) == len(one.labels) > 0
    assert all(isinstance(label, str) and label for label in one.labels)
    assert set(one.fitted.labels) == set(one.labels)
    some = one.labels[-1:]
    alone = one.learner.fit(one.campaign, some, seed=0)
    assert alone.labels == some
    at = one.fitted.labels.index(some[0])
    assert_alike(one.answers(alone)[0], one.answers(one.fitted)[at])


@EVERY
def test_it_answers_finitely_or_not_at_all(name: str) -> None:
    """Whoever learns from runs alone knows all that ran; others know what their data tell of."""
    one = trial(name)
    found = one.answers(one.fitted)
    assert found.shape == (len(one.labels), len(one.asked))
    assert not np.isinf(found).any()
    assert np.isfinite(found).all() or one.learner.needs != {"runs"}
    assert np.isfinite(found).any(axis=1).all()
    assert one.answers(one.fitted, one.asked.take(np.zeros(len(one.asked), bool))).shape == (
        len(one.labels),
        0,
    )


@EVERY
def test_order_and_number_of_rows_and_order_of_corunners_change_no_answer(name: str) -> None:
    one = trial(name)
    asked, found = one.asked, one.answers(one.fitted)
    order = np.random.default_rng(0).permutation(len(asked))
    order = np.concatenate([order, order[::2]])
    assert_alike(one.answers(one.fitted, rows_at(asked, order)), found[:, order])
    for at in np.linspace(0, len(asked) - 1, 5).astype(int):
        assert_alike(one.answers(one.fitted, rows_at(asked, np.array([at]))), found[:, [at]])


@EVERY
def test_what_is_saved_answers_alike(name: str) -> None:
    one = trial(name)
    arrays, document = one.fitted.to_arrays()
    again = one.learner.restore(arrays, json.loads(json.dumps(document)))
    assert again.labels == one.fitted.labels
    np.testing.assert_array_equal(one.answers(again), one.answers(one.fitted))


@EVERY
def test_the_same_seed_learns_the_same_and_asking_changes_nothing(name: str) -> None:
    one = trial(name)
    before = {key: np.copy(value) for key, value in vars(one.asked).items() if value is not None}
    first = one.answers(one.fitted)
    again = one.learner.fit(one.campaign, one.labels, seed=0)
    np.testing.assert_array_equal(one.answers(again), first)
    np.testing.assert_array_equal(one.answers(one.fitted), first)
    for key, value in before.items():
        np.testing.assert_array_equal(vars(one.asked)[key], value)


@pytest.mark.parametrize("name", [name for name in WORLDS if name not in CLOSED])
def test_what_was_left_out_was_never_learned(name: str) -> None:
    """Seven times as slow, it changes no answer of those that leave out by learning again."""
    one = trial(name)
    found = []
    for times in (1.0, 7.0):
        seconds = one.campaign.runs.runtime_seconds * np.where(one.is_left_out, times, 1.0)
        runs = with_seconds(one.campaign.runs, seconds)
        gone = one.given.source.take(one.campaign.origin[one.is_left_out])
        data = with_slower(one.given.data, gone.table.column("run_id").to_pylist(), times)
        whole = whole_of(replace(one.campaign, runs=runs), one.given, data=data)
        part = whole.take(~one.is_left_out)
        found.append(one.answers(one.learner.fit(part, one.learner.labels(part), seed=0)))
    np.testing.assert_array_equal(*found)


def with_seconds(runs: Runs, seconds: np.ndarray) -> Runs:
    columns = {name: runs.table.column(name) for name in runs.table.column_names}
    features = {
        f"{kind}_features": getattr(runs, f"{kind}_features") for kind in ("workload", "platform")
    }
    return Runs.from_columns(**columns | {"runtime_seconds": seconds}, **features)


def with_slower(data: Data, run_ids: list[str], times: float) -> Data:
    """The same with the traces of these runs as many times as long."""
    if not data.has_traces:
        return data
    traces = [
        replace(
            trace,
            runtime_seconds=times * trace.runtime_seconds,
            time_seconds=times * trace.time_seconds,
            interval_seconds=times * trace.interval_seconds,
        )
        if trace.run_id in run_ids
        else trace
        for trace in data.traces
    ]
    return Data(data.runs, traces=Traces.from_traces(traces))


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@EVERY
def test_few_runs_are_learned_from(name: str, size: int) -> None:
    """Of none beside others only those learn that have inputs of their own, or simulate."""
    one: Any = trial(name)
    if not size and not hasattr(one.learner, "inputs") and not hasattr(one.learner, "simulates"):
        return
    keep = ~one.campaign.beside
    keep[np.flatnonzero(one.campaign.beside)[:size]] = True
    part = one.campaign.take(keep)
    part = whole_of(replace(part, place=np.arange(len(part))), one.given, inputs=part.is_input)
    labels = one.learner.labels(part)
    fitted = one.learner.fit(part, labels, seed=0)
    found = one.answers(fitted)
    assert found.shape == (len(labels), len(one.asked))
    assert not np.isinf(found).any()
    learned = part.every_row.take(part.beside)
    assert np.isfinite(one.answers(fitted, learned)).all() or one.learner.needs != {"runs"}


@pytest.mark.parametrize("name", CLOSED)
def test_who_leaves_out_in_closed_form_keeps_what_is_wanted(name: str) -> None:
    one: Any = trial(name)
    whole = one.learner.fit(one.campaign, one.labels, seed=0, best=True)
    same = whole.without(one.campaign, one.labels)
    assert_alike(one.answers(same), one.answers(whole), 1e-6)
    some = whole.without(one.campaign.take(~one.is_left_out), one.labels[:2])
    assert some.labels == one.labels[:2]
    assert np.isfinite(one.answers(some)).any(axis=1).all()


@pytest.mark.parametrize(
    "name", [name for name in WORLDS if learner_named(name).needs & {"traces", "profiles"}]
)
def test_who_has_no_trace_or_profile_is_not_answered_whoever_asks(name: str) -> None:
    data = WORLDS[name]()
    runs, last = data.runs, data.runs.colocations.workload_names[-1]
    if data.has_traces:
        kept = [t for t in data.traces if last not in (t.workload, *t.corunners)]
        less = Data(runs, traces=Traces.from_traces(kept))
    else:
        less = Data(runs, profiles={n: one for n, one in data.profiles.items() if n != last})
    learner = learner_named(name)()
    campaign = campaign_for(less)
    fitted = learner.fit(campaign, learner.labels(campaign), seed=0)
    asked = campaign.every_row.take(campaign.degree > 0)
    code, workloads = campaign.names[0].index(last), campaign.size[1]
    unknown = asked.target % workloads == code
    unknown[asked.row[asked.corunner % workloads == code]] = True
    found = fitted.log_slowdowns(asked, campaign.cell_table)
    assert np.isnan(found[:, unknown]).all()
    assert unknown.any()
    assert np.isfinite(found[:, ~unknown]).any(axis=1).all()
