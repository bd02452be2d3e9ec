"""Conformal upper bounds, one-sided, by category and with one learned scale.

    bound = prediction * exp(scale * offset)

where the offset is the conformal rank of the scores (error / scale) of calibration runs of the same category.
Source: Vovk et al. 2003 (Mondrian categories), Papadopoulos et al. 2008 (normalised scores), Pitot (MLSys
2025), Sec. 3.4 (pools by number of co-runners), Barber et al. 2021 (scores of fits that left the runs out).

A category with too few groups above the rank borrows the shape of all others like it, put to its own usual
size, and under twenty groups gives at least what these say by themselves. Bounds never fall as confidence
rises: each is the most of what lower confidences say, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle._base.tensors import UNSAVED, Serializable
from jostle.conformal import _constants as constants
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
    category_of,
)
from jostle.conformal._conformal_rank import effective_number, rank_by_weight, window_weights
from jostle.conformal._covariate_shift import NameMix, codes_of
from jostle.conformal._extreme_value import tail_offset
from jostle.conformal._measurement_error import deconvolved
from jostle.conformal._name_groups import Groups
from jostle.conformal._residual_scale import ResidualScale, ScaleRows
from jostle.conformal._scored_runs import CalibrationRuns, LeftOutRuns
from jostle.conformal._uncertainty import Uncertainty, uncertainty_of
from jostle.errors import UsageError

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


class _Offset(NamedTuple):
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
    _offsets: dict[tuple[int, int, float, bool], _Offset] = field(
        default_factory=dict, init=False, repr=False
    )

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
        most = np.max(calibration.colocations.number_of_corunners, initial=0)
        told = LeftOutRuns.of(predictor, selection, np.arange(len(selection)))
        scale, _ = ResidualScale.fit(told.rows, told.runs.residual, told.runs.group)
        own = LeftOutRuns.of(predictor, calibration, calibration.units(unit), name_groups=groups)
        return cls(
            scale,
            own.scored(scale),
            int(max(most, getattr(predictor, "most_corunners", 0))),
            groups,
            has_changing_corunners=has_changing_corunners,
        )

    @classmethod
    def crossed(cls, left_out: LeftOutRuns, most: int, **options: Any) -> Calibration:
        """Calibrate on the answers of fits that left the runs out (cross-conformal, Vovk 2015): all runs are
        learned from, and there is no exact theorem. most: co-runners of the runs; options: as the fields."""
        runs, rows = left_out.runs, left_out.rows
        residual = deconvolved(runs.residual, left_out.error, rows.degree)
        met = np.flatnonzero(~np.isin(runs.category, NEVER_MET))
        scale, crossed = ResidualScale.fit(rows.take(met), residual[met], runs.group[met])
        used = scale(rows)
        used[met] = crossed
        runs = replace(runs, score=residual / used, residual=residual)
        return cls(scale, runs, most, is_cross_conformal=True, **options)

    def with_held_out(self, left_out: LeftOutRuns) -> Calibration:
        """Add runs whose names further fits had left out, wholly or but for a few runs."""
        scored = left_out.scored(self.scale)
        category = np.where(np.isin(scored.category, KNOWN), FEW_RUNS, scored.category)
        own = replace(scored, category=category.astype(np.int8))
        return replace(self, runs=self.runs.followed_by(own), mix=None)

    def over(self, mix: NameMix) -> Calibration:
        """Make bounds hold over another mix of names than the runs were drawn from."""
        return replace(self, mix=mix)

    def summary(self) -> list[CategorySummary]:
        """Summarise each category that has calibration runs, in the order of the categories."""
        keys = np.unique(np.stack([self.runs.name_group, self.runs.category]), axis=1)
        return [self._summary(int(c), int(g)) for g, c in keys.T]

    def _summary(self, category: int, name_group: int) -> CategorySummary:
        pool = self._pool(category, name_group)
        alike = self._alike(category, name_group)
        highest = max(self._highest_of(pool), self._highest_alike(alike))
        label = "" if self.groups is None else self.groups.label(name_group)
        about = CATEGORIES[category], MEANING[category], label
        return CategorySummary(*about, len(pool), _number_of_groups(pool), highest)

    def categories(self, predictor: Any, asked: Any) -> np.ndarray:
        """Tell the category of each co-location; names that joined late count as new. Returns (n,) int8."""
        tells_measured = bool((self.runs.category == MEASURED).any())
        out = category_of(predictor, asked, self.most, tells_measured=tells_measured)
        late = [self.names_added_after_calibration[kind] for kind in NO_LATE_NAMES]
        if any(late):
            names = zip((asked.workload_names, asked.platform_names), late, strict=True)
            early = asked.known_in(*(tuple(n for n in own if n not in new) for own, new in names))
            is_late = ~early & np.isin(out, KNOWN)
            out[is_late] = FEW_RUNS if FEW_RUNS in self.runs.category else NEW_NAME
        return out

    def scaled(
        self, predictor: Any, asked: Any, told: Uncertainty | None = None,
        category: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """Return ((n,) predicted log seconds, NaN without an answer; (n,) scale of their errors)."""
        told = told or uncertainty_of(predictor, asked)
        category = self.categories(predictor, asked) if category is None else category
        return told.log_runtime, self.scale(ScaleRows.of(predictor, asked, told, category))

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
        category = self.categories(predictor, colocations)
        name_group = 0 * category if self.groups is None else self.groups.codes(colocations)
        kinds, at = np.unique(np.stack([category, name_group]), axis=1, return_inverse=True)
        at = at.reshape(-1)
        found = [self._offset(int(c), int(g), level, tail) for c, g in kinds.T]
        offset = np.array([one.value for one in found], float)[at]
        count, rank = (
            np.array([getattr(one, name) for one in found], np.int64)[at] for name in ("n", "rank")
        )
        outcome = np.array([one.outcome for one in found], "<U20")[at]
        degree = np.asarray(colocations.number_of_corunners)
        far = degree > constants.FARTHEST_BEYOND * max(self.most, 1)
        offset[far], outcome[far] = np.inf, "unseen_group"
        _, scale = self.scaled(predictor, colocations, told, category)
        widest = np.where(np.isin(category, KNOWN), *self._widest)
        width = np.minimum(scale * offset, widest * np.maximum(degree / max(self.scale.most, 1), 1))
        log_bound = np.where(np.isfinite(offset), told.log_runtime + width, np.inf)
        # Raising a bound to the prediction takes nothing of what it promises.
        log_bound = np.maximum(log_bound, told.log_runtime) + constants.ROUNDING
        pool = np.array(CATEGORIES)[category]
        if self.mix is not None:
            code = codes_of(colocations, self.mix.by)
            for one in np.unique(category):
                outside = (category == one) & ~self.mix.at(one).has(code)
                outcome[outside], log_bound[outside] = OUTSIDE_MIX, np.inf
        none = ~np.isfinite(told.log_runtime)
        outcome[none], pool[none], log_bound[none] = "disconnected", NO_ANSWER, np.inf
        with np.errstate(over="ignore"):  # past what a number can hold there is no bound, either
            seconds = np.exp(log_bound)
        return Bounds(seconds, outcome, pool, count, rank, level, np.array(MEANING)[category])

    @cached_property
    def _widest(self) -> tuple[float, float]:
        """Return the largest errors, past which no borrowed shape grows: where all that is asked was measured
        (only such runs tell), and else. Infinite unless fits without the runs tell."""
        if not self.is_cross_conformal:
            return np.inf, np.inf
        measured = self.runs.take(np.flatnonzero(np.isin(self.runs.category, KNOWN)))
        every = own = self.runs.residual.max(initial=0.0)
        if _number_of_groups(measured) >= constants.FEW_GROUPS:
            own = measured.residual.max()
        return float(own), float(every)

    def _pool(self, category: int, name_group: int) -> CalibrationRuns:
        r = self.runs
        return r.take(np.flatnonzero((r.category == category) & (r.name_group == name_group)))

    def _highest_of(self, own: CalibrationRuns) -> float:
        """Return the confidence up to which a category's own groups suffice; 0 if they are few."""
        if not self.is_cross_conformal:
            return self._highest(own, 1)
        suffice = _number_of_groups(own) >= constants.FEW_GROUPS
        return self._highest(own, constants.FROM_TOP) if suffice else 0.0

    def _highest_alike(self, alike: CalibrationRuns) -> float:
        """Return the confidence up to which the runs of all categories alike suffice; 0 if they are few."""
        suffice = _number_of_groups(alike) >= constants.FEWEST_GROUPS
        return self._highest(alike, 1) if suffice else 0.0

    def _units(self, pool: CalibrationRuns) -> float:
        """Count the independent runs that a pool is worth: its groups, where a theorem holds."""
        if not self.is_cross_conformal:
            return _number_of_groups(pool)
        return effective_number(pool.score, pool.group)

    def _highest(self, pool: CalibrationRuns, from_top: int) -> float:
        """Return the confidence above which fewer than `from_top` units lie over the rank; at least 0."""
        return max(1 - from_top / (self._units(pool) + 1), 0.0)

    def _offset(self, category: int, name_group: int, level: float, tail: bool) -> _Offset:
        key = category, name_group, level, tail
        if key not in self._offsets:
            self._offsets[key] = self._found(*key)
        return self._offsets[key]

    def _found(self, category: int, name_group: int, level: float, tail: bool) -> _Offset:
        own, outcome = self._pool(category, name_group), self._outcome(category)
        if self.mix is not None:
            if self.is_cross_conformal and len(own):  # no theorem would be lost by more runs
                own = self._alike(category, name_group)
            return self._of_mix(own, self.mix.at(category), level, outcome)
        highest = self._highest_of(own)
        if level <= highest + constants.NEAR:
            return _Offset(*self._ranked(own, level), outcome)
        if not len(own) and category not in KNOWN:
            return _Offset(np.inf, 0, 1, NEVER_MEASURED.get(category, "new_name"))
        alike = self._alike(category, name_group)
        highest_alike = self._highest_alike(alike)
        if level <= highest_alike + constants.NEAR:
            pooled = POOLED if outcome == GUARANTEED else outcome
            found = _Offset(*self._ranked(alike, level), pooled)
        elif tail and _number_of_groups(own) >= constants.FEWEST_FOR_TAIL:
            law = tail_offset(np.sort(own.score), 1 - level)
            found = _Offset(law, len(own), len(own) + 1, "model_based")
        else:
            found = _Offset(
                np.inf, len(own), len(own) + 1, "too_few_runs" if len(alike) else "unseen_group"
            )
        # A bound is never under what the category's own runs, or those alike, gave at a lower confidence.
        lower = [
            self._ranked(pool, most - constants.NEAR)[0]
            for pool, most in ((own, highest), (alike, highest_alike))
            if 0 < most < level
        ]
        # Nor under what own groups give by themselves, too few as they are for a rank well below the top.
        groups = _number_of_groups(own)
        if constants.FEWEST_GROUPS <= groups < constants.FEW_GROUPS:
            top = 1 - 1 / (groups + 1) - constants.NEAR
            lower.append(_quantile(own.score, own.group, min(level, top))[0])
        return found._replace(value=max(found.value, *lower, -np.inf))

    def _ranked(self, pool: CalibrationRuns, level: float) -> tuple[float, int, int]:
        """Return (score, runs, rank) of a confidence that the pool supports. Cross-conformal pools of few
        groups give their largest score: runs of one group err alike, and names are in several groups."""
        if self.is_cross_conformal and _number_of_groups(pool) < constants.FEW_GROUPS:
            return float(pool.score.max()), len(pool), len(pool)
        value, rank = _quantile(pool.score, pool.group, level, self._units(pool))
        return value, len(pool), rank

    def _alike(self, category: int, name_group: int) -> CalibrationRuns:
        """Return the runs of all categories alike (all alone, or all beside others), their scores put to the
        usual size of this category's own, or to the largest usual size if it has no runs."""
        r = self.runs
        is_alike = (np.isin(r.category, ALONE) == (category in ALONE)) & (
            r.name_group == name_group
        )
        is_alike &= ~np.isin(r.category, NEVER_MET) | (r.category == category)
        if category in KNOWN and not self.is_cross_conformal:
            is_alike &= (
                ~r.held_out
            )  # what further fits showed of new names changes no bound of old ones
        every, size = r.take(np.flatnonzero(is_alike)), np.zeros(len(CATEGORIES))
        for one in np.unique(every.category):
            size[one] = _usual_size(every.take(np.flatnonzero(every.category == one)), every)
        usual = size[category] or size.max()
        return replace(every, score=every.score * usual / size[every.category])

    def _of_mix(self, own: CalibrationRuns, mix: NameMix, level: float, outcome: str) -> _Offset:
        is_exact = outcome == GUARANTEED
        rows, weight = mix.weights(getattr(own, mix.by), own.group, one_of_each=is_exact)
        order = np.argsort(own.score[rows], kind="stable")
        rank = rank_by_weight(np.cumsum(weight[order]), 1.0, level)
        if rank > len(rows):
            return _Offset(np.inf, len(rows), rank, "too_few_runs")
        return _Offset(float(own.score[rows[order[rank - 1]]]), len(rows), rank, outcome)

    def _outcome(self, category: int) -> str:
        if category == MORE_CORUNNERS:
            return LARGER_SETS
        if category not in KNOWN:
            return HELD_OUT_NAMES
        if self.is_of_unknown_campaign:
            return UNKNOWN_CAMPAIGN
        if self.has_changing_corunners:
            return CHANGED_COMPANY
        return CROSS_VALIDATED if self.is_cross_conformal else GUARANTEED


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
    """Return the score at a low confidence, to compare shapes by; of `every` if the pool is too small, or
    its runs are mostly shorter than predicted, which is no size."""
    for one in (pool, every):
        value, _ = _quantile(one.score, one.group, constants.USUAL)
        if np.isfinite(value) and value > 0:
            return value
    return 1.0
