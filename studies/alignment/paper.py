"""The paper's tables by its own learner and algorithm (Saeed et al., MLCAD 2021, Sec. IV).

Two applications are held out of each fold and learned from in none of its windows. Beside the algorithm as
printed stands the same with its slips mended. On cores that are alike one model serves all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress, no_progress
from jostle._base.report import Table, percent
from jostle.learn import Data
from jostle.learn.learners.counters import (
    Alignment,
    Slowdown,
    ground_of,
    roll,
    traced_runs,
    traced_windows,
    traces_of,
    with_instructions,
)
from studies.alignment.evaluation import Fold, folds_of_programs
from studies.alignment.printed import printed_rows, roll_printed
from studies.alignment.ridge import (
    LEARNERS,
    LinearModel,
    RankedCounters,
    fit_linear,
    per_sample_error,
    rank_counters,
)

if TYPE_CHECKING:
    from jostle.data import Trace, Traces

HELD = 2  # applications of a test set
PAPERS_FEATURES = (128, 102, 71, 28)  # of both cores (Sec. IV-A)
WAYS: dict[str, dict[str, Any]] = {"as printed": {"lay": printed_rows}, "mended": {}}


def tables_of(
    traces: Traces, *, folds: int | None = None, seed: int = 0, progress: Progress = no_progress
) -> list[Table]:
    """Make tables II, III and IV, the selection of features, and Figure 2 as a table.

    folds: at most so many test sets of two applications. Raises UsageError, NotEnoughRuns.
    """
    every = folds_of_programs(traces, HELD, seed)[:folds]
    results = []
    for number, fold in enumerate(every):
        results.append(_run_times(traces, fold))
        progress(number + 1, len(every), float("nan"))
    selection = results[0][1]
    return [
        _alone(traces),
        _selected(selection),
        _features(selection),
        Table(
            ("held out", "workload", "beside", "alone (ms)", "beside (ms)", *WAYS),
            [row for rows, *_ in results for row in rows],
            title="Table IV: run times measured and predicted by ridge linear regression",
        ),
        Table(
            ("learner", *WAYS),
            [
                [name, *(percent(each[name], 2) for each in results[0][2].values())]
                for name in LEARNERS
            ],
            title="Figure 2: mean absolute error per sample",
        ),
    ]


def _run_times(
    traces: Traces, fold: Fold
) -> tuple[list[list[str]], RankedCounters, dict[str, dict[str, float]]]:
    """Return (rows of Table IV, how counters were ranked, {way: {learner: error per sample}})."""
    settings = Alignment(corunners="once")
    traces = traces_of(settings, Data(traces=with_instructions(traces)))
    learned, tested = (
        traced_runs(traces, set(traces.run_ids) - ids)
        for ids in (fold.train, {t.run_id for runs in fold.test.values() for t in runs})
    )
    predicted: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    ranked, alone_of = None, ground_of(settings, traces, learned).solos.of
    for way, how in WAYS.items():
        ground = ground_of(settings, traces, learned, **how)
        ranked = ranked or rank_counters(ground.rows)
        names = ranked.chosen
        rows = ground.rows.with_counters(names)
        test = ground_of(settings, traces, tested, **how).rows.with_counters(names)
        models = {learner: fit_linear(rows, learner) for learner in LEARNERS}
        errors[way] = {name: per_sample_error(model, test) for name, model in models.items()}
        predicted[way] = {}
        slowdown = _of_any_place(models["ridge"])
        for window in traced_windows(
            traces, {t.run_id for ts in fold.test.values() for t in ts}
        ).values():
            solos = [ground.solos.of(t.workload, t.platform).narrowed(names) for t in window]
            ends = roll_printed(solos, slowdown) if how else roll(solos, slowdown)
            predicted[way] |= {t.run_id: float(end) for t, end in zip(window, ends, strict=True)}
    assert ranked is not None  # there are two ways
    cells = []
    for (workload, platform, corunners), runs in fold.test.items():
        measured, alone = runs[0].runtime_seconds, alone_of(workload, platform)
        row = [", ".join(fold.held_out), workload, " + ".join(corunners)]
        row += [f"{1e3 * alone.duration_seconds:.1f}", f"{1e3 * measured:.1f}"]
        for way in WAYS:
            found = predicted[way][runs[0].run_id]
            row.append(f"{1e3 * found:.1f} ({100 * (found / measured - 1):+.1f}%)")
        cells.append(row)
    return cells, ranked, errors


def _of_any_place(model: LinearModel) -> Slowdown:
    return lambda _, own, others: model.slowdown(own, others)


def _alone(traces: Traces) -> Table:
    """Make Table II: each application alone, the repeats together."""
    groups: dict[str, list[Trace]] = {}
    for one in traces:
        if one.solo:
            groups.setdefault(one.workload, []).append(one)
    rows = []
    for name, runs in sorted(groups.items()):
        seconds = sum(float(one.interval_seconds.sum()) for one in runs)
        done, cycles, read, written = (
            _total(runs, counter)
            for counter in ("instructions", "cycles", "dram_read_bytes", "dram_write_bytes")
        )
        row = [f"{done / cycles:.2f}", f"{(read + written) / seconds / 1e6:.0f}"]
        rows.append([name, *row, f"{done / seconds / 1e9:.2f}"])
    columns = ("application", "avg. IPC", "avg. MB/s", "10^9 instructions/s")
    return Table(columns, rows, "Table II: applications alone")


def _total(runs: Sequence[Trace], counter: str) -> float:
    """Return the total of all runs, NaN where it was not counted."""
    if any(counter not in one.counters for one in runs):
        return float("nan")
    return sum(float(np.nansum(one[counter])) for one in runs)


def _selected(selection: RankedCounters) -> Table:
    """Make a table of how many features of both cores each step leaves, beside the paper's."""
    left = (selection.offered, selection.heard, len(selection.ranked), len(selection.chosen))
    steps = (
        "counted",
        "not always zero",
        "one of each cluster (cut at 0.4)",
        "prefix of the least error",
    )
    rows = [
        [step, str(2 * number), str(papers)]
        for step, number, papers in zip(steps, left, PAPERS_FEATURES, strict=True)
    ]
    columns = ("features of both cores", "here", "paper")
    return Table(columns, rows, "Selection of features (Sec. IV-A)")


def _features(selection: RankedCounters) -> Table:
    """Make Table III, with the error per sample of the prefix that ends with each feature."""
    pairs = zip(selection.chosen, selection.errors, strict=False)
    rows = [[name, percent(error, 2)] for name, error in pairs]
    columns = ("feature of each core", "error up to it")
    return Table(columns, rows, "Table III: features selected for each core")
