"""Sessions (campaigns) in which all runs took longer or shorter: told apart before anything is learned.

    log(runtime) = alone + what co-runners add + what the set itself adds + session + session on the platform

What a session adds to runs beside others alone is told apart from what it adds to all. Sessions count only
where runs that were left out are closer by them, and are centred on each platform: a question that names
none is answered for the usual session there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._base.tensors import Serializable
from jostle.learn.rules._random_effects import EffectsByKind, Side
from jostle.learn.rules._shrunk_weights import nothing_but_noise, relative_error

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.learn.ensemble._training_data import CanonicalRuns

ROUNDS = 20
MOST_ROWS = 20_000  # that sessions are told by
LEAST = 0.003  # cost of not knowing the session, under which it is nothing
FARTHEST = 30.0  # log factor of a session that was never met
EVIDENCE = 2.0  # standard errors by which answers must be closer with sessions


@dataclass(frozen=True)
class Sessions(Serializable):
    """names: sorted, of campaigns. effect: (platforms, sessions) log of their factor beside others, alone: of
    that of runs alone, 0 where sessions tell nothing. cost: () mean relative error of who takes a session
    for the usual one. spread: (2,) by how much a session that was left out is off from the usual one, beside
    others and alone: the scale of Student's law with `freedom` ()."""

    names: tuple[str, ...]
    effect: np.ndarray
    alone: np.ndarray
    cost: np.ndarray
    spread: np.ndarray = field(default_factory=lambda: np.zeros(2))
    freedom: np.ndarray = field(default_factory=lambda: np.array(1.0))

    def of(self, platform: np.ndarray, session: Any, is_alone: np.ndarray) -> np.ndarray:
        """(n,) logs. session: (n,) or one for all. is_alone: (n,) bool."""
        return np.where(is_alone, self.alone[platform, session], self.effect[platform, session])

    def taken_off(self, runs: Runs, platform: np.ndarray) -> Runs:
        """The same runs, as long as they would have taken in the usual session. platform: (n,) codes."""
        place = {name: at for at, name in enumerate(self.names)}
        labels = runs.table.column("campaign").to_pylist()
        session = np.array([place.get(name or "", -1) for name in labels], np.int64)
        log = self.of(platform, session, runs.colocations.number_of_corunners == 0)
        # Of a session never met nothing is known.
        return runs.with_one_company(runs.runtime_seconds / np.exp(np.where(session < 0, 0.0, log)))

    def in_unknown(self, runs: Runs, seed: Sequence[int]) -> Runs:
        """Runs of the usual session, as long as they may take in one that was never met: each in another."""
        from scipy.special import stdtrit

        n = len(runs)
        level = (np.random.default_rng(seed).permutation(n) + 0.5) / n
        spread = self.spread[(runs.colocations.number_of_corunners == 0).astype(int)]
        log = np.clip(spread * stdtrit(float(self.freedom), level), -FARTHEST, FARTHEST)
        return runs.with_one_company(runs.runtime_seconds * np.exp(log))


def fit_sessions(campaign: CanonicalRuns, seed: int) -> Sessions | None:
    """None where all runs are of one."""
    labels = [name or "" for name in campaign.runs.table.column("campaign").to_pylist()]
    names = tuple(sorted(set(labels)))
    if len(names) < 2:
        return None
    platforms = campaign.size[0]
    known = np.flatnonzero(np.isfinite(campaign.log_alone.ravel()[campaign.cell]))
    random = np.random.default_rng([seed, 47])
    if len(known) > MOST_ROWS:
        known = np.sort(random.permutation(known)[:MOST_ROWS])
    part = campaign.take(np.isin(np.arange(len(campaign)), known))
    place = {name: at for at, name in enumerate(names)}
    session = np.array([place[labels[at]] for at in known], np.int64)
    none = np.zeros((platforms, len(names)))
    nothing = Sessions(names, none, none, np.array(0.0))
    if len(np.unique(session)) < 2:
        return nothing
    rows = _SessionRows.of(part, session, len(names))
    # Sets of workloads are left out, and single runs alone.
    unit = np.where(part.degree > 0, part.sets(everywhere=True), np.arange(len(part)))
    _, unit = np.unique(unit, return_inverse=True)
    half = random.permutation(int(unit.max()) + 1)[unit] % 2
    gain = np.zeros(len(part))
    for one in (0, 1):
        inside, asked = np.flatnonzero(half != one), np.flatnonzero(half == one)
        off = [
            relative_error(rows.answers(inside, asked, by) - rows.value[asked])
            for by in (False, True)
        ]
        gain[asked] = off[0] - off[1]
    if nothing_but_noise(gain, unit, EVIDENCE):
        return nothing
    alone, more = rows.effects(len(names))
    beside, count = part.degree > 0, np.zeros_like(alone)
    np.add.at(count, (part.codes[1], session), 1)
    of_beside = np.zeros_like(alone)
    np.add.at(of_beside, (part.codes[1][beside], session[beside]), 1)
    alone = _centred(alone, count)
    effect = alone + _centred(more, of_beside)
    cost = np.average(np.abs(np.expm1(effect)), weights=(count > 0) + 1e-12)
    if cost < LEAST:
        return nothing
    spread = [_spread(effect, of_beside), _spread(alone, count - of_beside)]
    return Sessions(
        names, effect, alone, np.array(cost), np.array(spread), np.array(len(names) - 1.0)
    )


def _spread(effect: np.ndarray, count: np.ndarray) -> float:
    """Of a new session about the mean of a platform's runs, by sessions on platforms that had several."""
    known, square, free, apart = count > 0, 0.0, 0, [0.0]
    for own, times, here in zip(effect, count, known, strict=True):
        if here.sum() > 1:
            square += float(((own[here] - own[here].mean()) ** 2).sum())
            free += int(here.sum()) - 1
            apart.append(float(((times / times.sum()) ** 2).sum()))
    usual = float(np.mean(apart[1:] or apart))
    return float(np.sqrt(square / max(free, 1) * (1 + usual)))


def _centred(effect: np.ndarray, count: np.ndarray) -> np.ndarray:
    """(platforms, sessions) about the mean of each platform's runs."""
    return effect - ((effect * count).sum(1) / np.maximum(count.sum(1), 1))[:, None]


@dataclass(frozen=True)
class _SessionRows:
    """n runs. value: (n,) log runtime over the time alone. sides: of all effects, those of sessions last."""

    value: np.ndarray
    sides: tuple[Side, ...]

    @classmethod
    def of(cls, part: CanonicalRuns, session: np.ndarray, sessions: int) -> _SessionRows:
        (p, w), (workload, platform, corunner), degree = part.size, part.codes, part.degree
        own, one, beside = np.arange(len(part)), np.ones(len(part)), (part.degree > 0).astype(float)
        row = np.repeat(own, degree)
        share = 1.0 / degree[row]
        most = int(degree.max(initial=0))
        _, here = np.unique(
            part.sets(everywhere=False) + part.codes[0].astype(np.uint64), return_inverse=True
        )
        here = here.reshape(-1)
        sides = (
            (own, part.cell, one, p * w),
            (own, platform * (most + 1) + degree, one, p * (most + 1)),
            (own, workload, beside, w),
            (own, part.cell, beside, p * w),
            (row, corunner, share, w),
            (row, platform[row] * w + corunner, share, p * w),
            (own, here, beside, int(here.max(initial=0)) + 1),
            (own, session, one, sessions),
            (own, platform * sessions + session, one, p * sessions),
            (own, session, beside, sessions),
            (own, platform * sessions + session, beside, p * sessions),
        )
        value = part.log_runtime - part.log_alone.ravel()[part.cell]
        return cls(value, sides)

    def answers(self, inside: np.ndarray, asked: np.ndarray, by_session: bool) -> np.ndarray:
        """(k,) of the rows that are asked, learned from those inside."""
        sides = self.sides if by_session else self.sides[:-4]
        learned = self._learned(inside, sides)
        out = np.full(len(self.value), learned.mean)
        for effect, (at, code, weight, _) in zip(learned.parts(), sides, strict=True):
            np.add.at(out, at, effect[code] * weight)
        return out[asked]

    def effects(self, sessions: int) -> tuple[np.ndarray, np.ndarray]:
        """(platforms, sessions) of all runs, and what those beside others add to that."""
        parts = self._learned(np.arange(len(self.value)), self.sides).parts()[-4:]
        every, here, more, more_here = (each.reshape(-1, sessions) for each in parts)
        return every + here, more + more_here

    def _learned(self, inside: np.ndarray, sides: Sequence[Side]) -> EffectsByKind:
        place = np.full(len(self.value), -1)
        place[inside] = np.arange(len(inside))
        own = []
        for at, code, weight, size in sides:
            kept = place[at] >= 0
            own.append((place[at[kept]], code[kept], weight[kept], size))
        learned = EffectsByKind(self.value[inside], np.ones(len(inside)), own)
        learned.learn(ROUNDS)
        return learned
