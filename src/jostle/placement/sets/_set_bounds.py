"""Bounds of everybody in sets of workloads that share a platform.

A set is a platform and a sorted multiset of workloads, as codes. Whoever is in it is bounded beside all
others, and never lower than beside fewer of them: the bound of a set is the largest over its subsets with a
valid bound. That is still a bound, since it only grows; and so one more tenant never turns a no into a yes
(past MOST_RAISED members a set is bounded by itself). Equal sets and their subsets are bounded once, many in
one call of the model, and remembered; equal members of a set are asked about once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from jostle._base.documents import MOST_NOTES, unknown_sentences
from jostle.conformal import ADAPTING
from jostle.data import Colocations, solo_medians
from jostle.placement._promise import JOINT, Promise, Standard
from jostle.placement.queries._fleet import Fleet
from jostle.placement.queries._requests import OK, Request
from jostle.placement.sets._set_parts import Parts, resized

if TYPE_CHECKING:
    from jostle.data import Runs
    from jostle.models import Model

ROWS_AT_ONCE = 500_000  # in one call of the model
NEW, OWN, REFUSED, RAISED = range(4)
FEW = 1_000  # sets that are bounded with all their subsets in one call of the model
MOST_RAISED = 12  # members of a set whose subsets are looked at; of hundreds there are too many


@dataclass
class _Level:
    """What is known of sets by one standard, and at a member's own confidence where it has one: at the
    number of each set, of each member. seconds: its own bound, and once its state is RAISED the largest over
    its subsets. state: REFUSED where nobody has a bound of their own. words: {number: (predicted seconds,
    outcome) of each member}, as far as they were looked up."""

    standard: Standard
    confidence: float | None
    seconds: np.ndarray = field(default_factory=lambda: np.zeros((0, 1)))
    valid: np.ndarray = field(default_factory=lambda: np.zeros((0, 1), bool))
    state: np.ndarray = field(default_factory=lambda: np.zeros((0, 1), np.int8))
    words: dict[int, list[tuple[float, str]]] = field(default_factory=dict)

    def of(self, members: int) -> float:
        """Return the confidence of each bound in a set of so many members."""
        return self.standard.of_each(self.confidence, members)

    def grow(self, shape: tuple[int, int]) -> None:
        self.seconds = resized(self.seconds, shape, -np.inf)
        self.valid = resized(self.valid, shape, False)
        self.state = resized(self.state, (shape[0], 1), NEW)


class SetBounds:
    """Bounds of sets of workloads by one standard.

    runs: where given, the median time alone that was measured counts, and only then the predicted one.
    rows: how many rows the model was asked about so far.
    """

    knows_services = False  # whether it says anything of queries at a rate, and of the longest run

    def __init__(self, model: Model, standard: Standard, runs: Runs | None = None) -> None:
        self.model = model = standard.about(model)
        predictor = model.predictor
        self.workload_names = tuple(predictor.workload_names)
        self.platform_names = tuple(predictor.platform_names)
        self.workload_code = {name: code for code, name in enumerate(self.workload_names)}
        inputs = getattr(predictor, "input_platforms", ())
        self.platform_code = {
            name: code for code, name in enumerate(self.platform_names) if name not in inputs
        }
        self._most_bounded = float(np.max(model.calibration.runs.degree, initial=-1)) + 1
        self._measured = None
        if runs is not None:
            self._measured = np.exp(solo_medians(runs, self.workload_names, self.platform_names))
        self._forget(standard)

    def unknown_names(self, requests: Sequence[Request], fleet: Fleet) -> tuple[str, ...]:
        """List workloads of requests and tenants, and platforms of nodes, that are not known here.

        Returns a sentence for each, with the known names that it is like, at most MOST_NOTES.
        """
        nodes = [node for node in fleet.nodes if node.status == OK]
        asked = [*requests, *(tenant for node in nodes for tenant in node.tenants)]
        return (
            *unknown_sentences("workload", (one.workload for one in asked), self.workload_code),
            *unknown_sentences("platform", (one.platform for one in nodes), self.platform_code),
        )[:MOST_NOTES]

    def _forget(self, standard: Standard) -> None:
        self.standard, self.rows = standard, 0
        self._parts = Parts(len(self.workload_names), len(self.platform_names))
        self._solo: dict[int, np.ndarray] = {}
        self._levels: dict[float | None, _Level] = {}
        self._others = {(standard.confidence, standard.promise): self}

    def fresh(self) -> SetBounds:
        """Return the same model and measured times, with nothing remembered."""
        sets = object.__new__(type(self))
        vars(sets).update(vars(self))
        sets._forget(self.standard)
        return sets

    def by(self, confidence: float | None = None, promise: Promise | None = None) -> SetBounds:
        """Return the same by another standard; what does not depend on it is remembered once. Raises
        UsageError."""
        here = self.standard
        key = (
            here.confidence if confidence is None else confidence,
            here.promise if promise is None else promise,
        )
        if key not in self._others:
            standard = replace(here, confidence=key[0], promise=key[1])
            sets = object.__new__(type(self))
            vars(sets).update(vars(self), standard=standard, rows=0, _levels={})
            self._others[key] = sets
        return self._others[key]

    def of(
        self, platform: np.ndarray, members: np.ndarray, confidence: float | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (bound seconds (n, k), whether it is valid (n, k)) of n sets of k members at most.

        platform: (n,) codes. members: (n, k) workload codes, -1 for nobody, whose bound is infinite.
        confidence: a member's own, if any. Where no bound is valid it is +inf, or the prediction if that is
        accepted.
        """
        return self.of_each(platform, members, np.zeros(members.shape, int), (confidence,))

    def of_each(
        self,
        platform: np.ndarray,
        members: np.ndarray,
        own: np.ndarray,
        confidences: Sequence[float | None],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Bound each member at its own confidence, as `of` does. own: (n, k) places in confidences."""
        seconds, valid = np.full(members.shape, np.inf), np.zeros(members.shape, bool)
        if not members.size:
            return seconds, valid
        possible = (members >= 0).sum(axis=1) <= self.most_members
        if not possible.all():
            some = platform[possible], members[possible], own[possible]
            seconds[possible], valid[possible] = self.of_each(*some, confidences)
            return seconds, valid
        every, order = np.arange(len(members))[:, None], np.argsort(members, axis=1, kind="stable")
        at, own = self._parts.numbers(platform, members[every, order]), own[every, order]
        for place, confidence in enumerate(confidences):
            mine = own == place
            rows = mine.any(axis=1).nonzero()[0]
            if not len(rows):
                continue
            level = self._settled(confidence, at[rows])
            width = min(members.shape[1], level.seconds.shape[1])
            floor, good = level.seconds[at[rows], -width:], level.valid[at[rows], -width:]
            usable = good | np.isfinite(floor) if self.standard.takes_predictions else good
            row, column = mine[rows, -width:].nonzero()
            where = rows[row], order[rows, -width:][row, column]
            valid[where], floor[~usable] = good[row, column], np.inf
            seconds[where] = floor[row, column]
        return seconds, valid

    def explained(
        self, platform: np.ndarray, members: np.ndarray, confidence: float | None = None
    ) -> list[list[tuple[float, str]]]:
        """Return (predicted seconds, outcome of the bound) of every member of n sets, by their codes."""
        at = self._parts.numbers(platform, np.sort(members, axis=1)).tolist()
        words = self._level(confidence).words
        missing = np.array([number for number in dict.fromkeys(at) if number not in words], int)
        for c, rows in self._by_confidence(self._level(confidence), missing):
            codes = self._parts.members[rows]
            predicted, outcome = self._explained(self._parts.platform[rows], codes, c)
            for number, *row in zip(rows.tolist(), predicted, outcome, codes >= 0, strict=True):
                seconds, outcomes, present = row
                words[number] = list(zip(seconds[present].tolist(), outcomes[present], strict=True))
        return [words[number] for number in at]

    def predicted(self, platform: np.ndarray, members: np.ndarray) -> np.ndarray:
        """Return (n, k) seconds, NaN where there is no answer."""
        seconds, (rows, at) = np.full(members.shape, np.nan), self._colocations(platform, members)
        seconds[members >= 0] = self.model.predict(rows)[at]
        return seconds

    def solo(self, platforms: np.ndarray) -> np.ndarray:
        """Return (n, workloads) seconds alone: measured where runs were given and have them, else
        predicted."""
        missing = np.array([p for p in platforms.tolist() if p not in self._solo], int)
        if len(missing):
            n = len(self.workload_names)
            codes = np.tile(np.arange(n), len(missing))[:, None]
            seconds = self.predicted(np.repeat(missing, n), codes).reshape(len(missing), n)
            self.rows += seconds.size
            if self._measured is not None:
                known = self._measured[missing]
                seconds = np.where(np.isfinite(known), known, seconds)
            self._solo.update(zip(missing.tolist(), seconds, strict=True))
        return np.array([self._solo[p] for p in platforms.tolist()])

    def limits(self, requests: Sequence[Request], platform: np.ndarray) -> np.ndarray:
        """Return (requests, n) seconds on platforms by code, (n,) for all or (requests, n), -1 for one
        that is not known; infinite without an objective, NaN where the time alone, or the workload, is
        not known."""
        code = np.array([self.workload_code.get(one.workload, -1) for one in requests], int)
        deadline = np.array([[one.deadline_seconds] for one in requests], float).reshape(-1, 1)
        slowdown = np.array([[one.slowdown] for one in requests], float).reshape(-1, 1)
        solo = np.array([[one.solo_seconds] for one in requests], float).reshape(-1, 1)
        limit = np.where(np.isnan(deadline), np.inf, deadline)
        by_slowdown = np.full(np.broadcast_shapes(limit.shape, platform.shape), np.inf)
        of_model = np.isnan(solo) & ~np.isnan(slowdown) & (platform >= 0)
        if of_model.any():
            row, column = of_model.nonzero()
            used, which = np.unique(
                np.broadcast_to(platform, of_model.shape)[row, column], return_inverse=True
            )
            by_slowdown[row, column] = slowdown[row, 0] * self.solo(used)[which, code[row]]
        by_slowdown = np.where(np.isnan(slowdown * solo), by_slowdown, slowdown * solo)
        limit = np.minimum(limit, by_slowdown)
        limit[code < 0] = np.nan
        return limit

    def arrangement(self, platform: int, members: Sequence[int], names: Sequence[str]) -> str:
        """Return how a set shares its platform, where that is a decision; empty where it is not."""
        return ""

    @property
    def most_members(self) -> float:
        """Larger sets have no valid bound: no calibration run has so many co-runners. Infinite where
        predictions are accepted."""
        return float("inf") if self.standard.takes_predictions else self._most_bounded

    def _level(self, confidence: float | None) -> _Level:
        if confidence not in self._levels:
            self._levels[confidence] = _Level(self.standard, confidence)
        level = self._levels[confidence]
        level.grow(self._parts.members.shape)
        return level

    def _settled(self, confidence: float | None, at: np.ndarray) -> _Level:
        """Return what is known of sets, with that of these known. at: (n,) their numbers."""
        level, parts = self._level(confidence), self._parts
        if level.state[at].min() >= REFUSED:
            return level
        part, layers = at[level.state[at, 0] < REFUSED], []
        if (2.0 ** parts.count[part]).sum() > FEW:
            # A set of which nobody can be bounded is refused, whatever its subsets would say: there are many.
            self._measure(level, part)
            part = part[level.state[part, 0] == OWN]
        part = np.unique(part)
        many = parts.count[part] > MOST_RAISED
        level.state[part[many], 0] = RAISED
        part = part[~many]
        while len(part):
            layers.append(part)
            part = np.unique(parts.parts_of(part))
            part = part[np.searchsorted(part, 0) :]
            level.grow(parts.members.shape)
            part = part[level.state[part, 0] < RAISED]
        if layers:
            every = np.unique(np.concatenate(layers))
            self._measure(level, every)
            count = parts.count[every]
            for size in range(1, parts.width + 1):
                if len(rows := every[count == size]):
                    _raise(level, parts.parts[rows], rows, size)
        return level

    def _measure(self, level: _Level, at: np.ndarray) -> None:
        """Their own bounds, where they are not known yet."""
        new = at[level.state[at, 0] == NEW]
        for c, rows in self._by_confidence(level, np.unique(new) if len(new) else new):
            members = self._parts.members[rows]
            own, valid = self._own(self._parts.platform[rows], members, c)
            seconds = np.where(valid, own, -np.inf)
            if self.standard.takes_predictions:
                seconds = np.where(valid, own, np.where(np.isnan(own), np.inf, own))
                seconds[members < 0] = -np.inf
            self.rows += int((members >= 0).sum())
            level.seconds[rows], level.valid[rows] = seconds, valid
            level.state[rows, 0] = np.where(np.isfinite(seconds).any(axis=1), OWN, REFUSED)

    def _by_confidence(self, level: _Level, at: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
        """Return (confidence of each bound, sets of which it is), of so many that the model takes them at
        once."""
        count = self._parts.count[at] if self.standard.promise == JOINT else np.ones(len(at), int)
        step = max(1, ROWS_AT_ONCE // self._parts.width)
        for members in range(1, int(count.max(initial=0)) + 1):
            rows = at[count == members]
            for start in range(0, len(rows), step):
                yield level.of(members), rows[start : start + step]

    def _own(
        self, platform: np.ndarray, members: np.ndarray, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (bound, or prediction where none is valid and that is accepted, else NaN; whether it is a
        valid bound), both (n, k)."""
        rows, at = self._colocations(platform, members)
        bounds = self.model.bound(rows, confidence)
        good = bounds.is_calibrated
        own = np.where(good, bounds.seconds, np.nan)
        if self.standard.takes_predictions and not good.all():
            # A bound that follows a drift promises nothing of a single run, but says more.
            follows = bounds.is_valid & (bounds.outcome == ADAPTING)
            own = np.where(good, own, np.where(follows, bounds.seconds, self.model.predict(rows)))
        seconds, valid = np.full(members.shape, np.nan), np.zeros(members.shape, bool)
        seconds[members >= 0], valid[members >= 0] = own[at], good[at]
        return seconds, valid

    def _explained(
        self, platform: np.ndarray, members: np.ndarray, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (predicted seconds, outcomes of the bounds), both (n, k)."""
        rows, at = self._colocations(platform, members)
        outcome = np.full(members.shape, "", object)
        outcome[members >= 0] = self.model.bound(rows, confidence).outcome[at]
        seconds = np.full(members.shape, np.nan)
        seconds[members >= 0] = self.model.predict(rows)[at]
        return seconds, outcome

    def _colocations(
        self, platform: np.ndarray, members: np.ndarray
    ) -> tuple[Colocations, np.ndarray]:
        """Return (a row for every different member of every set, beside the others; of each member its
        row)."""
        row, column = (members >= 0).nonzero()
        key = row * (len(self.workload_names) + 1) + members[row, column]
        _, first, at = np.unique(key, return_index=True, return_inverse=True)
        row, column = row[first], column[first]
        others = members[row]
        others[np.arange(len(row)), column] = -1
        beside = others >= 0
        rows = Colocations(
            self.workload_names,
            self.platform_names,
            members[row, column],
            platform[row],
            np.concatenate([[0], np.cumsum(beside.sum(axis=1))]),
            others[beside],
        )
        return rows, at.reshape(-1)


def _raise(level: _Level, parts: np.ndarray, rows: np.ndarray, size: int) -> None:
    """Raise the bounds of sets of one size, at these numbers, to those of their parts, (n, w)."""
    seconds, first = level.seconds[rows], parts.shape[1] - size
    for column in range(first, parts.shape[1] if size > 1 else first):
        part = level.seconds[parts[:, column]]
        before, after = slice(first, column), slice(column + 1, None)
        moved = part[:, first + 1 : column + 1]
        seconds[:, before] = np.maximum(seconds[:, before], moved)
        seconds[:, after] = np.maximum(seconds[:, after], part[:, after])
    level.seconds[rows], level.state[rows, 0] = seconds, RAISED
