"""The members weighed by how well they say co-runs that they have not seen.

Weights are found twice: for co-runs of workloads that were measured beside others, leaving out sets of
workloads, and for those of others, leaving out workloads, as all methods weigh what they know (jostle.rules).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from jostle.accelerator.learned._coruns import CoRuns
from jostle.accelerator.learned._delays import Delays, Sharing
from jostle.accelerator.learned._members import (
    EFFECTS,
    LEVEL,
    LOG,
    NOTHING,
    PROCESS,
    SCALES,
    SECONDS,
    SHARES,
    CoRunMember,
    CoRunRecipe,
    Simulated,
    answers_left_out,
    fit_member,
    learned_of,
)
from jostle.accelerator.learned._process import CoRunProcess
from jostle.rules import (
    FEWEST_TO_WEIGH,
    greedy_weights,
    relative_error,
    weights_of_unseen,
    without_light,
)

KEPT_WAYS = {SECONDS: 2, LOG: 1, SHARES: 1}  # to share, that processes are fitted on
KEPT_OF_FEW = 5  # in seconds, with fewer sets than can tell
CAN_TELL = 48  # sets, from which on it is known which way to share is right
# Root mean square differences of delays over themselves, under which two ways are one, or nearly so.
EQUAL, ALIKE = 1e-5, 0.15
LEAST_BELIEVED = 1e-3  # a scale, however plain the evidence, which sets left out may overrule


@dataclass(frozen=True, eq=False)
class CoRunStack:
    """members. weights: (2, members), for workloads measured beside others, and where one of them was not.
    seen: (w,) bool, which were."""

    members: tuple[CoRunMember, ...]
    weights: np.ndarray
    seen: np.ndarray

    @property
    def ways(self) -> set[Sharing]:
        """To share, that the members simulate."""
        return {m.recipe.way for m in self.members if m.recipe.way is not None}

    @property
    def main_way(self) -> Sharing | None:
        """The way to share that has most weight for workloads measured beside others."""
        total: dict[Sharing, float] = {}
        for member, weight in zip(self.members, self.weights[0].tolist(), strict=True):
            if member.recipe.way is not None:
                total[member.recipe.way] = total.get(member.recipe.way, 0.0) + weight
        return max(total, key=lambda way: (total[way], way)) if total else None

    def without(self, learned: CoRuns, part: np.ndarray) -> CoRunStack:
        """As learned without a part of the rows, at the same strengths and weights."""
        members = tuple(
            m if m.process is None else replace(m, process=m.process.without(part))
            for m in self.members
        )
        seen = np.any(np.delete(learned.members, part, axis=0) > 0, axis=0)
        return CoRunStack(members, self.weights, np.asarray(seen))

    def log_slowdown(self, rows: CoRuns, delays: Delays) -> np.ndarray:
        """(n,) of rows with co-runners."""
        simulated = Simulated.of(rows, delays, self.ways)
        answers = np.stack([member.log_slowdown(rows, simulated) for member in self.members])
        is_new = ((rows.members > 0) & ~self.seen).any(axis=1)
        return (self.weights[is_new.astype(int)].T * answers).sum(axis=0)


@dataclass(frozen=True)
class LeftOutErrors:
    """Mean relative errors on sets of workloads left out: by the stack, by one without simulation, and by
    the best of the simple rules, named. NaN where too few sets are known."""

    stack: float
    without_simulation: float
    simple: float
    simple_name: str


UNKNOWN_ERRORS = LeftOutErrors(float("nan"), float("nan"), float("nan"), NOTHING)


def fit_corun_stack(
    rows: CoRuns, delays: Delays, ways: Sequence[Sharing], features: np.ndarray, seed: int
) -> tuple[CoRunStack, LeftOutErrors]:
    """rows: one of each cell. features: (w, f) of the traces."""
    simulated = Simulated.of(rows, delays, set(ways))
    recipes = [CoRunRecipe(NOTHING)]
    for scale in SCALES:
        recipes += [CoRunRecipe(rest, scale) for rest in (LEVEL, EFFECTS, PROCESS)]
    members = [fit_member(recipe, rows, simulated, features, seed) for recipe in recipes]
    for scale in SCALES:
        effects = members[recipes.index(CoRunRecipe(EFFECTS, scale))].process
        assert effects is not None
        best = _best_ways(rows, simulated, ways, scale, effects)
        more = [CoRunRecipe(rest, scale, way) for way in best[:1] for rest in (NOTHING, LEVEL)]
        more += [CoRunRecipe(PROCESS, scale, way) for way in best]
        if len(np.unique(rows.together)) < CAN_TELL:
            # Few sets say little of what counts at all, so what is expected of it is tried in two ways.
            more += [CoRunRecipe(PROCESS, scale, way, is_wide=True) for way in best[:1]]
        members += [fit_member(recipe, rows, simulated, features, seed) for recipe in more]
    weights, errors = _weighed(members, rows, simulated, seed)
    members_used = np.flatnonzero((weights > 0).any(axis=0))
    is_member = np.any(rows.members > 0, axis=0)
    kept_weights = np.ascontiguousarray(weights[:, members_used])
    return CoRunStack(tuple(members[k] for k in members_used), kept_weights, is_member), errors


def simulation_alone(way: Sharing, workloads: int) -> CoRunStack:
    """The slowdown as simulated, where no run says otherwise."""
    member = CoRunMember(CoRunRecipe(NOTHING, LOG, way), None, 1.0, float("inf"))
    return CoRunStack((member,), np.ones((2, 1)), np.zeros(workloads, bool))


def _best_ways(
    rows: CoRuns,
    simulated: Simulated,
    ways: Sequence[Sharing],
    scale: str,
    effects: CoRunProcess,
) -> list[Sharing]:
    """The ways to share whose delays leave least to sets left out, by effects of fixed strengths."""
    sets = [np.flatnonzero(rows.together == code) for code in np.unique(rows.together)]
    assert effects.inverse is not None
    bases = np.stack([simulated.base(CoRunRecipe(PROCESS, scale, way)) for way in ways])
    off = np.zeros(len(ways))
    left = (learned_of(rows, scale) - bases).T
    weights = effects.inverse @ left
    # By which what is missed becomes a relative error.
    unit = {SECONDS: rows.seconds, LOG: np.ones(len(rows)), SHARES: rows.seconds / rows.solo}[scale]
    for part in sets:
        missed = np.linalg.solve(effects.inverse[np.ix_(part, part)], weights[part])
        off += (np.abs(missed) / unit[part, None]).sum(axis=0)
    order = np.argsort(off, kind="stable")
    # Few sets cannot tell which way is right, so several are kept that are not nearly one.
    can_tell = len(sets) >= CAN_TELL or scale != SECONDS
    most, alike = (KEPT_WAYS[scale], EQUAL) if can_tell else (KEPT_OF_FEW, ALIKE)
    best: list[int] = []
    for way in order:
        size = np.sqrt(np.mean(bases[way] ** 2))
        apart = [np.sqrt(np.mean((bases[way] - bases[k]) ** 2)) for k in best]
        if size > 0 and all(each > alike * size for each in apart):
            best.append(int(way))
    return [ways[k] for k in best[:most]]


def _weighed(
    members: Sequence[CoRunMember], rows: CoRuns, simulated: Simulated, seed: int
) -> tuple[np.ndarray, LeftOutErrors]:
    """((2, members) weights, errors on sets left out)."""
    true = np.log(rows.seconds / rows.solo)
    codes = rows.together
    sets = [np.flatnonzero(codes == code) for code in np.unique(codes)]
    if len(sets) < FEWEST_TO_WEIGH:
        usual = _usual(members)
        return np.stack([usual, usual]), UNKNOWN_ERRORS
    order = np.concatenate(sets)
    believed = _believed(members, rows)

    def weights_by(answers: np.ndarray, true: np.ndarray, part: np.ndarray) -> np.ndarray:
        return without_light(weights_of_unseen(answers, true, part, seed, believed)[0])

    answers = np.stack([answers_left_out(m, rows, simulated, sets) for m in members])
    weight = for_new = weights_by(answers, true[order], codes[order])
    workloads = np.flatnonzero((rows.members > 0).any(axis=0))
    by_name = [np.flatnonzero(rows.members[:, name] > 0) for name in workloads]
    if len(by_name) >= FEWEST_TO_WEIGH and max(map(len, by_name)) < len(rows):
        place = np.concatenate(by_name)
        of_name = np.repeat(workloads, list(map(len, by_name)))
        new = np.stack([answers_left_out(m, rows, simulated, by_name) for m in members])
        for_new = weights_by(new, true[place], of_name)
    error = _error_of(answers, true[order])
    plain = np.array([m.recipe.way is None for m in members])
    bare, _ = greedy_weights(answers[plain], true[order], codes[order], seed)
    simple = [k for k, m in enumerate(members) if m.recipe.rest != PROCESS and plain[k]]
    best = min(simple, key=lambda k: error[k])
    return np.stack([weight, for_new]), LeftOutErrors(
        float(_error_of(weight @ answers, true[order])),
        float(_error_of(bare @ answers[plain], true[order])),
        float(error[best]),
        members[best].recipe.label,
    )


def _error_of(answers: np.ndarray, true: np.ndarray) -> np.ndarray:
    """(members,) mean relative errors of log slowdowns (members, n), or of one (n,)."""
    return np.maximum(relative_error(answers - true).mean(axis=-1), 1e-9)


def _usual(members: Sequence[CoRunMember]) -> np.ndarray:
    """Weights where nothing could be tried: all to the levels."""
    weights = np.array([float(m.recipe.rest == LEVEL) for m in members])
    return weights / weights.sum()


def _believed(members: Sequence[CoRunMember], rows: CoRuns) -> np.ndarray:
    """(members,) how likely it is that what is added follows the member's scale, by the evidence of the
    processes without simulation, of the seconds learned from: few sets left out cannot tell."""
    log_unit = {SECONDS: np.zeros(1), LOG: np.log(rows.seconds), SHARES: np.log(rows.solo)}
    known = {
        m.recipe.scale: m.process.evidence - float(log_unit[m.recipe.scale].sum())
        for m in members
        if m.process is not None and m.recipe.rest == PROCESS and m.recipe.way is None
    }
    most = max(known.values())
    share = {scale: np.exp(belief - most) for scale, belief in known.items()}
    total = sum(share.values())
    of_scale = [1.0 if m.recipe.rest == NOTHING else share[m.recipe.scale] / total for m in members]
    return np.maximum(of_scale, LEAST_BELIEVED)
