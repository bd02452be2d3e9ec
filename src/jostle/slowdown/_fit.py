"""From runs to a fitted slowdown model: times alone, what tells cells apart, and the stack on the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jostle.methods import RunCounts, encode_features, fit_baseline
from jostle.progress import Progress
from jostle.rules import (
    Ground,
    SlowdownRows,
    chance_of_shift,
    design_of_names,
    no_level,
    variance_of_repeats,
)
from jostle.runs import Runs, all_names, solo_medians
from jostle.slowdown._equation import Sizes
from jostle.slowdown._fitted import FittedSlowdown, SoloTimes
from jostle.slowdown._settings import SlowdownSettings
from jostle.slowdown._stack import (
    FOLDS,
    NONE,
    PENALTIES,
    Recipe,
    Stack,
    Weighed,
    fit_stack,
)

HERE = (0.4, 0.8)  # weight of what a workload has on one platform only, for the form alone
HERE_IN_STACK = (0.6,)
OWN, SOLO, CATEGORY, NUMBER = 0.3, 0.3, 1.0, 0.5  # weights of the other parts
SHARE_TO_NOTE = 0.2  # of the form, under which its ridge matters little
ALIKE = {"slowdown": 0.0, "extra": 0.9}  # how far S and G share their numbers
SHRINKAGE, SWEEPS = 1.0, 20  # of the co-runners' effects where no time alone is known
MANY_CELLS = 1_500  # pairs of workload and platform past which features are left out
MOST_COLUMNS = 2_000  # of the design as it is made


def fit(
    method: SlowdownSettings, runs: Runs, seed: int, progress: Progress | None
) -> FittedSlowdown:
    """See Slowdown.fit."""
    names = all_names(runs)
    log_solo, notes = solo_runtimes(runs, names)
    rows, unit = slowdown_rows(method, runs, names, log_solo)
    table = runs.workload_features if method.use_workload_features else None
    places = (method.here,) if method.here else HERE_IN_STACK if method.stack else HERE
    sizes = {
        here: Sizes(
            len(names[1]),
            len(names[0]),
            method.rank,
            design_of(names, log_solo, table, here),
            exponents=len(np.unique(rows.degree)) > 1,
            offsets=not method.floor,
            constants=method.target == "extra",
            alike=ALIKE[method.target] if method.alike is None else method.alike,
        )
        for here in places
    }
    ground = ground_of(sizes[places[0]], log_solo)
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress:
            progress(done, FOLDS + 1, float("nan"))

    if ground.cells > MANY_CELLS and table is not None:
        notes = (*notes, "very many workloads and platforms: their features are left out")
    if len(rows) == 0:
        stack = Stack(((1.0, no_level(ground)),))
        notes = (*notes, "no run with co-runners: every slowdown is 1")
    else:
        cell, log_runtime, beside = _cells(runs, names)
        recipe = Recipe(
            ground,
            sizes,
            (method.penalty,) if method.penalty else PENALTIES,
            method.members,
            method.steps,
            seed,
            method.stack,
            method.process,
            variance_of_repeats(cell[~beside], log_runtime[~beside]),
            chance_of_shift(cell, log_runtime, beside, seed),
        )
        stack, weighed = fit_stack(rows, recipe, tick)
        notes = (*notes, *_notes(weighed, recipe))
    solo = SoloTimes(log_solo, np.array(unit))
    if not stack.needs_design:
        ground = replace(ground, design=np.zeros((ground.cells, 0)))
    return FittedSlowdown(*names, solo, ground, stack, RunCounts.of(runs), notes)


def _cells(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(what ran where (n,), log runtime, whether beside others)."""
    workload, platform, _ = runs.colocations.recode(*names)
    cell = platform.astype(np.int64) * len(names[0]) + workload
    return cell, np.log(runs.runtime_seconds), runs.colocations.number_of_corunners > 0


def ground_of(sizes: Sizes, log_solo: np.ndarray) -> Ground:
    design = sizes.design
    if design.shape[0] > MANY_CELLS:
        level = np.nan_to_num(log_solo - np.nanmean(log_solo)).ravel()
        return Ground(sizes.platforms, sizes.workloads, design, level)
    squared = (design**2).sum(1)
    apart = squared[:, None] + squared[None] - 2 * design @ design.T
    apart = apart[apart > 1e-12]
    design = design / np.sqrt(np.median(apart)) if len(apart) else design
    level = np.nan_to_num(log_solo - np.nanmean(log_solo)).ravel()
    return Ground(sizes.platforms, sizes.workloads, design, level)


def _notes(weighed: Weighed, recipe: Recipe) -> tuple[str, ...]:
    """What its user should know of how the weights were found."""
    notes = []
    by_name = dict(zip(weighed.names, weighed.weight.tolist(), strict=True))
    forms = {n: w for n, w in by_name.items() if n.startswith("form") and w > 0}
    if by_name.get(NONE) == 1.0:
        notes.append("no evidence of interference: every slowdown is 1")
    if (
        sum(forms.values()) >= SHARE_TO_NOTE
        and len(recipe.penalties) > 1
        and weighed.log_slowdown.shape[1]
    ):
        penalty = float(max(forms, key=lambda name: forms[name]).split()[1])
        edge = {min(recipe.penalties): "lowest", max(recipe.penalties): "highest"}.get(penalty)
        if edge:
            notes.append(
                f"the form's ridge came out at the {edge} strength tried, {penalty:g} of the variance: "
                f"one further out may be closer (--penalty)"
            )
    return tuple(notes)


def solo_runtimes(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> tuple[np.ndarray, tuple[str, ...]]:
    """((platforms, workloads) log seconds alone, notes): the median of what was measured; elsewhere what
    workload and platform suggest where runs connect the two, and NaN where not."""
    c = runs.colocations
    workload, platform, _ = c.recode(*names)
    alone = c.number_of_corunners == 0
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
    notes = (note,) if guessed else ()
    unknown = ~alone & np.isnan(solo[platform, workload])
    if unknown.any():
        levels = _levels(runs, names, solo)
        lost = int((np.isnan(solo) & np.isfinite(levels)).sum())
        notes = (
            *notes,
            f"{lost} pairs of workload and platform ran beside others only: their time alone is that "
            f"beside others over what is typical, and slowdowns there are relative to that",
        )
        solo = np.where(np.isnan(solo), levels, solo)
    return solo, notes


def _levels(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], solo: np.ndarray
) -> np.ndarray:
    """(platforms, workloads) log seconds alone as runs beside others suggest them: less additive effects of
    co-runners and what is typical where times alone are known; where none is, as if no slowdown were."""
    c = runs.colocations
    w, p = len(names[0]), len(names[1])
    workload, platform, corunner = (codes.astype(np.int64) for codes in c.recode(*names))
    beside = c.number_of_corunners > 0
    log_runtime, cell = np.log(runs.runtime_seconds), platform * w + workload
    row = np.repeat(np.arange(len(runs)), c.number_of_corunners)
    at, share = platform[row] * w + corunner, 1 / c.number_of_corunners[row]
    slow = (log_runtime - solo[platform, workload])[beside]
    typical = float(np.median(slow[np.isfinite(slow)])) if np.isfinite(slow).any() else 0.0
    count = np.bincount(cell[beside], minlength=p * w)
    weight = np.bincount(at, share, p * w) + SHRINKAGE
    effect, level = np.zeros(p * w), np.zeros(p * w)
    for _ in range(SWEEPS):
        pressed = np.bincount(row, share * effect[at], len(runs))
        total = np.bincount(cell[beside], (log_runtime - pressed)[beside], p * w)
        level = total / np.maximum(count, 1)
        left = log_runtime - level[cell]
        effect = np.bincount(at, share * left[row], p * w) / weight
    return np.where(count > 0, level - typical, np.nan).reshape(p, w)


def slowdown_rows(
    method: SlowdownSettings,
    runs: Runs,
    names: tuple[tuple[str, ...], tuple[str, ...]],
    log_solo: np.ndarray,
) -> tuple[SlowdownRows, float]:
    """(rows with co-runners whose solo runtime is known, seconds of extra time that 1 stands for)."""
    c = runs.colocations
    codes = c.recode(*names)
    solo = log_solo[codes[1], codes[0]]
    log_slowdown = np.log(runs.runtime_seconds) - solo
    every = SlowdownRows.coded(
        codes,
        c.number_of_corunners,
        len(names[0]),
        log_slowdown,
        np.ones(len(runs)),
        method.target == "extra",
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
    if w * p > MANY_CELLS:
        return design_of_names(w, p, log_solo, here)
    everywhere, place = np.tile(np.eye(w), (p, 1)), np.eye(p)
    level = np.nan_to_num(log_solo - np.nanmean(log_solo, axis=1, keepdims=True))
    level = (level / max(float(level.std()), 1e-9)).reshape(-1, 1)
    blocks = [OWN * everywhere, here * np.eye(p * w), SOLO * level]
    if p > 1:  # what is the same for all on one platform, such as taking turns
        blocks += [np.ones((p * w, 1)), np.kron(place, np.ones((w, 1)))]
    features = encode_features(names[0], "workload", table)
    classes = [
        np.eye(size)[column][:, 1:]
        for column, size in zip(features.category.T, features.category_sizes, strict=True)
        if size - 1 < w  # a text that is different everywhere says no more than the name
    ]
    for one in classes:
        blocks += [CATEGORY * np.tile(one, (p, 1)), CATEGORY * np.kron(place, one)]
        # How long a workload runs among those of its class says how large it is.
        blocks.append(NUMBER * _inside(np.kron(place, one), level))
    numbers = features.numeric.astype(np.float64)
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
