"""The members weighed by how well they say co-runs that they have not seen.

Sets of workloads are left out, and workloads, each in closed form, so that there are as many trials as sets
and workloads; what the members say then is weighed as all experts are (jostle.ensemble).
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
from jostle.ensemble import NEW_NAME, NEW_SET, Trial, weights_of
from jostle.rules import relative_error

KEPT_WAYS = {SECONDS: 2, LOG: 1, SHARES: 1}  # to share, that processes are fitted on
KEPT_OF_FEW = 5  # in seconds, with fewer sets than can tell
CAN_TELL = 48  # sets, from which on it is known which way to share is right
# Root mean square differences of delays over themselves, under which two ways are one, or nearly so.
EQUAL, ALIKE = 1e-5, 0.15
LEAST_BELIEVED = 1e-3  # a scale, however plain the evidence, which sets left out may overrule


@dataclass(frozen=True, eq=False)
class CoRunStack:
    """members. weights: (kinds, most + 1, members), of questions of each kind beside so many. seen: (w,)
    bool, who was measured beside others."""

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
        weights = self.weights[NEW_SET, -1].tolist()
        for member, weight in zip(self.members, weights, strict=True):
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
        kind = np.where(is_new, NEW_NAME, NEW_SET)
        degree = np.minimum(rows.degree, self.weights.shape[1] - 1)
        return (self.weights[kind, degree].T * answers).sum(axis=0)


def fit_corun_stack(
    rows: CoRuns, delays: Delays, ways: Sequence[Sharing], features: np.ndarray, seed: int
) -> tuple[CoRunStack, str]:
    """(what answers, a note on sets left out). rows: one of each cell. features: (w, f) of the traces."""
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
    weights, note = _weighed(members, rows, simulated, seed)
    used = np.flatnonzero((weights > 0).any(axis=(0, 1)))
    kept, is_member = np.ascontiguousarray(weights[..., used]), rows.members.sum(axis=0) > 0
    return CoRunStack(tuple(members[k] for k in used), kept, is_member), note


def simulation_alone(way: Sharing, workloads: int) -> CoRunStack:
    """The slowdown as simulated, where no run says otherwise."""
    member = CoRunMember(CoRunRecipe(NOTHING, LOG, way), None, 1.0, float("inf"))
    return CoRunStack((member,), np.ones((NEW_NAME + 1, 1, 1)), np.zeros(workloads, bool))


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
) -> tuple[np.ndarray, str]:
    """((kinds, most + 1, members) weights, a note on sets left out)."""
    sets = [np.flatnonzero(rows.together == code) for code in np.unique(rows.together)]
    by_name = [np.flatnonzero(column > 0) for column in rows.members.T if column.any()]
    # Without all rows nothing is known that could be weighed.
    parts = [part for part in (*sets, *by_name) if len(part) < len(rows)]
    count = sum(len(part) < len(rows) for part in sets)
    order = np.concatenate([np.zeros(0, np.int64), *parts])
    unit = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    trial = Trial(
        np.stack([answers_left_out(m, rows, simulated, parts) for m in members]),
        np.log(rows.seconds / rows.solo)[order],
        unit,
        np.where(unit < count, NEW_SET, NEW_NAME),
        rows.degree[order],
        order,
        rows.platform[order] * rows.beside.shape[1] + rows.target[order],
    )
    most, believed = int(rows.degree.max()), _believed(members, rows)
    of_sets = trial.of(NEW_SET)

    def weights_of_some(kept: np.ndarray) -> np.ndarray:
        mine = [members[k].recipe for k in kept]
        labels = tuple("level" if r.rest == LEVEL else r.label for r in mine)
        about = replace(trial, answer=trial.answer[kept])
        return weights_of(labels, about, most, float("nan"), seed, believed[kept], is_sharp=True)

    def missed(weight: np.ndarray, kept: np.ndarray) -> float:
        answer = (weight[NEW_SET, of_sets.degree].T * of_sets.answer[kept]).sum(axis=0)
        return float(relative_error(answer - of_sets.log_slowdown).mean())

    every = np.arange(len(members))
    weight = weights_of_some(every)
    if not count:
        return weight, "one set of workloads, too few to weigh what it says"
    plain = [k for k in every.tolist() if members[k].recipe.way is None]
    each = relative_error(of_sets.answer - of_sets.log_slowdown).mean(axis=1)
    best = min((k for k in plain if members[k].recipe.rest != PROCESS), key=lambda k: each[k])
    bare = missed(weights_of_some(np.array(plain)), np.array(plain))
    return weight, (
        f"sets of workloads left out are missed by {missed(weight, every):.1%} in the mean, by {bare:.1%} "
        f"without simulation, and by {each[best]:.1%} by the best simple rule ({members[best].recipe.label})"
    )


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
