"""What `assign` answers: who goes where, who does not and why, and how far that is from the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from jostle._base.documents import Record, Unanswered, VerbAnswer
from jostle._base.report import Report, Table, duration, percent
from jostle.placement._promise import Standard
from jostle.placement._reasons import REASONS
from jostle.placement.queries._fleet import Fleet
from jostle.placement.queries._requests import Request, Requests

MOST_NAMED = 20
_GOALS = {
    "most_accepted": "for as many as can be placed, on the fewest nodes that were empty",
    "least_cost": "for as many as can be placed, at the least cost",
}


@dataclass(frozen=True)
class Placed(Record):
    """A request with the node that it got. limit_seconds: None without an objective."""

    request: str
    workload: str
    node: str
    platform: str
    bound_seconds: float
    limit_seconds: float | None
    status: Literal["ok"] = "ok"
    is_placed: Literal[True] = True

    @property
    def text(self) -> str:
        """The request with its bound and limit, in words."""
        limit = "" if self.limit_seconds is None else f" of {duration(self.limit_seconds)}"
        return f"{self.request} ({duration(self.bound_seconds)}{limit})"


@dataclass(frozen=True)
class Unplaced(Record):
    """A request without a node. reason: a key of REASONS."""

    request: str
    workload: str
    reason: str
    status: Literal["ok"] = "ok"
    is_placed: Literal[False] = False


@dataclass(frozen=True, repr=False)
class Assignment(VerbAnswer):
    """Placement of many requests.

    items: one for each request. worth: of all that are placed; worth_at_most: of any assignment. cost: what
    the goal has least of (nodes that were empty, seconds, or price); cost_at_least: of any assignment of that
    worth, 0 where it is not known. is_optimal: proven. arrangements: {node: how it is shared}, of
    accelerators.
    """

    goal: str
    standard: Standard
    items: tuple[Placed | Unplaced | Unanswered, ...]
    worth: float
    worth_at_most: float
    cost: float
    cost_at_least: float
    is_optimal: bool
    nodes_used: int
    promise: str = ""
    arrangements: Mapping[str, str] = field(default_factory=dict)
    model: dict[str, Any] | None = None
    unknown_names: tuple[str, ...] = ()

    schema: ClassVar[str] = "place_assign/v4"
    also: ClassVar[tuple[str, ...]] = ("is_complete", "gap_ratio")

    @property
    def placed(self) -> tuple[Placed, ...]:
        """Node by node, whatever the order of the requests."""
        placed = (item for item in self.items if isinstance(item, Placed))
        return tuple(sorted(placed, key=lambda one: (one.platform, one.node, one.request)))

    @property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """Requests that found no place."""
        return tuple(item for item in self.items if isinstance(item, Unplaced))

    @property
    def is_complete(self) -> bool:
        """True if everything that was asked has a place, and something was asked."""
        return bool(self.items) and len(self.placed) == len(self.items)

    @property
    def exit_code(self) -> int:
        return 0 if self.is_complete else 1

    @property
    def gap_ratio(self) -> float:
        """Share by which the worth placed may be below the best there is; 0 if it is the best."""
        if self.is_optimal or self.worth_at_most <= 0:
            return 0.0
        return max(0.0, 1 - self.worth / self.worth_at_most)

    @property
    def by_node(self) -> dict[str, list[Placed]]:
        """The requests that were placed, by node."""
        nodes: dict[str, list[Placed]] = {}
        for one in self.placed:
            nodes.setdefault(one.node, []).append(one)
        return nodes

    def applied_to(self, fleet: Fleet, requests: Any) -> Fleet:
        """Return the fleet with those that were placed as its tenants. requests: those that were asked."""
        by_name: dict[str, Request] = {
            request.name: request for request in Requests.of(requests).good
        }
        return fleet.with_tenants(
            [replace(by_name[one.request], node=one.node) for one in self.placed]
        )

    def report(self) -> Report:
        """Return who goes where, who does not and why, and how far it is from the best."""
        rows = [
            [node, there[0].platform, ", ".join(one.text for one in there)]
            for node, there in self.by_node.items()
        ]
        parts: list[Table | str] = []
        if rows:
            parts.append(Table(["node", "platform", "requests (bound of limit)"], rows))
        parts += [f"{node} is shared: {text}." for node, text in self.arrangements.items()]
        n = len(self.placed) + len(self.unplaced)
        text = f"{len(self.placed)} of {n} requests placed on {self.nodes_used} nodes"
        if self.is_optimal:
            parts.append(f"{text}: the best there is {_GOALS[self.goal]}.")
        else:
            most = f"{self.worth:g} of a worth of at most {self.worth_at_most:.6g}"
            gap = f"a gap of {percent(self.gap_ratio)}, {_GOALS[self.goal]}"
            parts.append(f"{text}: {most}, {gap}.")
        for reason in dict.fromkeys(one.reason for one in self.unplaced):
            names = [one.request for one in self.unplaced if one.reason == reason]
            shown = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
            parts.append(f"{len(names)} not placed: {REASONS[reason]}: {shown}.")
        return Report(self.to_document(), [*parts, self.promise], notes=self.notes)
