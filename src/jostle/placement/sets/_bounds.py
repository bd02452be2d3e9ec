"""Bounds of everybody in sets of workloads that share a platform.

A set is a platform and a sorted multiset of workloads, as codes. Whoever is in it is bounded beside all
others, and never lower than beside fewer of them: the bound of a set is the largest over its subsets with a
valid bound. That is still a bound, since it only grows; and so one more tenant never turns a no into a yes.
Equal sets and their subsets are bounded once, many in one call of the model, and kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from jostle.bounds import ADAPTING
from jostle.methods import HasInputPlatforms
from jostle.placement._promise import Standard
from jostle.runs import Colocations, solo_medians

if TYPE_CHECKING:
    from jostle.models import Model
    from jostle.runs import Runs

ROWS_AT_ONCE = 500_000  # in one call of the model


class SetBounds:
    """What a model says of sets, by one standard.

    runs: where given, the median time alone that was measured counts, and only then the predicted one.
    rows: how many rows the model was asked about so far.
    """

    def __init__(self, model: Model, standard: Standard, runs: Runs | None = None) -> None:
        self.model, self.standard = model, standard
        predictor = model.predictor
        self.workload_names = tuple(predictor.workload_names)
        self.platform_names = tuple(predictor.platform_names)
        self.workload_code = {name: code for code, name in enumerate(self.workload_names)}
        inputs = predictor.input_platforms if isinstance(predictor, HasInputPlatforms) else ()
        self.platform_code = {
            name: code for code, name in enumerate(self.platform_names) if name not in inputs
        }
        self.rows = 0
        self._known: dict[tuple[float, int], _Known] = {}
        self._refused: dict[tuple[float, int], np.ndarray] = {}
        self._solo: dict[int, np.ndarray] = {}
        self._measured = None
        if runs is not None:
            self._measured = np.exp(solo_medians(runs, self.workload_names, self.platform_names))

    @classmethod
    def like(cls, other: SetBounds, standard: Standard) -> SetBounds:
        """The same model and times alone, by another standard."""
        made = cls(other.model, standard)
        made._measured, made._solo = other._measured, other._solo
        return made

    def without_calibration_runs(self) -> SetBounds:
        """What the same model says by what it learned without the runs that it is calibrated on."""
        apart = self.model.without_calibration_runs()
        if apart is self.model:
            return self
        made = SetBounds(apart, self.standard)
        made._measured = self._measured
        return made

    def of(
        self, platform: np.ndarray, members: np.ndarray, confidence: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """(bound seconds (n, k), whether it is valid (n, k)) of n sets of k members.

        platform: (n,) codes. members: (n, k) workload codes, ascending in each row. confidence: a member's
        own, if any. Where no bound is valid it is +inf, or the prediction if that is accepted.
        """
        n, k = members.shape
        if n == 0:
            return np.zeros((0, k)), np.zeros((0, k), bool)
        level = self.standard.of_each(confidence, k)
        known = self._known.setdefault((level, k), _Known(k))
        refused = self._refused.setdefault((level, k), np.zeros(0, np.int64))
        floor, valid = np.full((n, k), -np.inf), np.zeros((n, k), bool)
        keys, left = self._keys(platform, members), np.arange(n)
        if keys is not None:
            at = known.places(keys)
            here = at >= 0
            floor[here], valid[here] = known.floor[at[here]], known.valid[at[here]]
            left = np.flatnonzero(~here & ~_is_in(keys, refused))
        if len(left):
            mine = None if keys is None else keys[left]
            unique, first, inverse = _distinct(mine, platform[left], members[left])
            p, m = platform[left][first], members[left][first]
            found, good = np.full((len(p), k), -np.inf), np.zeros((len(p), k), bool)
            own, own_good = self._own(p, m, level)
            # A set of which nobody can be bounded is refused, whatever its subsets would say: there are many.
            some = np.isfinite(own).any(axis=1)
            raised = self._raised(p[some], m[some], own[some], own_good[some], confidence)
            found[some], good[some] = raised, own_good[some]
            floor[left], valid[left] = found[inverse], good[inverse]
            if unique is not None:
                known.add(unique[some], raised, own_good[some])
                self._refused[level, k] = np.union1d(refused, unique[~some])
        seconds = np.where(
            valid | (self.standard.takes_predictions & np.isfinite(floor)), floor, np.inf
        )
        return seconds, valid

    def predicted(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray:
        """(n, k) seconds, NaN where there is no answer."""
        found = self.model.predict(self._colocations(platform, members))
        return np.asarray(found, np.float64).reshape(members.shape)

    def explained(
        self, platform: int, members: tuple[int, ...], confidence: float | None = None
    ) -> list[tuple[float, str]]:
        """(predicted seconds, outcome of the bound) of every member of one set."""
        asked = self._colocations(np.array([platform]), np.array([members]))
        bounds = self.model.bound(asked, self.standard.of_each(confidence, len(members)))
        predicted = np.asarray(self.model.predict(asked), float).tolist()
        return list(zip(predicted, map(str, bounds.outcome), strict=True))

    def solo(self, platform: int) -> np.ndarray:
        """(workloads,) seconds alone: measured where runs were given and have them, else predicted."""
        if platform not in self._solo:
            n = len(self.workload_names)
            asked = self._colocations(np.full(n, platform), np.arange(n)[:, None])
            found = np.asarray(self.model.predict(asked), np.float64)
            self.rows += n
            if self._measured is not None:
                known = self._measured[platform]
                found = np.where(np.isfinite(known), known, found)
            self._solo[platform] = found
        return self._solo[platform]

    def limit(
        self, platform: int, workload: int, deadline: float | None, slowdown: float | None
    ) -> float:
        """Seconds; infinite without an objective, NaN where the time alone is not known."""
        limit = np.inf if deadline is None else deadline
        if slowdown is not None:
            limit = np.minimum(limit, slowdown * self.solo(platform)[workload])
        return float(limit)

    knows_services = False  # whether it says anything of queries at a rate, and of the longest run

    def arrangement(self, platform: int, members: Sequence[int], names: Sequence[str]) -> str:
        """How a set shares its platform, where that is a decision; empty where it is not."""
        return ""

    @property
    def most_members(self) -> float:
        """Larger sets have no valid bound: no calibration run has so many co-runners. Infinite where
        predictions are accepted."""
        if self.standard.takes_predictions or self.model is None:
            return float("inf")
        return float(np.max(self.model.calibration.runs.degree, initial=-1)) + 1

    def _floors(
        self, platform: np.ndarray, members: np.ndarray, confidence: float | None
    ) -> np.ndarray:
        """(n, k) the largest bound over the subsets that have one, -inf without any."""
        k = members.shape[1]
        level = self.standard.of_each(confidence, k)
        keys = self._keys(platform, members)
        known = self._known.setdefault((level, k), _Known(k))
        floor, left = np.full((len(platform), k), -np.inf), np.arange(len(platform))
        if keys is not None:
            at = known.places(keys)
            floor[at >= 0] = known.floor[at[at >= 0]]
            left = np.flatnonzero(at < 0)
        if len(left):
            mine = None if keys is None else keys[left]
            unique, first, inverse = _distinct(mine, platform[left], members[left])
            p, m = platform[left][first], members[left][first]
            own, good = self._own(p, m, level)
            raised = self._raised(p, m, own, good, confidence)
            floor[left] = raised[inverse]
            if unique is not None:
                known.add(unique, raised, good)
        return floor

    def _raised(
        self,
        platform: np.ndarray,
        members: np.ndarray,
        own: np.ndarray,
        valid: np.ndarray,
        confidence: float | None,
    ) -> np.ndarray:
        """(n, k) the own bounds, where valid, raised to those of all subsets."""
        n, k = members.shape
        floor = np.where(valid, own, -np.inf)
        if self.standard.takes_predictions:
            floor = np.where(valid, floor, np.where(np.isnan(own), np.inf, own))
        if k == 1 or n == 0:
            return floor
        others = np.array([[i for i in range(k) if i != j] for j in range(k)])
        fewer = members[:, others].reshape(n * k, k - 1)
        below = self._floors(np.repeat(platform, k), fewer, confidence).reshape(n, k, k - 1)
        for left_out in range(k):
            for place, member in enumerate(others[left_out]):
                np.maximum(floor[:, member], below[:, left_out, place], out=floor[:, member])
        return floor

    def _own(
        self, platform: np.ndarray, members: np.ndarray, level: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(bound, or prediction where none is valid and that is accepted; whether it is a valid bound)."""
        n, k = members.shape
        seconds, valid = np.full((n, k), np.nan), np.zeros((n, k), bool)
        step = max(1, ROWS_AT_ONCE // k)
        for start in range(0, n, step):
            part = slice(start, start + step)
            asked = self._colocations(platform[part], members[part])
            bounds = self.model.bound(asked, level)
            good = bounds.is_guaranteed
            found = np.where(good, bounds.seconds, np.nan)
            if self.standard.takes_predictions and not good.all():
                # A bound that follows a drift promises nothing of a single run, but says more.
                follows = bounds.is_valid & (bounds.outcome == ADAPTING)
                rest = np.where(follows, bounds.seconds, self.model.predict(asked))
                found = np.where(good, found, rest)
            self.rows += len(asked)
            seconds[part] = found.reshape(-1, k)
            valid[part] = good.reshape(-1, k)
        return seconds, valid

    def _colocations(self, platform: np.ndarray, members: np.ndarray) -> Colocations:
        """n * k rows: every member of every set beside the others."""
        n, k = members.shape
        others = np.array([[i for i in range(k) if i != j] for j in range(k)], int).reshape(
            k, k - 1
        )
        return Colocations(
            self.workload_names,
            self.platform_names,
            members.reshape(-1),
            np.repeat(platform, k),
            np.arange(n * k + 1) * (k - 1),
            members[:, others].reshape(-1),
        )

    def _keys(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray | None:
        """(n,) int64, equal for equal sets only; None where that many names do not fit."""
        base, k = len(self.workload_names), members.shape[1]
        if len(self.platform_names) * float(base) ** k >= 2**62:
            return None
        key = platform.astype(np.int64)
        for place in range(k):
            key = key * base + members[:, place]
        return key


class _Known:
    """Sets of k members by key: (m,) ascending keys, and (m, k) of each."""

    def __init__(self, k: int) -> None:
        self.keys = np.zeros(0, np.int64)
        self.floor = np.zeros((0, k))
        self.valid = np.zeros((0, k), bool)

    def places(self, keys: np.ndarray) -> np.ndarray:
        """(n,) where each stands here, -1 where it does not."""
        if not len(self.keys):
            return np.full(len(keys), -1)
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[at] == keys, at, -1)

    def add(self, keys: np.ndarray, floor: np.ndarray, valid: np.ndarray) -> None:
        """keys: ascending, none of them here yet."""
        at = np.searchsorted(self.keys, keys)
        self.keys = np.insert(self.keys, at, keys)
        self.floor = np.insert(self.floor, at, floor, axis=0)
        self.valid = np.insert(self.valid, at, valid, axis=0)


def _is_in(keys: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """(n,) bool."""
    if not len(ascending):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    return ascending[at] == keys


def _distinct(
    keys: np.ndarray | None, platform: np.ndarray, members: np.ndarray
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """(ascending keys of the different sets, None where there are no keys; where each stands first; which of
    them each set is)."""
    if keys is not None:
        return np.unique(keys, return_index=True, return_inverse=True)
    rows = np.column_stack([platform, members])
    _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return None, first, inverse.reshape(-1)
