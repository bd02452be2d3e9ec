"""Conformal upper bounds, one-sided, by category and with one learned scale.

    bound = prediction * exp(scale * offset)

where the offset is the conformal rank of the scores (error / scale) of calibration runs of the same category.
Source: Vovk et al. 2003 (Mondrian categories), Papadopoulos et al. 2008 (normalised scores), Pitot (MLSys
2025), Sec. 3.4 (pools by number of co-runners), Barber et al. 2021 (scores of fits that left the runs out).

A category with too few groups above the rank borrows the shape of all others like it, put to its own usual
size. Bounds never fall as confidence rises: each is the most of what lower confidences say, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle._base.tensors import UNSAVED, Serializable
from jostle.conformal._bounds import (
    CHANGED_COMPANY,
    CROSS_VALIDATED,
    GUARANTEED,
    HELD_OUT_NAMES,
    LARGER_SETS,
    OUTSIDE_MIX,
    POOLED,
    UNKNOWN_CAMPAIGN,
    Bounds,
)
from jostle.conformal._categories import (
    ALONE,
    CATEGORIES,
    FEW_RUNS,
    KNOWN,
    MEANING,
    MEASURED,
    MORE_CORUNNERS,
    NEVER_MET,
    NEW_CELL,
    NEW_CELL_SOLO,
    NEW_CORUNNER,
    NEW_NAME,
    NEW_WORKLOAD,
    SOLO,
    category_of,
)
from jostle.conformal._conformal_rank import effective_number, rank_by_weight, window_weights
from jostle.conformal._covariate_shift import NameMix, codes_of
from jostle.conformal._extreme_value import FEWEST, tail_offset
from jostle.conformal._name_groups import Groups
from jostle.conformal._residual_scale import ResidualScale, ScaleRows
from jostle.conformal._scored_runs import CalibrationRuns, LeftOutRuns
from jostle.conformal._uncertainty import Uncertainty, uncertainty_of
from jostle.errors import UsageError

FROM_TOP = 5  # groups above a bound that a category of left-out runs needs of its own
FARTHEST_BEYOND = 2  # times the most co-runners that were measured, past which there is no bound
NEAR = 1e-12  # of confidences that only rounding tells apart
FEWEST_GROUPS = 9  # of all categories alike, under which there is no bound
FEW_GROUPS = 20  # under which the largest score stands for the rank, where no theorem holds
USUAL = 0.8  # confidence at which categories are put to one size before shapes are borrowed
# Bounds are raised by this share, far under what anybody measures: logarithms and sums round, and a program
# that takes exactly as long each time would otherwise be late by the last digit.
ROUNDING = 2.0**-30
NO_ANSWER = "no answer"
NEVER_MEASURED = {  # outcomes of categories without calibration runs
    NEW_WORKLOAD: "new_beside_others",
    NEW_CORUNNER: "new_beside_others",
    NEW_CELL_SOLO: "new_on_platform",
    NEW_CELL: "new_on_platform",
    MORE_CORUNNERS: "unseen_group",
}
NO_LATE_NAMES: Mapping[str, frozenset[str]] = {"workloads": frozenset(), "platforms": frozenset()}


@dataclass(frozen=True)
class CategorySummary:
    """Counts and limits of one category of calibration runs. n: calibration runs. groups: how many sets of
    runs left out or drawn together these are. highest: the confidence above which there is no finite bound.
    name_group: label of the group of names, if bounds are by such groups."""

    category: str
    meaning: str
    name_group: str
    n: int
    groups: int
    highest: float


@dataclass(frozen=True)
class _Offset:
    """value: the ranked score. n: calibration runs that it is ranked among. outcome: a key of OUTCOMES."""

    value: float
    n: int
    rank: int
    outcome: str


@dataclass(frozen=True, eq=False)
class Calibration(Serializable):
    """Scores of calibration runs by category, and the scale that they are over.

    Parameters
    ----------
    scale : ResidualScale
    runs : CalibrationRuns
    most : int
        Most co-runners that the predictor learned from.
    groups : Groups, optional
        Groups of names, each bounded by its own runs; not the groups of runs left out together.
    names_added_after_calibration : mapping
        `workloads` and `platforms` that joined after the calibration runs were drawn.
    mix : NameMix, optional
        Over which bounds hold, where it is another than was drawn; it is not saved.
    is_cross_conformal : bool
        Whether fits that left the runs out have answered them, not the predictor itself.
    has_changing_corunners : bool
        Whether some runs changed co-runners, and were reckoned for one set.
    is_of_unknown_campaign : bool
        Whether scores are those of campaigns that were never met.
    """

    scale: ResidualScale
    runs: CalibrationRuns
    most: int
    groups: Groups | None = None
    names_added_after_calibration: Mapping[str, frozenset[str]] = field(
        default_factory=lambda: NO_LATE_NAMES
    )
    mix: NameMix | None = field(default=None, metadata=UNSAVED)
    is_cross_conformal: bool = False
    has_changing_corunners: bool = False
    is_of_unknown_campaign: bool = False
    _offsets: dict[tuple[Any, ...], _Offset] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def fit(
        cls,
        predictor: Any,
        selection: Any,
        calibration: Any,
        *,
        unit: str = "window",
        groups: Groups | None = None,
        has_changing_corunners: bool = False,
    ) -> Calibration:
        """Calibrate on runs that were held out: split conformal bounds, exact over draws like these.

        Parameters
        ----------
        selection, calibration : Runs
            Disjoint runs that the predictor was not fitted on; the scale is learned from the first.
        unit : {'window', 'row', 'together'}
            What was drawn as one, which becomes `group`: rows measured together, rows, or all runs of the
            same workloads on the same platform.
        groups : Groups, optional
            Names in groups, for a guarantee within each of them.
        """
        selection, calibration = selection.ok(), calibration.ok()
        names = names_of(predictor, calibration)
        asked = calibration.colocations.number_of_corunners
        most = int(max(np.max(asked, initial=0), _most_known(predictor)))
        told = LeftOutRuns.of(predictor, selection, np.arange(len(selection)), names)
        about = told.residuals.rows, told.residuals.residual, names
        scale, _ = ResidualScale.fit(*about, told.runs.group)
        group = calibration.units(unit)
        own = LeftOutRuns.of(predictor, calibration, group, names, name_groups=groups)
        return cls(
            scale, own.scored(scale), most, groups, has_changing_corunners=has_changing_corunners
        )

    @classmethod
    def crossed(
        cls, left_out: LeftOutRuns, names: tuple[Sequence[str], ...], most: int, **options: Any
    ) -> Calibration:
        """Calibrate on the answers of fits that left the runs out (cross-conformal, Vovk 2015): all runs are
        learned from, and there is no exact theorem. most: co-runners of the runs; options: as the fields."""
        rows, residual = left_out.residuals.rows, left_out.residuals.deconvolved()
        met = np.flatnonzero(~np.isin(left_out.runs.category, NEVER_MET))
        some = rows.take(met), residual[met], names, left_out.runs.group[met]
        scale, crossed = ResidualScale.fit(*some)
        used = scale(rows)
        used[met] = crossed
        runs = replace(left_out.runs, score=residual / used, residual=residual)
        return cls(scale, runs, most, is_cross_conformal=True, **options)

    def with_held_out(self, left_out: LeftOutRuns) -> Calibration:
        """Add runs whose names further fits had left out, wholly or but for a few runs."""
        scored = left_out.scored(self.scale)
        start = int(self.runs.group.max(initial=-1)) + 1 - int(scored.group.min(initial=0))
        few = np.isin(scored.category, KNOWN)
        own = replace(
            scored,
            group=scored.group + start,
            category=np.where(few, FEW_RUNS, scored.category).astype(np.int8),
        )
        return replace(self, runs=CalibrationRuns.concatenate([self.runs, own]), mix=None)

    def over(self, mix: NameMix) -> Calibration:
        """Make bounds hold over another mix of names than the runs were drawn from."""
        return replace(self, mix=mix)

    def summary(self) -> list[CategorySummary]:
        """Summarise each category that has calibration runs, in the order of the categories."""
        keys = np.unique(np.stack([self.runs.name_group, self.runs.category]), axis=1)
        return [self._summary(int(c), int(g)) for g, c in keys.T]

    def _summary(self, category: int, name_group: int) -> CategorySummary:
        pool = self._pool(category, name_group)
        own, (_, every) = self._highest_of(pool), self._alike(category, name_group)
        borrowed = self._highest(every, 1) if _number_of_groups(every) >= FEWEST_GROUPS else 0.0
        label = "" if self.groups is None else self.groups.label(name_group)
        about = CATEGORIES[category], MEANING[category], label
        return CategorySummary(*about, len(pool), _number_of_groups(pool), max(own, borrowed))

    def categories(self, predictor: Any, asked: Any) -> np.ndarray:
        """Tell the category of each co-location; names that joined late count as new. Returns (n,) int8."""
        tells_measured = bool((self.runs.category == MEASURED).any())
        out = category_of(predictor, asked, self.most, tells_measured=tells_measured)
        late = [self.names_added_after_calibration[kind] for kind in NO_LATE_NAMES]
        if any(late):
            known = (
                [name not in late[0] for name in asked.workload_names],
                [name not in late[1] for name in asked.platform_names],
            )
            workload, platform = (~np.array(one, bool) for one in known)
            degree = np.asarray(asked.number_of_corunners)
            row = np.repeat(np.arange(len(degree)), degree)
            is_late = workload[asked.workload]
            is_late |= np.bincount(row, workload[asked.corunner], len(degree)) > 0
            there = platform[asked.platform]
            late = (is_late | there) & np.isin(out, KNOWN)
            out[late] = FEW_RUNS if FEW_RUNS in self.runs.category else NEW_NAME
        return out

    def scaled(
        self, predictor: Any, asked: Any, told: Uncertainty | None = None,
        category: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return ((n,) predicted log seconds, NaN without an answer; (n,) scale of their errors)."""
        told = told or uncertainty_of(predictor, asked)
        category = self.categories(predictor, asked) if category is None else category
        names = self.scale.workload_names, self.scale.platform_names
        return told.log_runtime, self.scale(ScaleRows.of(predictor, asked, told, names, category))

    def bound(
        self,
        predictor: Any,
        colocations: Any,
        confidence: float,
        *,
        tail: bool = False,
        told: Uncertainty | None = None,
    ) -> Bounds:
        """Compute upper bounds at a confidence; never lower at a higher one, never under the prediction.

        Parameters
        ----------
        tail : bool
            Beyond what calibration runs can promise, a generalised Pareto tail of their scores where they are
            at least 2000 (outcome `model_based`) instead of no bound.
        told : Uncertainty, optional
            What the predictor says of these co-locations, where it is at hand.
        """
        level = float(exact_confidence(confidence))
        if tail and self.mix is not None:
            raise UsageError("the law of the largest errors is of the mix that was measured")
        told = told or uncertainty_of(predictor, colocations)
        category, n = self.categories(predictor, colocations), len(told.log_runtime)
        name_group = np.zeros(n, np.int64)
        if self.groups is not None:
            name_group = self.groups.codes(colocations)
        _, scale = self.scaled(predictor, colocations, told, category)
        offset, count, rank = np.full(n, np.inf), np.zeros(n, np.int64), np.zeros(n, np.int64)
        outcome = np.full(n, "too_few_runs", "<U20")
        keys = category.astype(np.int64) + len(CATEGORIES) * name_group
        for key in np.unique(keys).tolist():
            at, (g, c) = keys == key, divmod(key, len(CATEGORIES))
            one = self._offset(c, g, level, tail)
            offset[at], count[at], rank[at] = one.value, one.n, one.rank
            outcome[at] = one.outcome
        degree = np.asarray(colocations.number_of_corunners)
        far = degree > FARTHEST_BEYOND * max(self.most, 1)
        offset[far], outcome[far] = np.inf, "unseen_group"
        widest = self._widest(category, degree)
        width = np.minimum(scale * offset, widest)
        log_bound = np.where(np.isfinite(offset), told.log_runtime + width, np.inf)
        # Raising a bound to the prediction takes nothing of what it promises.
        log_bound = np.maximum(log_bound, told.log_runtime) + ROUNDING
        pool = np.array(CATEGORIES)[category]
        if self.mix is not None:
            code = codes_of(colocations, self.mix.by)
            outside = ~np.array(
                [
                    bool(self.mix.at(int(c)).has(k[None])[0])
                    for c, k in zip(category, code, strict=True)
                ],
                bool,
            )
            outcome[outside], log_bound[outside] = OUTSIDE_MIX, np.inf
        none = ~np.isfinite(told.log_runtime)
        outcome[none], pool[none], log_bound[none] = "disconnected", NO_ANSWER, np.inf
        evidence = np.array(MEANING)[category]
        with np.errstate(over="ignore"):  # past what a number can hold there is no bound, either
            seconds = np.exp(log_bound)
        return Bounds(seconds, outcome, pool, count, rank, level, evidence)

    def _widest(self, category: np.ndarray, degree: np.ndarray) -> np.ndarray:
        """Return the largest error of any category alike, (n,) log seconds, if fits that left the runs out
        answered them, else infinity: a borrowed shape cannot grow without end."""
        r, out = self.runs, np.full(len(category), np.inf)
        if not self.is_cross_conformal:
            return out
        for is_alone in (False, True):
            known = (np.isin(r.category, ALONE) == is_alone) | np.isin(r.category, NEVER_MET)
            here = np.isin(category, ALONE) == is_alone
            if known.any():
                out[here] = max(float(r.residual[known].max()), 0.0)
        return out * np.maximum(degree / max(self.scale.most, 1), 1)

    def _pool(self, category: int, name_group: int) -> CalibrationRuns:
        r = self.runs
        return r.take(np.flatnonzero((r.category == category) & (r.name_group == name_group)))

    def _offset(self, category: int, name_group: int, level: float, tail: bool = False) -> _Offset:
        key = int(category), int(name_group), level, tail
        if key not in self._offsets:
            last = self._at(*key[:2], level)
            if tail and not np.isfinite(last.value):
                last = self._tail(*key[:2], level) or last
            # Where another pool takes over, bounds are never under what the category's own gave.
            own = self._highest_of(self._own(*key[:2]))
            if self.mix is None and 0 < own < level:
                last = replace(last, value=max(last.value, self._at(*key[:2], own - NEAR).value))
            self._offsets[key] = last
        return self._offsets[key]

    @property
    def _from_top(self) -> int:
        """Groups of runs left out together that a category needs above a bound."""
        return FROM_TOP if self.is_cross_conformal else 1

    def _highest_of(self, own: CalibrationRuns) -> float:
        """Return the confidence up to which a category's own groups suffice; 0 if they are few."""
        few = self.is_cross_conformal and _number_of_groups(own) < FEW_GROUPS
        return 0.0 if few else self._highest(own, self._from_top)

    def _units(self, pool: CalibrationRuns) -> float:
        """Count the independent runs that a pool is worth: its groups, where a theorem holds."""
        if not self.is_cross_conformal:
            return _number_of_groups(pool)
        return effective_number(pool.score, pool.group)

    def _highest(self, pool: CalibrationRuns, from_top: int) -> float:
        """Return the confidence above which fewer than `from_top` units lie over the rank; at least 0."""
        return max(1 - from_top / (self._units(pool) + 1), 0.0)

    def _own(self, category: int, name_group: int) -> CalibrationRuns:
        """Return the category's own runs. If 'alone' has few groups, add 'new on the platform, alone': its
        errors are larger, so bounds stay safe. Skip runs of held-out names if a theorem is to hold."""
        own = self._pool(category, name_group)
        if category != SOLO or _number_of_groups(own) >= FEWEST_GROUPS:
            return own
        more = self._pool(NEW_CELL_SOLO, name_group)
        more = more if self.is_cross_conformal else more.take(np.flatnonzero(~more.held_out))
        return CalibrationRuns.concatenate([own, more])

    def _at(self, category: int, name_group: int, level: float) -> _Offset:
        own, outcome = self._own(category, name_group), self._outcome(category)
        if (own.category != category).any() and outcome in GUARANTEED:
            outcome = POOLED
        if self.mix is not None:
            if self.is_cross_conformal and len(own):  # no theorem would be lost by more runs
                own = self._put_to_size(own, *self._alike(category, name_group))
            return self._of_mix(own, self.mix.at(category), level, outcome)
        if level <= self._highest_of(own) + NEAR:
            return _Offset(*self._ranked(own, level), outcome)
        if not len(own) and category not in KNOWN:
            return _Offset(np.inf, 0, 1, NEVER_MEASURED.get(category, "new_name"))
        return self._borrowed(own, category, name_group, level, outcome)

    def _borrowed(
        self, own: CalibrationRuns, category: int, name_group: int, level: float, outcome: str
    ) -> _Offset:
        """Rank the runs of all categories alone, or all beside others, put to this one's usual size."""
        pools, every = self._alike(category, name_group)
        if not pools:
            return _Offset(np.inf, 0, 1, "unseen_group")
        if _number_of_groups(every) < FEWEST_GROUPS or level > self._highest(every, 1) + NEAR:
            return _Offset(np.inf, len(own), len(own) + 1, "too_few_runs")
        put = self._ranked(self._put_to_size(own, pools, every), level)
        if not len(own):  # as wide as the widest alike, each as far as it can promise
            others = [self._ranked(p, min(level, self._highest(p, 1) - NEAR)) for p in pools]
            put = max([put, *others], key=lambda one: one[0])
        return _Offset(*put, POOLED if outcome in GUARANTEED else outcome)

    def _ranked(self, pool: CalibrationRuns, level: float) -> tuple[float, int, int]:
        """Return (score, runs, rank) of a confidence that the pool supports. Cross-conformal pools of few
        groups give their largest score: runs of one group err alike, and names are in several groups."""
        if self.is_cross_conformal and _number_of_groups(pool) < FEW_GROUPS:
            return float(pool.score.max()), len(pool), len(pool)
        value, rank = _quantile(pool.score, pool.group, level, self._units(pool))
        return value, len(pool), rank

    @staticmethod
    def _put_to_size(
        own: CalibrationRuns, pools: list[CalibrationRuns], every: CalibrationRuns
    ) -> CalibrationRuns:
        """Rescale the scores of all categories alike to the usual size of the category's own, or to the
        largest usual size if it has no runs."""
        size = [_usual_size(pool, every) for pool in pools]
        usual = _usual_size(own, every) if len(own) else max(size)
        score = np.concatenate([p.score * usual / s for p, s in zip(pools, size, strict=True)])
        return replace(every, score=score)

    def _alike(
        self, category: int, name_group: int
    ) -> tuple[list[CalibrationRuns], CalibrationRuns]:
        """Return (the runs of each category alike: all alone, or all beside others; all of these runs)."""
        like = [
            c
            for c in range(len(CATEGORIES))
            if (c in ALONE) == (category in ALONE) and (c not in NEVER_MET or c == category)
        ]
        pools = [pool for c in like if len(pool := self._pool(c, name_group))]
        return pools, CalibrationRuns.concatenate(pools or [self.runs.take(np.zeros(0, int))])

    def _of_mix(self, own: CalibrationRuns, mix: NameMix, level: float, outcome: str) -> _Offset:
        rows, (weight, total) = mix.weights(
            getattr(own, mix.by), own.group, one_of_each=outcome in GUARANTEED
        )
        score = own.score[rows]
        order = np.argsort(score, kind="stable")
        rank = rank_by_weight(np.cumsum(weight[order]), total, level) if len(rows) else 1
        value = float(score[order[rank - 1]]) if rank <= len(rows) else np.inf
        return _Offset(value, len(rows), rank, outcome if rank <= len(rows) else "too_few_runs")

    def _tail(self, category: int, name_group: int, level: float) -> _Offset | None:
        own = self._pool(category, name_group)
        if _number_of_groups(own) < FEWEST:
            return None
        value = tail_offset(np.sort(own.score), 1 - level)
        return _Offset(value, len(own), len(own) + 1, "model_based")

    def _outcome(self, category: int) -> str:
        if category == MORE_CORUNNERS:
            return LARGER_SETS
        if category not in KNOWN:
            return HELD_OUT_NAMES
        if self.is_of_unknown_campaign:
            return UNKNOWN_CAMPAIGN
        if self.has_changing_corunners:
            return CHANGED_COMPANY
        return CROSS_VALIDATED if self.is_cross_conformal else GUARANTEED[0]


def names_of(predictor: Any, runs: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (workloads, platforms) that a predictor knows, or those of the runs if it names none."""
    c = runs.colocations
    return (
        tuple(getattr(predictor, "workload_names", c.workload_names)),
        tuple(getattr(predictor, "platform_names", c.platform_names)),
    )


def _most_known(predictor: Any) -> int:
    return int(getattr(predictor, "most_corunners", 0))


def _number_of_groups(pool: CalibrationRuns) -> int:
    return len(np.unique(pool.group))


def _quantile(
    score: np.ndarray, group: np.ndarray, level: float, units: float | None = None
) -> tuple[float, int]:
    """Return (score of the conformal rank, that rank); infinite if the rank is above all. units: how many
    independent runs the scores are worth; None: the number of groups of runs left out or drawn together."""
    weight, total = window_weights(group, units)
    order = np.argsort(score, kind="stable")
    rank = rank_by_weight(np.cumsum(weight[order]), total, level)
    return (float(score[order[rank - 1]]) if rank <= len(score) else np.inf), rank


def _usual_size(pool: CalibrationRuns, every: CalibrationRuns) -> float:
    """Return the score at a low confidence, to compare shapes by; of `every` if the pool is too small."""
    for one in (pool, every):
        value, _ = _quantile(one.score, one.group, USUAL)
        if np.isfinite(value):
            return max(value, 1e-9)
    return 1.0
