"""New runs and new names learned by a fitted factorization without training it again.

A name that has no run yet begins where its features put it; its first runs move it in the directions in which
names usually differ, one with runs moves the less the more it has (see _steps). Workloads and platforms take
turns. A name whose first runs are all far off takes their level at once.
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
from jostle.learn.learners.network.online._steps import FREEDOM, STEPS, step, weights_of

TURNS = 2  # of workloads and platforms


def learn_online(
    fitted: FittedFactorization,
    runs: KeptRuns,
    kept: KeptRuns,
    seed: int,
    changed: np.ndarray | None = None,
) -> FittedFactorization:
    """Learn these runs, and the names in them and in their features. Returns the new model.

    kept, changed: see jostle.learn.Method. Names all of whose kept runs have changed move as if none
    had been learned, by the new runs and by what the kept ones are now. What steps rest on is computed the
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
    counts = fitted.counts.joined(RunCounts.of_coded(runs.colocations))
    return replace(fitted, counts=counts, groundwork=work)


def _freed(
    fitted: FittedFactorization, kept: Codes, changed: np.ndarray, work: Groundwork
) -> Groundwork:
    """Set the number of runs to 0 for names all of whose kept runs have changed."""
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
    """Add copies of known names, which learn these runs as if they were new. copies: {name of the copy: name
    that it copies}, all of one kind."""
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
    # Runs that the model has no answer for move nothing.
    log_runtime = np.where(np.isfinite(fitted.predict_log(codes)), log_runtime, np.nan)
    e = fitted.embeddings
    for _ in range(TURNS if only is None else 1):
        for kind, other in zip(KINDS, reversed(KINDS), strict=True):
            side = groundwork.sides[kind]
            free = None if only is None else only[kind]
            if only is not None and free is None:
                continue
            usual = NOISE * groundwork.sides[other].usual[coded[other]]
            error = (
                log_runtime - slopes_of(e, fitted.reading, codes, kind, at[kind][:0]).log_runtime
            )
            new = (side.runs == 0) & (True if free is None else free)
            at[kind][:, 0] += _levels(coded[kind], error, usual, new)
            e = with_rows_of_names(e, kind, at[kind] + moved[kind] @ side.prior.basis)
            for _ in range(STEPS // (TURNS if only is None else 1)):
                slopes = slopes_of(e, fitted.reading, codes, kind, side.prior.basis)
                error = log_runtime - slopes.log_runtime
                if free is not None:
                    slopes = slopes.take(free[slopes.name])
                inside = weights_of(error, usual)[slopes.row]
                rows = (slopes.slopes, error[slopes.row], inside, slopes.name)
                moved[kind] = step(moved[kind], *rows, side.runs, side.information)
                e = with_rows_of_names(e, kind, at[kind] + moved[kind] @ side.prior.basis)
    return replace(fitted, embeddings=e)


def _levels(code: np.ndarray, error: np.ndarray, usual: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Estimate a common shift of the runs of each new name, in log seconds, (names,); 0 if it is within what
    steps would take for single runs that went wrong. code, error, usual: (n,) of the runs. new: mask of names
    without runs."""
    shift = np.zeros(len(new))
    seen = np.isfinite(error) & new[code]
    for name in np.unique(code[seen]):
        mine = seen & (code == name)
        middle, count = float(np.median(error[mine])), int(mine.sum())
        if abs(middle) > FREEDOM * float(np.median(usual[mine])):
            shift[name] = middle * count / (count + 1)
    return shift
