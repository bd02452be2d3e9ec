"""All nodes for a workload, the best first; what was ruled out, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle._report import finite
from jostle.errors import UsageError
from jostle.placement._promise import NOTHING_CHOSEN, ON_PREDICTIONS, RANKED, Standard
from jostle.placement.answers._safe import arrangement_of
from jostle.placement.asked._fleet import Fleet
from jostle.placement.asked._requests import Request
from jostle.placement.sets._bounds import SetBounds
from jostle.placement.sets._fleet_bounds import CODES, REASONS, Assessed, FleetBounds

WORDS = tuple(REASONS)
BY = ("bound", "cost", "neighbours")
SECONDS_PER_HOUR = 3600.0


@dataclass(frozen=True)
class RankedNode:
    """One place. cost: the node's price for as long as it stays, or over the bound. growth_ratio: by how
    much the bound of any tenant grows at most, as a ratio minus 1. arrangement: how an accelerator would be
    shared, empty elsewhere."""

    node: str
    platform: str
    bound_seconds: float
    limit_seconds: float | None
    cost: float
    growth_ratio: float | None
    used_prediction: bool
    arrangement: str = ""


@dataclass(frozen=True)
class Ranking:
    """The nodes for one request. order: places in the fleet that are safe, the best first."""

    request: Request
    fleet: Fleet
    by: str
    standard: Standard
    order: np.ndarray
    assessed: Assessed
    cost: np.ndarray
    sets: SetBounds
    promise_given: str | None = None

    def among(self, selected: np.ndarray, promise: str) -> Ranking:
        """Only with the nodes that were selected, (nodes,) bool, under another promise."""
        found = self.assessed
        looked_at = np.isin(WORDS, ("ok", "newcomer_late", "tenant_late"))[found.reason]
        reason = np.where(looked_at, CODES["not_chosen"], found.reason)
        reason = np.where(selected, CODES["ok"], reason)
        order = _ordered(replace(found, reason=reason), self.by, self.cost)
        return replace(
            self, order=order, assessed=replace(found, reason=reason), promise_given=promise
        )

    def __len__(self) -> int:
        return len(self.order)

    @property
    def best(self) -> RankedNode | None:
        return self.row(0) if len(self) else None

    def row(self, number: int) -> RankedNode:
        at = int(self.order[number])
        node, found = self.fleet.nodes[at], self.assessed
        return RankedNode(
            node.name,
            node.platform,
            float(found.bound_seconds[at]),
            finite(found.limit_seconds[at]),
            float(self.cost[at]),
            finite(found.growth[at]),
            bool(found.predicted[at]),
            arrangement_of((*node.tenants, self.request), node, self.sets),
        )

    def rows(self, most: int | None = None) -> list[RankedNode]:
        """The best of them; all by default."""
        return [self.row(n) for n in range(len(self) if most is None else min(most, len(self)))]

    @property
    def ruled_out(self) -> dict[str, int]:
        """{reason, a key of REASONS: how many nodes}."""
        codes, counts = np.unique(self.assessed.reason, return_counts=True)
        named = {WORDS[code]: int(n) for code, n in zip(codes, counts, strict=True)}
        return {reason: n for reason, n in named.items() if reason != "ok"}

    def details(self) -> list[dict[str, Any]]:
        """Of every node that was ruled out: its reason, and the bound and limit if they were looked at."""
        found = self.assessed
        return [
            {
                "node": self.fleet.nodes[at].name,
                "reason": WORDS[int(found.reason[at])],
                "bound_seconds": finite(found.bound_seconds[at]),
                "limit_seconds": finite(found.limit_seconds[at]),
                "status": self.fleet.nodes[at].status,
            }
            for at in np.flatnonzero(~found.is_safe)
        ]

    @property
    def promise(self) -> str:
        if self.promise_given is not None:
            return self.promise_given
        if not len(self):
            return NOTHING_CHOSEN
        text = RANKED.format(count=len(self))
        return f"{text} {ON_PREDICTIONS}" if self.assessed.predicted[self.order].any() else text

    def to_document(self, most: int | None = None) -> dict[str, Any]:
        return {
            "request": self.request.name,
            "workload": self.request.workload,
            "safe_nodes": len(self),
            "nodes": [vars(row) for row in self.rows(most)],
            "ruled_out": self.ruled_out,
            "details": self.details()[:most],
            "promise": self.promise,
        }


def rank_request(request: Request, fleet: FleetBounds, by: str, standard: Standard) -> Ranking:
    """Raises UsageError for an unknown order."""
    if by not in BY:
        raise UsageError(f"rank by {by!r}", fix=f"Known: {', '.join(BY)}.")
    found = fleet.assess(request)
    with np.errstate(invalid="ignore"):  # free and without a bound
        stays = found.bound_seconds if request.stay_seconds is None else request.stay_seconds
        cost = fleet.prices * stays / SECONDS_PER_HOUR
    order = _ordered(found, by, cost)
    return Ranking(request, fleet.fleet, by, standard, order, found, cost, fleet.sets)


def _ordered(found: Assessed, by: str, cost: np.ndarray) -> np.ndarray:
    key = {"bound": found.bound_seconds, "cost": cost, "neighbours": found.growth}[by]
    at = np.flatnonzero(found.is_safe)
    return at[np.lexsort((found.bound_seconds[at], np.nan_to_num(key[at], nan=np.inf)))]
