"""Many requests at once: which goes where, who finds no place and why, and how far that is from the best."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

from jostle._base.documents import Unanswered
from jostle._base.option_fields import Flag, Limits, NoOption, check_settings
from jostle.operations._operation import verb
from jostle.operations._request_reports import unread
from jostle.placement import Assignment

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.placement import Node, Placement, Request, Requests

Goal = Literal["most_accepted", "least_cost"]


@dataclass(frozen=True)
class AssignQuestion:
    """Place many requests at once: which goes where, which finds no place and why, and how far that is from
    the best.

    Ends with 1 where a request finds no place.
    """

    goal: Annotated[
        Goal,
        "Of all ways to place as much as can be placed, the one with the fewest nodes that were empty, or "
        "of least cost.",
    ] = "most_accepted"
    limit_seconds: Annotated[
        float, "Seconds for the program in whole numbers.", Flag("--limit"), Limits(0.01)
    ] = 2.0
    seed: Annotated[int, "Of the search, where there are too many sets to list.", NoOption()] = 0

    def __post_init__(self) -> None:
        """Raises UsageError."""
        check_settings(self)


@verb(AssignQuestion, is_long=True)
def assign(
    placement: Placement, requests: Requests, question: AssignQuestion, progress: Progress
) -> Assignment:
    """Place as much worth as possible, and of all ways to do so choose one with the least of what the goal
    names. Exact if all feasible sets can be listed, else searched. Raises MissingExtra."""
    from jostle.placement import ON_PREDICTIONS, OPTIMISED, Effort, assign_requests

    bounds, promise = placement.chosen(requests, "requests that are placed", OPTIMISED)
    effort = Effort(question.limit_seconds, question.seed)
    plan = assign_requests(requests.good, bounds, question.goal, effort, progress)
    if _rests_on_predictions(placement, plan, requests):
        promise = f"{promise} {ON_PREDICTIONS}"
    items = {item.request: item for item in plan.items if not isinstance(item, Unanswered)}
    bad = iter(unread(requests))
    return replace(
        plan,
        items=tuple(next(bad) if row is None else items[row.name] for row in requests.rows),
        standard=placement.standard,
        promise=promise,
        arrangements=_arrangements(placement, plan, requests),
        model=placement.label,
    )


def _everybody(
    placement: Placement, plan: Assignment, requests: Requests
) -> Iterator[tuple[Node, tuple[Request, ...]]]:
    """Return (node, who is there after the plan) of each node that gains somebody."""
    by_name = {request.name: request for request in requests.good}
    nodes = {node.name: node for node in placement.fleet.nodes}
    for name, there in plan.by_node.items():
        yield nodes[name], (*nodes[name].tenants, *(by_name[one.request] for one in there))


def _rests_on_predictions(placement: Placement, plan: Assignment, requests: Requests) -> bool:
    """Check whether anybody who was placed, or is beside them, has no valid bound there."""
    import numpy as np

    sets = placement.sets
    if not placement.standard.takes_predictions:
        return False
    for node, everybody in _everybody(placement, plan, requests):
        codes = np.sort([sets.workload_code[one.workload] for one in everybody])[None]
        platform = np.array([sets.platform_code[node.platform]])
        if any(not sets.of(platform, codes, one.confidence)[1].all() for one in everybody):
            return True
    return False


def _arrangements(placement: Placement, plan: Assignment, requests: Requests) -> dict[str, str]:
    """Say how each accelerator is shared after the plan, {node: sentence}."""
    texts = {
        node.name: placement.bounds.arrangement(everybody, node)
        for node, everybody in _everybody(placement, plan, requests)
    }
    return {name: text for name, text in texts.items() if text}
