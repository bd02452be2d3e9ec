"""Saeed et al.: Learning based memory interference prediction for co-running applications on multi-cores.

MLCAD 2021, Sec. IV. Two applications are held out of each fold and learned from in none of its windows. Its
traces were never published: programs of a simulator stand for them. Beside the algorithm as printed, by the
paper's learner, stands the same with its slips mended. On cores that are alike one model serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.progress import Progress
from jostle._base.report import Table, percent
from jostle.data import Traces
from jostle.learn import Data, Ensemble, learn
from jostle.learn.learners.counters import (
    Alignment,
    Slowdown,
    cell_table_of,
    roll,
    traced_runs,
    traced_windows,
    traces_of,
    with_instructions,
)
from studies.alignment.evaluation import Fold, by_method, evaluate_fold, folds_of_programs
from studies.papers.printed import printed_rows, roll_printed
from studies.papers.ridge import (
    LEARNERS,
    LinearModel,
    RankedCounters,
    fit_linear,
    per_sample_error,
    rank_counters,
)
from studies.worlds.memory_laws import LAWS
from studies.worlds.traced_programs import draw_programs, protocol_sets, simulate_campaign

if TYPE_CHECKING:
    from jostle.data import Trace

HELD = 2  # applications of a test set
PAPERS_FEATURES = (128, 102, 71, 28)  # of both cores (Sec. IV-A)
WAYS: dict[str, dict[str, Any]] = {"as printed": {"lay": printed_rows}, "mended": {}}


PROGRAMS, WINDOWS, SECONDS, LONGEST_SECONDS = 12, 100, 0.15, 0.04  # simulated
DRAWS = 3  # of programs, for what is told of simple rules
METHOD = Alignment(corunners="once")
PRINTED = {  # Table IV: {applications: ms (alone, beside, predicted) of each}
    "disparity + tracking": ((4666, 5000, 4818), (4878, 5000, 4994)),
    "multicut + mser": ((4912, 5000, 4981), (4898, 5000, 4943)),
    "stitch + sift": ((4952, 5000, 4986), (4985, 5000, 4997)),
}


def tables(seed: int, progress: Progress) -> list[Table]:
    """Make tables II, III and IV, the selection of features, and Figure 2 as a table."""
    first, *more = (simulated(PROGRAMS, WINDOWS, SECONDS, seed + n) for n in range(DRAWS))
    return tables_of(first, seed, progress, more)


def simulated(programs: int, windows: int, seconds: float, seed: int) -> Traces:
    """Draw programs of phases and trace them alone and in pairs on cores that share memory."""
    law = LAWS["simulator"]
    drawn = draw_programs(
        programs, seed, seconds=seconds, longest_seconds=LONGEST_SECONDS, machine=law
    )
    sets = protocol_sets([one.name for one in drawn], windows, HELD, seed)
    return simulate_campaign(drawn, law, sets=sets)


def tables_of(
    traces: Traces, seed: int, progress: Progress, more: Sequence[Traces] = ()
) -> list[Table]:
    """Make the tables of some traces. more: of further draws of programs, as a dozen run times say little.

    Raises UsageError, NotEnoughRuns.
    """
    every = folds_of_programs(traces, HELD, seed)
    results, errors = [], dict[str, list[float]]()
    for number, fold in enumerate(every):
        progress(number, len(every), float("nan"))
        results.append(_run_times(traces, fold))
        for way, each in results[-1][3].items():
            errors.setdefault(f"{way}, ridge", []).extend(each)
        for name, answered in {
            "alignment": by_method(METHOD, traces, seed),
            "default": by_default(traces, fold, seed),
        }.items():
            for one in evaluate_fold(traces, fold, answered, seed):
                for who, error in one.errors.items():
                    if who == "alignment":
                        errors.setdefault(name, []).append(error)
                    elif name == "default":
                        errors.setdefault(who, []).append(error)
    draws = [{who: float(np.abs(each).mean()) for who, each in errors.items()}]
    for number, other in enumerate(more, seed + 1):
        tested = [
            one.errors
            for fold in folds_of_programs(other, HELD, number)
            for one in evaluate_fold(other, fold, by_method(METHOD, other, number), number)
        ]
        draws.append({who: float(np.mean([abs(e[who]) for e in tested])) for who in tested[0]})
    selection = results[0][1]
    printed = [one for pair in PRINTED.values() for one in pair]
    summary = {
        "printed": [found / beside - 1 for _, beside, found in printed],
        "printed, no interference": [alone / beside - 1 for alone, beside, _ in printed],
        **errors,
    }
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
        Table(
            ("run time", "mean error", "largest", f"mean of {len(draws)} draws"),
            [
                [
                    who,
                    *(percent(float(one), 2) for one in (np.abs(each).mean(), np.abs(each).max())),
                    percent(float(np.mean([draw.get(who, np.nan) for draw in draws])), 2),
                ]
                for who, each in summary.items()
            ],
            title="Table IV in short, and others on the same programs",
        ),
    ]


def by_default(traces: Traces, fold: Fold, seed: int) -> Callable[..., np.ndarray]:
    """Return what `evaluate_fold` takes, of the default: it knows the runs alone and those learned from."""
    known = Traces.from_traces([t for t in traces if t.solo or t.run_id in fold.train])
    data = Data(traced_runs(known, set()), traces=known)
    return lambda _, about: learn(Ensemble(), data, seed=seed).predict(about)


def _run_times(
    traces: Traces, fold: Fold
) -> tuple[list[list[str]], RankedCounters, dict[str, dict[str, float]], dict[str, list[float]]]:
    """Return (rows of Table IV, how counters were ranked, {way: {learner: error per sample}}, {way: relative
    errors of run times})."""
    settings = Alignment(corunners="once")
    traces = traces_of(settings, Data(traces=with_instructions(traces)))
    learned, tested = (
        traced_runs(traces, set(traces.run_ids) - ids)
        for ids in (fold.train, {t.run_id for runs in fold.test.values() for t in runs})
    )
    predicted: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    ranked, alone_of = None, cell_table_of(settings, traces, learned).solos.of
    for way, how in WAYS.items():
        cell_table = cell_table_of(settings, traces, learned, **how)
        ranked = ranked or rank_counters(cell_table.rows)
        names = ranked.chosen
        rows = cell_table.rows.with_counters(names)
        test = cell_table_of(settings, traces, tested, **how).rows.with_counters(names)
        models = {learner: fit_linear(rows, learner) for learner in LEARNERS}
        errors[way] = {name: per_sample_error(model, test) for name, model in models.items()}
        predicted[way] = {}
        slowdown = _of_any_place(models["ridge"])
        for window in traced_windows(
            traces, {t.run_id for ts in fold.test.values() for t in ts}
        ).values():
            solos = [cell_table.solos.of(t.workload, t.platform).narrowed(names) for t in window]
            ends = roll_printed(solos, slowdown) if how else roll(solos, slowdown)
            predicted[way] |= {t.run_id: float(end) for t, end in zip(window, ends, strict=True)}
    assert ranked is not None  # there are two ways
    cells, off = [], {way: list[float]() for way in WAYS}
    for (workload, platform, corunners), runs in fold.test.items():
        measured, alone = runs[0].runtime_seconds, alone_of(workload, platform)
        row = [", ".join(fold.held_out), workload, " + ".join(corunners)]
        row += [f"{1e3 * alone.duration_seconds:.1f}", f"{1e3 * measured:.1f}"]
        for way in WAYS:
            found = predicted[way][runs[0].run_id]
            row.append(f"{1e3 * found:.1f} ({100 * (found / measured - 1):+.1f}%)")
            off[way].append(found / measured - 1)
        cells.append(row)
    return cells, ranked, errors, off


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
