"""From traces to a fitted model: profiles, rows, counters, learners."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.alignment._fitted import FittedAlignment, slot_columns
from jostle.alignment._settings import AUTO, Alignment, Progress
from jostle.alignment.learning._learn import CANDIDATES, Learned, choose, learn
from jostle.alignment.learning._network import Network
from jostle.alignment.learning._rows import Profiles, Rows, rows_of, windows_of
from jostle.alignment.learning._select import CUTS, Selection, select_counters
from jostle.alignment.solo._counters import INSTRUCTIONS, Profile
from jostle.alignment.solo._names import NOT_OF_THE_PROGRAM
from jostle.alignment.solo._quiet import quiet_profile
from jostle.errors import BadData, NotEnoughRuns
from jostle.traces import MARKS

if TYPE_CHECKING:
    from jostle.traces import Trace, Traces


UNSTEADY = 1.25


def fit(
    method: Alignment, runs: Any, validation: Any, seed: int, progress: Progress | None
) -> FittedAlignment:
    """See Alignment.fit."""
    said = progress or (lambda done, total, loss: None)
    traces = method.traces
    offered, notes = offered_counters(traces, method.counters)
    quiet = method.repeats == "quiet"
    profiles = solo_profiles(traces, offered, method.period_seconds, quiet=quiet)
    tries: list[Selection] = []
    said(1, 4, float("nan"))
    known = set(traces.run_ids)
    wanted = [run_id for run_id in _ids(runs) if run_id in known]
    windows = windows_of(traces, wanted)
    if not windows:
        raise NotEnoughRuns(
            "none of the runs to learn from was traced beside others",
            fix="Trace windows of several workloads (jostle trace), each with one window_id.",
        )
    loop = method.corunners == "loop"
    unsteady = unsteady_of(traces, profiles) if quiet else ()
    if unsteady:
        notes.append(
            f"not learned from as targets, because their usual run alone takes over "
            f"{UNSTEADY - 1:.0%} longer than their quiet one: {', '.join(unsteady)}"
        )
    rows = rows_of(windows, profiles, method.alignment, loop=loop, quiet=quiet, leave_out=unsteady)
    said(2, 4, float("nan"))
    selection: Selection | None = None
    chosen = wide = offered
    if method.counters is None:
        watched = windows_of(traces, [r for r in _ids(validation) if r in known])
        held = {k: v for k, v in watched.items() if k not in windows}
        checked = (
            rows_of(held, profiles, method.alignment, loop=loop, quiet=quiet) if held else None
        )
        tries = _selections(method, rows, checked, seed)
        selection = min(tries, key=lambda one: float(np.nanmin(one.errors)))
        chosen = selection.chosen
        # A network may tell by itself what matters: it is also offered all that the finest cut keeps apart.
        wide = tries[-1].ranked[: method.most_counters]
    said(3, 4, float("nan"))
    kinds = [method.resolved("ridge")] if method.learner != AUTO else list(CANDIDATES)
    offers = [
        (*kind, tuple(rows.counters.index(n) for n in names))
        for kind in kinds
        for names in ({chosen: 0, wide: 0} if kind[0] == "network" else (chosen,))
    ]
    *kind, columns = offers[choose(rows, offers, seed)]
    if method.learner == AUTO:
        notes.append(f"the learner that errs least on workloads left out is {kind[0]}")
    rows = rows.columns(columns)
    chosen = rows.counters
    if selection is not None and chosen != selection.chosen:
        selection = replace(tries[-1], chosen=chosen)
    models, slots = learn_slots(method, (kind[0], kind[1], kind[2]), rows, seed)
    said(4, 4, float("nan"))
    return FittedAlignment(
        [_narrowed(p, chosen) for p in profiles.all],
        models,
        slots,
        method.alignment,
        method.corunners,
        tuple(notes),
        selection,
    )


def _selections(method: Alignment, rows: Rows, checked: Rows | None, seed: int) -> list[Selection]:
    """One per cut of the tree, the coarsest first."""
    _, form, target = method.resolved("ridge")
    if form == "network":  # judged by the form that is nearest to it and quick to fit
        form, target = "interacting", "slowdown"
    cuts = CUTS if method.cut is None else (method.cut,)
    most = method.most_counters
    return [
        select_counters(rows, checked, cut=cut, form=form, target=target, most=most, seed=seed)
        for cut in cuts
    ]


def learn_slots(
    method: Alignment, kind: tuple[str, str, str], rows: Rows, seed: int
) -> tuple[dict[tuple[int, int] | None, Learned | Network], tuple[int, ...]]:
    """({ordered slots, or None for all: learned}, slots that are told apart as features)."""

    def one(some: Rows) -> Learned | Network:
        return learn(some, *kind, strength=method.strength, seed=seed)

    if method.slots == "pair":
        pairs = np.unique(np.stack([rows.slot, rows.other], axis=1), axis=0)
        return {
            (int(a), int(b)): one(rows.take((rows.slot == a) & (rows.other == b))) for a, b in pairs
        }, ()
    slots = tuple(int(s) for s in np.unique(rows.slot))
    told = slots[1:] if len(slots) <= 8 else ()
    marks = slot_columns(rows.slot, told)
    wider = replace(
        rows,
        counters=(*rows.counters, *(f"slot {s}" for s in told)),
        own=np.concatenate([rows.own, marks], axis=1),
        others=np.concatenate([rows.others, np.zeros_like(marks)], axis=1),
    )
    return {None: one(wider)}, told


def offered_counters(
    traces: Traces, wanted: tuple[str, ...] | None
) -> tuple[tuple[str, ...], list[str]]:
    """(counters that every run alone has, instructions first; notes on those left out), without those that
    are not of the program where none are asked for by name."""
    solo = [trace for trace in traces if trace.solo]
    if not solo:
        raise NotEnoughRuns("no workload was traced alone", fix="Trace every workload alone.")
    if wanted is not None:
        return (INSTRUCTIONS, *(n for n in wanted if n != INSTRUCTIONS)), []
    count: Counter[str] = Counter()
    for trace in solo:
        count.update(
            n
            for n, v in trace.counters.items()
            if n not in NOT_OF_THE_PROGRAM and n not in MARKS and np.isnan(v).mean() <= 0.5
        )
    if not count[INSTRUCTIONS]:
        raise BadData(
            "no trace counts instructions", fix="Record the counter 'instructions': it is the axis."
        )
    notes = [
        f"counter {name} was left out: {len(solo) - n} of {len(solo)} runs alone do not have it"
        for name, n in sorted(count.items())
        if n < len(solo) and name != INSTRUCTIONS
    ]
    rest = sorted(n for n, c in count.items() if c == len(solo) and n != INSTRUCTIONS)
    return (INSTRUCTIONS, *rest), notes


def solo_profiles(
    traces: Traces,
    counters: tuple[str, ...],
    period_seconds: float | None = None,
    *,
    quiet: bool = True,
) -> Profiles:
    """One profile per workload, platform and slot: of the quiet stretches of all its runs alone, or of the
    first one in the order of run_ids."""
    groups = solo_runs(traces, quiet)
    if period_seconds is None:
        every = [np.median(t.interval_seconds) for runs in groups.values() for t in runs]
        period_seconds = float(np.median(every))
    return Profiles(
        [quiet_profile(groups[key], counters, period_seconds) for key in sorted(groups)]
    )


def unsteady_of(traces: Traces, profiles: Profiles) -> tuple[str, ...]:
    """Workloads traced alone three times or more whose usual run takes over a quarter longer than their
    quiet run time: what others do to them cannot be told from what happens to them alone."""
    found = set()
    for (name, platform, slot), runs in solo_runs(traces).items():
        usual = np.median([run.runtime_seconds for run in runs])
        quiet = profiles.of(name, platform, slot).duration_seconds
        if len(runs) >= 3 and usual > UNSTEADY * quiet:
            found.add(name)
    return tuple(sorted(found))


def profile_runs(traces: Traces, *, quiet: bool = True) -> set[str]:
    """run_ids whose traces become profiles: they are inputs of the method, so nothing may be calibrated on
    them."""
    return {run.run_id for runs in solo_runs(traces, quiet).values() for run in runs}


def solo_runs(traces: Traces, quiet: bool = True) -> dict[tuple[str, str, int], list[Trace]]:
    """{(workload, platform, core): runs alone in the order of run_ids, only the first unless quiet}."""
    found: dict[tuple[str, str, int], list[Trace]] = {}
    for trace in sorted((t for t in traces if t.solo), key=lambda t: t.run_id):
        found.setdefault((trace.workload, trace.platform, trace.core), []).append(trace)
    return found if quiet else {key: runs[:1] for key, runs in found.items()}


def _narrowed(profile: Profile, counters: tuple[str, ...]) -> Profile:
    at = [profile.counters.index(name) for name in counters]
    table = np.ascontiguousarray(profile.cumulative[:, at])
    return replace(profile, counters=counters, cumulative=table)


def _ids(runs: Any) -> list[str]:
    return runs.table.column("run_id").to_pylist()
