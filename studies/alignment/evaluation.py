"""The protocol of the alignment method: run times side by side of programs that were not learned from.

Source: Saeed et al., MLCAD 2021, Sec. IV: training and test applications are disjoint (Table IV); the
error per sample takes what was executed so far as measured (Fig. 2), the run time does not. A fold holds
some workloads out; what is learned from are the windows with none of them, what is tested are those with
nobody else. Repeats of a window are one test: see `_truth`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from jostle.errors import NotEnoughRuns
from studies.alignment.answers import (
    Curve,
    Rules,
    Tested,
    answers_of,
    changes_of_answers,
    curves_of,
    renamed,
    tested_members,
)
from studies.alignment.folds import Fold, folds_of_pairs, folds_of_programs
from studies.alignment.metrics import (
    error_metrics,
    interval_metrics,
    means_of,
    slowdown_metrics,
    steady_metrics,
)
from studies.alignment.rivals import (
    bounds_of,
    by_additive_effects,
    by_factorization,
    by_probes,
    errors_of_learners,
    solo_seconds,
    usual_slowdowns,
)
from studies.alignment.truth import (
    MeasuredSet,
    Member,
    measured_sets,
    member_of,
    noise_metrics,
    spread_metrics,
    unsteady_of,
)

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.data import Trace, Traces
    from jostle.learn.learners.counters import Alignment, FittedAlignment
    from studies.alignment.paper.selection import CounterSelection

# Compared under one learner that is quick to fit, so that only the alignment differs.
COMPARED = ("section", "printed")
CONFIDENCE = 0.9


@dataclass(frozen=True)
class AlignmentEvaluation:
    """metrics: by documented name. tested: every test run. learners: {learner: {slot: error per sample}}
    (Fig. 2). curves: of the test window with the most interference. selection: of the first fold. folds: the
    workloads held out of each. unsteady: workloads whose run time alone is not known, see
    `unsteady_of`."""

    metrics: dict[str, float]
    tested: tuple[Tested, ...]
    learners: dict[str, dict[int, float]]
    curves: tuple[Curve, ...]
    selection: CounterSelection | None
    folds: tuple[tuple[str, ...], ...]
    unsteady: tuple[str, ...] = ()


@dataclass(frozen=True)
class _FoldResult:
    """members: of the tested sets, also those that never ended. samples: {method: error per sample}."""

    tested: list[Tested]
    members: list[Member]
    samples: dict[str, float]
    learners: dict[str, dict[int, float]]
    curves: list[Curve]
    selection: CounterSelection | None


def evaluate_alignment(
    traces: Traces,
    method: Alignment | None = None,
    *,
    held: int | None = 2,
    folds: int | None = None,
    also: Collection[str] = ("alignments", "factorization"),
    seed: int = 0,
    seeds: int = 1,
    progress: Progress | None = None,
) -> AlignmentEvaluation:
    """held: workloads per fold, or None: pairs of workloads that are known from others. folds: how many at
    most. also: `alignments`, both under one learner, and the paper's learners; `factorization`; `bounds`,
    how often runs stay under them, of models fitted again. seeds: that the first fold is fitted with, and
    once under other names, to see how much answers change. Raises NotEnoughRuns where no fold has a window
    to test and one to learn from."""
    from jostle.learn.learners.counters import Alignment as Method
    from jostle.learn.learners.counters import (
        equal_repeats,
        only_stressors,
        probe_runs,
        sampling_period,
        solo_runs,
        traced_windows,
        with_instructions,
        with_probes,
    )

    compare, factorization, bounds = (
        name in also for name in ("alignments", "factorization", "bounds")
    )
    method = method or Method()
    whole = only_stressors(with_instructions(traces), method.stressors)
    beside = probe_runs(whole, method.stressors)
    traces = with_probes(whole, method.stressors)
    windows = traced_windows(traces)
    period = method.period_seconds or sampling_period(traces)
    groups = solo_runs(traces)
    alone = [member_of(groups[key], key[2], period) for key in sorted(groups)]
    sets = measured_sets(windows, period, equal_repeats(traces))
    every = (
        folds_of_pairs(sets, folds, seed)
        if held is None
        else folds_of_programs(sets, held, folds, seed)
    )
    unsteady = unsteady_of(alone)
    total = len(every) * (2 + (len(COMPARED) if compare else 0) + factorization)
    numbers = count(1)

    def step() -> None:
        if progress is not None:
            progress(next(numbers), total, float("nan"))

    results = []
    covered: list[tuple[float, int]] = []
    for fold in every:
        fits = _fits(method, whole, fold, compare, seed, step)
        others: dict[str, dict[str, float]] = {}
        if held is None:
            others["additive_effects_"] = by_additive_effects(fold, fits[""])
        if beside is not None:
            others["probes_"] = by_probes(fold, beside, alone, method.stressors, seed)
        if factorization:
            others["factorization_"] = by_factorization(fold, alone, seed)
            step()
        rules = Rules(*usual_slowdowns(fold.train, fits[""], unsteady), others)
        if bounds and (one := bounds_of(method, whole, fold, CONFIDENCE, seed)):
            covered.append(one)
        results.append(_result(method, fold, fits, rules, compare, seed))
        step()
    outcomes = _summary(results, alone, [fold.held_out for fold in every], covered)
    more = spread_metrics(sets)
    if seeds > 1:
        more |= _steadiness(method, whole, every[0], range(seed, seed + seeds))
    return replace(outcomes, metrics=outcomes.metrics | more)


def fold_fitter(
    traces: Traces, fold: Fold, seed: int, called: Mapping[str, str] | None = None
) -> Callable[[Alignment], FittedAlignment]:
    """What fits a method on the sets that a fold learns from, a fifth of them to choose by. called: what
    run_ids of the fold are called in the traces, by default the same."""
    from jostle.data import split_rows
    from jostle.learn import Data
    from jostle.learn.learners.counters import traced_runs

    ids = {run.run_id for runs in windows_of(fold.train).values() for run in runs}
    if called is not None:
        ids = {called[name] for name in ids}
    runs = traced_runs(traces, set(traces.run_ids) - ids)
    learned, validation = (
        runs.take(rows) for rows in split_rows(runs, (0.8, 0.2), seed, "together")
    )
    data = Data(learned, traces=traces)

    def fitted(settings: Alignment) -> FittedAlignment:
        prepared = settings.prepare(data).with_validation(validation)
        return settings.fit(prepared, seed=seed)

    return fitted


def _steadiness(
    method: Alignment, traces: Traces, fold: Fold, seeds: Sequence[int]
) -> dict[str, float]:
    """How much answers change with the seed, which also draws what is chosen by, and with names alone."""
    other, names, run_ids = renamed(traces, seeds[0])
    fits = [fold_fitter(traces, fold, seed)(method) for seed in seeds]
    by_seed = [answers_of(fold.test, fitted, fitted.loop) for fitted in fits]
    again = fold_fitter(other, fold, seeds[0], run_ids)(method)
    return changes_of_answers(by_seed, answers_of(fold.test, again, again.loop, names))


def _fits(
    method: Alignment,
    traces: Traces,
    fold: Fold,
    compare: bool,
    seed: int,
    step: Callable[[], None],
) -> dict[str, FittedAlignment]:
    """The method as it is, and with each alignment under the same learner."""
    from jostle.learn.learners.counters import Alignment
    from studies.alignment.paper.method import RidgeAlignment

    fitted = fold_fitter(traces, fold, seed)
    fits = {"": fitted(method)}
    step()
    # As printed it is for two that run once.
    for alignment in COMPARED if compare and not fits[""].loop else ():
        shared = {one.name: getattr(method, one.name) for one in dataclass_fields(Alignment)}
        shared |= {"alignment": alignment, "counters": fits[""].counters}
        fits[f"{alignment}_"] = fitted(RidgeAlignment(**shared))
        step()
    return fits


def _result(
    method: Alignment,
    fold: Fold,
    fits: dict[str, FittedAlignment],
    rules: Rules,
    compare: bool,
    seed: int,
) -> _FoldResult:
    """What every method says of the test sets; curves of the first fold only, of the set with the largest
    slowdown, which is the most telling one."""
    from jostle.learn.learners.counters import aligned_rows
    from studies.alignment.paper.method import laid

    loop, fitted = fits[""].loop, fits[""]
    test_windows = windows_of(fold.test)
    samples = {}
    for name, model in fits.items():
        kind = laid(getattr(model, "alignment", "section"))
        rows = aligned_rows(test_windows, model.solos, loop=loop, **kind)
        off = np.abs(model.instructions(rows) - rows.count).sum()
        samples[name] = float(off / rows.count.sum())
    learners: dict[str, dict[int, float]] = {}
    if compare:
        train, test = (
            aligned_rows(windows, fitted.solos, loop=loop)
            for windows in (windows_of(fold.train), test_windows)
        )
        learners = errors_of_learners(train, test, seed)

    def slowdown(one: MeasuredSet) -> float:
        return float(np.nanmax([m.seconds / solo_seconds(m, fitted) for m in one.members]))

    return _FoldResult(
        tested=[
            tested
            for one in fold.test
            for tested in tested_members(fold.number, one, fits, rules, loop)
        ],
        members=[member for one in fold.test for member in one.members],
        samples=samples,
        learners=learners,
        curves=[] if fold.number else curves_of(max(fold.test, key=slowdown), fitted, loop),
        selection=getattr(fitted, "selection", None),
    )


def windows_of(sets: Sequence[MeasuredSet]) -> dict[str, Sequence[Trace]]:
    """{window_id: runs} of all of these."""
    return {name: runs for one in sets for name, runs in one.windows.items()}


def _summary(
    results: Sequence[_FoldResult],
    alone: Sequence[Member],
    held_out: Sequence[tuple[str, ...]],
    covered: Sequence[tuple[float, int]],
) -> AlignmentEvaluation:
    tested = [one for result in results for one in result.tested]
    if not tested:
        raise NotEnoughRuns("no test run has a runtime", fix="Trace programs that end.")
    members = [member for result in results for member in result.members]
    samples = means_of([result.samples for result in results])
    learners = {
        name: means_of([result.learners.get(name, {}) for result in results])
        for name in dict.fromkeys(name for result in results for name in result.learners)
    }
    unsteady = unsteady_of(alone)
    metrics = error_metrics(tested, samples) | slowdown_metrics(tested, members)
    metrics |= interval_metrics(tested, samples)
    if covered:
        number = sum(sets for _, sets in covered)
        share = sum(under for under, _ in covered) / number
        metrics["coverage_90_ratio"], metrics["coverage_sets"] = share, float(number)
        metrics["coverage_90_standard_error_ratio"] = float(
            np.sqrt(CONFIDENCE * (1 - CONFIDENCE) / number)
        )
    metrics |= noise_metrics(members) | noise_metrics(alone, "solo_")
    if unsteady:
        metrics |= steady_metrics(tested, unsteady, samples)
    for learner, by_slot in learners.items():
        for slot, error in by_slot.items():
            metrics[f"{learner}_core_{slot}_instructions_mae_ratio"] = error
    return AlignmentEvaluation(
        metrics=metrics,
        tested=tuple(tested),
        learners=learners,
        curves=tuple(results[0].curves),
        selection=next((result.selection for result in results if result.selection), None),
        folds=tuple(held_out),
        unsteady=unsteady,
    )
