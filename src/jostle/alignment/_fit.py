"""From traces to a fitted model: solo counters, rows, choice of counters, learners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.alignment._fitted import FittedAlignment
from jostle.alignment._settings import AlignmentSettings
from jostle.alignment.learning._blend import fit_blend
from jostle.alignment.learning._core import CoreRuns, probe_runs
from jostle.alignment.learning._learn import fit_learner
from jostle.alignment.learning._mixture import probe_counters
from jostle.alignment.learning._rows import AlignedRows
from jostle.alignment.learning._select import select_counters
from jostle.alignment.learning._windows import Lay, aligned_rows, is_looped, traced_windows
from jostle.alignment.solo._index import (
    UNSTEADY,
    SoloIndex,
    sampling_period,
    unsteady_workloads,
)
from jostle.alignment.solo._offered import offered_counters
from jostle.alignment.solo._probed import with_probes
from jostle.alignment.solo._quiet import equal_repeats
from jostle.errors import NotEnoughRuns, UsageError
from jostle.methods import Prepared, RunCounts
from jostle.progress import Progress, no_progress

if TYPE_CHECKING:
    from jostle.runs import Runs
    from jostle.traces import Trace, Traces

NO_PROBES = (
    "not all programs were traced beside stressors: what one counts alone says little of how it suffers; "
    "jostle trace --probes records that, at the cost of a window for each program and stressor"
)
LEAST_INSIDE = 0.5  # of the time alone, in periods inside one phase, for these to be learned from


@dataclass(frozen=True, eq=False)
class TracedGround:
    """What is learned from: solos and windows, periods laid over the runs alone, and what was left out."""

    solos: SoloIndex
    windows: dict[str, list[Trace]]
    rows: AlignedRows
    offered: tuple[str, ...]
    notes: tuple[str, ...]
    loop: bool
    repeats: int

    @property
    def most(self) -> int:
        """The most workloads of a window."""
        return int(np.bincount([len(one) for one in self.windows.values()]).nonzero()[0].max())


def ground_of(
    settings: AlignmentSettings, traces: Traces, runs: Runs, lay: Lay | None = None
) -> TracedGround:
    """Of the windows of these runs; traces: with what probes showed. lay: as in `aligned_rows`. Raises
    NotEnoughRuns where none was traced beside others."""
    offered, notes = offered_counters(traces, settings.counters)
    repeats = equal_repeats(traces)
    period = settings.period_seconds or sampling_period(traces)
    solos = SoloIndex.from_traces(traces, offered, period, repeats=repeats)
    ids = set(traces.run_ids).intersection(runs.table.column("run_id").to_pylist())
    windows = traced_windows(traces, ids)
    if not windows:
        raise NotEnoughRuns(
            "none of the runs to learn from was traced beside others",
            fix="Trace windows of several workloads (jostle trace), each with one window_id.",
        )
    unsteady = unsteady_workloads(traces, period)
    if unsteady:
        notes.append(
            f"not learned from, except as co-runners, because their usual run alone takes over "
            f"{UNSTEADY - 1:.0%} longer than their quiet one: {', '.join(unsteady)}"
        )
    loop = settings.corunners == "loop"
    if settings.corunners == "auto":
        loop = is_looped(windows, solos)
    how: dict[str, Any] = {} if lay is None else {"lay": lay}
    rows = aligned_rows(windows, solos, loop=loop, leave_out=unsteady, repeats=repeats, **how)
    return TracedGround(solos, windows, rows, offered, tuple(notes), loop, repeats)


def fit(
    settings: AlignmentSettings,
    whole: Traces,
    prepared: Prepared,
    seed: int,
    progress: Progress | None,
) -> FittedAlignment:
    """See Alignment.fit. whole: the traces with those beside stressors."""
    report, runs = progress or no_progress, prepared.together()
    ground = ground_of(settings, with_probes(whole, settings.stressors), runs)
    report(1, 3, np.nan)
    rows, notes, probes = ground.rows, list(ground.notes), probe_counters(ground.offered)
    if settings.learner == "mixture" and not probes:
        raise UsageError(
            "the mixture learns from probes, and not all programs were traced beside some",
            fix="Trace them beside probes (`probes` of jostle trace), or choose another learner.",
        )
    if settings.learner == "auto" and settings.counters is None and not probes:
        notes.append(NO_PROBES)
    chosen = ground.offered
    if settings.counters is None and settings.learner != "mixture":
        chosen = select_counters(rows, settings.most_counters)
    report(2, 3, np.nan)
    if settings.learner == "auto":
        has_phases = rows.inside_share >= LEAST_INSIDE
        offers = {"phases": chosen} if has_phases else {}
        offers |= {"mixture": probes} if probes else {}
        core = CoreRuns(ground.solos, probe_runs(whole, settings.stressors), seed)
        model, counters, shares = fit_blend(rows, offers, core.fit, seed)
        notes.append(f"weights by workloads left out: {shares}")
    else:
        counters = probes if settings.learner == "mixture" else chosen
        model = fit_learner(rows.with_counters(counters), settings.learner, seed=seed)
    report(3, 3, np.nan)
    return FittedAlignment(
        SoloIndex(tuple(solo.narrowed(counters) for solo in ground.solos.all)),
        model,
        RunCounts.of(runs),
        ground.loop,
        ground.most,
        tuple(notes),
        ground.repeats,
        settings.stressors,
    )
