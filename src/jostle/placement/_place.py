"""Where can it go so that nobody misses a deadline: one model, one fleet, and the questions about them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle.errors import UsageError
from jostle.placement._bulk import BulkScore, score_parquet
from jostle.placement._promise import (
    CHOSEN,
    NO_BOUND,
    ON_PREDICTIONS,
    OPTIMISED,
    PREDICTED,
    Standard,
)
from jostle.placement.answers._among import rank_among, safe_among
from jostle.placement.answers._change import Change
from jostle.placement.answers._rank import Ranking, rank_request
from jostle.placement.answers._safe import (
    SafeAnswer,
    SafeAnswers,
    arrangement_of,
    safe_at_once,
    safe_on,
    safe_together,
)
from jostle.placement.answers._walltime import Walltimes, walltimes
from jostle.placement.answers._whatif import Reassigned, WhatIf, what_if
from jostle.placement.asked._fleet import Fleet, Node
from jostle.placement.asked._requests import Requests
from jostle.placement.assign._answer import Assignment
from jostle.placement.assign._assign import Effort, assign_requests
from jostle.placement.chosen._chosen import ChosenPromise, ratios_of
from jostle.placement.sets._bounds import SetBounds
from jostle.placement.sets._fleet_bounds import FleetBounds
from jostle.progress import Progress, no_progress

if TYPE_CHECKING:
    from jostle.models import Model
    from jostle.runs import Runs

T = TypeVar("T")


def place(
    model: Model,
    fleet: Any,
    *,
    confidence: float = DEFAULT_CONFIDENCE,
    joint: bool = False,
    accept: str = NO_BOUND,
    runs: Runs | None = None,
    among_chosen: float | None = None,
    data: Any = None,
) -> Placement:
    """Questions about where workloads can go.

    model: what jostle.fit or jostle.load gives. fleet: a Fleet, nodes, or a table of them (Fleet.read).
    confidence: of every bound. joint: whether it is that all on a node keep their limits at once (union
    bound), or each by itself. accept: `predicted` answers by the prediction where no bound is valid, and
    says so; by default such ground is a no. runs: measured runs, whose medians alone count for
    limits given as a slowdown; else the predicted time alone does. among_chosen: instead of every bound by
    itself, that at most this share of what is chosen is late, calibrated on the runs that the model was
    calibrated on; data: what it was fitted to.
    Raises UsageError, and what reading the fleet and the data raises.
    """
    sets = SetBounds(model, Standard(confidence, joint, accept), runs)
    if among_chosen is None:
        return Placement(Fleet.of(fleet), sets)
    if data is None:
        raise UsageError(
            "the promise among chosen ones needs calibration runs",
            fix="Say `data`, or on the command line `dataset`: what the model was fitted to.",
        )
    promise = ChosenPromise.of(sets, among_chosen, data)
    return Placement(Fleet.of(fleet), promise.sets, promise)


class Placement:
    """What `place` gives: a fleet as a model sees it, by one standard."""

    def __init__(self, fleet: Fleet, sets: SetBounds, chosen: ChosenPromise | None = None) -> None:
        self.fleet, self.sets, self.chosen = fleet, sets, chosen
        self.bounds = FleetBounds(fleet, sets)

    @property
    def standard(self) -> Standard:
        return self.sets.standard

    def by(
        self,
        *,
        confidence: float | None = None,
        joint: bool | None = None,
        accept: str | None = None,
    ) -> Placement:
        """The same questions by another standard. Raises UsageError."""
        given = {"confidence": confidence, "joint": joint, "accept": accept}
        changed: dict[str, Any] = {
            name: value for name, value in given.items() if value is not None
        }
        standard = replace(self.standard, **changed)
        if standard == self.standard:
            return self
        sets = self.sets.like(self.sets, standard)
        return Placement(self.fleet, sets, self.chosen and self.chosen.like(sets))

    def safe(
        self,
        requests: Any,
        on: str | Sequence[str] | None = None,
        *,
        together: bool = False,
        explain: bool = True,
        progress: Progress = no_progress,
    ) -> SafeAnswers:
        """May these go there? Every request by itself on every node, or all at once with `together`.

        requests: Requests, a Request or several, or a table (Requests.read). on: nodes by name; all by
        default. explain: who would be hurt and what would help; without it many are answered at once.
        progress: called with (done, all, NaN). Raises UnknownName for a node that is not in the fleet.
        """
        asked = Requests.of(requests)
        found: list[SafeAnswer] = []
        if self.chosen is not None and together:
            raise UsageError(
                "requests that come together are not chosen among", fix="Ask one by one."
            )
        nodes = self._nodes(on)
        if not explain and not together:
            bounds = self.bounds if on is None else FleetBounds(Fleet(tuple(nodes)), self.sets)
            for request in _counted(asked.good, progress):
                found += safe_at_once(request, bounds)
            return self._safe(found, asked)
        if together:
            for node in _counted(nodes, progress):
                found += safe_together(asked.good, node, self.fleet, self.sets)
            return self._safe(found, asked)
        for node, request in _counted([(n, r) for n in nodes for r in asked.good], progress):
            found.append(safe_on(request, node, self.fleet, self.sets))
        return self._safe(found, asked)

    def _safe(self, found: list[SafeAnswer], asked: Requests) -> SafeAnswers:
        if self.chosen is None:
            return SafeAnswers(tuple(found), self.standard, _unread(asked))
        chosen = safe_among(found, asked.good, self.fleet, self.chosen)
        promise = CHOSEN.format(among=f"{100 * self.chosen.share:g}%")
        return SafeAnswers(tuple(chosen), self.standard, _unread(asked), promise)

    def rank(
        self, requests: Any, *, by: str = "bound", progress: Progress = no_progress
    ) -> list[Ranking]:
        """The nodes where each request may go, the best first.

        by: `bound`, the least bound; `cost`, the least price for as long as it stays (`stay_seconds`, else
        the bound); `neighbours`, the least growth of any tenant's bound. progress: called with (done, all,
        NaN). Raises UsageError.
        """
        good = _counted(Requests.of(requests).good, progress)
        found = [rank_request(one, self.bounds, by, self.standard) for one in good]
        if self.chosen is None:
            return found
        return rank_among(found, self.bounds, self.chosen)

    def assign(
        self,
        requests: Any,
        goal: str = "most_accepted",
        *,
        limit_seconds: float = 2.0,
        seed: int = 0,
        progress: Progress = no_progress,
    ) -> Assignment:
        """Many at once: as much worth as finds a place, and of all ways to do so one with the least of what
        the goal names.

        goal: `most_accepted`, `fewest_platforms`, `least_latest_finish`, `least_total_time`, `least_cost`.
        Exact where all feasible sets can be listed, else searched. limit_seconds: for each program in whole
        numbers. seed: of the search. progress: called with (done, all, NaN). Raises UsageError, MissingExtra.
        """
        asked = Requests.of(requests)
        effort, bounds, promise = Effort(limit_seconds, seed), self.bounds, OPTIMISED
        if self.chosen is not None:
            level = self.chosen.level(ratios_of(asked.good, self.fleet, self.sets))
            standard = replace(self.standard, confidence=level)
            bounds = FleetBounds(self.fleet, self.sets.like(self.sets, standard))
            promise = CHOSEN.format(among=f"{100 * self.chosen.share:g}%")
        found = assign_requests(asked.good, bounds, goal, effort, progress)
        if self._rests_on_predictions(found, asked):
            promise = f"{promise} {ON_PREDICTIONS}"
        return replace(
            found,
            unread=_unread(asked),
            promise=promise,
            arrangements=self._arrangements(found, asked),
        )

    def walltime(
        self,
        requests: Any,
        on: str | Sequence[str] | None = None,
        *,
        step_seconds: float = 1.0,
        progress: Progress = no_progress,
    ) -> Walltimes:
        """The time to ask a batch system for: it holds on every node that the request may go to.

        on: nodes by name; all by default. step_seconds: what it is rounded up to. progress: called with
        (done, all, NaN). Raises UnknownName, UsageError.
        """
        self._only_asked("walltime")
        asked = Requests.of(requests)
        fleet = self.bounds if on is None else FleetBounds(Fleet(tuple(self._nodes(on))), self.sets)
        rows = walltimes(_counted(asked.good, progress), fleet, step_seconds)
        return Walltimes(rows, self.standard, _unread(asked))

    def whatif(
        self,
        requests: Any = (),
        *,
        add: Any = (),
        remove: Sequence[str] = (),
        move: Mapping[str, str] | None = None,
        goal: str | None = None,
        progress: Progress = no_progress,
    ) -> WhatIf:
        """What changes for tenants and requests, each by itself, when the fleet changes.

        add: nodes, or a table of them. move: {tenant: node}. remove: names of nodes, which go with those
        tenants that do not move. goal: the requests are also assigned all at once, before and after, for
        this goal of `assign`. progress: called with (requests done, all, NaN). Raises UnknownName,
        UsageError.
        """
        self._only_asked("whatif")
        asked = Requests.of(requests)
        added = Fleet.of(add).nodes if isinstance(add, (Node, str, Path)) or len(add) else ()
        change = Change(added, (remove,) if isinstance(remove, str) else tuple(remove), move)
        before, after = change.of(self.fleet)
        found = replace(
            what_if(before, after, asked.good, self.sets, progress), unread=_unread(asked)
        )
        if goal is None:
            return found
        fleets = [FleetBounds(side.fleet, self.sets) for side in (before, after)]
        ways = [assign_requests(asked.good, fleet, goal, Effort()) for fleet in fleets]
        return replace(found, reassigned=Reassigned.of(*ways))

    def score(
        self,
        source: str | os.PathLike[str],
        output: str | os.PathLike[str],
        *,
        columns: Mapping[str, str] | None = None,
        scheduler: Any = None,
        progress: Progress = no_progress,
    ) -> BulkScore:
        """Is each co-location of a Parquet table safe? See `score_parquet`; the fleet does not matter."""
        self._only_asked("score")
        given = {"columns": columns, "scheduler": scheduler, "progress": progress}
        return score_parquet(self.sets, source, output, **given)

    def _rests_on_predictions(self, found: Assignment, asked: Requests) -> bool:
        """Whether anybody who was placed, or is beside them, has no valid bound there."""
        if self.standard.accept != PREDICTED:
            return False
        requests = {request.name: request for request in asked.good}
        for name, there in found.by_node.items():
            node = self.fleet.node(name)
            everybody = (*node.tenants, *(requests[one.request] for one in there))
            codes = np.sort([self.sets.workload_code[one.workload] for one in everybody])[None]
            p = np.array([self.sets.platform_code[node.platform]])
            if any(not self.sets.of(p, codes, one.confidence)[1].all() for one in everybody):
                return True
        return False

    def _arrangements(self, found: Assignment, asked: Requests) -> dict[str, str]:
        """How nodes are shared with what was placed there."""
        requests = {request.name: request for request in asked.good}
        nodes = {node.name: node for node in self.fleet.nodes}
        texts = {
            name: arrangement_of(
                (*nodes[name].tenants, *(requests[one.request] for one in there)),
                nodes[name],
                self.sets,
            )
            for name, there in found.by_node.items()
        }
        return {name: text for name, text in texts.items() if text}

    def _only_asked(self, verb: str) -> None:
        """Raises UsageError where a promise among chosen ones was asked for."""
        if self.chosen is not None:
            raise UsageError(
                f"`{verb}` promises nothing among chosen ones", fix="Ask it without that."
            )

    def _nodes(self, on: str | Sequence[str] | None) -> list[Node]:
        if on is None:
            return list(self.fleet.nodes)
        return [self.fleet.node(name) for name in ([on] if isinstance(on, str) else on)]


def _counted(things: Sequence[T], progress: Progress) -> Iterator[T]:
    """Each in turn, telling how far it is."""
    for number, one in enumerate(things):
        progress(number, len(things), float("nan"))
        yield one
    progress(len(things), len(things), float("nan"))


def _unread(asked: Requests) -> tuple[tuple[int, str], ...]:
    return tuple(
        (number, status)
        for row, status, number in zip(asked.rows, asked.status, asked.numbers, strict=True)
        if row is None
    )
