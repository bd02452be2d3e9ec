"""The promise for chosen ones: scores of sets and of calibration sets, and a level after an optimiser."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle.errors import NotEnoughRuns
from jostle.placement._promise import CHOSEN
from jostle.placement.asked._fleet import Node
from jostle.placement.asked._requests import Request
from jostle.placement.assign._packing import packed_once
from jostle.placement.chosen._measured import MeasuredSets, calibration_runs, measured_sets
from jostle.placement.chosen._selection import (
    Scored,
    check_share,
    require_enough,
    select,
    upper_limit,
)
from jostle.placement.sets._bounds import SetBounds

if TYPE_CHECKING:
    from jostle.runs import Runs

# From careful to bold; a policy is tried on calibration sets at each, until it hurts too many.
LEVELS = (0.995, 0.99, 0.97, 0.95, 0.92, 0.9, 0.85, 0.8, 0.7, 0.5)
REPEATS = 6  # draws of limits and of fleets, of which the mean counts
LIMIT_SECONDS = 0.5  # for packing calibration sets in one draw
LEAST_WIDTH = 0.01  # of log(bound / prediction), by which scores are scaled


class ChosenPromise:
    """At most `share` of what is chosen is to be late. sets: what the model says, by one standard.

    runs: those that the model was calibrated on; solo: all runs, for times alone. seed: of the limits that
    calibration sets are given. Raises UsageError.
    """

    def __init__(
        self, sets: SetBounds, share: float, runs: Runs, solo: Runs, seed: int = 0
    ) -> None:
        check_share(share)
        # A choice is tried on calibration runs, of which its answers must know nothing.
        self.sets, self.share, self.seed = sets.without_calibration_runs(), share, seed
        self.measured = measured_sets(runs, sets.model, solo)

    @classmethod
    def of(cls, sets: SetBounds, share: float, data: Any, seed: int = 0) -> ChosenPromise:
        """data: what the model was fitted to. Raises UsageError for other data."""
        from jostle.methods import Data

        known = Data.of(data)
        runs = calibration_runs(sets.model, known)
        return cls(sets, share, runs, known.runs_in_memory, seed)

    @property
    def promise(self) -> str:
        """In a sentence."""
        return CHOSEN.format(among=f"{100 * self.share:g}%")

    def like(self, sets: SetBounds) -> ChosenPromise:
        """The same calibration sets, by another standard."""
        other = copy(self)
        other.sets = sets
        return other

    def select(
        self, groups: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]], ratios: np.ndarray
    ) -> list[np.ndarray]:
        """Which sets to choose: of each group (platform (n,), members (n, k), limits (n, k)) a (n,) bool.

        ratios: limits over times alone, of those that ask. Sets are calibrated by those with as many members.
        Raises NotEnoughRuns.
        """
        if not any(len(platform) for platform, *_ in groups):
            return [np.zeros(0, bool) for _ in groups]
        p, hopeful = [], []
        for platform, members, limit in groups:
            scored = self._scored(members.shape[1], ratios)
            if len(platform):
                require_enough(scored, self.share)
            mine = score(self.sets, platform, members, limit)
            p.append(scored.p_values(mine))
            hopeful.append(mine > 0)
        # Selection may take all where few are late at large; never one whose prediction is over its limit.
        chosen = select(np.concatenate(p), self.share) & np.concatenate(hopeful)
        return np.split(chosen, np.cumsum([len(x) for x in p])[:-1])

    def _scored(self, members: int, ratios: np.ndarray) -> Scored:
        random = np.random.default_rng(self.seed)
        for part in self.measured:
            if part.members.shape[1] == members and len(ratios):
                limit = limits(part, ratios, random)
                scores = score(self.sets, part.platform, part.members, limit)
                return Scored(scores, part.late(limit))
        return Scored(np.zeros(0), np.zeros(0, bool))

    def level(self, ratios: np.ndarray) -> float:
        """The boldest confidence at which the same policy, on fleets made of calibration sets, hurts at most
        the share of what it places, by the upper limit of Clopper and Pearson.

        Raises NotEnoughRuns where it does at no level.
        """
        level = None
        for confidence in LEVELS:
            placed, late = self._replayed(confidence, ratios)
            if upper_limit(int(np.ceil(late)), int(placed)) > self.share:
                if level is not None or placed >= 1 / self.share:
                    break
                continue  # too careful to place enough to tell: a bolder one may
            level = confidence
        if level is None:
            raise NotEnoughRuns(
                f"no level places enough calibration sets with at most {self.share:g} of them late",
                fix=f"It takes at least {_fewest(self.share)} placed ones; measure more, or allow more.",
            )
        return level

    def _replayed(self, confidence: float, ratios: np.ndarray) -> tuple[float, float]:
        """(sets of several placed, of which late) by the policy of `assign`, means over draws of limits."""
        sets = self.sets.by(confidence)
        random = np.random.default_rng(self.seed)
        parts = [part for part in self.measured if part.members.shape[1] > 1]
        placed = late = 0
        for _ in range(REPEATS):
            drawn = drawn_limits(parts, ratios, random)
            takes = [accepted(sets, part, limit) for part, limit in zip(parts, drawn, strict=True)]
            for part, limit, some in zip(parts, drawn, pack_measured(parts, takes), strict=True):
                placed += int(some.sum())
                late += int((some & part.late(limit)).sum())
        return placed / REPEATS, late / REPEATS


def accepted(sets: SetBounds, part: MeasuredSets, limit: np.ndarray) -> np.ndarray:
    """(n,) whether everybody measured keeps its limit by its bound."""
    bound, _ = sets.of(part.platform, part.members)
    measured = np.isfinite(part.seconds)
    keeps = np.all((bound <= limit) | ~measured, axis=1)
    return np.logical_and(keeps, np.any(measured, axis=1))


def drawn_limits(
    parts: Sequence[MeasuredSets], ratios: np.ndarray, random: np.random.Generator
) -> list[np.ndarray]:
    """(n, k) for each part: a workload on a platform is one request, with one limit wherever it is."""
    codes = [part.platform[:, None] * 1_000_003 + part.members for part in parts]
    every = np.unique(np.concatenate([c.reshape(-1) for c in codes])) if codes else np.zeros(0, int)
    ratio = random.choice(ratios, size=len(every))
    limits_of_parts = []
    for part, code in zip(parts, codes, strict=True):
        known = np.isfinite(part.solo) & np.isfinite(part.seconds)
        limits_of_parts.append(
            np.where(known, ratio[np.searchsorted(every, code)] * part.solo, np.inf)
        )
    return limits_of_parts


def pack_measured(parts: Sequence[MeasuredSets], takes: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Of the accepted sets those that save most platforms, each workload of a platform in one of them."""
    from scipy import sparse

    keys, saved, rows, count = [], [], [], 0
    for part, some in zip(parts, takes, strict=True):
        at = np.flatnonzero(some)
        k = part.members.shape[1]
        keys.append((part.platform[at, None] * 1_000_003 + part.members[at]).reshape(-1))
        rows.append(np.repeat(np.arange(len(at)) + count, k))
        saved.append(np.full(len(at), k - 1.0))
        count += len(at)
    chosen = np.zeros(count, bool)
    if count:
        _, item = np.unique(np.concatenate(keys), return_inverse=True)
        ones = np.ones(len(item))
        matrix = sparse.csr_matrix((ones, (item, np.concatenate(rows))))
        matrix.data[:] = np.minimum(matrix.data, 1.0)  # beside itself it is two of them
        chosen = packed_once(matrix, np.concatenate(saved), LIMIT_SECONDS)
    chosen_of_parts, start = [], 0
    for some in takes:
        out = np.zeros(len(some), bool)
        out[some] = chosen[start : start + int(some.sum())]
        start += int(some.sum())
        chosen_of_parts.append(out)
    return chosen_of_parts


def score(
    sets: SetBounds, platform: np.ndarray, members: np.ndarray, limit: np.ndarray
) -> np.ndarray:
    """(n,) how far the limits, (n, k), are above the predictions, in widths of the bounds: the least of any
    member; -inf where a member with a limit has no valid bound."""
    if not len(platform):
        return np.zeros(0)
    bound, valid = sets.of(platform, members)
    predicted = sets.predicted(platform, members)
    with np.errstate(divide="ignore", invalid="ignore"):
        width = np.maximum(np.log(bound / predicted), LEAST_WIDTH)
        each = np.log(limit / predicted) / width
    each = np.where(valid & np.isfinite(bound), each, -np.inf)
    each = np.where(np.isnan(each), -np.inf, each)
    return np.where(np.isposinf(limit), np.inf, each).min(axis=1)


def limits(part: MeasuredSets, ratios: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n, k) limits for measured sets, drawn from the ratios; infinite for who was not measured."""
    drawn = random.choice(ratios, size=part.members.shape)
    known = np.isfinite(part.solo) & np.isfinite(part.seconds)
    return np.where(known, drawn * part.solo, np.inf)


def ratios_of(requests: Sequence[Request], nodes: Sequence[Node], sets: SetBounds) -> np.ndarray:
    """Limits over times alone, of the requests and the tenants; those without an objective apart."""
    ratios = [1.0 * r.slowdown for r in requests if r.slowdown is not None]
    ratios += [t.slowdown for node in nodes for t in node.tenants if t.slowdown is not None]
    known = sets.platform_code
    platforms = list({known[node.platform] for node in nodes if node.platform in known})
    for request in requests:
        code = sets.workload_code.get(request.workload)
        if request.deadline_seconds is not None and code is not None:
            solo = sets.solo(np.array(platforms, int))[:, code].tolist() if platforms else []
            ratios += [request.deadline_seconds / one for one in solo if one > 0]
    return np.array([ratio for ratio in ratios if np.isfinite(ratio)])


def _fewest(share: float) -> int:
    placed = 1
    while upper_limit(0, placed) > share:
        placed += 1
    return placed
