"""Simple rules beside the trees, each with the weight that it earned on bags and on names left out.

The rules: no slowdown, the time alone once for every member, what is typical of a platform and a number of
co-runners (as a factor, and as seconds that are added), additive effects of the names (both ways, and as
shares of the time alone), these with a low-rank rest, boosting on what is usual of the names, and turns on
shared cores: who is on a core for a share u of its time alone, beside others who are for v together, wants it
at the same time as they do for a share u v, and waits for so much of its time, times what is usual of the
platform and the number of co-runners (1 where all share one core fairly). Trees are two: those that the
settings ask for, and second ones of another target, which learn what the turns leave.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from jostle.bag._trees import Trees
from jostle.ensemble import FittedRules, fit_rules
from jostle.rules import (
    NO_SLOWDOWN,
    Ground,
    Level,
    Memory,
    SlowdownRows,
    fit_level,
    fit_memory,
    folds_of,
    greedy_weights,
    is_noise,
    no_level,
    steadied_weights,
)

TREES, NONE, MEMBERS = "trees", "no slowdown", "time alone × members"
LEVEL, ADDED = "typical slowdown", "typical time added"
EFFECTS, ADDED_EFFECTS = "effects of the names", "added effects of the names"
SHARE_EFFECTS, SECOND_TREES = "effects of the names on shares", "second trees"
REST, ENCODED = "effects and a low-rank rest", "boosting on the names"
TURNS = "turns on shared cores"
NAMES = (TREES, NONE, MEMBERS, LEVEL, ADDED, EFFECTS, ADDED_EFFECTS)
NAMES += (SHARE_EFFECTS, SECOND_TREES, REST, ENCODED, TURNS)
LABELS = {
    NONE: NO_SLOWDOWN,
    LEVEL: "level",
    ADDED: "level of seconds",
    EFFECTS: "effects",
    ADDED_EFFECTS: "effects of seconds",
    SHARE_EFFECTS: "effects of shares",
    REST: "effects and rest 1",
    ENCODED: "boosting",
}  # of the ensemble's rules
USUAL = (TREES, LEVEL)  # where there is too little to weigh by
KNOWN, NEW = 0, 1  # rows of the weights: all members ran beside others on the platform, or not
SET_FOLDS, NAME_FOLDS = 4, 6
MANY_ROWS = 4_000  # past which one fold of bags is enough, and two of names
FEWEST_TO_WEIGH = 4  # sets, or families
FEWEST_TO_LEARN = 4  # rows that a fold leaves
MOST_CELLS_OF_REST = 10_000  # each has a row of factors
LEAST_WEIGHT = 0.02
SHORTER = 4.0  # times than any time alone learned from: down to there seconds are believed
LEAST_WANTED = 0.01  # of the time alone, under which what a run waits tells nothing of turns


@dataclass(frozen=True)
class BagRules:
    """weight: (2, 12) of NAMES for co-locations whose members all ran beside others on the platform, and for
    others. met: (cells,) which did, a cell being platform * workloads + workload. memory: of bags that were
    measured themselves. turns: how much of the time for which cores are wanted at once is waited. core_share:
    (cells,) cores that each is on alone, 0 where that is not known."""

    weight: np.ndarray
    met: np.ndarray
    simple: FittedRules
    memory: Memory
    turns: Level
    core_share: np.ndarray

    def log_slowdown(self, rows: SlowdownRows, ground: Ground, by_trees: np.ndarray) -> np.ndarray:
        """(n,) from what both trees say of the same rows, (2, n), the second ones over turns."""
        log_ratio = self.memory.of(rows)
        # One by one: NumPy's sum of many rounds otherwise where a single row is asked.
        for weight, answer in zip(
            self.weight_of(rows), self.answers(rows, ground, by_trees), strict=True
        ):
            log_ratio = log_ratio + weight * answer
        return log_ratio

    def weight_of(self, rows: SlowdownRows) -> np.ndarray:
        """(12, n)."""
        strange = np.bincount(rows.row, ~self.met[rows.corunner], len(rows)) > 0
        return self.weight.T[:, np.where(strange | ~self.met[rows.target], NEW, KNOWN)]

    def answers(self, rows: SlowdownRows, ground: Ground, by_trees: np.ndarray) -> np.ndarray:
        """(12, n) log slowdowns by each of NAMES."""
        turns = self.by_turns(rows, ground)
        answers = dict(
            zip(self.simple.labels, self.simple.log_slowdowns(rows, ground), strict=True)
        )
        answers[TREES], answers[SECOND_TREES] = by_trees[0], by_trees[1] + turns
        answers[MEMBERS], answers[TURNS] = np.log1p(rows.degree), turns
        return np.stack([answers.get(LABELS.get(name, name), answers["effects"]) for name in NAMES])

    def by_turns(self, rows: SlowdownRows, ground: Ground) -> np.ndarray:
        """(n,) log slowdowns by turns on shared cores; 0 where it is not known who is on one for how long."""
        return turns_of(self.turns, rows, ground, self.core_share)

    def beyond(self, rows: SlowdownRows) -> np.ndarray:
        """(n,) how far the log seconds alone are from where what adds seconds is believed."""
        return np.log(rows.scale / np.clip(rows.scale, *self.simple.limits))


@dataclass(frozen=True)
class Weighing:
    """rows: to learn from. core_share: (cells,) as in BagRules. family: (workloads,) codes; workloads of one
    are left out together. chance: of chance_of_shift. is_steady: whether slowdowns are what is asked about:
    then seconds are believed for such times alone as were learned from, and else down to a quarter of these;
    to a job of a thousandth they would be a slowdown of thousands."""

    rows: SlowdownRows
    ground: Ground
    core_share: np.ndarray
    family: np.ndarray
    chance: float
    is_steady: bool
    seed: int


class TreeLearner(Protocol):
    """Trees of the same rows, of two targets: learned from some, what both say (2, n) of others. turns: (n,)
    log slowdowns, over which the second ones learn and answer. beyond: (n,) as BagRules has it."""

    def learn(self, kept: np.ndarray, turns: np.ndarray) -> tuple[Trees, Trees]: ...

    def log_slowdown(
        self,
        trees: tuple[Trees, Trees],
        asked: np.ndarray,
        turns: np.ndarray,
        beyond: np.ndarray,
    ) -> np.ndarray: ...


def fit_beside(weighing: Weighing, learner: TreeLearner) -> tuple[BagRules, tuple[Trees, Trees]]:
    """The rules and trees of all rows, with weights by cross-validation."""
    rows, seed = weighing.rows, weighing.seed
    sets = rows.sets()
    number = int(sets.max()) + 1
    rules = _learned(weighing, np.ones(len(rows), bool))
    turns = rules.by_turns(rows, weighing.ground)
    trees = learner.learn(np.ones(len(rows), bool), turns)
    if number < FEWEST_TO_WEIGH:
        return rules, trees
    random = np.random.default_rng([seed, 31])
    many = len(rows) > MANY_ROWS
    fold = folds_of(sets, SET_FOLDS, random)
    folds = [(fold != part, fold == part) for part in range(1 if many else SET_FOLDS)]
    by_set = _tried(folds, weighing, learner)
    known = by_set.weight(weighing, sets, number)
    folds, families = _folds_of_names(weighing, random)
    by_name = _tried(folds[: 2 if many else None], weighing, learner)
    new = known
    if len(by_name.row):
        new = by_name.weight(weighing, sets, families)
    weight = np.stack([known, new])
    weight[weight < LEAST_WEIGHT] = 0.0
    rules = replace(rules, weight=weight / weight.sum(1, keepdims=True))
    by_trees = learner.log_slowdown(trees, np.arange(len(rows)), turns, rules.beyond(rows))
    residual = rows.log_slowdown - rules.log_slowdown(rows, weighing.ground, by_trees)
    unseen = np.full(len(rows), np.nan)
    unseen[by_set.row] = rows.log_slowdown[by_set.row] - rules.weight[KNOWN] @ by_set.answer
    return replace(rules, memory=fit_memory(rows, residual, unseen)), trees


@dataclass(frozen=True)
class _Tried:
    """What each of NAMES answered about rows left out. row: (k,) which; answer: (12, k)."""

    row: np.ndarray
    answer: np.ndarray

    def weight(self, weighing: Weighing, sets: np.ndarray, parts: int) -> np.ndarray:
        """(12,). parts: how many were left out in turn, sets or families."""
        if not len(self.row):
            return _usual()
        y, mine = weighing.rows.log_slowdown[self.row], sets[self.row]
        weight, unseen = greedy_weights(self.answer, y, mine, weighing.seed)
        if is_noise(weighing.chance, np.abs(np.expm1(-y)) - unseen, mine):
            return np.array([float(name == NONE) for name in NAMES])
        return steadied_weights(weight, self.answer, y, parts)


def _tried(
    folds: list[tuple[np.ndarray, np.ndarray]], weighing: Weighing, learner: TreeLearner
) -> _Tried:
    """folds: which rows are learned from, and which are asked about, (n,) bool each."""
    rows, ground = weighing.rows, weighing.ground
    answers, at = [np.zeros((len(NAMES), 0))], [np.zeros(0, np.int64)]
    for train, held in folds:
        if train.sum() < FEWEST_TO_LEARN or not held.any():
            continue
        test_rows = np.flatnonzero(held)
        rules = _learned(weighing, train)
        turns, beyond = rules.by_turns(rows, ground), rules.beyond(rows)
        by_trees = learner.log_slowdown(learner.learn(train, turns), test_rows, turns, beyond)
        answers.append(rules.answers(rows.take(held), ground, by_trees))
        at.append(test_rows)
    return _Tried(np.concatenate(at), np.concatenate(answers, axis=1))


def _learned(weighing: Weighing, kept: np.ndarray) -> BagRules:
    """The rules of some rows (n,), with the usual weights."""
    rows, ground, seed = weighing.rows.take(kept), weighing.ground, weighing.seed
    limits = np.array([0.0, SHORTER * rows.scale.max(initial=0.0)])
    if weighing.is_steady:
        limits = np.array([rows.scale.min(), rows.scale.max()])
    met = np.zeros(ground.cells, bool)
    met[rows.target] = met[rows.corunner] = True
    many = ground.cells > MOST_CELLS_OF_REST
    wanted = [label for name, label in LABELS.items() if name != REST or not many]
    return BagRules(
        np.stack([_usual()] * 2),
        met,
        fit_rules(rows, ground, wanted, limits, seed),
        Memory(np.zeros(0, np.uint64), np.zeros(0)),
        fit_turns(rows, ground, weighing.core_share),
        weighing.core_share,
    )


def _wanted_at_once(rows: SlowdownRows, core_share: np.ndarray) -> SlowdownRows:
    """Rows that add up waiting, in units of the time for which a workload and its co-runners want cores at
    once, were they independent: its share of a core times theirs in all."""
    beside = np.bincount(rows.row, core_share[rows.corunner], len(rows))
    return replace(rows, timed=True, scale=core_share[rows.target] * beside)


def turns_of(
    turns: Level, rows: SlowdownRows, ground: Ground, core_share: np.ndarray
) -> np.ndarray:
    """(n,) log slowdowns by turns. core_share: (cells,) as in BagRules."""
    wanted = _wanted_at_once(rows, core_share)
    return wanted.as_log(turns.value(wanted, ground))


def fit_turns(rows: SlowdownRows, ground: Ground, core_share: np.ndarray) -> Level:
    wanted = _wanted_at_once(rows, core_share)
    known = wanted.scale > LEAST_WANTED
    return fit_level(wanted.take(known), ground) if known.any() else no_level(ground)


def _usual() -> np.ndarray:
    return np.array([float(name in USUAL) for name in NAMES]) / len(USUAL)


def _folds_of_names(
    weighing: Weighing, random: np.random.Generator
) -> tuple[list[tuple[np.ndarray, np.ndarray]], int]:
    """Families in turn: rows without any of their workloads, and rows with one; and how many families there
    are. Where a text tells too few apart, workloads are left out one by one."""
    rows, family, workloads = weighing.rows, weighing.family, weighing.ground.workloads
    here = np.unique(family[rows.target % workloads])
    if len(here) < FEWEST_TO_WEIGH:
        family = np.arange(workloads)
        here = np.unique(rows.target % workloads)
    if len(here) < FEWEST_TO_WEIGH:
        return [], 0
    part = np.full(int(family.max()) + 1, -1)
    part[here] = random.permutation(len(here)) % NAME_FOLDS
    target, corunner = (part[family[each % workloads]] for each in (rows.target, rows.corunner))
    folds = []
    for fold in range(min(NAME_FOLDS, len(here))):
        held = (target == fold) | (np.bincount(rows.row, corunner == fold, len(rows)) > 0)
        folds.append((~held, held))
    return folds, len(here)
