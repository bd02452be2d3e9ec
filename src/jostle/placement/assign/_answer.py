"""What `assign` answers: who goes where, who does not and why, and how far that is from the best."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from jostle.placement._promise import Standard
from jostle.placement.asked._fleet import Fleet
from jostle.placement.asked._requests import Request, Requests


@dataclass(frozen=True)
class Placed:
    """One request at its place. limit_seconds: None without an objective."""

    request: str
    workload: str
    node: str
    platform: str
    bound_seconds: float
    limit_seconds: float | None


@dataclass(frozen=True)
class Unplaced:
    """One request without a place. reason: a key of REASONS."""

    request: str
    workload: str
    reason: str


@dataclass(frozen=True)
class Binding:
    """What binds: up to how much more worth one more node such as this would place, by prices."""

    node: str
    platform: str
    worth: float


@dataclass(frozen=True)
class Assignment:
    """worth: of all that are placed; worth_at_most: of any assignment. cost: what the goal has least of
    (nodes that were empty, seconds, or price); cost_at_least: of any assignment of that worth, 0 where it is
    not known. is_optimal: proven. binding: what one more node would bring, the most first. arrangements:
    {node: how it is shared}, of accelerators."""

    goal: str
    standard: Standard
    placed: tuple[Placed, ...]
    unplaced: tuple[Unplaced, ...]
    worth: float
    worth_at_most: float
    cost: float
    cost_at_least: float
    is_optimal: bool
    nodes_used: int
    binding: tuple[Binding, ...] = ()
    unread: tuple[tuple[int, str], ...] = ()
    promise: str = ""
    arrangements: dict[str, str] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether everything that was asked has a place, and something was asked."""
        return bool(self.placed) and not self.unplaced and not self.unread

    @property
    def gap(self) -> float:
        """By what share the worth placed may be below the best there is; 0 where it is the best."""
        if self.worth_at_most <= 0:
            return 0.0
        return max(0.0, 1 - self.worth / self.worth_at_most) if not self.is_optimal else 0.0

    @property
    def by_node(self) -> dict[str, list[Placed]]:
        found: dict[str, list[Placed]] = {}
        for one in self.placed:
            found.setdefault(one.node, []).append(one)
        return found

    def applied_to(self, fleet: Fleet, requests: Any) -> Fleet:
        """The fleet with those that were placed as its tenants. requests: those that were asked."""
        asked: dict[str, Request] = {
            request.name: request for request in Requests.of(requests).good
        }
        return fleet.with_tenants(
            [replace(asked[one.request], node=one.node) for one in self.placed]
        )

    def to_document(self) -> dict[str, Any]:
        return {
            "schema": "place_assign/v1",
            "complete": self.is_complete,
            "goal": self.goal,
            "confidence": self.standard.confidence,
            "joint": self.standard.joint,
            "accept": self.standard.accept,
            "promise": self.promise,
            "worth": self.worth,
            "worth_at_most": self.worth_at_most,
            "gap_ratio": self.gap,
            "cost": self.cost,
            "cost_at_least": self.cost_at_least,
            "optimal": self.is_optimal,
            "nodes_used": self.nodes_used,
            "arrangements": self.arrangements,
            "placed": [vars(one) for one in self.placed],
            "unplaced": [vars(one) for one in self.unplaced],
            "binding": [vars(one) for one in self.binding],
            "unread": [{"row": row, "status": why} for row, why in self.unread],
        }
