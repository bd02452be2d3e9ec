"""What is answered by default: learners and plain levels, weighed by how close they come on sets left out.

    log slowdown = level + sum over learners of weight * log slowdown of the learner

No interference (all weights 0) and one level for everything (the mean slowdown) are among what is weighed,
so that the answers are never worse than these by more than chance. Weights: see `jostle.rules`, and `_usual`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jostle.alignment.learning._folds import folds_of
from jostle.alignment.learning._kinds import MIXTURE, PHASES, LearnerKind
from jostle.alignment.learning._learn import (
    MOST_ROWS,
    MOST_ROWS_TO_CHOOSE,
    STRENGTHS,
    Learner,
    fit_learner,
)
from jostle.alignment.learning._rows import AlignedRows
from jostle.rules import greedy_weights, nothing_but_noise, weighted_median

LEAST_WEIGHT = 0.1  # of a learner, under which it is not worth its time and others take its place
LEAST_INSIDE = 0.5  # of the time alone
Offer = tuple[LearnerKind, tuple[str, ...]]
Fit = Callable[[AlignedRows], "Blend"]


@dataclass(frozen=True, eq=False)
class Blend:
    """parts: (weight, learner, places of its rates among those of the model). level: added to the log
    slowdown wherever anyone runs beside."""

    parts: tuple[tuple[float, Learner, tuple[int, ...]], ...]
    level: float

    def slowdown(self, own: np.ndarray, others: np.ndarray) -> np.ndarray:
        """(n,) of (n, d) rates."""
        ratio = np.full(len(own), self.level)
        for weight, learner, at in self.parts:
            ratio += weight * np.log(learner.slowdown(own[:, at], others[:, at]))
        return np.exp(np.where((others > 0).any(axis=1), ratio, 0.0))


def log_level(rows: AlignedRows) -> float:
    """The log slowdown that is nearest to all runs by the mean relative error of the run time."""
    logs = rows.run_logs()
    return weighted_median(logs, np.exp(-logs))


def fit_blend(
    rows: AlignedRows,
    offers: Sequence[Offer],
    seed: int,
    strength: float | None,
    widen: Callable[[AlignedRows], AlignedRows],
) -> tuple[Blend, tuple[str, ...], dict[str, float], Fit]:
    """(the blend, the counters it needs, {what: its weight}, how to fit the same again on other rows).

    widen: adds the slots to the rows, after their counters were taken.
    """
    weights, level = _without_small(*_weights(rows, offers, seed))
    chosen = [(w, *offer) for w, offer in zip(weights, offers, strict=True) if w > 0]
    strengths: dict[int, float | None] = {}
    counters = (
        tuple(dict.fromkeys(name for _, _, names in chosen for name in names)) or offers[0][1]
    )

    def fitted(some: AlignedRows) -> Blend:
        parts = []
        for number, (weight, kind, names) in enumerate(chosen):
            mine = widen(some.with_counters(names))
            every = widen(some.with_counters(counters)).counters
            how_strong = strengths.get(number, strength)
            learner = fit_learner(mine, kind, strength=how_strong, seed=seed)
            strengths[number] = getattr(learner, "strength", None)
            parts.append((float(weight), learner, tuple(every.index(n) for n in mine.counters)))
        # Nobody is quicker for being beside others: below 0 is what was not seen alone.
        return Blend(tuple(parts), level * max(log_level(some), 0.0))

    by_name: dict[str, float] = {"one level": level}
    for weight, kind, _ in chosen:
        by_name[kind.learner] = by_name.get(kind.learner, 0.0) + float(weight)
    return fitted(rows), counters, by_name, fitted


def worth_weighing(offers: Sequence[Offer], rows: AlignedRows) -> list[Offer]:
    """Without what learns inside phases, where less than half of the time is in phases that samples tell."""
    informative = rows.inside_share >= LEAST_INSIDE
    return [offer for offer in offers if informative or offer[0] != PHASES]


def _usual(offers: Sequence[Offer]) -> np.ndarray:
    """(offers + 2,) weights where nothing is closer by more than chance, nor a constant as close: the probes'
    mixture; without one, half the level, and half the learners alike, of each kind the first. Few programs
    choose badly between learners, and what learners say beyond the level is half of it chance. What learns
    inside phases errs most where there is little to learn from: it is taken where that is plainly closer."""
    kinds = [kind for kind, _ in offers]
    weights = np.zeros(len(offers) + 2)
    if MIXTURE in kinds:
        weights[kinds.index(MIXTURE)] = 1.0
        return weights
    first = [kinds.index(kind) for kind in dict.fromkeys(kinds) if kind != PHASES]
    weights[first] = 0.5 / len(first)
    weights[-2] = 0.5
    return weights


def _without_small(weights: np.ndarray, level: float) -> tuple[np.ndarray, float]:
    """The weights of learners that have some, the small ones shared out among all that is left."""
    large = np.where(weights >= LEAST_WEIGHT, weights, 0.0)
    left = large.sum() + level
    share = (weights.sum() + level) / left if left > 0 else 1.0
    return large * share, level * share


def _weights(rows: AlignedRows, offers: Sequence[Offer], seed: int) -> tuple[np.ndarray, float]:
    """((offers,) weights, weight of the level); what is left to 1 is the weight of no interference."""
    if len(np.unique(rows.group)) < 2:
        return np.zeros(len(offers)), 0.5  # one set says little of another
    answers: list[list[np.ndarray]] = [[] for _ in range(len(offers) + 2)]
    # Runs of one target are not many pieces of evidence, so they are drawn together.
    measured, belongs = [], []
    number_of: dict[tuple[str, str] | int, int] = {}
    few = rows.thinned(MOST_ROWS)
    for train, test in folds_of(few, seed):
        learned, test_rows = few.take(train), few.take(test)
        measured.append(test_rows.run_logs())
        targets = [
            few.members[run][:2] if few.members else run
            for run in np.unique(test_rows.run).tolist()
        ]
        belongs += [number_of.setdefault(target, len(number_of)) for target in targets]
        for place, (kind, names) in enumerate(offers):
            mine = learned.with_counters(names)
            choices = STRENGTHS[kind.learner]
            if not kind.takes_rates:
                mine = mine.thinned(MOST_ROWS_TO_CHOOSE)
            model = fit_learner(mine, kind, strength=choices[len(choices) // 2], seed=seed)
            theirs = test_rows.with_counters(names)
            logs = np.log(model.slowdown(theirs.own, theirs.others))
            answers[place].append(test_rows.run_logs(logs))
        answers[-2].append(np.full(len(targets), log_level(learned)))
        answers[-1].append(np.zeros(len(targets)))
    every = np.stack([np.concatenate(each) for each in answers])
    truth, one = np.concatenate(measured), np.array(belongs)
    weights, unseen = greedy_weights(every, truth, one, seed)
    usual = _usual(offers)
    plainly = np.abs(np.expm1(usual @ every - truth))
    constants = np.abs(np.expm1(every[-2:] - truth))
    nearest = int(constants.mean(axis=1).argmin())
    if (
        constants[nearest].mean() <= plainly.mean()
    ):  # what is usual must be closer than any constant
        usual = np.eye(len(offers) + 2)[len(offers) + nearest]
        plainly = constants[nearest]
    if nothing_but_noise(plainly - unseen, one):
        weights, unseen = usual, plainly
    # Answers that are no better than none are none, but not where all are plainly slower than alone.
    if nothing_but_noise(np.abs(np.expm1(-truth)) - unseen, one) and nothing_but_noise(truth, one):
        weights = np.zeros(len(weights))
    return weights[:-2], float(weights[-2])


Learned = Learner | Blend
