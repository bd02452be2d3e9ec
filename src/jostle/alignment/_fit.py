"""From traces to a fitted model: solo counters, rows, choice of counters, learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.alignment._fitted import FittedAlignment, SlotPair
from jostle.alignment._settings import AUTO, AlignmentSettings
from jostle.alignment.learning._kinds import CANDIDATES, LearnerKind
from jostle.alignment.learning._learn import Learned, choose, fit_learner
from jostle.alignment.learning._rows import AlignedRows
from jostle.alignment.learning._select import CUTS, CounterSelection, select_counters
from jostle.alignment.learning._windows import aligned_rows, traced_windows
from jostle.alignment.solo._index import UNSTEADY, SoloIndex, unsteady_workloads
from jostle.alignment.solo._offered import offered_counters
from jostle.errors import NotEnoughRuns
from jostle.methods import Prepared, RunCounts
from jostle.progress import Progress, no_progress

if TYPE_CHECKING:
    from jostle.runs import Runs
    from jostle.traces import Trace, Traces

MOST_SLOTS = 8  # that are told apart as features


def fit(
    settings: AlignmentSettings,
    traces: Traces,
    prepared: Prepared,
    seed: int,
    progress: Progress | None,
) -> FittedAlignment:
    """See Alignment.fit."""
    report = progress or no_progress
    runs = prepared.in_memory
    quiet = settings.repeats == "quiet"
    offered, notes = offered_counters(traces, settings.counters)
    solos = SoloIndex.from_traces(traces, offered, settings.period_seconds, quiet=quiet)
    report(1, 4, np.nan)
    known = set(traces.run_ids)
    windows = traced_windows(traces, known.intersection(_ids(runs)))
    if not windows:
        raise NotEnoughRuns(
            "none of the runs to learn from was traced beside others",
            fix="Trace windows of several workloads (jostle trace), each with one window_id.",
        )
    unsteady = unsteady_workloads(traces, solos) if quiet else ()
    if unsteady:
        notes.append(
            f"not learned from, except as co-runners, because their usual run alone takes over "
            f"{UNSTEADY - 1:.0%} longer than their quiet one: {', '.join(unsteady)}"
        )

    def rows_of(some: dict[str, list[Trace]], leave_out: Sequence[str] = ()) -> AlignedRows:
        loop = settings.corunners == "loop"
        return aligned_rows(
            some, solos, settings.alignment, loop=loop, quiet=quiet, leave_out=leave_out
        )

    rows = rows_of(windows, unsteady)
    report(2, 4, np.nan)
    selection: CounterSelection | None = None
    tried: list[CounterSelection] = []
    choices = [offered]
    if settings.counters is None:
        watched = traced_windows(traces, known.intersection(_ids(prepared.validation)))
        held_out = {name: watched[name] for name in watched if name not in windows}
        tried = _selections(settings, rows, rows_of(held_out) if held_out else None, seed)
        selection = min(tried, key=lambda one: float(np.nanmin(one.errors)))
        # A network may tell by itself what matters: it is also offered all that the finest cut keeps apart.
        choices = [selection.chosen, tried[-1].ranked[: settings.most_counters]]
    report(3, 4, np.nan)
    kind, counters = choose(rows, _offers(settings, choices), seed)
    if settings.learner == AUTO:
        notes.append(f"the learner that errs least on workloads left out is {kind.learner}")
    if selection is not None and counters != selection.chosen:
        selection = replace(tried[-1], chosen=counters)
    models, slots = _by_slots(settings, kind, rows.with_counters(counters), seed)
    report(4, 4, np.nan)
    return FittedAlignment(
        SoloIndex([solo.narrowed(counters) for solo in solos.all]),
        models,
        RunCounts.of(runs),
        slots,
        settings.alignment,
        settings.corunners,
        tuple(notes),
        selection,
    )


def _selections(
    settings: AlignmentSettings, rows: AlignedRows, validation: AlignedRows | None, seed: int
) -> list[CounterSelection]:
    """One per cut of the tree, the coarsest first."""
    kind = settings.kind("ridge")
    # For a network, the form that is nearest to it and quick to fit.
    kind = LearnerKind() if kind.is_network else replace(kind, learner="ridge")
    cuts = CUTS if settings.cut is None else (settings.cut,)
    most = settings.most_counters
    return [
        select_counters(rows, validation, cut=cut, kind=kind, most=most, seed=seed) for cut in cuts
    ]


def _offers(
    settings: AlignmentSettings, choices: Sequence[tuple[str, ...]]
) -> list[tuple[LearnerKind, tuple[str, ...]]]:
    """What is chosen among: a weighted sum only of the first choice of counters, a network of any."""
    kinds = CANDIDATES if settings.learner == AUTO else (settings.kind(),)
    return [
        (kind, counters)
        for kind in kinds
        for counters in (dict.fromkeys(choices) if kind.is_network else choices[:1])
    ]


def _by_slots(
    settings: AlignmentSettings, kind: LearnerKind, rows: AlignedRows, seed: int
) -> tuple[dict[SlotPair | None, Learned], tuple[int, ...]]:
    """({ordered slots, or None for all: learned}, slots that are told apart as features)."""

    def one(some: AlignedRows) -> Learned:
        return fit_learner(some, kind, strength=settings.strength, seed=seed)

    if settings.slots == "pair":
        pairs = np.unique(np.stack([rows.slot, rows.other], axis=1), axis=0).tolist()
        return {(a, b): one(rows.take((rows.slot == a) & (rows.other == b))) for a, b in pairs}, ()
    slots = tuple(np.unique(rows.slot).tolist())
    features = slots[1:] if len(slots) <= MOST_SLOTS else ()
    return {None: one(rows.with_slots(features))}, features


def _ids(runs: Runs) -> list[str]:
    return runs.table.column("run_id").to_pylist()
