"""From runs beside stressors to mixtures, and from runs of programs, if any, to their weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.methods import RunCounts
from jostle.probes._fitted import RULES, FittedProbes
from jostle.probes._mixture import mixtures_of
from jostle.probes._tables import ProbeTables, is_probing
from jostle.probes._weights import FOLDS, FOLDS_OF_FEW, weighed
from jostle.rules import SlowdownRows
from jostle.runs import Runs, all_names


def fit_probes(
    runs: Runs, stressors: tuple[str, ...], *, learn_weights: bool, seed: int, trial: bool = False
) -> FittedProbes:
    """See Probes.fit. stressors: names; without any, answers are one level, none and effects of names.
    trial: one fit of several, with fewer folds inside."""
    names = all_names(runs)
    tables = ProbeTables.of(runs, names, stressors)
    if stressors and not np.isfinite(tables.suffered).any():
        raise NotEnoughRuns(
            f"nothing ran beside one of the stressors {', '.join(stressors)} alone, and alone",
            fix="Measure beside probes (jostle measure).",
        )
    mixtures = mixtures_of(tables.without_noise())
    probing = is_probing(runs, stressors)
    learned_runs = runs.take(~probing)
    plain = FittedProbes.of_mixtures(
        (*names, stressors),
        tables.log_solo,
        mixtures.sensitivity,
        mixtures.weights,
        mixtures.pressure,
        # Runs beside stressors say how a program acts, not how far off answers about programs are.
        RunCounts.of(learned_runs),
    )
    notes = []
    if stressors and mixtures.guessed:
        notes.append(
            f"{mixtures.guessed} pairs of workload and platform ran beside no stressor: they are taken as on "
            f"other platforms, or as typical"
        )
    rows = _rows(learned_runs, names, tables.log_solo)
    folds = FOLDS if trial else FOLDS_OF_FEW
    fitted = weighed(plain, rows, seed, folds) if learn_weights and len(rows) else plain
    if not (rows.degree > 1).any():
        notes.append("no run beside several co-runners was learned from: pressures are added up")
    return replace(fitted, notes=(*notes, *_words(fitted)))


def _rows(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], log_solo: np.ndarray
) -> SlowdownRows:
    """Those beside others whose runtime alone is known."""
    codes, count = runs.colocations.recode(*names), runs.colocations.number_of_corunners
    solo = log_solo[codes[1], codes[0]]
    log_slowdown = np.log(runs.runtime_seconds) - solo
    every = SlowdownRows.coded(codes, count, len(names[0]), log_slowdown, np.ones(len(solo)))
    return every.take((count > 0) & np.isfinite(solo))


def _words(fitted: FittedProbes) -> list[str]:
    """The weights, where they were learned."""
    out = []
    for kind, weight in zip(("one co-runner", "several"), fitted.weight[-1], strict=True):
        if weight[0] < 1:
            every = zip(RULES, weight.tolist(), strict=True)
            shares = [f"{name} {share:.0%}" for name, share in every if share >= 0.005]
            out.append(f"weights beside {kind}, by runs of programs: {', '.join(shares)}")
    return out
