"""What is answered by default: whole runs, phases and plain levels, weighed by what they say of sets left
out.

    log slowdown = weight * log slowdown by the core + sum over learners of weight * that of the learner +
    level

The core is of whole runs (`_core`), learners are of periods. Weights are those of greedy selection (see
`jostle.rules`) over windows all of whose programs were left out, and beside them for programs that ran beside
others already, for which the core was asked about sets left out. No interference (all weights 0) and one
level are among what is weighed; what is answered too low or too high on the median of these is one level
more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from jostle.alignment.learning._core import Core
from jostle.alignment.learning._folds import folds_of, folds_of_sets
from jostle.alignment.learning._learn import MOST_ROWS, MOST_ROWS_TO_CHOOSE, Learner, fit_learner
from jostle.alignment.learning._rows import AlignedRows, Member
from jostle.rules import (
    nothing_but_noise,
    relative_error,
    tells_nothing,
    weighted_median,
    weights_of_unseen,
    without_light,
)

UNHEARD, NEW, KNOWN = range(3)  # names: not the core's; in no window learned from; all in some
Counters = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Blend:
    """core: of whole runs. parts: learners, and places of their rates among those of the model. weight: (3,
    1 + parts) of the core and of each, by who is asked about; level: (3,) added to the log slowdown wherever
    anyone runs beside."""

    core: Core
    parts: tuple[tuple[Learner, tuple[int, ...]], ...]
    weight: np.ndarray
    level: np.ndarray

    def beside(self, member: Member) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The slowdown (n,) of (n, d) rates of a workload beside its co-runners."""
        (log,), (known,) = self.core.answers([member])
        kind = UNHEARD if np.isnan(log) else KNOWN if known else NEW
        base = float(self.level[kind] + self.weight[kind, 0] * np.nan_to_num(log))

        def slowdown(own: np.ndarray, others: np.ndarray) -> np.ndarray:
            logs = np.full(len(own), base)
            for weight, (learner, at) in zip(self.weight[kind, 1:], self.parts, strict=True):
                if weight:
                    logs += weight * np.log(learner.slowdown(own[:, at], others[:, at]))
            return np.exp(np.where((others > 0).any(axis=1), logs, 0.0))

        return slowdown


def log_level(rows: AlignedRows) -> float:
    """The log slowdown that is nearest to all runs by the mean relative error of the run time."""
    logs = rows.run_logs()
    return weighted_median(logs, np.exp(-logs))


def fit_blend(
    rows: AlignedRows,
    offers: Mapping[str, Counters],
    fit_core: Callable[[AlignedRows], Core],
    seed: int,
) -> tuple[Blend, Counters, str]:
    """(the blend, the counters that it needs, what weighs how much). offers: the counters of each learner."""
    weight, level = np.zeros((3, len(offers) + 3)), np.zeros(3)
    weight[:, -2:] = 0.5  # one set says little of another
    if len(np.unique(rows.group)) >= 2:
        weight, level = _weights(rows, offers, fit_core, seed)
    weight = without_light(weight)
    used = [i for i in range(len(offers)) if weight[:, 1 + i].any()]
    names = [list(offers)[i] for i in used]
    counters = tuple(dict.fromkeys(name for n in names for name in offers[n])) or rows.counters[:1]
    parts = []
    for name in names:
        learner = fit_learner(rows.with_counters(offers[name]), name, seed=seed)
        parts.append((learner, tuple(counters.index(one) for one in offers[name])))
    # Nobody is quicker for being beside others: below 0 is what was not seen alone.
    level = level + weight[:, -2] * max(log_level(rows), 0.0)
    every = ["whole runs", *offers, "one level", "no interference"]
    shares = [
        f"{name} {share:.0%}"
        for name, share in zip(every, weight[NEW], strict=True)
        if share >= 0.005
    ]
    used_weight = weight[:, [0, *(1 + i for i in used)]]
    return Blend(fit_core(rows), tuple(parts), used_weight, level), counters, ", ".join(shares)


def _weights(
    rows: AlignedRows,
    offers: Mapping[str, Counters],
    fit_core: Callable[[AlignedRows], Core],
    seed: int,
) -> tuple[np.ndarray, np.ndarray]:
    """((3, 1 + offers + 2) weights of the core, the learners, one level and none; (3,) levels)."""
    few, numbers = rows.thinned(MOST_ROWS), np.unique(rows.run)
    by_core = dict.fromkeys(numbers.tolist(), np.nan)
    for train, test in folds_of_sets(few, seed):
        some = _tested(few, test)
        logs = fit_core(few.take(train)).answers([few.members[i] for i in some])[0]
        by_core.update(zip(some, logs.tolist(), strict=True))
    answered, measured, tested = [], [], []
    for train, test in folds_of(few, seed):
        learned, asked, some = few.take(train), few.take(test), _tested(few, test)
        logs = [fit_core(learned).answers([few.members[i] for i in some])[0]]
        for name, counters in offers.items():
            mine = learned.with_counters(counters).thinned(MOST_ROWS_TO_CHOOSE)
            model, theirs = fit_learner(mine, name, seed=seed), asked.with_counters(counters)
            logs.append(asked.run_logs(np.log(model.slowdown(theirs.own, theirs.others))))
        constants = [np.full(len(some), log_level(learned)), np.zeros(len(some))]
        answered.append(np.stack([*logs, *constants]))
        measured.append(asked.run_logs())
        tested += some
    every, truth = np.concatenate(answered, axis=1), np.concatenate(measured)
    # Runs of one target are not many pieces of evidence, so they are drawn together.
    targets = [few.members[i][:2] for i in tested]
    belongs = np.array([sorted(set(targets)).index(one) for one in targets])
    known = np.stack([np.array([by_core[i] for i in tested]), *every[1:]])
    out, level = np.zeros((3, len(every))), np.zeros(3)
    for kind, some in ((UNHEARD, every[1:]), (NEW, every), (KNOWN, known)):
        good = np.isfinite(some).all(axis=0)
        if good.any():
            mine = some[:, good], truth[good], belongs[good]
            out[kind, -len(some) :], level[kind] = _chosen(*mine, seed)
        else:
            out[kind], level[kind] = out[max(kind - 1, 0)], level[max(kind - 1, 0)]
    return out, level


def _tested(rows: AlignedRows, test: np.ndarray) -> list[int]:
    """Numbers of the runs of these rows, as `run_logs` has them."""
    return np.unique(rows.run[test]).tolist()


def _chosen(
    every: np.ndarray, truth: np.ndarray, belongs: np.ndarray, seed: int
) -> tuple[np.ndarray, float]:
    """((k,) weights of answers (k, n), the last of which is none; the level that is then missing)."""
    weights, gain = weights_of_unseen(every, truth, belongs, seed)
    # No better than no interference is none, but not where all are plainly slower than alone.
    if tells_nothing(np.nan, gain, truth, belongs, belongs):
        return np.eye(len(every))[-1], 0.0
    rest = truth - weights @ every
    missing = weighted_median(rest, np.exp(-rest))
    if nothing_but_noise(relative_error(-rest) - relative_error(missing - rest), belongs):
        missing = 0.0
    return weights, missing
