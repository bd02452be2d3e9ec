"""Runs that bounds are calibrated on: errors of a predictor that was not fitted to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from jostle.conformal._categories import category_of
from jostle.conformal._covariate_shift import codes_of
from jostle.conformal._name_groups import Groups
from jostle.conformal._residual_scale import ResidualScale, ScaleRows
from jostle.conformal._uncertainty import uncertainty_of


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

    def followed_by(self, other: CalibrationRuns) -> CalibrationRuns:
        """Concatenate with runs of which no group is one of these."""
        start = int(self.group.max(initial=-1)) + 1 - int(other.group.min(initial=0))
        return CalibrationRuns.concatenate([self, replace(other, group=other.group + start)])


@dataclass(frozen=True)
class LeftOutRuns:
    """Runs that a predictor was not fitted to, and its errors on these runs; a run without an answer is not
    late, and left away.

    Parameters
    ----------
    runs : CalibrationRuns
        Without scores as yet: NaN.
    rows : ScaleRows
    error : (n,) ndarray
        Standard errors of the log runtimes.
    index : (n,) ndarray
        Which of the runs have an answer.
    """

    runs: CalibrationRuns
    rows: ScaleRows
    error: np.ndarray
    index: np.ndarray

    @classmethod
    def of(
        cls,
        predictor: Any,
        runs: Any,
        group: np.ndarray,
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
        held_out : bool
            Whether names or the largest numbers of co-runners were left out, or only some runs of a set.
        most : int, optional
            Most co-runners that the predictor learned from.
        is_crossed : bool
            Whether other predictors answer other runs, some by other runs of the same set.
        """
        asked = runs.colocations
        told = uncertainty_of(predictor, asked)
        residual = np.log(runs.runtime_seconds) - told.log_runtime
        index = np.flatnonzero(np.isfinite(residual))
        category = category_of(predictor, asked, most, tells_measured=is_crossed)
        rows = ScaleRows.of(predictor, asked, told, category).take(index)
        n, c = len(index), rows.asked
        own = CalibrationRuns(
            np.full(n, np.nan),
            residual[index],
            rows.degree,
            rows.category,
            np.asarray(group, np.int64)[index],
            np.zeros(n, np.int64) if name_groups is None else name_groups.codes(c),
            np.full(n, held_out),
            *(codes_of(c, kind) for kind in ("workload", "platform")),
        )
        return cls(own, rows, runs.runtime_error_ratio[index], index)

    def __len__(self) -> int:
        return len(self.runs)

    @staticmethod
    def concatenate(parts: Sequence[LeftOutRuns]) -> LeftOutRuns:
        """Concatenate, in order. parts: at least one."""
        return LeftOutRuns(
            CalibrationRuns.concatenate([part.runs for part in parts]),
            ScaleRows.concatenate([part.rows for part in parts]),
            *(np.concatenate([getattr(p, name) for p in parts]) for name in ("error", "index")),
        )

    def scored(self, scale: ResidualScale) -> CalibrationRuns:
        """Divide the errors by a scale that was not learned from them."""
        return replace(self.runs, score=self.runs.residual / scale(self.rows))
