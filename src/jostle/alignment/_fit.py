"""From traces to a fitted model: solo counters, rows, choice of counters, learners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle.alignment._fitted import FittedAlignment, SlotPair
from jostle.alignment._settings import AUTO, AlignmentSettings
from jostle.alignment.learning._blend import Learned, Offer, fit_blend, worth_weighing
from jostle.alignment.learning._kinds import CANDIDATES, MIXTURE, LearnerKind
from jostle.alignment.learning._known import KnownPrograms, learn_known
from jostle.alignment.learning._learn import (
    MOST_ROWS,
    at_edge,
    fit_learner,
    left_out_error,
)
from jostle.alignment.learning._linear import LinearModel
from jostle.alignment.learning._mixture import probe_counters, require_probes
from jostle.alignment.learning._rows import AlignedRows
from jostle.alignment.learning._select import CUTS, CounterSelection, select_counters
from jostle.alignment.learning._windows import aligned_rows, traced_windows
from jostle.alignment.solo._index import (
    UNSTEADY,
    SoloIndex,
    sampling_period,
    unsteady_workloads,
)
from jostle.alignment.solo._offered import offered_counters
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
    if settings.learner == MIXTURE.learner:
        require_probes(offered)
    if settings.learner == AUTO and settings.counters is None and not probe_counters(offered):
        notes.append(NO_PROBES)
    repeats = equal_repeats(traces) if quiet else None
    period = settings.period_seconds or sampling_period(traces, quiet=quiet)
    solos = SoloIndex.from_traces(traces, offered, period, quiet=quiet, repeats=repeats)
    report(1, 4, np.nan)
    known = set(traces.run_ids)
    windows = traced_windows(traces, known.intersection(_ids(runs)))
    if not windows:
        raise NotEnoughRuns(
            "none of the runs to learn from was traced beside others",
            fix="Trace windows of several workloads (jostle trace), each with one window_id.",
        )
    unsteady = unsteady_workloads(traces, period) if quiet else ()
    if unsteady:
        notes.append(
            f"not learned from, except as co-runners, because their usual run alone takes over "
            f"{UNSTEADY - 1:.0%} longer than their quiet one: {', '.join(unsteady)}"
        )

    def rows_of(some: dict[str, list[Trace]], leave_out: Sequence[str] = ()) -> AlignedRows:
        loop = settings.corunners == "loop"
        return aligned_rows(
            some,
            solos,
            settings.alignment,
            loop=loop,
            quiet=quiet,
            leave_out=leave_out,
            repeats=repeats,
        )

    rows = rows_of(windows, unsteady)
    report(2, 4, np.nan)
    selection: CounterSelection | None = None
    tried: list[CounterSelection] = []
    choices = [offered]
    if settings.counters is None and settings.learner != MIXTURE.learner:
        watched = traced_windows(traces, known.intersection(_ids(prepared.validation)))
        held_out = {name: watched[name] for name in watched if name not in windows}
        tried = _selections(settings, rows, rows_of(held_out) if held_out else None, seed)
        selection = min(tried, key=lambda one: float(np.nanmin(one.errors)))
        # A network may tell by itself what matters: it is also offered all that the finest cut keeps apart.
        choices = [selection.chosen, tried[-1].ranked[: settings.most_counters]]
    report(3, 4, np.nan)
    learned = _learned(settings, rows, _offers(settings, choices, offered), seed)
    notes += learned.notes
    if selection is not None and learned.counters != selection.chosen:
        selection = replace(tried[-1], chosen=learned.counters)
    report(4, 4, np.nan)
    return FittedAlignment(
        SoloIndex(tuple(solo.narrowed(learned.counters) for solo in solos.all)),
        learned.models,
        RunCounts.of(runs),
        learned.slots,
        settings.alignment,
        settings.corunners,
        tuple(notes),
        selection,
        learned.known,
        repeats,
        settings.stressors,
    )


@dataclass(frozen=True)
class _LearnedModels:
    """models: {ordered slots, or None for all: learned}. slots: that are told apart as features."""

    counters: tuple[str, ...]
    models: dict[SlotPair | None, Learned]
    slots: tuple[int, ...]
    known: KnownPrograms
    notes: list[str]


def _learned(
    settings: AlignmentSettings, rows: AlignedRows, offers: list[Offer], seed: int
) -> _LearnedModels:
    """By default a blend of all that is offered; a learner asked for by name is alone."""
    if settings.learner != AUTO or settings.slots != "pooled":
        kind, counters = _closest(rows, offers, seed)
        models, slots = _by_slots(settings, kind, rows.with_counters(counters), seed)
        notes = _edges([(kind, learned) for learned in models.values()])
        return _LearnedModels(counters, models, slots, KnownPrograms(), notes)
    slots = _slots(rows)
    offers = worth_weighing(offers, rows)
    blend, counters, weights, again = fit_blend(
        rows, offers, seed, settings.strength, lambda some: some.with_slots(slots)
    )
    shares = [f"{name} {weight:.0%}" for name, weight in weights.items() if weight > 0]
    rest = 1 - sum(weights.values())
    if rest > 0.005:
        shares.append(f"no interference {rest:.0%}")
    notes = [f"weights by workloads left out: {', '.join(shares)}"]
    kinds = {kind.learner: kind for kind, _ in offers}
    linear = [learner for _, learner, _ in blend.parts if isinstance(learner, LinearModel)]
    notes += _edges([(kinds["ridge"], learner) for learner in linear])
    wide = rows.with_counters(counters).with_slots(slots)
    known = learn_known(wide, blend, lambda some: again(rows.take(some)), seed)
    return _LearnedModels(counters, {None: blend}, slots, known, notes)


def _edges(learned: Sequence[tuple[LearnerKind, Learned]]) -> list[str]:
    return [
        f"the strength of {kind.learner} came out at the end of those tried, {one.strength:g}: "
        f"one further out may be closer (--strength)"
        for kind, one in learned
        if isinstance(one, LinearModel) and at_edge(one, kind.learner)
    ]


def _closest(rows: AlignedRows, offers: list[Offer], seed: int) -> Offer:
    """The offer that errs least on the run times of workloads that it did not learn from."""
    if len(offers) == 1 or len(np.unique(rows.group)) < 2:
        return offers[0]
    errors = [
        left_out_error(
            rows.thinned(MOST_ROWS).with_counters(counters),
            seed,
            lambda some, kind=kind: fit_learner(some, kind, strength=None, seed=seed),
        )
        for kind, counters in offers
    ]
    return offers[int(np.argmin(errors))]


def _selections(
    settings: AlignmentSettings, rows: AlignedRows, validation: AlignedRows | None, seed: int
) -> list[CounterSelection]:
    """One per cut of the tree, the coarsest first."""
    kind = settings.kind("ridge")
    # For those that take the rates, the form that is nearest to it and quick to fit.
    kind = LearnerKind() if kind.takes_rates else replace(kind, learner="ridge")
    cuts = CUTS if settings.cut is None else (settings.cut,)
    most = settings.most_counters
    return [
        select_counters(rows, validation, cut=cut, kind=kind, most=most, seed=seed) for cut in cuts
    ]


def _offers(
    settings: AlignmentSettings, choices: Sequence[tuple[str, ...]], offered: Sequence[str]
) -> list[Offer]:
    """What there is: a weighted sum only of the first choice of counters, a network or trees of any, the
    mixture of those of probes, where there are some. offered: all counters."""
    kinds = CANDIDATES if settings.learner == AUTO else (settings.kind(),)
    offers = [
        (kind, counters)
        for kind in kinds
        for counters in (dict.fromkeys(choices) if kind.takes_rates else choices[:1])
        if kind != MIXTURE
    ]
    probes = probe_counters(offered)
    if MIXTURE in kinds and (probes or not offers):
        offers.append((MIXTURE, probes or tuple(offered)))
    return offers


def _by_slots(
    settings: AlignmentSettings, kind: LearnerKind, rows: AlignedRows, seed: int
) -> tuple[dict[SlotPair | None, Learned], tuple[int, ...]]:
    """({ordered slots, or None for all: learned}, slots that are told apart as features)."""

    def one(some: AlignedRows) -> Learned:
        return fit_learner(some, kind, strength=settings.strength, seed=seed)

    if settings.slots == "pair":
        pairs = np.unique(np.stack([rows.slot, rows.other], axis=1), axis=0).tolist()
        return {(a, b): one(rows.take((rows.slot == a) & (rows.other == b))) for a, b in pairs}, ()
    slots = _slots(rows)
    return {None: one(rows.with_slots(slots))}, slots


def _slots(rows: AlignedRows) -> tuple[int, ...]:
    """That are told apart as features."""
    slots = tuple(np.unique(rows.slot).tolist())
    return slots[1:] if len(slots) <= MOST_SLOTS else ()


def _ids(runs: Runs) -> list[str]:
    return runs.table.column("run_id").to_pylist()
