"""How far runs of several programs move answers away from the plain mixture, and to which rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from jostle.probes._fitted import FEW_DEGREES, LEARNED, MET, PLAIN, POWERS, RULES, FittedProbes
from jostle.probes._mixture import coupling_of
from jostle.rules import (
    OF_OTHER_DATA,
    SlowdownRows,
    fit_effects,
    folds_of,
    relative_error,
    weighted_median,
    weights_of_unseen,
    without_light,
)

FEWEST_SETS = 3
FEWEST_NAMED = 8  # sets from which names are learned from
FOLDS = 4
FEW_SETS = 30  # under which few are left out at once, so that rules learn from most of them
FOLDS_OF_FEW = 12
MANY_ROWS = 4_000  # past which one of the folds is enough
Tried = tuple[np.ndarray, np.ndarray]  # which rows, (rules, n) answers about them


def weighed(
    plain: FittedProbes, rows: SlowdownRows, seed: int, few_folds: int = FOLDS_OF_FEW
) -> FittedProbes:
    """With weights by how close each rule comes to sets of programs that were left out. few_folds: where sets
    are few."""
    sets, degree = rows.sets(), np.minimum(rows.degree, FEW_DEGREES)
    level = plain.level.copy()
    for number in range(FEW_DEGREES):
        here = degree == number + 1
        if len(np.unique(sets[here])) >= FEWEST_SETS:
            mine = rows.log_slowdown[here]
            level[number] = weighted_median(mine, np.exp(-mine))  # of least mean relative error
    met = np.zeros_like(plain.met)
    met[0][rows.target] = True
    met[1][rows.corunner] = True
    base = np.array([_best_power(plain, rows), 0.0])
    fitted = replace(plain, level=level, base=base, met=met)
    strange, some = _without_names(fitted, rows, seed, few_folds)
    if len(np.unique(sets[strange[0]])) >= FEWEST_NAMED:
        at, truth = strange[1], rows.log_slowdown[strange[0]]
        learned = _error(at[RULES.index(LEARNED)], truth) < _error(at[0], truth)
        fitted = replace(fitted, base=np.array([base[0], float(learned)]))
        if learned:  # it lies under the effects of names, too
            strange, some = _without_names(fitted, rows, seed, few_folds)
    else:
        strange = np.arange(len(rows)), fitted.answers(rows)
    tried = {
        "none": strange,
        "some": some,
        "all": _without_sets(fitted, rows, sets, seed, few_folds),
    }
    weight = plain.weight.copy()
    for who, (at, answers) in tried.items():
        for number in range(FEW_DEGREES):
            here = degree[at] == number + 1
            mine, truth = sets[at[here]], rows.log_slowdown[at[here]]
            few = len(np.unique(mine)) < FEWEST_NAMED
            if who == "none" and len(np.unique(mine)) >= FEWEST_SETS:
                offered = PLAIN if few else (*PLAIN, LEARNED)
            elif few:
                weight[MET.index(who), number] = weight[0, number]
                continue
            else:
                offered = RULES
            # With one co-runner the powers are one rule.
            some_of = [i for i in range(len(offered)) if number or not 0 < i < len(POWERS)]
            weight[MET.index(who), number] = _chosen(answers[:, here], truth, mine, some_of, seed)
    return _learned(replace(fitted, weight=weight), rows)


def _chosen(
    answers: np.ndarray, truth: np.ndarray, sets: np.ndarray, offered: list[int], seed: int
) -> np.ndarray:
    """(rules,) weights of answers (rules, n)."""
    out = np.zeros(len(RULES))
    is_mixture = np.arange(len(RULES)) < len(POWERS)  # which stressors show, not these runs
    prior = np.where(is_mixture, OF_OTHER_DATA, 1.0)
    weight, _ = weights_of_unseen(answers[offered], truth, sets, seed, prior[offered])
    out[offered] = without_light(weight)
    return out


def _error(answer: np.ndarray | float, truth: np.ndarray) -> float:
    return float(relative_error(answer - truth).mean())


def _without_sets(
    fitted: FittedProbes, rows: SlowdownRows, sets: np.ndarray, seed: int, few_folds: int
) -> Tried:
    """(which rows, (rules, n) answers about them), learned from other sets of workloads."""
    number = _number_of_folds(sets, few_folds)
    fold = folds_of(sets, number, _random(seed))
    return _tried(fitted, rows, [(fold != part, fold == part) for part in range(number)])


def _without_names(
    fitted: FittedProbes, rows: SlowdownRows, seed: int, few_folds: int
) -> tuple[Tried, Tried]:
    """The same, learned from sets without some names: of all sets with one of these, and of those that have
    other members, too."""
    workloads, number = len(fitted.workload_names), _number_of_folds(rows.sets(), few_folds)
    fold = folds_of(np.arange(workloads), number, _random(seed))
    masks = []
    unmet = np.zeros((number, len(rows)), bool)
    for part in range(number):
        out = fold[np.arange(len(fitted.met[0])) % workloads] == part
        mine, share = out[rows.target], rows.mean(out[rows.corunner])
        train = ~mine & (share == 0)
        masks.append((train, ~train))
        unmet[part] = mine & (share == 1)
    every = _tried(fitted, rows, masks)
    both = np.asarray(unmet.any(axis=0))[every[0]]
    return every, (every[0][~both], every[1][:, ~both])


def _number_of_folds(sets: np.ndarray, few_folds: int) -> int:
    return FOLDS if len(np.unique(sets)) >= FEW_SETS else few_folds


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 11])


def _tried(
    fitted: FittedProbes, rows: SlowdownRows, masks: list[tuple[np.ndarray, np.ndarray]]
) -> Tried:
    """masks: (learned from, asked about), of which one is enough where there are very many rows."""
    at, answers = [np.zeros(0, int)], [np.zeros((len(RULES), 0))]
    for train, held in masks if len(rows) <= MANY_ROWS else masks[:1]:
        if train.sum() >= FEWEST_NAMED and held.any():
            some = _learned(fitted, rows.take(train))
            at.append(np.flatnonzero(held))
            answers.append(some.answers(rows.take(held)))
    return np.concatenate(at), np.concatenate(answers, axis=1)


def _learned(fitted: FittedProbes, rows: SlowdownRows) -> FittedProbes:
    """With the coupling and the effects of names that these rows say."""
    coupling = coupling_of(*fitted.products(rows), rows.log_slowdown)
    fitted = replace(fitted, coupling=coupling)
    rest = replace(rows, log_slowdown=rows.log_slowdown - fitted.mixed(rows))
    ground = fitted.ground
    effects = fit_effects(rows, ground)[0], fit_effects(rest, ground)[0]
    return replace(fitted, effects=effects)


def _best_power(plain: FittedProbes, rows: SlowdownRows) -> float:
    """By which the mixture's pressures of several are added up with the least error; 1 without such runs."""
    many = rows.degree > 1
    if len(np.unique(rows.sets()[many])) < FEWEST_SETS:
        return POWERS[0]
    each = plain.answers(rows.take(many))[: len(POWERS)]
    error = relative_error(each - rows.log_slowdown[many]).mean(axis=1)
    return POWERS[int(np.argmin(error))]
