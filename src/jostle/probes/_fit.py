"""From runs beside stressors to mixtures, and from runs of programs, if any, to their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.methods import RunCounts
from jostle.probes._fitted import FEW_DEGREES, RULES, Asked, FittedProbes
from jostle.probes._mixture import mixtures_of
from jostle.probes._tables import ProbeTables, is_probing, stressors_among
from jostle.rules import SlowdownRows, greedy_weights, nothing_but_noise
from jostle.runs import Runs, all_names

PRIOR_SETS = 6  # sets of programs that the plain mixture weighs beside those measured
FEWEST_SETS = 3


def fit(runs: Runs, wanted: Sequence[str], learn_weights: bool, seed: int) -> FittedProbes:
    """See Probes.fit. wanted: names or patterns of stressors."""
    names = all_names(runs)
    stressors = stressors_among(runs, wanted)
    tables = ProbeTables.of(runs, names, stressors)
    if not np.isfinite(tables.suffered).any():
        raise NotEnoughRuns(
            f"nothing ran beside one of the stressors {', '.join(stressors)} alone, and alone",
            fix="Measure beside probes (jostle measure).",
        )
    mixtures = mixtures_of(tables)
    cells, k = len(names[0]) * len(names[1]), len(stressors)
    # Levels are 0 until runs of programs say otherwise, and answers are the mixture, pressures added up.
    weight = np.zeros((FEW_DEGREES, len(RULES)))
    weight[:, 0] = 1.0
    plain = FittedProbes(
        (*names, stressors),
        tables.log_solo,
        mixtures.sensitivity.reshape(cells, k),
        mixtures.weights.reshape(cells, k),
        np.zeros(FEW_DEGREES),
        weight,
        # Runs beside stressors say how a program acts, not how far off answers about programs are.
        RunCounts.of(runs.take(~is_probing(runs, stressors))),
    )
    notes = []
    if mixtures.guessed:
        notes.append(
            f"{mixtures.guessed} pairs of workload and platform ran beside no stressor: they are taken as on "
            f"other platforms, or as typical"
        )
    kept = runs.take(~is_probing(runs, stressors))
    rows = _rows(kept, names, tables.log_solo)
    found = _weighed(plain, rows, seed) if learn_weights else plain
    if not (rows.degree > 1).any():
        notes.append("no run beside several co-runners was learned from: pressures are added up")
    return replace(found, notes=(*notes, *_words(found)))


def _rows(
    runs: Runs, names: tuple[tuple[str, ...], tuple[str, ...]], log_solo: np.ndarray
) -> SlowdownRows:
    """Those beside others whose runtime alone is known."""
    codes, count = runs.colocations.recode(*names), runs.colocations.number_of_corunners
    solo = log_solo[codes[1], codes[0]]
    log_slowdown = np.log(runs.runtime_seconds) - solo
    every = SlowdownRows.coded(codes, count, len(names[0]), log_slowdown, np.ones(len(solo)))
    return every.take((count > 0) & np.isfinite(solo))


def _weighed(plain: FittedProbes, rows: SlowdownRows, seed: int) -> FittedProbes:
    """Weights by how close each rule comes to runs of programs, the plain mixture standing for some sets."""
    level, weight = plain.level.copy(), plain.weight.copy()
    degree = np.minimum(rows.degree, FEW_DEGREES)
    sets = rows.sets()
    for number in range(FEW_DEGREES):
        here = degree == number + 1
        several = len(np.unique(sets[here]))
        if several < FEWEST_SETS:
            continue
        mine, truth = rows.take(here), rows.log_slowdown[here]
        level[number] = _median(truth)
        asked = Asked(mine.target, mine.row, mine.corunner)
        answers = replace(plain, level=level).answers(asked)
        # With one co-runner the powers are one rule.
        offered = [i for i in range(len(RULES)) if number or not 0 < i < RULES.index("target")]
        found, unseen = greedy_weights(answers[offered], truth, sets[here], seed)
        if nothing_but_noise(np.abs(np.expm1(-truth)) - unseen, sets[here]):
            found = np.eye(len(offered))[-1]
        chosen = np.zeros(len(RULES))
        chosen[offered] = found
        weight[number] = (several * chosen + PRIOR_SETS * plain.weight[number]) / (
            several + PRIOR_SETS
        )
    return replace(plain, level=level, weight=weight)


def _median(log_slowdown: np.ndarray) -> float:
    """Of least mean relative error."""
    order = np.argsort(log_slowdown, kind="stable")
    share = np.cumsum(np.exp(-log_slowdown[order]))
    return float(log_slowdown[order][np.searchsorted(share, share[-1] / 2)])


def _words(found: FittedProbes) -> list[str]:
    """The weights, where they were learned."""
    out = []
    for kind, weight in zip(("one co-runner", "several"), found.weight, strict=True):
        if weight[0] < 1:
            shares = [f"{n} {w:.0%}" for n, w in zip(RULES, weight, strict=True) if w >= 0.005]
            out.append(f"weights beside {kind}, by runs of programs: {', '.join(shares)}")
    return out
