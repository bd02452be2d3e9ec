"""The protocol of the alignment method: run times side by side of programs that were not learned from.

Source: Saeed et al., MLCAD 2021, Sec. IV: training and test applications are disjoint (Table IV); the
error per sample takes what was executed so far as measured (Fig. 2), the run time does not. A fold holds
some workloads out; what is learned from are the windows with none of them, what is tested are those with
nobody else. Repeats of a window are one test: see `_alignment_truth`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import NotEnoughRuns, UsageError
from jostle.evaluate.alignment._truth import (
    Measured,
    Member,
    measured,
    member,
    noise,
    quiet_runs,
    unsteady_of,
)
from jostle.methods import learn

if TYPE_CHECKING:
    from jostle.alignment import AlignedRows, Alignment, CounterSelection, FittedAlignment
    from jostle.runs import Runs
    from jostle.traces import Trace, Traces

# Compared under one learner that is quick to fit, so that only the alignment differs.
COMPARED = ("section", "continuous", "swapped", "printed")
COMPARED_KIND = ("ridge", "interacting", "slowdown")
LINEAR_LEARNERS = ("ridge", "lasso", "elastic_net", "linear_svr")
LEARNER_ROWS = 6_000
CURVE_PERIODS = 400


@dataclass(frozen=True)
class Tested:
    """One workload of a set that is tested. measured_seconds: from the quiet stretches of its repeats.
    errors: {method: predicted / measured - 1}."""

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


def workload_folds(
    workloads: Sequence[str], held: int, folds: int | None, seed: int
) -> list[tuple[str, ...]]:
    """Workloads held out of each fold, disjoint, `held` each. Raises UsageError where they do not suffice."""
    names = sorted(set(workloads))
    if held < 2 or len(names) < held + 2:
        raise UsageError(
            f"{held} of {len(names)} workloads cannot be held out",
            fix="At least two are tested side by side, and at least two others are learned from.",
        )
    order = np.random.default_rng(seed).permutation(names).tolist()
    found = [tuple(sorted(order[i : i + held])) for i in range(0, len(order) - held + 1, held)]
    return found if folds is None else found[:folds]


def evaluate_alignment(
    traces: Traces,
    method: Alignment | None = None,
    *,
    held: int = 2,
    folds: int | None = None,
    compare: bool = True,
    factorization: bool = True,
    seed: int = 0,
    progress: Callable[[int, int, float], None] | None = None,
) -> AlignmentEvaluation:
    """method: as Alignment(traces, …). held: workloads per fold. folds: how many at most. compare: also
    the four alignments under one learner, and the paper's learners. Raises NotEnoughRuns where a fold has no
    window to test or to learn from."""
    from jostle.alignment import Alignment as Method
    from jostle.alignment import aligned_rows, sampling_period, traced_windows

    method = method or Method(traces)
    quiet = method.repeats == "quiet"
    windows = traced_windows(traces)
    names = {run.workload for runs in windows.values() for run in runs}
    chosen = workload_folds(sorted(names), held, folds, seed)
    loop = method.corunners == "loop"
    tested: list[Tested] = []
    samples: dict[str, list[float]] = {}
    learners: dict[str, dict[int, list[float]]] = {}
    curves: list[Curve] = []
    selection = None
    total = len(chosen) * (2 + (len(COMPARED) if compare else 0) + factorization)
    done = 0

    def said() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total, float("nan"))

    period = method.period_seconds or sampling_period(traces)
    alone = _alone(traces, period)
    sets = measured(windows, period)
    known: list[Member] = []
    for number, out in enumerate(chosen):
        train = [one for one in sets if not any(m.workload in out for m in one.members)]
        test = [
            one
            for one in sets
            if all(m.workload in out for m in one.members)
            and len({m.workload for m in one.members}) > 1
        ]
        if not train or not test:
            raise NotEnoughRuns(
                f"holding out {', '.join(out)} leaves {len(train)} sets to learn from and "
                f"{len(test)} to test",
                fix="Trace all pairs of the workloads.",
            )
        runs, validation = _train_runs(traces, train, seed)
        fitted = learn(method, runs, validation=validation, seed=seed)
        selection = selection or fitted.selection
        methods: dict[str, FittedAlignment] = {"": fitted}
        said()
        if compare:
            for alignment in COMPARED:
                other = replace(
                    method,
                    alignment=alignment,
                    counters=fitted.counters,
                    **dict(zip(("learner", "form", "target"), COMPARED_KIND, strict=True)),
                )
                methods[f"{alignment}_"] = learn(other, runs, validation=validation, seed=seed)
                said()
        slowdown = _mean_slowdown(train, fitted)
        factored = _factorization(train, test, alone, seed) if factorization else {}
        if factorization:
            said()
        for one in test:
            tested += _tested(number, one, methods, slowdown, factored, loop)
            known += one.members
        test_windows, train_windows = _windows(test), _windows(train)
        for prefix, model in methods.items():
            rows = aligned_rows(test_windows, model.solos, model.alignment, loop=loop, quiet=quiet)
            error = float(np.abs(model.instructions(rows) - rows.count).sum() / rows.count.sum())
            samples.setdefault(prefix, []).append(error)
        if compare:
            both = [
                aligned_rows(w, fitted.solos, "section", loop=loop, quiet=quiet)
                for w in (train_windows, test_windows)
            ]
            for learner, by_slot in _learners(both[0], both[1], seed).items():
                for slot, error in by_slot.items():
                    learners.setdefault(learner, {}).setdefault(slot, []).append(error)
        if not curves:
            curves = _curves(max(test, key=lambda one: _interference(one, fitted)), fitted, loop)
        said()
    metrics = _metrics(tested, samples, known) | noise(known) | noise(alone, "solo_")
    unsteady = unsteady_of(alone)
    if unsteady:
        steady = [one for one in tested if one.workload not in unsteady]
        metrics |= {
            f"steady_{prefix}error_mean_ratio": float(np.mean([abs(t.errors[key]) for t in steady]))
            for key in tested[0].errors
            for prefix in [f"{key}run_time_" if key in samples else key]
            if steady
        }
    metrics |= {
        f"{learner}_core_{slot}_instructions_mae_ratio": float(np.mean(errors))
        for learner, by_slot in learners.items()
        for slot, errors in by_slot.items()
    }
    mean = {k: {s: float(np.mean(e)) for s, e in v.items()} for k, v in learners.items()}
    return AlignmentEvaluation(
        metrics, tuple(tested), mean, tuple(curves), selection, tuple(chosen), unsteady
    )


def _windows(sets: Sequence[Measured]) -> dict[str, Sequence[Trace]]:
    return {name: runs for one in sets for name, runs in one.windows.items()}


def _alone(traces: Traces, period_seconds: float) -> list[Member]:
    """Every workload alone, by core."""
    from jostle.alignment import solo_runs

    groups = solo_runs(traces)
    return [member(groups[key], key[2], period_seconds) for key in sorted(groups)]


def _train_runs(traces: Traces, train: Sequence[Measured], seed: int) -> tuple[Runs, Runs]:
    """Runs to learn from and to choose counters with, by sets of workloads."""
    from jostle.models import traced_runs
    from jostle.runs import split_rows

    ids = {run.run_id for runs in _windows(train).values() for run in runs}
    runs = traced_runs(traces, set(traces.run_ids) - ids)
    first, second = split_rows(runs, (0.8, 0.2), seed, "together")
    return runs.take(first), runs.take(second)


def _solo_seconds(one: Member, fitted: FittedAlignment) -> float:
    return fitted.solos.of(one.workload, one.platform, one.slot).duration_seconds


def _interference(one: Measured, fitted: FittedAlignment) -> float:
    """The largest slowdown of a set: the most telling one is drawn."""
    return float(np.nanmax([m.seconds / _solo_seconds(m, fitted) for m in one.members]))


def _mean_slowdown(train: Sequence[Measured], fitted: FittedAlignment) -> float:
    slows = [m.seconds / _solo_seconds(m, fitted) for one in train for m in one.members]
    return float(np.nanmean(slows))


def _predicted(one: Measured, fitted: FittedAlignment, loop: bool) -> list[float]:
    slots = [m.slot for m in one.members]
    solos = [fitted.solos.of(m.workload, m.platform, m.slot) for m in one.members]
    if not loop:
        return fitted.roll(solos, slots=slots).end_seconds.tolist()
    found = []
    for target in range(len(solos)):
        others = [i != target for i in range(len(solos))]
        found.append(float(fitted.roll(solos, slots=slots, loop=others).end_seconds[target]))
    return found


def _tested(
    fold: int,
    one: Measured,
    methods: dict[str, FittedAlignment],
    slowdown: float,
    factored: dict[str, float],
    loop: bool,
) -> list[Tested]:
    predicted = {name: _predicted(one, model, loop) for name, model in methods.items()}
    found = []
    for i, m in enumerate(one.members):
        if np.isnan(m.seconds):
            continue
        solo = _solo_seconds(m, methods[""])
        errors = {name: seconds[i] / m.seconds - 1 for name, seconds in predicted.items()}
        errors |= {
            "no_interference_": solo / m.seconds - 1,
            "mean_slowdown_": solo * slowdown / m.seconds - 1,
        }
        if m.runs[0].run_id in factored:
            errors["factorization_"] = factored[m.runs[0].run_id] / m.seconds - 1
        found.append(
            Tested(
                fold,
                one.name,
                m.slot,
                m.workload,
                m.corunners,
                solo,
                m.seconds,
                predicted[""][i],
                len(m.runs),
                errors,
            )
        )
    return found


def _factorization(
    train: Sequence[Measured], test: Sequence[Measured], alone: Sequence[Member], seed: int
) -> dict[str, float]:
    """{run_id: seconds}: learned from the same sets and from all runs alone, which is all it can know of
    the workloads held out."""
    from jostle.factorization import Factorization
    from jostle.runs import Runs as Table
    from jostle.runs import split_rows

    learned, asked = quiet_runs(train), quiet_runs(test)
    first, second = split_rows(learned, (0.8, 0.2), seed, "together")
    fitted = learn(
        Factorization(rank=16, hidden=32, steps=1500),
        Table.concatenate([learned.take(first), quiet_runs((), alone)]),
        validation=learned.take(second),
        seed=seed,
    )
    seconds = fitted.predict(asked.colocations)
    return dict(zip(asked.table.column("run_id").to_pylist(), seconds.tolist(), strict=True))


def _learners(train: AlignedRows, test: AlignedRows, seed: int) -> dict[str, dict[int, float]]:
    """{learner: {slot of the target: error per sample}}, the paper's features and target, slot by slot."""
    from jostle.alignment import LearnerKind, learn, per_sample_error

    found: dict[str, dict[int, float]] = {}
    for slot in np.unique(test.slot).tolist():
        mine = train.take(train.slot == slot).thinned(LEARNER_ROWS)
        theirs = test.take(test.slot == slot)
        if len(mine) < 2:
            continue
        for learner in LINEAR_LEARNERS:
            kind = LearnerKind(learner, "linear", "instructions")
            learned = learn(mine, kind, seed=seed, rounds=0)
            found.setdefault(learner, {})[slot] = per_sample_error(learned, theirs)
    return found


def _curves(one: Measured, fitted: FittedAlignment, loop: bool) -> list[Curve]:
    slots = [m.slot for m in one.members]
    solos = [fitted.solos.of(m.workload, m.platform, m.slot) for m in one.members]
    found = []
    for i, (slot, run) in enumerate(zip(slots, one.quietest, strict=True)):
        looping = [loop and k != i for k in range(len(slots))]
        rolled = fitted.roll(solos, slots=slots, loop=looping)
        tau = solos[i].period_seconds
        n = min(CURVE_PERIODS, len(run))
        edges = np.arange(n + 1) * tau
        counted = np.concatenate([[0.0], np.cumsum(run["instructions"])])
        times = np.concatenate([[0.0], run.time_seconds])
        solo = solos[i].at(solos[i].cumulative[:, :1], np.minimum(edges, solos[i].duration_seconds))
        found.append(
            Curve(
                run.workload,
                run.corunners,
                slot,
                tau,
                np.diff(np.interp(edges, times, counted)),
                rolled.instructions(i, solos[i], edges),
                np.diff(solo[:, 0]),
            )
        )
    return found


def _metrics(
    tested: Sequence[Tested], samples: dict[str, list[float]], known: Sequence[Member]
) -> dict[str, float]:
    if not tested:
        raise NotEnoughRuns("no test run has a runtime", fix="Trace programs that end.")
    metrics: dict[str, Any] = {}
    for prefix in tested[0].errors:
        errors = np.array([abs(one.errors[prefix]) for one in tested])
        name = f"{prefix}run_time_error" if prefix in samples else f"{prefix}error"
        metrics[f"{name}_mean_ratio"] = float(errors.mean())
        metrics[f"{name}_max_ratio"] = float(errors.max())
        if prefix in samples:
            metrics[f"{prefix}instructions_mae_ratio"] = float(np.mean(samples[prefix]))
    slows = np.array([one.measured_seconds / one.solo_seconds for one in tested])
    metrics["slowdown_mean_ratio"] = float(slows.mean())
    metrics["slowdown_max_ratio"] = float(slows.max())
    if any(one.repeats > 1 for one in tested):
        ended = [m for m in known if not np.isnan(m.seconds)]
        each = [
            np.abs(one.predicted_seconds / m.singles_seconds - 1)
            for one, m in zip(tested, ended, strict=True)
        ]
        metrics["single_run_error_mean_ratio"] = float(np.concatenate(each).mean())
    return metrics | {"test_runs": float(len(tested))}
