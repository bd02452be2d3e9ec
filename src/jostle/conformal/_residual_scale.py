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
from jostle.conformal import _constants as constants
from jostle.conformal._bounds import margin_of_errors
from jostle.conformal._categories import CATEGORIES, evidence_widths
from jostle.conformal._uncertainty import Uncertainty
from jostle.data import Colocations


@dataclass(frozen=True)
class ScaleRows:
    """Rows as the scale of errors takes them, n of them. asked: their co-locations. category: (n,). widths:
    (f, n), slopes: (f,), as of Uncertainty, with what was measured of the names."""

    asked: Colocations
    category: np.ndarray
    widths: np.ndarray
    slopes: np.ndarray

    @classmethod
    def of(
        cls, predictor: Any, asked: Colocations, told: Uncertainty, category: np.ndarray
    ) -> ScaleRows:
        """Make the rows of co-locations."""
        widths = np.concatenate([told.log_widths, evidence_widths(predictor, asked)])
        slopes = np.append(told.slopes, np.zeros(len(widths) - len(told.slopes)))
        return cls(asked, category, widths, slopes)

    def __len__(self) -> int:
        return len(self.category)

    @property
    def degree(self) -> np.ndarray:
        """Numbers of co-runners, (n,)."""
        return np.asarray(self.asked.number_of_corunners)

    def take(self, rows: np.ndarray) -> ScaleRows:
        """Keep some of the rows."""
        return replace(
            self,
            asked=self.asked.take(rows),
            category=self.category[rows],
            widths=self.widths[:, rows],
        )

    @staticmethod
    def concatenate(parts: Sequence[ScaleRows]) -> ScaleRows:
        """Concatenate rows of the same widths. parts: at least one."""
        return ScaleRows(
            Colocations.concatenate([part.asked for part in parts]),
            np.concatenate([part.category for part in parts]),
            np.concatenate([part.widths for part in parts], axis=1),
            parts[0].slopes,
        )


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
        cls, rows: ScaleRows, residual: np.ndarray, group: np.ndarray
    ) -> tuple[ResidualScale, np.ndarray]:
        """Learn the scale from errors of rows that the predictor was not fitted to.

        Parameters
        ----------
        residual : (n,) ndarray
            Log runtime less predicted.
        group : (n,) ndarray
            Codes, equal for runs left out or drawn together.

        Returns
        -------
        scale : ResidualScale
        crossed : (n,) ndarray
            Scales of the rows: effects from other groups' rows, centre, power and variances from all.
        """
        whole = cls._fitted(rows, residual)
        different, code = np.unique(group, return_inverse=True)
        folds = np.random.default_rng(0).permutation(len(different)) % constants.SCALE_FOLDS
        logs, fold = np.zeros(len(rows)), folds[code.reshape(-1)]
        for number in np.unique(fold):
            held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            if len(rest):
                part = cls._fitted(rows.take(rest), residual[rest], whole.effects)
                logs[held] = part._log_effects(rows.take(held))
        scale = replace(whole, power=np.array(_power(logs, residual, rows.category, group)))
        return scale, scale._scales(rows, logs)

    @classmethod
    def _fitted(
        cls, rows: ScaleRows, residual: np.ndarray, like: MixedEffects | None = None
    ) -> ResidualScale:
        """Fit the scale to (n,) errors. like: a fit to more of the same rows, whose variances are taken."""
        mean = spread = np.zeros(len(rows.widths))
        size, centre = np.abs(residual), 0.0
        target, known = np.zeros(0), np.zeros(0)
        if len(rows):
            mean, spread = rows.widths.mean(1), rows.widths.std(1)
            known = rows.slopes @ (rows.widths - mean[:, None])
            target = (
                np.log(size + constants.ERROR_FLOOR * np.median(size) + constants.LEAST_ERROR)
                - known
            )
            centre = float(target.mean())
        about = np.array(centre), mean, spread, MixedEffects({}, {}, {}, np.ones(1))
        most = max(int(rows.degree.max(initial=1)), 1)
        out = cls(rows.asked.workload_names, rows.asked.platform_names, *about, most, np.array(1.0))
        design = out._design(rows)
        effects = fit_mixed_effects(design, target - centre, fixed=("category",), like=like)
        return replace(out, effects=effects)

    def _design(self, rows: ScaleRows) -> dict[str, Block]:
        w, p = len(self.workload_names), len(self.platform_names)
        workload, platform, corunner = rows.asked.recode(self.workload_names, self.platform_names)
        row = rows.asked.corunner_row
        off = rows.widths - self.mean[:, None]
        z = np.clip(
            off / np.where(self.spread > 0, self.spread, 1)[:, None],
            -constants.FARTHEST_WIDTH,
            constants.FARTHEST_WIDTH,
        )
        z[self.spread <= 0] = 0
        return {
            "category": Block.of(rows.category.astype(np.int64), len(CATEGORIES)),
            "width": Block.columns(z.T),
            "platform": Block.of(platform, p),
            "workload": Block.of(workload, w),
            "corunner": Block.of(corunner, w, 1 / rows.degree[row], row),
        }

    def __call__(self, rows: ScaleRows) -> np.ndarray:
        """Predict (n,) scales in log seconds; larger for more co-runners than any row had."""
        return self._scales(rows, self._log_effects(rows))

    def _log_effects(self, rows: ScaleRows) -> np.ndarray:
        logs = self.effects.predict(self._design(rows), len(rows))
        return np.clip(logs, -constants.MOST_EFFECT, constants.MOST_EFFECT)

    def _scales(self, rows: ScaleRows, effects: np.ndarray) -> np.ndarray:
        known = rows.slopes @ (rows.widths - self.mean[:, None])
        log = float(self.centre) + known + float(self.power) * effects
        return np.maximum(rows.degree / self.most, 1) * np.exp(log)


def _power(
    effects: np.ndarray, residual: np.ndarray, category: np.ndarray, group: np.ndarray
) -> float:
    """Choose how far the effects count: by the least margin of bounds, over categories and confidences."""
    cost = np.zeros(len(constants.POWERS))
    for one in np.unique(category):
        at = np.flatnonzero(category == one)
        if len(at) < constants.FEWEST_TO_CHOOSE:
            continue
        scales = [np.exp(power * effects[at]) for power in constants.POWERS]
        margins = [
            [margin_of_errors(residual[at], s, c, group[at]) for c in constants.CHOSEN_BY]
            for s in scales
        ]
        cost += len(at) * np.log(np.maximum(margins, 1e-9)).sum(axis=1)
    return constants.POWERS[int(np.argmin(cost))]
