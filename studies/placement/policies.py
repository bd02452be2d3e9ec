"""Policies: whether a set of workloads may share a platform, given the limit of each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle.data import Colocations, Runs
from jostle.models import Model
from jostle.operations import quantile_rivals
from jostle.placement import Request, SetBounds, Standard, calibration_runs, level_of_chosen
from studies.placement.sets import MeasuredSets, measured_sets

FACTORS = np.exp(np.linspace(0.0, 2.5, 126))  # of the prediction, from which the tuned one is taken
RIDGE = 1.0

# (n, k) seconds that a policy expects each member of n measured sets to take; no answer is NaN.
Expected = Callable[[MeasuredSets], np.ndarray]
WORST_CASE = 2.0  # times alone, in the rule that takes nothing to be slower


@dataclass(frozen=True)
class NamedPolicy:
    """A set is accepted where everybody measured is expected to keep its limit. expected: by which seconds.
    note: why it accepts nothing, where it cannot answer, or by what it answers."""

    name: str
    expected: Expected
    note: str = ""

    def accepts(self, part: MeasuredSets, limit: np.ndarray) -> np.ndarray:
        """(n,) bool, given limits (n, k)."""
        return kept(part, self.expected(part), limit)


def policies(
    model: Model, learned: Runs, ratios: np.ndarray, share: float, seed: int
) -> list[NamedPolicy]:
    """The policies side by side, simple ones first. learned: the runs that the model was fitted to. share:
    of the late among the chosen, for those policies that aim at one."""
    sets = {c: SetBounds(model, Standard(c), learned) for c in (0.9, 0.99)}
    calibration = measured_sets(calibration_runs(model, learned), model, learned, fewest=2)
    factor = _tuned(sets[0.9], calibration, ratios, share, seed)

    def predicted(part: MeasuredSets) -> np.ndarray:
        return sets[0.9].predicted(part.platform, part.members)

    return [
        NamedPolicy("no sharing", lambda part: np.full(part.members.shape, np.inf)),
        NamedPolicy("pack by slots", lambda part: np.zeros(part.members.shape)),
        NamedPolicy(
            "at most two a node",
            lambda part: np.full(part.members.shape, 0.0 if part.members.shape[1] <= 2 else np.inf),
        ),
        NamedPolicy("worst case 2x", lambda part: WORST_CASE * part.solo),
        NamedPolicy("slowdown = number of tenants", lambda part: part.members.shape[1] * part.solo),
        NamedPolicy("additive rule", AdditiveRule.of(learned, model)),
        NamedPolicy("mean", predicted),
        NamedPolicy("mean x tuned factor", lambda part: factor * predicted(part)),
        *(
            NamedPolicy(name, _rival(kind.of(learned, seed), model))
            for name, kind in quantile_rivals().items()
        ),
        *(NamedPolicy(f"bound {c:g}", _bounds(s)) for c, s in sets.items()),
        _chosen(model, learned, ratios, share),
        NamedPolicy("clairvoyant", lambda part: part.seconds),
    ]


def _bounds(sets: SetBounds) -> Expected:
    return lambda part: sets.of(part.platform, part.members)[0]


def _rival(rival: Any, model: Model) -> Expected:
    """By its bounds at 0.9."""
    names = tuple(model.predictor.workload_names), tuple(model.predictor.platform_names)

    def expected(part: MeasuredSets) -> np.ndarray:
        n, k = part.members.shape
        beside = np.stack([np.delete(part.members, at, axis=1) for at in range(k)], axis=1)
        asked = Colocations(
            *names,
            part.members.reshape(-1),
            np.repeat(part.platform, k),
            np.arange(n * k + 1) * (k - 1),
            beside.reshape(-1),
        )
        return rival.predict_and_bound(asked, 0.9)[1].reshape(n, k)

    return expected


def _chosen(model: Model, learned: Runs, ratios: np.ndarray, share: float) -> NamedPolicy:
    """By bounds as sure as what is placed asks for, replayed on calibration runs."""
    name = f"chosen {share:g}"
    base = SetBounds(model, Standard(1 - share), learned)
    first = base.workload_names[0]
    asked = [Request(first, f"{at}", slowdown=float(x)) for at, x in enumerate(ratios)]
    level = level_of_chosen(base, asked, (), is_least=False)
    if level is None:
        note = "too few calibration runs"
        return NamedPolicy(name, lambda part: np.full(part.members.shape, np.inf), note)
    return NamedPolicy(name, _bounds(base.by(level)), f"by the bound {level:g}")


def kept(part: MeasuredSets, seconds: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """(n,) whether everybody measured is expected to keep its limit; no answer is a no."""
    measured = np.isfinite(part.seconds)
    with np.errstate(invalid="ignore"):
        fine = np.all((seconds <= limit) | ~measured, axis=1)
    return np.logical_and(fine, np.any(measured, axis=1))


def _tuned(
    sets: SetBounds,
    calibration: Sequence[MeasuredSets],
    ratios: np.ndarray,
    share: float,
    seed: int,
) -> float:
    """The least factor with at most the share late among the calibration sets that it accepts."""
    random = np.random.default_rng(seed)
    needed, late = [np.zeros(0)], [np.zeros(0, bool)]
    for part in calibration:
        limit = np.where(
            np.isfinite(part.seconds), random.choice(ratios, part.members.shape) * part.solo, np.inf
        )
        with np.errstate(invalid="ignore", divide="ignore"):
            # A set is accepted by every factor up to this one.
            room = (limit / sets.predicted(part.platform, part.members)).min(axis=1)
        needed.append(np.nan_to_num(room, nan=0.0))
        late.append(part.late(limit))
    room, is_late = np.concatenate(needed), np.concatenate(late)
    for factor in FACTORS:
        taken = room >= factor
        if not taken.any() or is_late[taken].mean() <= share:
            return float(factor)
    return float(FACTORS[-1])


@dataclass(frozen=True)
class AdditiveRule:
    """Slowdown - 1 as a sum over the co-runners: what each does to others, and what each workload suffers.

    press, suffers: (workloads,), by ridge regression on the measured slowdowns.
    """

    press: np.ndarray
    suffers: np.ndarray

    @classmethod
    def of(cls, runs: Runs, model: Model) -> AdditiveRule:
        n = len(model.predictor.workload_names)
        gram, right = RIDGE * np.eye(2 * n), np.zeros(2 * n)
        for part in measured_sets(runs, model, fewest=2):
            k = part.members.shape[1]
            for member in range(k):
                slow = part.seconds[:, member] / part.solo[:, member] - 1
                good = np.isfinite(slow)
                row = np.zeros((int(good.sum()), 2 * n))
                every = np.arange(len(row))
                row[every, n + part.members[good, member]] = k - 1
                for other in range(k):
                    if other != member:
                        np.add.at(row, (every, part.members[good, other]), 1.0)
                gram += row.T @ row
                right += row.T @ slow[good]
        results = np.linalg.solve(gram, right)
        return cls(results[:n], results[n:])

    def __call__(self, part: MeasuredSets) -> np.ndarray:
        """(n, k) seconds."""
        k = part.members.shape[1]
        press = self.press[part.members]
        others = press.sum(axis=1, keepdims=True) - press
        slow = 1 + np.maximum(others + (k - 1) * self.suffers[part.members], 0.0)
        return slow * part.solo
