"""From traces to a fitted model: solo counters, rows, choice of counters, learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.alignment._fitted import FittedAlignment, SlotPair
from jostle.alignment._settings import AlignmentSettings
from jostle.alignment.learning._blend import Blend, fit_blend
from jostle.alignment.learning._core import CoreRuns, probe_runs
from jostle.alignment.learning._learn import Learner, fit_learner
from jostle.alignment.learning._mixture import probe_counters, require_probes
from jostle.alignment.learning._rows import AlignedRows
from jostle.alignment.learning._select import CUTS, CounterSelection, select_counters
from jostle.alignment.learning._windows import aligned_rows, is_looped, traced_windows
from jostle.alignment.solo._index import (
    UNSTEADY,
    SoloIndex,
    sampling_period,
    unsteady_workloads,
)
from jostle.alignment.solo._offered import offered_counters
from jostle.alignment.solo._probed import with_probes
from jostle.alignment.solo._quiet import equal_repeats
from jostle.errors import NotEnoughRuns
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


def fit(
    settings: AlignmentSettings,
    whole: Traces,
    prepared: Prepared,
    seed: int,
    progress: Progress | None,
) -> FittedAlignment:
    """See Alignment.fit. whole: the traces with those beside stressors."""
    report = progress or no_progress
    # Only ridge chooses by what was kept to choose by; the others learn from it as well.
    runs = prepared.in_memory if settings.learner == "ridge" else prepared.together()
    traces = with_probes(whole, settings.stressors)
    offered, notes = offered_counters(traces, settings.counters)
    probes = probe_counters(offered)
    if settings.learner == "mixture":
        require_probes(offered)
    if settings.learner == "auto" and settings.counters is None and not probes:
        notes.append(NO_PROBES)
    repeats = equal_repeats(traces)
    period = settings.period_seconds or sampling_period(traces)
    solos = SoloIndex.from_traces(traces, offered, period, repeats=repeats)
    report(1, 4, np.nan)
    known = set(traces.run_ids)
    windows = traced_windows(traces, known.intersection(_ids(runs)))
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

    def rows_of(some: dict[str, list[Trace]], leave_out: Sequence[str] = ()) -> AlignedRows:
        how = {"loop": loop, "leave_out": leave_out, "repeats": repeats}
        return aligned_rows(some, solos, settings.alignment, **how)

    rows = rows_of(windows, unsteady)
    report(2, 4, np.nan)
    selection: CounterSelection | None = None
    chosen = offered
    if settings.counters is None and settings.learner != "mixture":
        watched = traced_windows(traces, known.intersection(_ids(prepared.validation)))
        held_out = {name: watched[name] for name in watched if name not in windows}
        validation = rows_of(held_out) if held_out else None
        selection = _selected(settings, rows, validation, seed)
        chosen = selection.chosen
    report(3, 4, np.nan)
    models: dict[SlotPair | None, Learner | Blend]
    if settings.learner == "auto":
        has_phases = rows.inside_share >= LEAST_INSIDE
        offers = {"phases": chosen} if has_phases else {}
        offers |= {"mixture": probes} if probes else {}
        core = CoreRuns(solos, probe_runs(whole, settings.stressors), seed)
        blend, counters, shares = fit_blend(rows, offers, core.fit, seed)
        notes.append(f"weights by workloads left out: {shares}")
        models = {None: blend}
    else:
        counters = (probes or offered) if settings.learner == "mixture" else chosen
        models = _by_slots(settings, rows.with_counters(counters), seed)
    if selection is not None and selection.chosen != counters:
        selection = replace(selection, chosen=counters)
    report(4, 4, np.nan)
    return FittedAlignment(
        SoloIndex(tuple(solo.narrowed(counters) for solo in solos.all)),
        models,
        RunCounts.of(runs),
        settings.alignment,
        loop,
        int(np.bincount([len(one) for one in windows.values()]).nonzero()[0].max()),
        tuple(notes),
        selection,
        repeats,
        settings.stressors,
    )


def _selected(
    settings: AlignmentSettings, rows: AlignedRows, validation: AlignedRows | None, seed: int
) -> CounterSelection:
    """Of several cuts of the tree the one of least error; a network tells by itself what matters, and is
    given the first that the finest cut keeps apart."""
    most = settings.most_counters
    cuts = CUTS if settings.cut is None else (settings.cut,)
    if settings.learner in ("auto", "phases"):
        one = select_counters(rows, None, cut=cuts[-1], assess=False, seed=seed)
        return replace(one, chosen=one.ranked[:most])
    how = {"form": settings.form, "most": most, "seed": seed}
    tried = [select_counters(rows, validation, cut=cut, **how) for cut in cuts]
    return min(tried, key=lambda one: float(np.nanmin(one.errors)))


def _by_slots(
    settings: AlignmentSettings, rows: AlignedRows, seed: int
) -> dict[SlotPair | None, Learner | Blend]:
    """{ordered slots, or None for all: learned}."""

    def one(some: AlignedRows) -> Learner:
        how = {"form": settings.form, "strength": settings.strength}
        return fit_learner(some, settings.learner, seed=seed, **how)

    if settings.slots == "pooled":
        return {None: one(rows)}
    pairs = np.unique(np.stack([rows.slot, rows.other], axis=1), axis=0).tolist()
    return {(a, b): one(rows.take((rows.slot == a) & (rows.other == b))) for a, b in pairs}


def _ids(runs: Runs) -> list[str]:
    return runs.table.column("run_id").to_pylist()
