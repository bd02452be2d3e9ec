"""Split conformal bounds, one-sided, in pools by number of co-runners.

Source: Pitot (MLSys 2025), Sec. 3.4 with Mondrian pools (Vovk et al. 2003). Which of the predictor's
candidates bounds a pool is chosen by the margin it gives on a *selection* part, and the chosen one
is calibrated on another part, so that choosing does not spend the guarantee. Choosing anew for every
confidence, as the paper does, can swap a wide bound for a narrower one on the way up. Here a way to bound
may be staged, each for its range of confidences (see Candidates.until), and the bound is
the largest of what its stages say up to the confidence: never lower than the stage that speaks, so it
holds, and it never falls as confidence rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle.bounds._bounds import Bounds, margin_of_errors
from jostle.bounds._predictor import Candidates, candidates_of
from jostle.bounds._rank import rank_by_weight, window_weights

LEVELS = (0.9, 0.95, 0.99)  # confidences over which the margins of candidates are compared
FEWEST_TO_CHOOSE = 50
POOLED = "with co-runners"


@dataclass(frozen=True)
class Pool:
    """One calibration pool, with the way that bounds it, of r stages (mostly one).

    scores: (r, n) ascending. cumulative: (r, n) running weight of windows. total: the whole weight, a new
    window's included. choice: (r,) the candidates. until: (r,) up to which confidence each speaks.
    """

    scores: np.ndarray
    cumulative: np.ndarray
    total: int
    choice: tuple[int, ...]
    until: tuple[float, ...]

    @property
    def n(self) -> int:
        return self.scores.shape[1]

    @property
    def stands_alone(self) -> bool:
        """Whether it can answer the usual confidence by itself. One that cannot is bounded by the pooled
        one at every confidence: bounds that changed from the one to the other would have to be as wide as
        its largest score, or would fall."""
        needed = rank_by_weight(self.cumulative[0], self.total, DEFAULT_CONFIDENCE)
        return needed <= self.n

    def offsets(
        self, confidence: float, *, largest: bool = False
    ) -> tuple[list[tuple[int, float]], int]:
        """([(candidate, offset)] of the stages up to this confidence, rank of the last); the bound is the
        largest of theirs. An offset is +inf where the rank exceeds n, or, with `largest`, the largest
        score there is."""
        found: list[tuple[int, float]] = []
        rank = 0
        for stage, (place, until) in enumerate(zip(self.choice, self.until, strict=True)):
            asked = min(confidence, until)
            rank = rank_by_weight(self.cumulative[stage], self.total, asked)
            at = min(rank, self.n) if largest else rank
            found.append((place, float(self.scores[stage, at - 1]) if at <= self.n else np.inf))
            if confidence <= until:
                break
        return found, rank


class Calibration:
    """Calibrated pools, one per number of co-runners, and one over all runs with co-runners."""

    def __init__(self, names: tuple[str, ...], pools: dict[str, Pool]) -> None:
        self.names = names
        self.pools = pools

    @classmethod
    def fit(
        cls, predictor: Any, selection: Any, calibration: Any, *, by: str = "window"
    ) -> Calibration:
        """selection, calibration: disjoint runs that the predictor was not fitted on.

        by: `window` where whole windows were drawn (rows measured together), `row` where rows were,
            `together` where all runs of the same workloads on the same platform were drawn as one.
        The guarantee is for runs drawn like the calibration runs.
        """
        chosen, calibrated = (
            _Part.of(predictor, selection, by),
            _Part.of(predictor, calibration, by),
        )
        names = calibrated.candidates.names
        pools = {}
        for name, degrees in _pools(calibrated.degree):
            inside = np.isin(calibrated.degree, degrees)
            inside_selection = np.isin(chosen.degree, degrees)
            choice = chosen.choose(inside_selection)
            weight, total = window_weights(calibrated.window[inside])
            scores = calibrated.scores[list(choice)][:, inside]
            order = np.argsort(scores, axis=1, kind="stable")
            pools[name] = Pool(
                np.take_along_axis(scores, order, 1),
                np.cumsum(weight[order], axis=1),
                total,
                choice,
                tuple(calibrated.candidates.ends_at(place) for place in choice),
            )
        return cls(names, pools)

    def bound(self, predictor: Any, colocations: Any, confidence: float) -> Bounds:
        """Upper bounds at `confidence`; never lower at a higher confidence."""
        level = float(exact_confidence(confidence))
        candidates = candidates_of(predictor, colocations)
        degree = np.asarray(colocations.number_of_corunners)
        n = len(degree)
        log_bound = np.full(n, np.inf)
        outcome = np.full(n, "unseen_group", dtype="<U20")
        pool_name = np.full(n, "", dtype="<U20")
        count, rank_used = np.zeros(n, np.int64), np.zeros(n, np.int64)
        for d in np.unique(degree):
            at = np.flatnonzero(degree == d)
            name = pool_of(int(d))
            pool_name[at] = name
            if name not in self.pools:
                continue
            outcome[at] = "guaranteed"
            value, pool, rank = self._log_bound(name, candidates, at, level)
            if d > 0 and POOLED in self.pools and (rank > pool.n or not pool.stands_alone):
                wide, parent, parent_rank = self._log_bound(POOLED, candidates, at, level)
                if pool.stands_alone:  # never under what it gave at a lower confidence
                    most, *_ = self._log_bound(name, candidates, at, level, largest=True)
                    wide = np.maximum(wide, most)
                if parent_rank <= parent.n or not pool.stands_alone:
                    value, pool, rank = wide, parent, parent_rank
                    outcome[at], pool_name[at] = "guaranteed_pooled", POOLED
            if rank > pool.n:
                outcome[at] = "too_few_runs"
            log_bound[at], count[at], rank_used[at] = value, pool.n, rank
        unanswered = np.isnan(candidates.centre[0])
        outcome[unanswered] = "disconnected"
        log_bound[unanswered] = np.inf
        return Bounds(np.exp(log_bound), outcome, pool_name, count, rank_used, level)

    def _log_bound(
        self,
        name: str,
        candidates: Candidates,
        at: np.ndarray,
        level: float,
        *,
        largest: bool = False,
    ) -> tuple[np.ndarray, Pool, int]:
        pool = self.pools[name]
        offsets, rank = pool.offsets(level, largest=largest)
        value = np.full(len(at), -np.inf)
        for place, offset in offsets:
            stage = candidates.centre[place, at] + candidates.scale[place, at] * offset
            value = np.maximum(value, stage)
        return value, pool, rank

    def to_arrays(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """(arrays for safetensors, what goes into JSON); from_arrays is the inverse."""
        arrays, pools = {}, {}
        for number, (name, pool) in enumerate(self.pools.items()):
            document = {"choice": list(pool.choice), "until": list(pool.until)}
            pools[name] = {"number": number, "total": pool.total, **document}
            arrays[f"pool_{number}_scores"] = pool.scores
            arrays[f"pool_{number}_cumulative"] = pool.cumulative
        return arrays, {"candidates": list(self.names), "pools": pools}

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], document: dict[str, Any]) -> Calibration:
        pools = {
            name: Pool(
                arrays[f"pool_{entry['number']}_scores"],
                arrays[f"pool_{entry['number']}_cumulative"],
                int(entry["total"]),
                tuple(int(place) for place in entry["choice"]),
                tuple(float(until) for until in entry["until"]),
            )
            for name, entry in document["pools"].items()
        }
        return cls(tuple(document["candidates"]), pools)


def pool_of(number_of_corunners: int) -> str:
    """The name of the pool of co-locations with so many co-runners."""
    if number_of_corunners == 0:
        return "alone"
    return f"{number_of_corunners} co-runner" + ("s" if number_of_corunners > 1 else "")


def _pools(degree: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """(name, numbers of co-runners) of every pool with a calibration run."""
    degrees = np.unique(degree)
    own = [(pool_of(int(d)), np.array([d])) for d in degrees]
    corun = degrees[degrees > 0]
    return own + ([(POOLED, corun)] if len(corun) > 1 else [])


@dataclass(frozen=True)
class _Part:
    """Runs with their candidates and scores; scores: (h, n)."""

    candidates: Candidates
    scores: np.ndarray
    log_runtime: np.ndarray
    degree: np.ndarray
    window: np.ndarray

    @classmethod
    def of(cls, predictor: Any, runs: Any, by: str) -> _Part:
        runs = runs.ok()
        candidates = candidates_of(predictor, runs.colocations)
        log_runtime = np.log(runs.runtime_seconds)
        scores = (log_runtime - candidates.centre) / candidates.scale
        # No prediction is the worst score there is, never one to leave out.
        scores = np.where(np.isnan(scores), np.inf, scores)
        degree = np.asarray(runs.colocations.number_of_corunners)
        return cls(candidates, scores, log_runtime, degree, runs.units(by))

    def choose(self, inside: np.ndarray) -> tuple[int, ...]:
        """The way to bound with the least margin, in geometric mean over LEVELS; the first where there are
        too few runs to tell."""
        ways = self.candidates.staged()
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
        found = margin_of_errors(error, self.candidates.scale[place, inside], level)
        return float(np.log(np.maximum(found, 1e-12)))
