"""Tables II, III and IV of the paper and its selection of features, from what was found here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jostle._base.report import Table, percent
from jostle.data import Trace, Traces
from studies.alignment.answers import Tested
from studies.alignment.paper.selection import CounterSelection

CYCLES = ("cycles", "perf_cycles", "cpu_cycles", "cpu-cycles")
BYTES = (
    ("dram_read_bytes", "dram_write_bytes"),
    ("loaded_bytes", "stored_bytes"),
)
PAPERS_FEATURES = (128, 102, 71, 28)  # of both cores (Sec. IV-A)
STEPS = (
    "counted",
    "not always zero",
    "one of each cluster (cut at 0.4)",
    "the prefix of the least error",
)


def characteristics(traces: Traces) -> Table:
    """Table II: each application alone, the repeats together."""
    groups: dict[str, list[Trace]] = {}
    for one in traces:
        if one.solo:
            groups.setdefault(one.workload, []).append(one)
    counted = set.intersection(*(set(one.counters) for one in traces if one.solo))
    cycles = next((name for name in CYCLES if name in counted), None)
    moved = next((names for names in BYTES if counted.issuperset(names)), ())
    rows = []
    for name, runs in sorted(groups.items()):
        seconds = sum(float(one.interval_seconds.sum()) for one in runs)
        done = _total(runs, "instructions")
        ipc = f"{done / _total(runs, cycles):.2f}" if cycles else "–"
        rate = sum(_total(runs, each) for each in moved) / seconds / 1e6
        rows.append([name, ipc, f"{rate:.0f}" if moved else "–", f"{done / seconds / 1e9:.2f}"])
    what = " + ".join(moved) if moved else "not counted"
    columns = ["application", "avg. IPC", f"avg. MB/s ({what})", "10^9 instructions/s"]
    return Table(columns, rows, range(1, 4), title="Table II: applications alone")


def _total(runs: Sequence[Trace], counter: str) -> float:
    return sum(float(np.nansum(one[counter])) for one in runs)


def selected(selection: CounterSelection) -> Table:
    """How many features of both cores each step leaves, beside the paper's."""
    zero, kept = len(selection.zero), len(selection.kept)
    offered = len(selection.counters)
    left = (offered, offered - zero, kept, len(selection.chosen))
    rows = [
        [step, str(2 * number), str(papers)]
        for step, number, papers in zip(STEPS, left, PAPERS_FEATURES, strict=True)
    ]
    columns = ["features of both cores", "here", "paper"]
    return Table(columns, rows, (1, 2), title="Selection of features (Sec. IV-A)")


def features(selection: CounterSelection) -> Table:
    """Table III, with how much the error rises when a feature is shuffled."""
    rows = [[name, f"{selection.importance[name]:.4f}"] for name in selection.chosen]
    columns = ["feature of each core", "importance"]
    return Table(columns, rows, (1,), title="Table III: features selected for each core")


def run_times_of_pairs(pairs: Sequence[tuple[Sequence[str], Sequence[Tested]]]) -> Table:
    """Table IV. pairs: (training set, the two that were tested side by side), predictions as printed under
    the method's own name and with the slips mended as `repaired_`."""
    columns = ["training set", "core 1", "core 2"]
    columns += [f"{what} {core} (ms)" for what in ("alone", "beside") for core in (1, 2)]
    columns += [f"{how} {core} (ms)" for how in ("as printed", "repaired") for core in (1, 2)]
    rows = []
    for training, members in pairs:
        row = [", ".join(training), *(one.workload for one in members)]
        row += [f"{1e3 * one.solo_seconds:.1f}" for one in members]
        row += [f"{1e3 * one.measured_seconds:.1f}" for one in members]
        for name in ("", "repaired_"):
            for one in members:
                predicted = 1e3 * one.measured_seconds * (1 + one.errors[name])
                row.append(f"{predicted:.1f} ({100 * one.errors[name]:+.1f}%)")
        rows.append(row)
    title = "Table IV: run times measured and predicted by ridge linear regression"
    return Table(columns, rows, range(3, len(columns)), title=title)


def errors_per_sample(learners: dict[str, dict[int, float]], how: str) -> Table:
    """Figure 2 as a table: {learner: {core: mean absolute error over the mean}}."""
    cores = sorted({core for each in learners.values() for core in each})
    rows = [
        [name, *(percent(each.get(core, float("nan")), 2) for core in cores)]
        for name, each in learners.items()
    ]
    columns = ["learner", *(f"core {core + 1}" for core in cores)]
    title = f"Figure 2: mean absolute error per sample, {how}"
    return Table(columns, rows, range(1, len(columns)), title=title)
