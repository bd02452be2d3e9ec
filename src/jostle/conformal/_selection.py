"""Which of several ways to bound is taken: the one with the least margin, on runs that do not calibrate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.conformal._bounds import margin_of_errors
from jostle.conformal._measurement_error import undisturbed
from jostle.conformal._pool import Way
from jostle.conformal._predictor import Candidates, candidates_of

LEVELS = (0.9, 0.95, 0.99)  # confidences over which the margins of candidates are compared
FEWEST_TO_CHOOSE = 50


@dataclass(frozen=True)
class Selection:
    """n runs that the ways to bound are compared on. log_runtime: (n,) measured; degree: (n,) co-runners.
    error: (n,) standard errors of log_runtime. unit: (n,) codes, equal for what was drawn as one."""

    candidates: Candidates
    log_runtime: np.ndarray
    degree: np.ndarray
    error: np.ndarray
    unit: np.ndarray

    @classmethod
    def of(cls, predictor: Any, runs: Any, unit: np.ndarray | None = None) -> Selection:
        """unit: of the runs with status ok; where it is left out every run was drawn by itself."""
        runs = runs.ok()
        return cls(
            candidates_of(predictor, runs.colocations),
            np.log(runs.runtime_seconds),
            np.asarray(runs.colocations.number_of_corunners),
            runs.runtime_error_ratio,
            np.arange(len(runs)) if unit is None else np.asarray(unit, np.int64),
        )

    @staticmethod
    def concatenate(parts: Sequence[Selection]) -> Selection:
        """All of them, in order, of predictors with the same candidates. At least one part."""
        of = [(*part.candidates[1:3], *list(vars(part).values())[1:]) for part in parts]
        centre, scale, *rest = (np.concatenate(one, axis=-1) for one in zip(*of, strict=True))
        names, until = parts[0].candidates.names, parts[0].candidates.until
        return Selection(Candidates(names, centre, scale, until), *rest)

    def undisturbed(self) -> Selection:
        """With times that scatter about the answers as undisturbed ones would."""
        centre = self.candidates.centre[0]
        off = undisturbed(self.log_runtime - centre, self.error, self.degree)
        return replace(self, log_runtime=np.where(np.isfinite(off), centre + off, self.log_runtime))

    @property
    def scores(self) -> np.ndarray:
        """(h, n) under each candidate. No prediction is the worst score there is, never one to leave out."""
        scores = (self.log_runtime - self.candidates.centre) / self.candidates.scale
        return np.where(np.isnan(scores), np.inf, scores)

    def take(self, index: np.ndarray) -> Selection:
        c = self.candidates
        candidates = Candidates(c.names, c.centre[:, index], c.scale[:, index], c.until)
        rest = (one[index] for one in (self.log_runtime, self.degree, self.error, self.unit))
        return Selection(candidates, *rest)

    def way(self, inside: np.ndarray) -> Way:
        """The way to bound with the least margin over the runs inside (a mask), in geometric mean over
        LEVELS; the first where there are too few to tell."""
        stages = self._stages(inside)
        return Way(stages, tuple(self.candidates.ends_at(place) for place in stages))

    def _stages(self, inside: np.ndarray) -> tuple[int, ...]:
        ways = self.candidates.staged()
        inside = inside & np.isfinite(self.candidates.centre).any(axis=0)
        if int(inside.sum()) < FEWEST_TO_CHOOSE or len(ways) == 1:
            return ways[0]
        cost = [
            sum(self._log_margin(self._stage(way, level), level, inside) for level in LEVELS)
            for way in ways
        ]
        return ways[int(np.argmin(np.nan_to_num(cost, nan=np.inf)))]

    def _stage(self, way: tuple[int, ...], level: float) -> int:
        return next(place for place in way if level <= self.candidates.ends_at(place))

    def _log_margin(self, place: int, level: float, inside: np.ndarray) -> float:
        error = self.log_runtime[inside] - self.candidates.centre[place, inside]
        scale = self.candidates.scale[place, inside]
        margin = margin_of_errors(error, scale, level, self.unit[inside])
        return float(np.log(np.maximum(margin, 1e-12)))
