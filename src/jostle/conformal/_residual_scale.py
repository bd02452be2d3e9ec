"""How large errors usually are: a learned scale, so that one offset bounds sure and unsure answers alike.

The log of an error's size is a sum of random effects of the platform, the workload and its co-runners, of
what the predictor says of its own uncertainty, and of how much was measured of the names. Scores are errors
over this scale (normalised nonconformity: Papadopoulos, Gammerman and Vovk 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._base.mixed_effects import Block, MixedEffects, fit_mixed_effects
from jostle._base.tensors import Serializable
from jostle.conformal._bounds import margin_of_errors
from jostle.conformal._categories import CATEGORIES, evidence_widths
from jostle.conformal._measurement_error import deconvolved
from jostle.conformal._uncertainty import Uncertainty, uncertainty_of

FLOOR = 0.2  # of the median error, that is added to each before its log is taken
FARTHEST = 3.0  # standard deviations of a width, past which it tells no more
LEAST_ERROR = 1e-9
MOST_EFFECT = 1.5  # log units that names may make errors larger or smaller than usual
FOLDS = 5
POWERS = (0.25, 0.5, 0.75, 1.0)  # of the effects, the usual one first
CHOSEN_BY = (0.9, 0.95, 0.99)  # confidences whose margins choose the power
FEWEST_TO_CHOOSE = 50  # rows of a category


@dataclass(frozen=True)
class ScaleRows:
    """Rows as the scale of errors takes them, n of them."""

    workload: np.ndarray
    platform: np.ndarray
    corunner: np.ndarray
    row: np.ndarray
    degree: np.ndarray
    category: np.ndarray
    widths: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(
        cls,
        predictor: Any,
        asked: Any,
        told: Uncertainty,
        names: tuple[Sequence[str], ...],
        category: np.ndarray,
    ) -> ScaleRows:
        """Make the rows of co-locations.

        names: of workloads and of platforms.
        """
        degree = np.asarray(asked.number_of_corunners)
        workload, platform = (
            _looked_up(known, own)
            for known, own in zip(names, (asked.workload_names, asked.platform_names), strict=True)
        )
        widths = np.concatenate([told.log_widths, evidence_widths(predictor, asked)])
        slopes = np.append(told.slopes, np.zeros(len(widths) - len(told.slopes)))
        row = np.repeat(np.arange(len(degree)), degree)
        codes = workload[asked.workload], platform[asked.platform], workload[asked.corunner]
        return cls(*codes, row, degree, category, widths, slopes)

    def __len__(self) -> int:
        return len(self.degree)

    def take(self, rows: np.ndarray) -> ScaleRows:
        """Keep some of the rows, given in ascending order."""
        place = np.full(len(self), -1)
        place[rows] = np.arange(len(rows))
        keep = place[self.row] >= 0
        return ScaleRows(
            self.workload[rows], self.platform[rows], self.corunner[keep], place[self.row[keep]],
            self.degree[rows], self.category[rows], self.widths[:, rows], self.slopes,
        )  # fmt: skip

    @staticmethod
    def concatenate(parts: Sequence[ScaleRows]) -> ScaleRows:
        """Concatenate rows of the same names and widths. parts: at least one."""
        start = np.cumsum([0, *(len(part) for part in parts[:-1])])
        row = np.concatenate([part.row + n for part, n in zip(parts, start, strict=True)])
        one = {
            name: np.concatenate([getattr(part, name) for part in parts], axis=-1)
            for name in ("workload", "platform", "corunner", "degree", "category", "widths")
        }
        return ScaleRows(row=row, slopes=parts[0].slopes, **one)


def _looked_up(known: Sequence[str], names: Sequence[str]) -> np.ndarray:
    place = {name: code for code, name in enumerate(known)}
    return np.array([place.get(name, -1) for name in names], np.int64)


@dataclass(frozen=True)
class ResidualScale(Serializable):
    """The usual size of an error.

    Parameters
    ----------
    workload_names, platform_names : tuple of str
    centre : () ndarray
        Mean log size.
    mean, spread : (f,) ndarray
        Mean and standard deviation of each width, over the rows that were learned from.
    effects : MixedEffects
        Of `category`, `width`, `platform`, `workload` and `corunner`.
    most : int
        Most co-runners of these rows.
    power : () ndarray
        Factor of the effects, from 0 (ignored) to 1.
    """

    workload_names: tuple[str, ...]
    platform_names: tuple[str, ...]
    centre: np.ndarray
    mean: np.ndarray
    spread: np.ndarray
    effects: MixedEffects
    most: int
    power: np.ndarray

    @classmethod
    def fit(
        cls,
        rows: ScaleRows,
        residual: np.ndarray,
        names: tuple[Sequence[str], ...],
        group: np.ndarray,
    ) -> tuple[ResidualScale, np.ndarray]:
        """Learn the scale from errors of rows that the predictor was not fitted to.

        Parameters
        ----------
        residual : (n,) ndarray
            Log runtime less predicted.
        names : tuple of (workloads, platforms)
        group : (n,) ndarray
            Codes, equal for runs left out or drawn together.

        Returns
        -------
        scale : ResidualScale
        crossed : (n,) ndarray
            Scales of the rows: effects from other groups' rows, centre, power and variances from all.
        """
        whole = cls._fitted(rows, residual, names, None)
        logs, fold = np.zeros(len(rows)), _fold_of(group)
        for number in np.unique(fold):
            held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            if len(rest):
                part = cls._fitted(rows.take(rest), residual[rest], names, whole)
                logs[held] = part._log_effects(rows.take(held))
        power = _power(logs, residual, rows.category, group)
        scale = replace(whole, power=np.array(power))
        return scale, scale._scales(rows, logs)

    @classmethod
    def _fitted(
        cls,
        rows: ScaleRows,
        residual: np.ndarray,
        names: tuple[Sequence[str], ...],
        like: ResidualScale | None,
    ) -> ResidualScale:
        """Fit the scale to (n,) errors. like: a fit to more of the same rows, whose variances are taken."""
        size = np.abs(residual)
        target = np.log(size + FLOOR * (np.median(size) if len(size) else 0.0) + LEAST_ERROR)
        mean = rows.widths.mean(1) if len(rows) else np.zeros(len(rows.widths))
        spread = rows.widths.std(1) if len(rows) else np.zeros(len(rows.widths))
        none = MixedEffects({}, {}, {}, np.ones(1))
        known = rows.slopes @ (rows.widths - mean[:, None])
        centre = np.array(float((target - known).mean()) if len(rows) else 0.0)
        most = max(int(rows.degree.max(initial=1)), 1)
        one = np.array(1.0)
        out = cls(tuple(names[0]), tuple(names[1]), centre, mean, spread, none, most, one)
        effects = fit_mixed_effects(
            out._design(rows),
            target - known - centre,
            fixed=("category",),
            like=None if like is None else like.effects,
        )
        return replace(out, effects=effects)

    def _design(self, rows: ScaleRows) -> dict[str, Block]:
        w, p = len(self.workload_names), len(self.platform_names)
        share = 1 / np.maximum(rows.degree, 1)[rows.row]
        off = rows.widths - self.mean[:, None]
        z = np.clip(off / np.where(self.spread > 0, self.spread, 1)[:, None], -FARTHEST, FARTHEST)
        z[self.spread <= 0] = 0
        return {
            "category": Block.of(rows.category.astype(np.int64), len(CATEGORIES)),
            "width": Block.columns(z.T),
            "platform": Block.of(rows.platform, p),
            "workload": Block.of(rows.workload, w),
            "corunner": Block.of(rows.corunner, w, share, rows.row),
        }

    def __call__(self, rows: ScaleRows) -> np.ndarray:
        """Predict (n,) scales in log seconds; larger for more co-runners than any row had."""
        return self._scales(rows, self._log_effects(rows))

    def _log_effects(self, rows: ScaleRows) -> np.ndarray:
        return np.clip(
            self.effects.predict(self._design(rows), len(rows)), -MOST_EFFECT, MOST_EFFECT
        )

    def _scales(self, rows: ScaleRows, effects: np.ndarray) -> np.ndarray:
        known = rows.slopes @ (rows.widths - self.mean[:, None])
        log = float(self.centre) + known + float(self.power) * effects
        return np.maximum(rows.degree / self.most, 1) * np.exp(log)


def _power(
    effects: np.ndarray, residual: np.ndarray, category: np.ndarray, group: np.ndarray
) -> float:
    """Choose how far the effects count: by the least margin of bounds, over categories and confidences."""
    cost = np.zeros(len(POWERS))
    for one in np.unique(category):
        at = np.flatnonzero(category == one)
        if len(at) < FEWEST_TO_CHOOSE:
            continue
        for place, power in enumerate(POWERS):
            scale = np.exp(power * effects[at])
            margins = [margin_of_errors(residual[at], scale, c, group[at]) for c in CHOSEN_BY]
            cost[place] += len(at) * float(np.log(np.maximum(margins, 1e-9)).sum())
    return POWERS[int(np.argmin(cost))]


def _fold_of(group: np.ndarray) -> np.ndarray:
    """Draw a fold for each group. Returns (n,), equal for rows of one group."""
    different, code = np.unique(group, return_inverse=True)
    return (np.random.default_rng(0).permutation(len(different)) % FOLDS)[code.reshape(-1)]


@dataclass(frozen=True)
class Residuals:
    """Errors of n runs that a predictor was not fitted to. residual: (n,) log runtime less predicted. error:
    (n,) standard errors of the log runtimes. index: (n,) which of the runs have an answer."""

    rows: ScaleRows
    residual: np.ndarray
    error: np.ndarray
    index: np.ndarray

    @classmethod
    def of(
        cls, predictor: Any, runs: Any, names: tuple[Sequence[str], ...], category: np.ndarray
    ) -> Residuals:
        """Compute the errors of runs that have an answer; a run without one is not late."""
        told = uncertainty_of(predictor, runs.colocations)
        rows = ScaleRows.of(predictor, runs.colocations, told, names, category)
        residual = np.log(runs.runtime_seconds) - told.log_runtime
        index = np.flatnonzero(np.isfinite(residual))
        return cls(rows.take(index), residual[index], runs.runtime_error_ratio[index], index)

    def deconvolved(self) -> np.ndarray:
        """Return (n,) residuals as if the runs were known exactly, as far as they confirm their errors."""
        return deconvolved(self.residual, self.error, self.rows.degree)
