"""The protocol of the alignment method: run times side by side of programs that were not learned from.

Source: Saeed et al., MLCAD 2021, Sec. IV: training and test applications are disjoint (Table IV); the
error per sample takes what was executed so far as measured (Fig. 2), the run time does not. A fold holds
some workloads out; what is learned from are the windows with none of them, what is tested are those with
nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import NotEnoughRuns, UsageError

if TYPE_CHECKING:
    from jostle.alignment import Alignment, FittedAlignment, Rows, Selection
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
    """One test run. errors: {method: predicted / measured - 1}."""

    fold: int
    window: str
    slot: int
    workload: str
    corunners: tuple[str, ...]
    solo_seconds: float
    measured_seconds: float
    predicted_seconds: float
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
    workloads held out of each."""

    metrics: dict[str, float]
    tested: tuple[Tested, ...]
    learners: dict[str, dict[int, float]]
    curves: tuple[Curve, ...]
    selection: Selection | None
    folds: tuple[tuple[str, ...], ...]


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
    from jostle.alignment._fit import offered_counters, solo_profiles
    from jostle.alignment._rows import rows_of, windows_of

    method = method or Method(traces)
    windows = windows_of(traces)
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

    for number, out in enumerate(chosen):
        train = {w: r for w, r in windows.items() if not any(run.workload in out for run in r)}
        test = {
            w: r
            for w, r in windows.items()
            if all(run.workload in out for run in r) and len({run.workload for run in r}) > 1
        }
        if not train or not test:
            raise NotEnoughRuns(
                f"holding out {', '.join(out)} leaves {len(train)} windows to learn from and "
                f"{len(test)} to test",
                fix="Trace all pairs of the workloads.",
            )
        runs, validation = _train_runs(traces, train, seed)
        fitted = method.fit(runs, validation, seed=seed)
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
                methods[f"{alignment}_"] = other.fit(runs, validation, seed=seed)
                said()
        slowdown = _mean_slowdown(train, fitted)
        factored = _factorization(traces, runs, validation, test, seed) if factorization else {}
        if factorization:
            said()
        for window, members in test.items():
            tested += _tested(number, window, members, methods, slowdown, factored, loop)
        for prefix, one in methods.items():
            rows = rows_of(test, one.profiles, one.alignment, loop=loop)
            error = float(np.abs(one.instructions(rows) - rows.count).sum() / rows.count.sum())
            samples.setdefault(prefix, []).append(error)
        if compare:
            offered, _ = offered_counters(traces, fitted.counters)
            profiles = solo_profiles(traces, offered, method.period_seconds)
            both = [rows_of(w, profiles, "section", loop=loop) for w in (train, test)]
            for learner, by_slot in _learners(both[0], both[1], seed).items():
                for slot, error in by_slot.items():
                    learners.setdefault(learner, {}).setdefault(slot, []).append(error)
        if not curves:
            window = max(test, key=lambda w: _interference(test[w], fitted))
            curves = _curves(test[window], fitted, loop)
        said()
    metrics = _metrics(tested, samples)
    metrics |= {
        f"{learner}_core_{slot}_instructions_mae_ratio": float(np.mean(errors))
        for learner, by_slot in learners.items()
        for slot, errors in by_slot.items()
    }
    mean = {k: {s: float(np.mean(e)) for s, e in v.items()} for k, v in learners.items()}
    return AlignmentEvaluation(
        metrics, tuple(tested), mean, tuple(curves), selection, tuple(chosen)
    )


def _train_runs(traces: Traces, train: dict[str, list[Trace]], seed: int) -> tuple[Runs, Runs]:
    """Runs to learn from and to choose counters with, by sets of workloads."""
    from jostle.models import traced_runs
    from jostle.runs import split_rows

    ids = {run.run_id for runs in train.values() for run in runs}
    leave_out = set(traces.run_ids) - ids
    runs = traced_runs(traces, leave_out)
    first, second = split_rows(runs, (0.8, 0.2), seed, "together")
    return runs.take(first), runs.take(second)


def _solo_seconds(run: Trace, slot: int, fitted: FittedAlignment) -> float:
    return fitted.profiles.of(run.workload, run.platform, slot).duration_seconds


def _interference(members: Sequence[Trace], fitted: FittedAlignment) -> float:
    """The largest slowdown of a window: the most telling one is drawn."""
    slows = [
        run.runtime_seconds / _solo_seconds(run, slot, fitted)
        for slot, run in _placed(members)
        if not np.isnan(run.runtime_seconds)
    ]
    return max(slows, default=0.0)


def _placed(members: Sequence[Trace]) -> list[tuple[int, Trace]]:
    from jostle.alignment._rows import slots_of

    return list(zip(slots_of(members), members, strict=True))


def _mean_slowdown(train: dict[str, list[Trace]], fitted: FittedAlignment) -> float:
    slows = [
        run.runtime_seconds / _solo_seconds(run, slot, fitted)
        for members in train.values()
        for slot, run in _placed(members)
    ]
    return float(np.nanmean(slows))


def _predicted(members: Sequence[Trace], fitted: FittedAlignment, loop: bool) -> list[float]:
    placed = _placed(members)
    slots = [slot for slot, _ in placed]
    profiles = [fitted.profiles.of(run.workload, run.platform, slot) for slot, run in placed]
    if not loop:
        return fitted.roll(profiles, slots=slots).end_seconds.tolist()
    found = []
    for target in range(len(members)):
        others = [i != target for i in range(len(members))]
        found.append(float(fitted.roll(profiles, slots=slots, loop=others).end_seconds[target]))
    return found


def _tested(
    fold: int,
    window: str,
    members: Sequence[Trace],
    methods: dict[str, FittedAlignment],
    slowdown: float,
    factored: dict[str, float],
    loop: bool,
) -> list[Tested]:
    predicted = {name: _predicted(members, one, loop) for name, one in methods.items()}
    found = []
    for i, (slot, run) in enumerate(_placed(members)):
        true = run.runtime_seconds
        if np.isnan(true):
            continue
        solo = _solo_seconds(run, slot, methods[""])
        errors = {name: seconds[i] / true - 1 for name, seconds in predicted.items()}
        errors |= {
            "no_interference_": solo / true - 1,
            "mean_slowdown_": solo * slowdown / true - 1,
        }
        if run.run_id in factored:
            errors["factorization_"] = factored[run.run_id] / true - 1
        found.append(
            Tested(
                fold,
                window,
                slot,
                run.workload,
                run.corunners,
                solo,
                true,
                predicted[""][i],
                errors,
            )
        )
    return found


def _factorization(
    traces: Traces, runs: Runs, validation: Runs, test: dict[str, list[Trace]], seed: int
) -> dict[str, float]:
    """{run_id: seconds}: learned from the same windows and from all runs alone, which is all it can know
    of the workloads held out."""
    from jostle.factorization import Factorization
    from jostle.models import traced_runs
    from jostle.runs import Runs as Table

    solo = [trace.run_id for trace in traces if trace.solo]
    alone = traced_runs(traces, set(traces.run_ids) - set(solo))
    fitted = Factorization(rank=16, hidden=32, steps=1500).fit(
        Table.concatenate([runs, alone]), validation, seed=seed
    )
    members = [run for group in test.values() for run in group if not np.isnan(run.runtime_seconds)]
    asked = traced_runs(traces, set(traces.run_ids) - {run.run_id for run in members})
    seconds = fitted.predict(asked.colocations)
    return dict(zip(asked.table.column("run_id").to_pylist(), seconds.tolist(), strict=True))


def _learners(train: Rows, test: Rows, seed: int) -> dict[str, dict[int, float]]:
    """{learner: {slot of the target: error per sample}}, the paper's features and target, slot by slot."""
    from jostle.alignment._learn import learn, per_sample_error, thinned

    found: dict[str, dict[int, float]] = {}
    for slot in np.unique(test.slot).tolist():
        mine = thinned(train.take(train.slot == slot), LEARNER_ROWS)
        theirs = test.take(test.slot == slot)
        if len(mine) < 2:
            continue
        for learner in LINEAR_LEARNERS:
            learned = learn(mine, learner, "linear", "instructions", seed=seed)
            found.setdefault(learner, {})[slot] = per_sample_error(learned, theirs)
    return found


def _curves(members: Sequence[Trace], fitted: FittedAlignment, loop: bool) -> list[Curve]:
    placed = _placed(members)
    slots = [slot for slot, _ in placed]
    profiles = [fitted.profiles.of(run.workload, run.platform, slot) for slot, run in placed]
    found = []
    for i, (slot, run) in enumerate(placed):
        looping = [loop and k != i for k in range(len(placed))]
        rolled = fitted.roll(profiles, slots=slots, loop=looping)
        tau = profiles[i].period_seconds
        n = min(CURVE_PERIODS, len(run))
        edges = np.arange(n + 1) * tau
        counted = np.concatenate([[0.0], np.cumsum(run["instructions"])])
        times = np.concatenate([[0.0], run.time_seconds])
        solo = profiles[i].at(
            profiles[i].cumulative[:, :1], np.minimum(edges, profiles[i].duration_seconds)
        )
        found.append(
            Curve(
                run.workload,
                run.corunners,
                slot,
                tau,
                np.diff(np.interp(edges, times, counted)),
                rolled.instructions(i, profiles[i], edges),
                np.diff(solo[:, 0]),
            )
        )
    return found


def _metrics(tested: Sequence[Tested], samples: dict[str, list[float]]) -> dict[str, float]:
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
    return metrics | {"test_runs": float(len(tested))}
