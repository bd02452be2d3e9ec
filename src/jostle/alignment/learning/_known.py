"""Programs that ran beside others already: what they showed there, beside what their counters say.

    log slowdown = share * (blend) + level + target's effect + mean of the co-runners' effects

for windows all of whose members were in windows learned from. Effects are normal around 0: the counters are
the prior, and effects shrink to it (ridge). How much, and whether the counters or one level for everything is
what effects are added to, is chosen by sets left out whose members are known from others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from jostle.alignment.learning._blend import Blend, log_level
from jostle.alignment.learning._folds import folds_of_sets
from jostle.alignment.learning._rows import AlignedRows
from jostle.rules import greedy_weights

FOLDS = 3
SHRINKAGES = (0.3, 1.0, 3.0, 10.0)  # runs that the prior weighs beside a program's own
LEAST_GAIN = 0.02  # of the error, under which effects are left out
Member = tuple[str, str, tuple[str, ...]]
Name = tuple[str, str]


@dataclass(frozen=True)
class KnownPrograms:
    """share: of the log slowdown by the counters. level: added to it. target, corunner: effects by (platform,
    workload); empty where no effects were worth learning."""

    share: float = 1.0
    level: float = 0.0
    target: dict[Name, float] = field(default_factory=dict)
    corunner: dict[Name, float] = field(default_factory=dict)

    def of(self, member: Member) -> tuple[float, float]:
        """(share, what is added to the log slowdown) of a workload beside others."""
        platform, name, others = member
        own = self.target.get((platform, name))
        beside = [self.corunner.get((platform, other)) for other in others]
        if own is None or None in beside or not beside:
            return 1.0, 0.0
        return self.share, self.level + own + float(np.mean([b for b in beside if b is not None]))


@dataclass(frozen=True)
class _Runs:
    """Runs that have rows: who they are, their measured log slowdowns, those of the counters, and the numbers
    of their sets."""

    members: list[Member]
    measured: np.ndarray
    counters: np.ndarray
    sets: np.ndarray

    @classmethod
    def of(cls, rows: AlignedRows, blend: Blend) -> _Runs:
        number = np.unique(rows.run)
        sets = np.zeros(len(number), np.int64)
        sets[rows.run_index] = rows.group
        logs = rows.run_logs(np.log(blend.slowdown(rows.own, rows.others)))
        return cls([rows.members[i] for i in number.tolist()], rows.run_logs(), logs, sets)


@dataclass(frozen=True)
class _Effects:
    target: dict[Name, float]
    corunner: dict[Name, float]

    def of(self, members: Sequence[Member]) -> np.ndarray:
        """(n,) 0 for those never met."""
        return np.array(
            [
                self.target.get((p, w), 0.0)
                + np.mean([self.corunner.get((p, o), 0.0) for o in others])
                for p, w, others in members
            ]
        )


def _effects(members: Sequence[Member], rest: np.ndarray, shrinkage: float) -> _Effects:
    """Ridge on who is the target and who are the co-runners. rest: (n,) log slowdown to explain."""
    targets = sorted({(p, w) for p, w, _ in members})
    corunners = sorted({(p, o) for p, _, others in members for o in others})
    first = {key: i for i, key in enumerate(targets)}
    second = {key: len(targets) + i for i, key in enumerate(corunners)}
    design = np.zeros((len(members), len(targets) + len(corunners)))
    for row, (p, w, others) in enumerate(members):
        design[row, first[(p, w)]] = 1.0
        for other in others:
            design[row, second[(p, other)]] += 1.0 / len(others)
    gram = design.T @ design + shrinkage * np.eye(design.shape[1])
    effects = np.linalg.solve(gram, design.T @ rest).tolist()
    return _Effects(
        {key: effects[i] for key, i in first.items()},
        {key: effects[i] for key, i in second.items()},
    )


def learn_known(
    rows: AlignedRows, blend: Blend, fit: Callable[[np.ndarray], Blend], seed: int
) -> KnownPrograms:
    """fit: makes the same blend of those rows where a mask is true."""
    if not rows.members or len(np.unique(rows.group)) < 2 * FOLDS:
        return KnownPrograms()
    offers = [(by_counters, s) for by_counters in (True, False) for s in SHRINKAGES]
    answers, measured, sets = [], [], []
    for train, test in folds_of_sets(rows, seed, FOLDS):
        other = fit(train)
        learned, test_rows = _Runs.of(rows.take(train), other), _Runs.of(rows.take(test), other)
        plain = log_level(rows.take(train))
        base = [
            (learned.counters, test_rows.counters)
            if by_counters
            else (np.full(len(learned.sets), plain), np.full(len(test_rows.sets), plain))
            for by_counters, _ in offers
        ]
        programs = [
            there + _effects(learned.members, learned.measured - here, s).of(test_rows.members)
            for (here, there), (_, s) in zip(base, offers, strict=True)
        ]
        answers.append(np.stack([test_rows.counters, *programs]))
        measured.append(test_rows.measured)
        sets.append(test_rows.sets)
    every, truth = np.concatenate(answers, axis=1), np.concatenate(measured)
    weights, unseen = greedy_weights(every, truth, np.concatenate(sets), seed)
    plainly = np.abs(np.expm1(every[0] - truth))
    tried = np.isfinite(unseen)
    if not tried.any() or unseen[tried].mean() > (1 - LEAST_GAIN) * plainly[tried].mean():
        return KnownPrograms()
    runs, plain = _Runs.of(rows, blend), log_level(rows)
    target: dict[Name, float] = {}
    corunner: dict[Name, float] = {}
    share = float(weights[0])
    for weight, (by_counters, shrinkage) in zip(weights[1:].tolist(), offers, strict=True):
        share += weight if by_counters else 0.0
        here = runs.counters if by_counters else plain
        effects = _effects(runs.members, runs.measured - here, shrinkage)
        for total, mine in ((target, effects.target), (corunner, effects.corunner)):
            for key, value in mine.items():
                total[key] = total.get(key, 0.0) + weight * value
    return KnownPrograms(share, (1 - share) * plain, target, corunner)
