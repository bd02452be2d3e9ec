"""Fitting the slowdown form: L-BFGS with the slope in closed form, strengths by cross-validation.

The model has a few thousand numbers and the data a few thousand rows, so that a fit takes a fraction of a
second and the strength of the ridge can be chosen for every data set anew, on sets of workloads that are
held out within the runs to fit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.methods import RunCounts, encode_features, fit_baseline
from jostle.progress import Progress
from jostle.runs import Runs, all_names, solo_medians
from jostle.slowdown._equation import (
    SHIFT,
    Sizes,
    SlowdownRows,
    forward,
    loss_and_slope,
    softplus,
)
from jostle.slowdown._fitted import FittedSlowdown, SlowdownParts
from jostle.slowdown._process import fit_process
from jostle.slowdown._settings import SlowdownSettings

PENALTIES = (0.002, 0.006, 0.02)
HERE = (0.4, 0.8)  # weight of what a workload has on one platform only
OWN, SOLO, CATEGORY, NUMBER = 0.3, 0.3, 1.0, 0.5  # weights of the other parts
ALIKE = {"slowdown": 0.0, "extra": 0.9}  # how far S and G share their numbers
START = 0.3  # spread of the starting numbers
FOLDS = 3
MOST_COLUMNS = 2_000  # of the design as it is made
FEWEST_TO_CHOOSE = 30  # rows with co-runners, under which the strengths are taken as they are


def fit(
    method: SlowdownSettings, runs: Runs, seed: int, progress: Progress | None
) -> FittedSlowdown:
    """See Slowdown.fit."""
    names = all_names(runs)
    log_solo, notes = solo_runtimes(runs, names)
    rows, unit = slowdown_rows(method, runs, names, log_solo)
    table = runs.workload_features if method.use_workload_features else None
    strengths = [
        (penalty, here)
        for penalty in ([method.penalty] if method.penalty else PENALTIES)
        for here in ([method.here] if method.here else HERE)
    ]
    sizes = {
        here: Sizes(
            len(names[1]),
            len(names[0]),
            method.rank,
            design_of(names, log_solo, table, here),
            exponents=len(np.unique(np.bincount(rows.row, minlength=len(rows)))) > 1,
            offsets=not method.floor,
            constants=method.target == "extra",
            alike=ALIKE[method.target] if method.alike is None else method.alike,
        )
        for here in {here for _, here in strengths}
    }
    choosing = len(strengths) > 1 or method.process
    total = method.members + (FOLDS * len(strengths) if choosing else 0)
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, total, float("nan"))

    best, process = strengths[len(strengths) // 2], None
    if len(rows) == 0:
        best, notes = strengths[0], (*notes, "no run with co-runners: every slowdown is guessed")
    elif choosing and len(rows) >= FEWEST_TO_CHOOSE:
        fold, left_out = _cross_validate(method, rows, sizes, strengths, seed, tick)
        error = np.abs(np.expm1(left_out - rows.log_slowdown)).mean(1)
        best = strengths[int(np.argmin(error))]
        if method.process:
            design = sizes[best[1]].design
            process = fit_process(rows, design, fold, left_out[int(np.argmin(error))], seed)
    penalty, here = best
    members = []
    for number in range(method.members):
        members.append(fit_member(rows, sizes[here], penalty, seed + 1000 * number, method.steps))
        tick()
    parts = _parts(members, sizes[here], log_solo, unit)
    return FittedSlowdown(*names, parts, RunCounts.of(runs), notes, process)


def _cross_validate(
    method: SlowdownSettings,
    rows: SlowdownRows,
    sizes: dict[float, Sizes],
    strengths: list[tuple[float, float]],
    seed: int,
    tick: Any,
) -> tuple[np.ndarray, np.ndarray]:
    """((n,) parts of the rows, whole sets of workloads in each; (strengths, n) log slowdown that is predicted
    of each part after learning from the others, with one start)."""
    unit = _sets(rows)
    fold = np.random.default_rng(seed).permutation(unit.max() + 1)[unit] % FOLDS
    left_out = np.empty((len(strengths), len(rows)))
    for number, (penalty, here) in enumerate(strengths):
        for out in range(FOLDS):
            kept = rows.take(fold != out)
            member = fit_member(kept, sizes[here], penalty, seed + out, method.steps)
            predicted = forward(member, sizes[here], rows.take(fold == out))[0]
            left_out[number, fold == out] = predicted
            tick()
    return fold, left_out


def _sets(rows: SlowdownRows) -> np.ndarray:
    """(n,) codes, equal for rows of the same workloads on the same platform, whichever is the target."""
    members: list[list[int]] = [[int(cell)] for cell in rows.target]
    for row, cell in zip(rows.row.tolist(), rows.corunner.tolist(), strict=True):
        members[row].append(cell)
    known: dict[tuple[int, ...], int] = {}
    return np.array([known.setdefault(tuple(sorted(m)), len(known)) for m in members], np.int64)


def solo_runtimes(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """((platforms, workloads) log seconds alone, notes): the median of what was measured; elsewhere what
    workload and platform suggest where runs connect the two, and NaN where not."""
    c = runs.colocations
    workload, platform, _ = c.recode(*names)
    alone = c.number_of_corunners == 0
    if not alone.any():
        raise NotEnoughRuns(
            "there is no run without co-runners, against which a slowdown could be told",
            fix="Measure every workload alone too.",
        )
    log_runtime = np.log(runs.runtime_seconds)
    w, p = len(names[0]), len(names[1])
    base = fit_baseline(workload[alone], platform[alone], log_runtime[alone], w, p)
    solo = base.platform[:, None] + base.workload[None]
    joined = (base.platform_component[:, None] == base.workload_component[None]) & (
        base.platform_component[:, None] >= 0
    )
    solo[~joined] = np.nan
    measured = solo_medians(runs, *names)
    solo = np.where(np.isnan(measured), solo, measured)
    guessed = int(joined.sum() - np.isfinite(measured).sum())
    note = f"{guessed} pairs of workload and platform never ran alone: their solo time is estimated"
    return solo, ((note,) if guessed else ())


def slowdown_rows(
    method: SlowdownSettings,
    runs: Runs,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    log_solo: np.ndarray,
) -> tuple[SlowdownRows, float]:
    """(rows with co-runners whose solo runtime is known, seconds of extra time that 1 stands for)."""
    c = runs.colocations
    workload, platform, corunner = (codes.astype(np.int64) for codes in c.recode(*names))
    solo = log_solo[platform, workload]
    row = np.repeat(np.arange(len(runs)), c.number_of_corunners)
    w = len(names[0])
    log_slowdown = np.log(runs.runtime_seconds) - solo
    every = SlowdownRows(
        platform * w + workload,
        platform[row] * w + corunner,
        row,
        log_slowdown,
        np.ones(len(runs)),
    )
    unit = np.nan
    keep = (c.number_of_corunners > 0) & np.isfinite(solo)
    if method.target == "extra" and keep.any():
        extra = np.abs(np.exp(solo[keep]) * np.expm1(log_slowdown[keep]))
        unit = max(float(np.median(extra)), 1e-12)
        every = replace(every, scale=unit / np.exp(solo))
    return every.take(keep), unit


def design_of(
    names: tuple[tuple[str, ...], tuple[str, ...]], log_solo: np.ndarray, table: Any, here: float
) -> np.ndarray:
    """(cells, d): what S and G are linear in. Columns are scaled by how freely each part may vary: the
    workload everywhere, the workload on one platform, its solo runtime, the platform, its categories and
    numbers, and the categories and numbers on one platform."""
    w, p = len(names[0]), len(names[1])
    everywhere, place = np.tile(np.eye(w), (p, 1)), np.eye(p)
    level = np.nan_to_num(log_solo - np.nanmean(log_solo, axis=1, keepdims=True))
    level = (level / max(float(level.std()), 1e-9)).reshape(-1, 1)
    blocks = [OWN * everywhere, here * np.eye(p * w), SOLO * level]
    if p > 1:  # what is the same for all on one platform, such as taking turns
        blocks += [np.ones((p * w, 1)), np.kron(place, np.ones((w, 1)))]
    found = encode_features(names[0], "workload", table)
    classes = [
        np.eye(size)[column][:, 1:]
        for column, size in zip(found.category.T, found.category_sizes, strict=True)
        if size - 1 < w  # a text that is different everywhere says no more than the name
    ]
    for one in classes:
        blocks += [CATEGORY * np.tile(one, (p, 1)), CATEGORY * np.kron(place, one)]
        # How long a workload runs among those of its class says how large it is.
        blocks.append(NUMBER * _inside(np.kron(place, one), level))
    numbers = found.numeric.astype(np.float64)
    if numbers.shape[1]:
        share = NUMBER / np.sqrt(numbers.shape[1])
        blocks.append(share * np.tile(numbers, (p, 1)))
        for one in classes:
            for column in numbers.T:
                mine = _inside(one, column[:, None]) * one
                blocks += [share * np.tile(mine, (p, 1)), share * np.kron(place, mine)]
    return _thin(np.concatenate(blocks, axis=1))


def _thin(design: np.ndarray) -> np.ndarray:
    """The design with no more columns than cells, where feature tables made very many: it says the same,
    because the ridge and the random start know only the products of its rows with each other. Fewer are left
    alone: the search ends sooner in the wide form, and gave answers that are a little closer."""
    if design.shape[1] <= max(MOST_COLUMNS, design.shape[0]):
        return design
    return np.asarray(np.linalg.qr(design.T)[1]).T


def _inside(one: np.ndarray, column: np.ndarray) -> np.ndarray:
    """(n, 1) the column with the mean of its class taken away, in standard deviations."""
    mean = one @ ((one.T @ column) / np.maximum(one.sum(0)[:, None], 1.0))
    left = column - mean
    return left / max(float(left.std()), 1e-9)


def fit_member(
    rows: SlowdownRows, sizes: Sizes, penalty: float, seed: int, steps: int
) -> np.ndarray:
    """The numbers of one member, from a random start."""
    from scipy.optimize import minimize

    random = np.random.default_rng(seed)
    x = np.zeros(sizes.size)
    random_part = (3 if sizes.alike else 2) * sizes.design.shape[1] * sizes.rank
    x[:random_part] = START * random.normal(size=random_part)
    if len(rows) == 0:
        return x
    found = minimize(
        loss_and_slope,
        x,
        args=(sizes, rows, penalty),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps},
    )
    return np.asarray(found.x)


def _parts(
    members: list[np.ndarray], sizes: Sizes, log_solo: np.ndarray, unit: float
) -> SlowdownParts:
    p, w = sizes.platforms, sizes.workloads
    fields: dict[str, list[np.ndarray]] = {
        name: [] for name in ("susceptibility", "pressure", "constant", "exponent", "offset")
    }
    for x in members:
        part = sizes.unpack(x)
        cut = (p, w, sizes.rank)
        hit, press = (softplus(each - SHIFT).reshape(cut) for each in sizes.mixed(part))
        fields["susceptibility"].append(hit)
        fields["pressure"].append(press * np.exp(part["gain"])[:, None, None])
        fields["constant"].append(softplus(part["constant"]) if sizes.constants else np.zeros(p))
        fields["exponent"].append(np.exp(part["exponent"]) if sizes.exponents else np.ones(w))
        offset = part["offset"] if sizes.offsets else np.zeros(p * w)
        fields["offset"].append(offset.reshape(p, w))
    return SlowdownParts(
        log_solo=log_solo,
        unit_seconds=np.array(unit),
        **{name: np.stack(values) for name, values in fields.items()},
    )
