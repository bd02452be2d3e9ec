"""What is predicted for one tested set of workloads, beside what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from studies.alignment.rivals import solo_seconds
from studies.alignment.truth import MeasuredSet, Member

if TYPE_CHECKING:
    from jostle.data import Traces
    from jostle.learn.learners.counters import FittedAlignment, Roll, SoloCounters

CURVE_PERIODS = 400


@dataclass(frozen=True)
class Tested:
    """One workload of a set that is tested. measured_seconds: from the quiet stretches of its repeats.
    errors: {method: predicted / measured - 1}. single_error: mean
    |one repeat / the median of the others - 1|, NaN for fewer than three."""

    fold: int
    window: str
    slot: int
    workload: str
    corunners: tuple[str, ...]
    solo_seconds: float
    measured_seconds: float
    predicted_seconds: float
    repeats: int
    errors: dict[str, float]
    single_error: float = np.nan


@dataclass(frozen=True)
class Curve:
    """Instructions per period of one test run (Fig. 3): measured and predicted beside others, and alone."""

    workload: str
    corunners: tuple[str, ...]
    slot: int
    period_seconds: float
    measured: np.ndarray
    predicted: np.ndarray
    solo: np.ndarray


@dataclass(frozen=True)
class Rules:
    """slowdown, median: the mean and the median of those learned from. others: {rule: {run_id: seconds}}."""

    slowdown: float
    median: float
    others: Mapping[str, Mapping[str, float]]

    def errors(self, one: Member, solo: float) -> dict[str, float]:
        """{rule: predicted / measured - 1}."""
        results = {
            "no_interference_": solo / one.seconds - 1,
            "mean_slowdown_": solo * self.slowdown / one.seconds - 1,
            "median_slowdown_": solo * self.median / one.seconds - 1,
        }
        run_id = one.runs[0].run_id
        for name, seconds in self.others.items():
            if run_id in seconds:
                results[name] = seconds[run_id] / one.seconds - 1
        return results


def tested_members(
    fold: int, one: MeasuredSet, fits: Mapping[str, FittedAlignment], rules: Rules, loop: bool
) -> list[Tested]:
    """Every member of a set that ended, by every method."""
    predicted = {
        name: [float(roll.end_seconds[i]) for i, roll in enumerate(_rolls(one, fitted, loop))]
        for name, fitted in fits.items()
    }
    results = []
    for i, m in enumerate(one.members):
        if np.isnan(m.seconds):
            continue
        solo = solo_seconds(m, fits[""])
        errors = {name: seconds[i] / m.seconds - 1 for name, seconds in predicted.items()}
        results.append(
            Tested(
                fold=fold,
                window=one.name,
                slot=m.slot,
                workload=m.workload,
                corunners=m.corunners,
                solo_seconds=solo,
                measured_seconds=m.seconds,
                predicted_seconds=predicted[""][i],
                repeats=len(m.runs),
                errors=errors | rules.errors(m, solo),
                single_error=m.single_error,
            )
        )
    return results


def answers_of(
    sets: Sequence[MeasuredSet],
    fitted: FittedAlignment,
    loop: bool,
    called: Mapping[str, str] | None = None,
) -> np.ndarray:
    """(members,) predicted seconds of all members of the sets. called: what the model calls them."""
    return np.array(
        [
            float(roll.end_seconds[i])
            for one in sets
            for i, roll in enumerate(_rolls(one, fitted, loop, called))
        ]
    )


def changes_of_answers(by_seed: Sequence[np.ndarray], by_name: np.ndarray) -> dict[str, float]:
    """by_seed: answers with each seed; by_name: with the first seed and other names. `seed_spread_…`: the
    standard deviation of log answers between seeds, `names_difference_…`: |log answer under other names - log
    answer|; mean and largest over runs."""
    logs = np.log(np.stack(by_seed))
    results = {
        "seed_spread": logs.std(axis=0, ddof=1),
        "names_difference": np.abs(np.log(by_name) - logs[0]),
    }
    return {
        f"{name}_{what}_ratio": float(value)
        for name, each in results.items()
        for what, value in (("mean", each.mean()), ("max", each.max()))
    }


def renamed(traces: Traces, seed: int) -> tuple[Traces, dict[str, str], dict[str, str]]:
    """The same under names drawn at random, stressors as they were: (traces, {workload: its new name},
    {run_id: its new one})."""
    from jostle.learn.learners.counters import is_stressor

    random = np.random.default_rng(seed)
    every = list(traces)

    def drawn(names: Sequence[str], mark: str) -> dict[str, str]:
        order = random.permutation(len(names)).tolist()
        return {name: f"{mark}{k:06d}" for name, k in zip(names, order, strict=True)}

    called = sorted({name for t in every for name in (t.workload, *t.corunners)})
    names = drawn([name for name in called if not is_stressor(name)], "w")
    names |= {name: name for name in called if is_stressor(name)}
    run_ids = drawn(sorted({t.run_id for t in every}), "r")
    windows = drawn(sorted({t.window_id for t in every if t.window_id is not None}), "v")
    return (
        type(traces).from_traces(
            [
                replace(
                    t,
                    workload=names[t.workload],
                    corunners=tuple(sorted(names[name] for name in t.corunners)),
                    run_id=run_ids[t.run_id],
                    window_id=None if t.window_id is None else windows[t.window_id],
                )
                for t in every
            ]
        ),
        names,
        run_ids,
    )


def curves_of(one: MeasuredSet, fitted: FittedAlignment, loop: bool) -> list[Curve]:
    """One for each member, of the window that took the least time."""
    results = []
    solos, rolls = _solos(one, fitted), _rolls(one, fitted, loop)
    for i, (solo, run) in enumerate(zip(solos, one.quietest, strict=True)):
        edges = np.arange(min(CURVE_PERIODS, len(run)) + 1) * solo.period_seconds
        counted = np.concatenate([[0.0], np.cumsum(run["instructions"])])
        times = np.concatenate([[0.0], run.time_seconds])
        alone = solo.at(solo.cumulative[:, :1], np.minimum(edges, solo.duration_seconds))
        results.append(
            Curve(
                workload=run.workload,
                corunners=run.corunners,
                slot=one.members[i].slot,
                period_seconds=solo.period_seconds,
                measured=np.diff(np.interp(edges, times, counted)),
                predicted=rolls[i].instructions(i, solo, edges),
                solo=np.diff(alone[:, 0]),
            )
        )
    return results


def _solos(
    one: MeasuredSet, fitted: FittedAlignment, called: Mapping[str, str] | None = None
) -> list[SoloCounters]:
    return [
        fitted.solos.of(called[m.workload] if called else m.workload, m.platform, m.slot)
        for m in one.members
    ]


def _rolls(
    one: MeasuredSet,
    fitted: FittedAlignment,
    loop: bool,
    called: Mapping[str, str] | None = None,
) -> list[Roll]:
    """For each member the roll that tells its run time: of all, or with the others looping."""
    solos, slots = _solos(one, fitted, called), [m.slot for m in one.members]
    if not loop:
        return [fitted.roll(solos, slots=slots)] * len(solos)
    numbers = range(len(solos))
    return [fitted.roll(solos, slots=slots, loop=[k != i for k in numbers]) for i in numbers]
