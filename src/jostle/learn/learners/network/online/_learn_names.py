"""New runs and new names learned by a fitted factorization without training it again.

A name that has no run yet begins where its features put it; its first runs move it in the directions in which
names usually differ, one with runs moves the less the more it has (see _steps). Workloads and platforms take
turns. What is measured alone in one cell beyond that is kept for this cell.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.learn.contract._coded_runs import KeptRuns
from jostle.learn.contract._run_counts import RunCounts
from jostle.learn.learners.network._codes import Codes
from jostle.learn.learners.network._fitted_network import FittedFactorization
from jostle.learn.learners.network.online._new_embeddings import with_names
from jostle.learn.learners.network.online._prior import Groundwork
from jostle.learn.learners.network.online._prior_statistics import (
    KINDS,
    NOISE,
    groundwork_of,
    runs_of_names,
)
from jostle.learn.learners.network.online._slopes import (
    PLATFORM,
    WORKLOAD,
    rows_of_names,
    slopes_of,
    with_rows_of_names,
)
from jostle.learn.learners.network.online._steps import STEPS, step, weights_of

TURNS = 2  # of workloads and platforms


def learn_online(
    fitted: FittedFactorization,
    runs: KeptRuns,
    kept: KeptRuns,
    seed: int,
    changed: np.ndarray | None = None,
) -> FittedFactorization:
    """The model with these runs and the names in them and in their features learned.

    kept, changed: see jostle.learn.LearnsOnline; names all of whose kept runs have changed move as if none
    had been learned, by the new ones and by what the kept ones are now. What steps rest on is found the
    first time, and again whenever a name is new.
    """
    known = len(fitted.workload_names), len(fitted.platform_names)
    fitted = with_names(fitted, *_names_of(runs))
    work = fitted.groundwork
    if work is None or known != (len(fitted.workload_names), len(fitted.platform_names)):
        work = groundwork_of(fitted, kept, runs, seed)
    else:
        counted = runs_of_names(fitted)
        sides = {kind: replace(side, runs=counted[kind]) for kind, side in work.sides.items()}
        work = replace(work, sides=sides)
    fitted = _started(fitted, work)
    codes, log_runtime = fitted.codes(runs.colocations), np.log(runs.runtime_seconds)
    fitted = _connected(fitted, codes, work)
    if changed is not None and changed.any():
        again = runs.joined(kept.take(np.flatnonzero(changed)))
        freed = _freed(fitted, fitted.codes(kept.colocations), changed, work)
        log_again = np.log(again.runtime_seconds)
        fitted = _stepped(fitted, fitted.codes(again.colocations), log_again, freed)
    elif len(runs):
        fitted = _stepped(fitted, codes, log_runtime, work)
    if len(runs):
        fitted = _with_beyond(fitted, codes, log_runtime, work.share)
    counts = fitted.counts.joined(RunCounts.of_coded(runs.colocations))
    return replace(fitted, counts=counts, groundwork=work)


def _freed(
    fitted: FittedFactorization, kept: Codes, changed: np.ndarray, work: Groundwork
) -> Groundwork:
    """As if names all of whose kept runs have changed had none."""
    sides = {}
    for kind, code in ((WORKLOAD, kept.workload), (PLATFORM, kept.platform)):
        side = work.sides[kind]
        of_each, as_now = (np.bincount(c, minlength=len(side.runs)) for c in (code, code[changed]))
        runs = np.where((of_each > 0) & (as_now == of_each), 0.0, side.runs)
        sides[kind] = replace(side, runs=runs)
    return replace(work, sides=sides)


def learn_copies(
    fitted: FittedFactorization,
    runs: KeptRuns,
    groundwork: Groundwork,
    kind: str,
    copies: dict[str, str],
) -> FittedFactorization:
    """The model with copies of known names that learn these runs as if they were new. copies: {name of the
    copy: name that it is of}, all of one kind."""
    wider = with_names(fitted, *((tuple(copies), ()) if kind == WORKLOAD else ((), tuple(copies))))
    old = {WORKLOAD: fitted.workload_names, PLATFORM: fitted.platform_names}[kind]
    new = {WORKLOAD: wider.workload_names, PLATFORM: wider.platform_names}[kind]
    place = {name: code for code, name in enumerate(old)}
    source = np.array([place[copies.get(name, name)] for name in new])
    is_copy = np.array([name in copies for name in new], bool)
    side = groundwork.sides[kind]
    mine = replace(
        side,
        prior=replace(side.prior, mean=side.prior.mean[source]),
        runs=np.where(is_copy, 0, side.runs[source]),
        told=side.told[source],
        usual=np.where(is_copy, side.unknown, side.usual[source]),
    )
    work = replace(groundwork, sides={**groundwork.sides, kind: mine})
    e = wider.embeddings
    part = getattr(e, f"{kind}_component").copy()
    part[is_copy] = getattr(fitted.embeddings, f"{kind}_component")[source[is_copy]]
    wider = _started(replace(wider, embeddings=replace(e, **{f"{kind}_component": part})), work)
    codes, log_runtime = wider.codes(runs.colocations), np.log(runs.runtime_seconds)
    if len(runs):
        only = {kind: is_copy, PLATFORM if kind == WORKLOAD else WORKLOAD: None}
        wider = _stepped(wider, codes, log_runtime, work, only)
        wider = _with_beyond(wider, codes, log_runtime, groundwork.share)
    return replace(wider, counts=wider.counts.joined(RunCounts.of_coded(runs.colocations)))


def _names_of(runs: KeptRuns) -> tuple[tuple[str, ...], tuple[str, ...]]:
    c = runs.colocations
    used_w = np.unique(np.concatenate([c.workload, c.corunner]))
    workloads = {c.workload_names[code] for code in used_w}
    platforms = {c.platform_names[code] for code in np.unique(c.platform)}
    for table, key, names in (
        (runs.workload_features, "workload", workloads),
        (runs.platform_features, "platform", platforms),
    ):
        if table is not None:
            names.update(table.column(key).to_pylist())
    return tuple(workloads), tuple(platforms)


def _started(fitted: FittedFactorization, groundwork: Groundwork) -> FittedFactorization:
    """Names without a run where their features put them."""
    e = fitted.embeddings
    for kind in KINDS:
        side = groundwork.sides[kind]
        none = side.runs == 0
        if none.any():
            rows = rows_of_names(e, kind)
            rows[none] = side.prior.mean[none]
            e = with_rows_of_names(e, kind, rows)
    return replace(fitted, embeddings=e)


def _connected(
    fitted: FittedFactorization, codes: Codes, groundwork: Groundwork
) -> FittedFactorization:
    """New names in the part of the fleet in which their runs are; by features in the largest one."""
    e = fitted.embeddings
    components = {WORKLOAD: e.workload_component.copy(), PLATFORM: e.platform_component.copy()}
    usual = np.concatenate([part[part >= 0] for part in components.values()])
    largest = int(np.bincount(usual).argmax()) if len(usual) else 0
    for kind, mine, there in (
        (WORKLOAD, codes.workload, codes.platform),
        (PLATFORM, codes.platform, codes.workload),
        (WORKLOAD, codes.workload, codes.platform),
    ):
        other = components[PLATFORM if kind == WORKLOAD else WORKLOAD]
        for name in np.flatnonzero(components[kind] < 0):
            parts = other[there[mine == name]]
            parts = parts[parts >= 0]
            if len(parts):
                components[kind][name] = int(np.bincount(parts).argmax())
    new = {WORKLOAD: codes.workload, PLATFORM: codes.platform}
    for kind in KINDS:
        met = np.zeros(len(components[kind]), bool)
        met[new[kind]] = True
        has_runs = groundwork.sides[kind].told
        components[kind][(components[kind] < 0) & (met | has_runs)] = largest
    parts = {f"{kind}_component": components[kind] for kind in KINDS}
    return replace(fitted, embeddings=replace(e, **parts))


def _stepped(
    fitted: FittedFactorization,
    codes: Codes,
    log_runtime: np.ndarray,
    groundwork: Groundwork,
    only: dict[str, np.ndarray | None] | None = None,
) -> FittedFactorization:
    """Gauss-Newton steps of workloads and platforms in turn. only: masks of the names that move; None: none
    of the kind."""
    at = {kind: rows_of_names(fitted.embeddings, kind) for kind in KINDS}
    moved = {
        kind: np.zeros((len(at[kind]), len(groundwork.sides[kind].prior.basis))) for kind in KINDS
    }
    coded = {WORKLOAD: codes.workload, PLATFORM: codes.platform}
    # What is added to the network is held.
    e = fitted.embeddings
    none = np.zeros((0, at[WORKLOAD].shape[1]))
    network = slopes_of(e, fitted.reading, codes, WORKLOAD, none).log_runtime
    fixed = fitted.predict_log(codes) - network
    for _ in range(TURNS if only is None else 1):
        for kind, other in zip(KINDS, reversed(KINDS), strict=True):
            side = groundwork.sides[kind]
            free = None if only is None else only[kind]
            if only is not None and free is None:
                continue
            usual = NOISE * groundwork.sides[other].usual[coded[other]]
            for _ in range(STEPS // (TURNS if only is None else 1)):
                slopes = slopes_of(e, fitted.reading, codes, kind, side.prior.basis)
                error = log_runtime - fixed - slopes.log_runtime
                if free is not None:
                    slopes = slopes.take(free[slopes.name])
                inside = weights_of(error, usual)[slopes.row]
                rows = (slopes.slopes, error[slopes.row], inside, slopes.name)
                moved[kind] = step(moved[kind], *rows, side.runs, side.information)
                e = with_rows_of_names(e, kind, at[kind] + moved[kind] @ side.prior.basis)
    return replace(fitted, embeddings=e)


def _with_beyond(
    fitted: FittedFactorization, codes: Codes, log_runtime: np.ndarray, share: float
) -> FittedFactorization:
    """What runs alone show of their cell beyond the model is taken over as far as it was in fitting."""
    alone = np.bincount(codes.row, minlength=len(codes)) == 0
    if not alone.any() or share <= 0:
        return fitted
    mine = codes.take(alone)
    left = log_runtime[alone] - fitted.predict_log(mine)
    good = np.isfinite(left)
    cell = fitted.cells(mine.workload, mine.platform)[good]
    keys, inverse, count = np.unique(cell, return_inverse=True, return_counts=True)
    # As many runs as one is worth `share` of itself weigh it down.
    gain = share / (share + (1 - share) / count)
    more = gain * np.bincount(inverse.reshape(-1), left[good], len(keys)) / count
    return replace(fitted, measured=fitted.measured.plus(keys, more))
