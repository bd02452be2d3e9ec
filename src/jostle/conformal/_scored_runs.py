"""Runs that bounds are calibrated on: errors of a predictor that was not fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from jostle.conformal._categories import category_of
from jostle.conformal._covariate_shift import codes_of
from jostle.conformal._name_groups import Groups
from jostle.conformal._residual_scale import Residuals, ResidualScale, ScaleRows


@dataclass(frozen=True)
class CalibrationRuns:
    """Runs that the predictor was not fitted on.

    Parameters
    ----------
    score, residual : (n,) ndarray
        Log runtime less predicted, over the learned scale and as it is.
    degree : (n,) ndarray
        Numbers of co-runners.
    category : (n,) ndarray of int8
    group : (n,) ndarray
        Codes, equal for runs left out or drawn together: the sampling unit that ranks count.
    name_group : (n,) ndarray
        Codes of the Groups of names within each of which bounds hold; 0 without any.
    held_out : (n,) ndarray of bool
        Names left out of a further fit, more co-runners than it knew, or sets of which it knew other runs.
    workload, platform : (n,) ndarray
        Codes of the names (name_codes).
    """

    score: np.ndarray
    residual: np.ndarray
    degree: np.ndarray
    category: np.ndarray
    group: np.ndarray
    name_group: np.ndarray
    held_out: np.ndarray
    workload: np.ndarray
    platform: np.ndarray

    def __len__(self) -> int:
        return len(self.score)

    def take(self, index: np.ndarray) -> CalibrationRuns:
        """Keep the runs of these row numbers."""
        return CalibrationRuns(*(getattr(self, one.name)[index] for one in fields(self)))

    @staticmethod
    def concatenate(parts: Sequence[CalibrationRuns]) -> CalibrationRuns:
        """Concatenate, in order; a code of `group` means the same group in all parts. parts: at least one."""
        columns = (np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(parts[0]))
        return CalibrationRuns(*columns)


@dataclass(frozen=True)
class LeftOutRuns:
    """Runs that a predictor was not fitted to, and its errors on these runs.

    Parameters
    ----------
    residuals : Residuals
    runs : CalibrationRuns
        Without scores as yet: NaN.
    """

    residuals: Residuals
    runs: CalibrationRuns

    @classmethod
    def of(
        cls,
        predictor: Any,
        runs: Any,
        group: np.ndarray,
        names: tuple[Sequence[str], ...],
        *,
        name_groups: Groups | None = None,
        held_out: bool = False,
        most: int | None = None,
        is_crossed: bool = False,
    ) -> LeftOutRuns:
        """Ask a predictor about runs (all with status ok) that it was not fitted to.

        Parameters
        ----------
        group : (n,) ndarray
            Codes, equal for runs drawn or left out together.
        names : tuple of (workloads, platforms)
            Names that the scale has effects for.
        held_out : bool
            Whether names or the largest numbers of co-runners were left out, or only some runs of a set.
        most : int, optional
            Most co-runners that the predictor learned from.
        is_crossed : bool
            Whether other predictors answer other runs, some by other runs of the same set.
        """
        category = category_of(predictor, runs.colocations, most, tells_measured=is_crossed)
        residuals = Residuals.of(predictor, runs, names, category)
        at = residuals.index
        runs, n = runs.take(at), len(at)
        c = runs.colocations
        own = CalibrationRuns(
            np.full(n, np.nan),
            residuals.residual,
            residuals.rows.degree,
            residuals.rows.category,
            np.asarray(group, np.int64)[at],
            np.zeros(n, np.int64) if name_groups is None else name_groups.codes(c),
            np.full(n, held_out),
            *(codes_of(c, kind) for kind in ("workload", "platform")),
        )
        return cls(residuals, own)

    def __len__(self) -> int:
        return len(self.runs)

    @staticmethod
    def concatenate(parts: Sequence[LeftOutRuns]) -> LeftOutRuns:
        """Concatenate, in order. parts: at least one."""
        each = [part.residuals for part in parts]
        joined = Residuals(
            ScaleRows.concatenate([r.rows for r in each]),
            *(
                np.concatenate([getattr(r, name) for r in each])
                for name in ("residual", "error", "index")
            ),
        )
        return LeftOutRuns(joined, CalibrationRuns.concatenate([part.runs for part in parts]))

    def scored(self, scale: ResidualScale) -> CalibrationRuns:
        """Divide the errors by a scale that was not learned from them."""
        residual = self.residuals.residual
        return replace(self.runs, score=residual / scale(self.residuals.rows), residual=residual)
