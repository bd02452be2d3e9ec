"""Run times side by side of what was not learned from, by the method and by simple rules.

Source: Saeed et al., MLCAD 2021, Sec. IV: training and test applications are disjoint (Table IV). A fold
holds some programs out, or pairs of programs that are known from others; what is learned from are the windows
with none of them, what is tested are those with nobody else. What was measured of a set of workloads is the
median of its repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.report import Table, percent
from jostle.errors import NotEnoughRuns, UsageError

if TYPE_CHECKING:
    from jostle.data import Colocations, Runs, Trace, Traces
    from jostle.learn.learners.counters import Alignment

PAIR_FOLDS = 4
DRAWS = 2000
SHRINKAGE = 0.3  # runs that no effect of the additive rule weighs
RULES = ("no interference", "mean slowdown", "median slowdown", "additive effects", "probes")


@dataclass(frozen=True)
class Fold:
    """held_out: programs, or pairs of them. train: run_ids. test: {(workload, platform, co-runners): the
    traces of its repeats}."""

    held_out: tuple[str, ...]
    train: frozenset[str]
    test: dict[tuple[str, str, tuple[str, ...]], list[Trace]]


def folds_of_programs(traces: Traces, held: int, seed: int) -> list[Fold]:
    """Hold `held` programs out of each fold. Raises UsageError where they do not suffice."""
    beside = _beside(traces)
    names = sorted({name for t in beside for name in (t.workload, *t.corunners)})
    if held < 2 or len(names) < held + 2:
        raise UsageError(
            f"{held} of {len(names)} workloads cannot be held out",
            fix="At least two are tested side by side, and at least two others are learned from.",
        )
    order = np.random.default_rng(seed).permutation(names).tolist()
    parts = [order[at : at + held] for at in range(0, len(order) - held + 1, held)]
    return [
        _fold(
            part,
            [t for t in beside if not {t.workload, *t.corunners}.intersection(part)],
            [t for t in beside if {t.workload, *t.corunners}.issubset(part)],
        )
        for part in parts
    ]


def folds_of_pairs(traces: Traces, seed: int) -> list[Fold]:
    """Hold a quarter of the sets of workloads out of each fold; their members are known from others."""
    beside = _beside(traces)
    sets = sorted({tuple(sorted((t.workload, *t.corunners))) for t in beside})
    if len(sets) < PAIR_FOLDS:
        raise NotEnoughRuns(f"{len(sets)} sets of workloads are too few", fix="Trace more pairs.")
    order = np.random.default_rng(seed).permutation(len(sets))
    folds = []
    for part in np.array_split(order, PAIR_FOLDS):
        out = {sets[at] for at in part.tolist()}
        is_out = [tuple(sorted((t.workload, *t.corunners))) in out for t in beside]
        folds.append(
            _fold(
                [" + ".join(one) for one in sorted(out)],
                [t for t, held in zip(beside, is_out, strict=True) if not held],
                [t for t, held in zip(beside, is_out, strict=True) if held],
            )
        )
    return folds


def _beside(traces: Traces) -> list[Trace]:
    """Return the runs beside others, without stressors and windows with them."""
    from jostle.learn.learners.counters import is_stressor

    return [
        t for t in traces if t.corunners and not any(map(is_stressor, (t.workload, *t.corunners)))
    ]


def _fold(held_out: Sequence[str], train: Sequence[Trace], test: Sequence[Trace]) -> Fold:
    repeats: dict[tuple[str, str, tuple[str, ...]], list[Trace]] = {}
    for trace in test:
        if np.isfinite(trace.runtime_seconds) and {trace.workload} != set(trace.corunners):
            key = trace.workload, trace.platform, trace.corunners
            repeats.setdefault(key, []).append(trace)
    return Fold(tuple(sorted(held_out)), frozenset(t.run_id for t in train), repeats)


@dataclass(frozen=True)
class Tested:
    """One workload of a set that was not learned from. errors: {method: predicted / measured - 1}."""

    workload: str
    corunners: tuple[str, ...]
    solo_seconds: float
    measured_seconds: float
    errors: dict[str, float]


def evaluate_fold(
    traces: Traces, fold: Fold, predict: Callable[[Runs, Colocations], np.ndarray], seed: int
) -> list[Tested]:
    """Test a method and the rules on one fold.

    predict: from runs to learn from and what is asked to seconds.
    """
    import jostle
    from jostle.learn.learners.counters import traced_runs

    runs = traced_runs(traces, set(traces.run_ids) - fold.train)
    asked = list(fold.test)
    if not asked:
        raise NotEnoughRuns("no test run has a runtime", fix="Trace programs that end.")
    about = jostle.Colocations.from_columns(
        workload=[one[0] for one in asked],
        platform=[one[1] for one in asked],
        corunners=[list(one[2]) for one in asked],
    )
    alone: dict[str, Any] = {}
    for trace in traces:
        if trace.solo:
            alone.setdefault(trace.workload, []).append(trace.runtime_seconds)
    alone = {name: float(np.median(each)) for name, each in alone.items()}
    solo = np.array([alone[one[0]] for one in asked])
    answers = {"alignment": predict(runs, about)} | _by_rules(runs, asked, alone)
    probed = _by_probes(traces, runs, about, seed)
    answers |= {} if probed is None else {"probes": probed}
    truth = [float(np.median([t.runtime_seconds for t in fold.test[one]])) for one in asked]
    return [
        Tested(
            one[0],
            one[2],
            float(solo[at]),
            truth[at],
            {name: float(each[at] / truth[at] - 1) for name, each in answers.items()},
        )
        for at, one in enumerate(asked)
    ]


def by_method(method: Alignment, traces: Traces, seed: int) -> Callable[..., np.ndarray]:
    """Return what `evaluate_fold` takes, of a method."""
    from jostle.learn import Data, learn

    def predict(runs: Runs, about: Colocations) -> np.ndarray:
        return learn(method, Data(runs, traces=traces), seed=seed).predict(about)

    return predict


def _by_rules(
    runs: Runs, asked: Sequence[tuple[str, str, Collection[str]]], alone: dict[str, float]
) -> dict[str, np.ndarray]:
    """Answer by rules; the additive one by ridge, effects of unknown names being none."""
    learned = [runs.colocations.row(n) for n in range(len(runs))]
    slow = runs.runtime_seconds / np.array([alone[one[0]] for one in learned])
    place = {name: n for n, name in enumerate(sorted({n for w, _, o in learned for n in (w, *o)}))}

    def design(rows: Sequence[tuple[str, str, Collection[str]]]) -> np.ndarray:
        table = np.zeros((len(rows), 2 * len(place)))
        for row, (workload, _, corunners) in enumerate(rows):
            if workload in place:
                table[row, place[workload]] = 1.0
            for other in corunners:
                if other in place:
                    table[row, len(place) + place[other]] += 1.0 / len(corunners)
        return table

    x, y = design(learned), np.log(slow)
    gram = x.T @ x + SHRINKAGE * np.eye(x.shape[1])
    effects = np.linalg.solve(gram, x.T @ (y - y.mean()))
    solo = np.array([alone[one[0]] for one in asked])
    return {
        "no interference": solo,
        "mean slowdown": solo * slow.mean(),
        "median slowdown": solo * np.median(slow),
        "additive effects": solo * np.exp(y.mean() + design(asked) @ effects),
    }


def _by_probes(traces: Traces, runs: Runs, about: Colocations, seed: int) -> np.ndarray | None:
    """Answer by jostle.Probes from runs alone and beside stressors, None where there are none."""
    import jostle
    from jostle.data import Runs
    from jostle.learn import learn
    from jostle.learn.learners.counters import is_stressor, probe_runs, traced_runs

    beside = probe_runs(traces, ("probe-*",))
    if beside is None:
        return None
    left_out = {t.run_id for t in traces if t.corunners or is_stressor(t.workload)}
    solo = traced_runs(traces, left_out)
    return learn(jostle.Probes(), Runs.concatenate([runs, solo, beside]), seed=seed).predict(about)


def errors_of(tested: Sequence[Tested]) -> Table:
    """Make a table of mean errors, with intervals of 95% over the programs that are targets, drawn again and
    again (Efron's bootstrap), and of how much closer the counters are on the same runs."""
    names = list(tested[0].errors)
    error = np.abs([[one.errors[name] for name in names] for one in tested])
    _, program = np.unique([one.workload for one in tested], return_inverse=True)
    number = int(program.max()) + 1
    times = np.random.default_rng(0).multinomial(number, np.full(number, 1 / number), DRAWS)
    weight = times[:, program]
    drawn = weight @ error / weight.sum(axis=1, keepdims=True)

    def interval(draws: np.ndarray) -> str:
        low, high = np.quantile(100 * draws, [0.025, 0.975])
        return f"[{low:.2f}, {high:.2f}]"

    rows = []
    for k, name in enumerate(names):
        closer = f"{percent(error[:, k].mean() - error[:, 0].mean(), 2)} " if k else "–"
        closer += interval(drawn[:, k] - drawn[:, 0]) if k else ""
        mean, most = (percent(float(one), 2) for one in (error[:, k].mean(), error[:, k].max()))
        rows.append([name, mean, interval(drawn[:, k]), most, closer])
    columns = ("", "run time, mean", "95%", "max", "alignment is closer by [95%]")
    return Table(columns, rows)
