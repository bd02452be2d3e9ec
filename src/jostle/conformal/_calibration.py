"""Split conformal bounds, one-sided, in pools by number of co-runners and evidence class.

Source: Pitot (MLSys 2025), Sec. 3.4 with Mondrian pools (Vovk et al. 2003). Which of the predictor's
candidates bounds a pool is chosen by the margin it gives on a *selection* part, and the chosen one
is calibrated on another part, so that choosing does not spend the guarantee. Choosing anew for every
confidence, as the paper does, can swap a wide bound for a narrower one on the way up. Here a way to bound
may be staged, each for its range of confidences (see Candidates.until), and the bound is
the largest of what its stages say up to the confidence: never lower than the stage that speaks, so it
holds, and it never falls as confidence rises.

A question is bounded by the calibration runs with as many co-runners and of its own evidence class. Where
they are too few, runs of the next weaker classes join, step by step; then, beside others, runs with other
numbers of co-runners; then runs of names that were left out of further fits, where there are any. A run of
a stronger class never bounds a weaker one. More co-runners than any run had are bounded by the largest sets,
left out of one more fit, as far as these were beyond what that had learned from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle._base.tensors import UNSAVED, Serializable
from jostle.conformal._bounds import (
    CALIBRATED,
    CHANGED_COMPANY,
    CROSS_VALIDATED,
    GUARANTEED,
    LARGER_SETS,
    OUTSIDE_MIX,
    UNKNOWN_SESSION,
    Bounds,
)
from jostle.conformal._categories import (
    HIGHEST,
    PLATFORM,
    THERE,
    WORKLOAD,
    grades_of,
    reason_without_runs,
    text_of,
)
from jostle.conformal._conformal_rank import one_run_of_each
from jostle.conformal._covariate_shift import NameMix, codes_of
from jostle.conformal._name_groups import Groups
from jostle.conformal._pool import ROUNDING, Pool, Way, bound_of_chain, tail_of_chain
from jostle.conformal._predictor import Candidates, candidates_of
from jostle.conformal._selection import Selection
from jostle.errors import UsageError

# Units of several runs, from which on all runs keep hardly more than 93% where 90 are asked for, and a
# threshold among more runs is less a matter of luck.
FEW_UNITS = 25
POOLED = "with co-runners"
HELD_OUT = "names left out"
NO_ANSWER = "no answer"
NO_LATE_NAMES: Mapping[str, frozenset[str]] = {"workloads": frozenset(), "platforms": frozenset()}


@dataclass(frozen=True)
class CalibrationRuns:
    """n runs that the predictor was not fitted on, as far as bounds need them.

    scores: (h, n) of each candidate. degree: (n,) co-runners. grades: (n, 6) evidence classes. unit: (n,)
    codes, equal for what was drawn as one. group: (n,) codes of Groups. held_out: (n,) bool, scored by a
    further fit that had left out their names. workload, platform: (n,) codes of the names (name_codes).
    """

    scores: np.ndarray
    degree: np.ndarray
    grades: np.ndarray
    unit: np.ndarray
    group: np.ndarray
    held_out: np.ndarray
    workload: np.ndarray
    platform: np.ndarray

    def __len__(self) -> int:
        return len(self.degree)

    @classmethod
    def of(
        cls,
        predictor: Any,
        runs: Any,
        unit: np.ndarray,
        *,
        groups: Groups | None = None,
        held_out: bool = False,
        part: Selection | None = None,
        grades: np.ndarray | None = None,
    ) -> CalibrationRuns:
        """runs: all with status ok; unit: (n,) codes of what was drawn as one; part: the same runs as the
        predictor answers them, where that is known already; grades: by default what it knows of them."""
        part = Selection.of(predictor, runs) if part is None else part
        degree = part.degree
        group = np.zeros(len(degree), np.int64)
        if groups is not None:
            group = groups.codes(runs.colocations)
        return cls(
            part.scores,
            degree,
            grades_of(predictor, runs.colocations) if grades is None else grades,
            np.asarray(unit, np.int64),
            group,
            np.full(len(degree), held_out),
            *(codes_of(runs.colocations, kind) for kind in ("workload", "platform")),
        )

    @classmethod
    def of_answered(
        cls, fitted: Any, runs: Any, unit: np.ndarray, **options: Any
    ) -> tuple[CalibrationRuns, Selection, np.ndarray]:
        """(those that have an answer, the same to choose a way to bound on, their numbers): what has none is
        another kind of question, not a late run. options: as of `of`."""
        part = Selection.of(fitted, runs, unit)
        scores = cls.of(fitted, runs, unit, part=part, **options)
        known = np.flatnonzero(scores.is_answered)
        return scores.take(known), part.take(known), known

    @property
    def is_answered(self) -> np.ndarray:
        """(n,) bool: the predictor has an answer. What has none is another kind of question, not late."""
        return np.isfinite(self.scores[0])

    def joined(self, other: CalibrationRuns) -> CalibrationRuns:
        """Both, the units of the other kept apart from those of this."""
        start = int(self.unit.max(initial=-1)) + 1 - int(other.unit.min(initial=0))
        moved = replace(other, unit=other.unit + start)
        return CalibrationRuns.concatenate([self, moved])

    @staticmethod
    def concatenate(parts: Sequence[CalibrationRuns]) -> CalibrationRuns:
        """All of them, in order; the same code is the same unit in all parts. At least one part."""
        rest = [np.concatenate([vars(part)[name] for part in parts]) for name in _BY_RUN]
        return CalibrationRuns(np.concatenate([part.scores for part in parts], axis=1), *rest)

    def take(self, index: np.ndarray) -> CalibrationRuns:
        rest = (vars(self)[name][index] for name in _BY_RUN)
        return CalibrationRuns(self.scores[:, index], *rest)


_BY_RUN = tuple(field.name for field in fields(CalibrationRuns))[1:]


@dataclass(frozen=True)
class PoolSummary:
    """What one evidence class can be answered with. n: calibration runs of the class itself. highest: the
    confidence above which it has no finite bound, whichever pools join. group: where bounds are by group."""

    pool: str
    evidence: str
    group: str
    n: int
    highest: float


@dataclass(frozen=True, eq=False)
class Calibration(Serializable):
    """Calibration runs in pools, and for each number of co-runners the way that bounds it.

    names: of the candidates. late_names: `workloads` and `platforms` that joined after the calibration runs
    were drawn, and of which none was drawn since. They are bounded by runs of names left out alone. mix: over
    which bounds hold, where it is another than was drawn; it is not saved. is_close: whether bounds are to
    keep hardly more than is asked for: then in a pool of fewer than FEW_UNITS one run stands for each unit.
    is_crossed: whether the calibration runs were answered by fits that had left them out, not by the
    predictor. is_reckoned:
    whether some of them changed company, and were reckoned for one. larger: the runs with the most
    co-runners, as scored by a fit that had left out all of these. session_scores: (h, n) what the runs'
    would be in sessions that are not known, by which bounds are made where there are some.
    """

    names: tuple[str, ...]
    runs: CalibrationRuns
    ways: dict[str, Way]
    groups: Groups | None = None
    late_names: Mapping[str, frozenset[str]] = field(default_factory=lambda: NO_LATE_NAMES)
    mix: NameMix | None = field(default=None, metadata=UNSAVED)
    is_close: bool = False
    is_crossed: bool = False
    is_reckoned: bool = False
    larger: CalibrationRuns | None = None
    session_scores: np.ndarray | None = None
    _chains: dict[tuple[int, ...], list[Pool]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def fit(
        cls,
        predictor: Any,
        selection: Any,
        calibration: Any,
        *,
        by: str = "window",
        groups: Groups | None = None,
        is_close: bool = False,
    ) -> Calibration:
        """selection, calibration: disjoint runs that the predictor was not fitted on.

        by: `window` where whole windows were drawn (rows measured together), `row` where rows were,
            `together` where all runs of the same workloads on the same platform were drawn as one.
        groups: names in groups, for a guarantee within each of them.
        is_close: see Calibration.
        The guarantee is for runs drawn like the calibration runs.
        """
        calibration = calibration.ok()
        runs = CalibrationRuns.of(predictor, calibration, calibration.units(by), groups=groups)
        part = Selection.of(predictor, selection)
        return replace(cls.crossed(runs, part, groups, is_close=is_close), is_crossed=False)

    @classmethod
    def crossed(
        cls,
        runs: CalibrationRuns,
        part: Selection,
        groups: Groups | None = None,
        *,
        is_close: bool = False,
    ) -> Calibration:
        """runs: as fits that had left them out have scored them; part: the same, to choose the way to
        bound."""
        chosen = {name: part.way(np.isin(part.degree, d)) for name, d in _pools(runs.degree)}
        return cls(part.candidates.names, runs, chosen, groups, is_close=is_close, is_crossed=True)

    def with_held_out(self, runs: CalibrationRuns, part: Selection) -> Calibration:
        """With n runs that further fits have scored, which had left out their names; part: the same runs,
        to choose the way that bounds each kind of them."""
        kind = np.array([held_out_kind(grades) for grades in runs.grades], dtype="<U40")
        ways = {str(name): part.way(kind == name) for name in np.unique(kind)}
        return replace(self, runs=self.runs.joined(runs), ways=self.ways | ways, mix=None)

    def with_larger(self, runs: CalibrationRuns, part: Selection) -> Calibration:
        """With runs of the most co-runners that a further fit has scored, which had left out all of these;
        part: the same runs, to choose the way to bound."""
        ways = {LARGER_SETS: part.way(np.ones(len(runs), bool))}
        return replace(self, larger=runs, ways=self.ways | ways)

    def in_unknown_session(self, unknown: Calibration) -> Calibration:
        """The same runs, but bounds about a session that is not known. unknown: of the same runs, as long as
        they may take in one."""
        scores = unknown.runs.scores
        return replace(self, session_scores=scores, ways=unknown.ways, larger=unknown.larger)

    def over(self, mix: NameMix) -> Calibration:
        """The same runs, but bounds that hold over another mix than they were drawn from."""
        return replace(self, mix=mix)

    @property
    def pools(self) -> dict[str, Pool]:
        """All calibration runs by number of co-runners, whatever was measured of their names."""
        own, mix = self.runs, self.mix
        answered, left = own.is_answered & ~own.held_out, own.is_answered & own.held_out
        pools = {
            name: self._pool(name, "guaranteed", name, np.isin(own.degree, d) & answered, mix)
            for name, d in _pools(own.degree[~own.held_out])
        }
        if own.held_out.any():
            way = next(name for name in self.ways if name.startswith(HELD_OUT))
            pools[HELD_OUT] = self._pool(HELD_OUT, "held_out_names", way, left, mix)
        return pools

    def summary(self) -> list[PoolSummary]:
        """Every class that calibration runs have, those with the most runs first; of more co-runners than
        any run had, what bounds one more."""
        summaries = []
        for runs, beyond in ((self.runs, 0), (self.larger, 1)):
            if runs is None:
                continue
            r = runs.take(np.flatnonzero(runs.is_answered))
            keys = np.column_stack([r.degree + beyond, r.grades, r.group])
            for key in np.unique(keys, axis=0):
                n = int((keys == key).all(1).sum())
                chain = self._chain(int(key[0]), key[1:-1], int(key[-1]))
                if beyond and not any(pool.name == LARGER_SETS for pool in chain):
                    continue
                highest = max(pool.highest_confidence for pool in chain)
                group = self.groups.label(int(key[-1])) if self.groups else ""
                name = "more co-runners" if beyond else pool_of(int(key[0]))
                summaries.append(PoolSummary(name, text_of(key[1:-1]), group, n, highest))
        return sorted(summaries, key=lambda one: (-one.n, one.pool, one.evidence, one.group))

    def bound(
        self,
        predictor: Any,
        colocations: Any,
        confidence: float,
        *,
        tail: bool = False,
        candidates: Candidates | None = None,
    ) -> Bounds:
        """Upper bounds at `confidence`; never lower at a higher confidence, never under the prediction.

        tail: beyond what calibration runs can promise, a generalised Pareto tail of their scores where they
        are at least 2000 (outcome `model_based`, no guarantee) instead of no bound. candidates: those of the
        predictor for these co-locations, where they are at hand.
        """
        level = float(exact_confidence(confidence))
        if tail and self.mix is not None:
            raise UsageError("the law of the largest errors is of the mix that was measured")
        candidates = candidates or candidates_of(predictor, colocations)
        degree = np.asarray(colocations.number_of_corunners)
        n = len(degree)
        keys = np.zeros((n, 3 + len(HIGHEST)), np.int64)
        keys[:, 0], keys[:, 1:-2] = degree, grades_of(predictor, colocations)
        if any(late_names := [self.late_names[kind] for kind in NO_LATE_NAMES]):
            every = colocations.workload_names, colocations.platform_names
            pairs = zip(every, late_names, strict=True)
            keys[:, -2] = ~colocations.known_in(*([n for n in a if n not in b] for a, b in pairs))
        if self.groups is not None:
            keys[:, -1] = self.groups.codes(colocations)
        code = None if self.mix is None else codes_of(colocations, self.mix.by)
        outside = np.zeros(n, bool)
        log_bound = np.full(n, np.inf)
        outcome, pool_name = np.full(n, "", "<U20"), np.full(n, "", "<U20")
        evidence = np.full(n, "", dtype="<U160")
        count, rank_used = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for key, at in _rows_by_key(keys):
            d, grades, late = int(key[0]), key[1:-2], bool(key[-2])
            evidence[at] = text_of(grades)
            if self.mix is not None and code is not None:
                outside[at] = ~self.mix.at(d, grades).has(code[at])
            chain = self._chain(d, grades, int(key[-1]), late)
            pool_name[at] = pool_of(d)
            if not chain:
                reason = "new_name" if late else reason_without_runs(grades)
                outcome[at] = reason if late or d in self.runs.degree else "unseen_group"
                continue
            log_bound[at], pool = bound_of_chain(chain, candidates, at, level)
            outcome[at] = "too_few_runs" if pool is None else pool.outcome
            if pool is None and tail:
                log_bound[at], pool = tail_of_chain(chain, candidates, at, level)
                outcome[at] = "too_few_runs" if pool is None else "model_based"
            source = chain[-1] if pool is None else pool
            pool_name[at], count[at], rank_used[at] = source.name, source.n, source.rank(level)
        # Raising a bound to the prediction takes nothing of what it promises.
        log_bound = np.maximum(log_bound, candidates.centre[0] + ROUNDING)
        if self.is_crossed:
            outcome[np.isin(outcome, GUARANTEED)] = CROSS_VALIDATED
        if self.is_reckoned:
            outcome[np.isin(outcome, (*GUARANTEED, CROSS_VALIDATED))] = CHANGED_COMPANY
        if self.session_scores is not None:
            outcome[np.isin(outcome, CALIBRATED)] = UNKNOWN_SESSION
        finite = (*CALIBRATED, "held_out_names", LARGER_SETS, "model_based")
        outcome[np.isposinf(log_bound) & np.isin(outcome, finite)] = "too_few_runs"
        outcome[outside], log_bound[outside] = OUTSIDE_MIX, np.inf
        unanswered = ~np.isfinite(candidates.centre[0])
        outcome[unanswered], pool_name[unanswered] = "disconnected", NO_ANSWER
        count[unanswered] = (~self.runs.is_answered).sum()
        rank_used[unanswered] = count[unanswered] + 1
        log_bound[unanswered] = np.inf
        seconds = np.exp(log_bound)
        return Bounds(seconds, outcome, pool_name, count, rank_used, level, evidence)

    def _chain(self, degree: int, grades: np.ndarray, group: int, late: bool = False) -> list[Pool]:
        """The pools that may bound a class, each wider than the one before. late: see `late_names`."""
        key = (degree, *map(int, grades), group, int(late))
        if key not in self._chains:
            chain = self._make_chain(degree, grades, group)
            left_out = [pool for pool in chain if pool.name == HELD_OUT]
            self._chains[key] = left_out if late else chain
        return self._chains[key]

    def _make_chain(self, degree: int, grades: np.ndarray, group: int) -> list[Pool]:
        r = self.runs
        if degree not in r.degree:
            return self._chain_beyond(degree, grades, group)
        usable = (r.grades <= grades).all(1) & (r.group == group) & r.is_answered
        steps = (grades - r.grades).sum(1)
        own, mine = pool_of(degree), usable & (r.degree == degree) & ~r.held_out
        mix = None if self.mix is None else self._mix_within(self.mix.at(degree, grades), group)
        outcomes = {
            step: "guaranteed_pooled" if step else "guaranteed" for step in np.unique(steps[mine])
        }
        chain = [
            self._pool(own, outcome, own, mine & (steps <= step), mix)
            for step, outcome in outcomes.items()
        ]
        others = usable & (r.degree > 0) & ~r.held_out
        if degree > 0 and POOLED in self.ways and others.sum() > mine.sum() > 0:
            if self.is_close and self.is_crossed:
                # The largest of few scores says less than those beside others numbers of co-runners, too.
                chain = [pool for pool in chain if pool.units >= FEW_UNITS]
            chain.append(self._pool(POOLED, "guaranteed_pooled", POOLED, others, mix))
        left = usable & r.held_out
        if self.is_crossed and not grades[THERE] and left.any():
            chain = []  # sets left out leave hardly ever nothing else of a workload on its platform
        way = held_out_kind(grades)
        if way not in self.ways:  # runs of weaker classes alone
            way = next((name for name in self.ways if name.startswith(HELD_OUT)), "")
        return chain + [
            self._pool(HELD_OUT, "held_out_names", way, left & (steps <= step), mix)
            for step in np.unique(steps[left])
        ]

    def _chain_beyond(self, degree: int, grades: np.ndarray, group: int) -> list[Pool]:
        """Of more co-runners than any run had: no further beyond, by their ratio, than the sets left out, and
        with errors that grow with their number, as what they cost does at most."""
        r = self.larger
        if r is None or self.mix is not None:
            return []
        most, fewer = int(r.degree.max()), self.runs.degree[self.runs.degree < r.degree.max()]
        if not most < degree <= most**2 / max(int(fewer.max(initial=0)), 1):
            return []
        at = np.flatnonzero((r.grades <= grades).all(1) & (r.group == group))
        about = self.ways[LARGER_SETS], r.scores[:, at] * (degree / most), r.unit[at]
        return [Pool.of(LARGER_SETS, LARGER_SETS, *about)] if len(at) else []

    def _pool(
        self, name: str, outcome: str, way: str, inside: np.ndarray, mix: NameMix | None
    ) -> Pool:
        r, at, weights = self.runs, np.flatnonzero(inside), None
        if self.is_close and outcome in GUARANTEED and len(at):
            drawn = one_run_of_each(r.unit[at])
            at = at[drawn] if len(drawn) < FEW_UNITS else at
        if mix is not None:
            # Of names left out a unit is a name: there is no theorem that one run of it would keep.
            rows, weights = mix.weights(
                getattr(r, mix.by)[at], r.unit[at], one_of_each=outcome in GUARANTEED
            )
            at = at[rows]
        # Runs that came by an update may have a number of co-runners for which no way was chosen.
        chosen = self.ways.get(way) or next(iter(self.ways.values()))
        scores = r.scores if self.session_scores is None else self.session_scores
        return Pool.of(name, outcome, chosen, scores[:, at], r.unit[at], weights)

    def _mix_within(self, mix: NameMix, group: int) -> NameMix:
        """The mix among the names of one group, where they are grouped as it is."""
        if self.groups is None or self.groups.of != mix.by:
            return mix
        code = self.groups.code
        return mix.within({name for name in mix.shares if code.get(name, -1) == group})


def pool_of(number_of_corunners: int) -> str:
    """The name of the pool of co-locations with so many co-runners."""
    if number_of_corunners == 0:
        return "alone"
    return f"{number_of_corunners} co-runner" + ("s" if number_of_corunners > 1 else "")


def held_out_kind(grades: np.ndarray) -> str:
    """Which runs of names left out a class is like, as far as the way to bound it goes."""
    least = min(grades[WORKLOAD], grades[PLATFORM])
    if least == 0:
        return HELD_OUT
    return f"{HELD_OUT} but for few runs" if least < 4 else f"{HELD_OUT}, beside others"


def _rows_by_key(keys: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(a key, the rows that have it) of every different row of (n, k) integers."""
    if len(keys) == 1:
        return [(keys[0], np.zeros(1, np.int64))]
    if not len(keys):
        return []
    least = keys.min(axis=0)
    spans = (keys.max(axis=0) - least + 1).tolist()
    if math.prod(spans) >= 2**62:
        codes = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    else:
        codes = np.zeros(len(keys), np.int64)
        for column, span in enumerate(spans):
            codes *= span
            codes += keys[:, column] - least[column]
    if codes.max() < 2**16:
        codes = codes.astype(np.uint16)  # sorted in time that grows with their number alone
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order].astype(np.int64), prepend=-1))
    return [(keys[at[0]], at) for at in np.split(order, starts[1:])]


def _pools(degree: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """(name, numbers of co-runners) of every pool with a calibration run."""
    degrees = np.unique(degree)
    own = [(pool_of(int(d)), np.array([d])) for d in degrees]
    corun = degrees[degrees > 0]
    return own + ([(POOLED, corun)] if len(corun) > 1 else [])
