"""From runs to a fitted slowdown model: times alone, what tells cells apart, and the stack on the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.methods import RunCounts
from jostle.progress import Progress
from jostle.rules import (
    MANY_CELLS,
    SlowdownRows,
    chance_of_shift,
    design_of,
    ground_of,
    no_level,
    solo_runtimes,
    variance_of_repeats,
)
from jostle.runs import Runs, all_names
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
SHARE_TO_NOTE = 0.2  # of the form, under which its ridge matters little
ALIKE = {"slowdown": 0.0, "extra": 0.9}  # how far S and G share their numbers


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
    ground = ground_of(sizes[places[0]].design, log_solo)
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
