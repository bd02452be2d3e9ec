"""May these share? The newcomer and all tenants of a node, each against its own limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from jostle._report import duration, finite
from jostle.placement._promise import PREDICTED
from jostle.placement._reasons import CODES, REASONS
from jostle.placement.answers._sharers import SafeAnswer, Sharer
from jostle.placement.asked._fleet import Fleet, Node
from jostle.placement.asked._requests import Request
from jostle.placement.sets._bounds import SetBounds
from jostle.placement.sets._fleet_bounds import FleetBounds

WORDS = tuple(REASONS)
LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99)  # that might be offered instead
MOST_OTHERS = 3  # nodes that are named as other places


def safe_together(
    requests: Sequence[Request], node: Node, fleet: Fleet, sets: SetBounds
) -> list[SafeAnswer]:
    """For requests that come to a node at once: each beside the others, with what is there."""
    found = []
    for place, request in enumerate(requests):
        others = (*requests[:place], *requests[place + 1 :])
        crowded = replace(node, tenants=(*node.tenants, *others))
        found.append(safe_on(request, crowded, fleet, sets))
    return found


def safe_at_once(request: Request, fleet: FleetBounds) -> list[SafeAnswer]:
    """One request on every node of a fleet, without who and what would help."""
    found = fleet.assess(request)
    return [
        SafeAnswer(
            request.name,
            request.workload,
            node.name,
            node.platform,
            bool(code == CODES["ok"]),
            WORDS[int(code)],
            bool(predicted and code == CODES["ok"]),
        )
        for node, code, predicted in zip(
            fleet.fleet.nodes, found.reason, found.predicted, strict=True
        )
    ]


def safe_on(request: Request, node: Node, fleet: Fleet, sets: SetBounds) -> SafeAnswer:
    """One request on one node, explained. fleet: where else it might go."""
    here = FleetBounds(Fleet((node,)), sets)
    found = here.assess(request)
    reason, code = WORDS[int(found.reason[0])], sets.workload_code.get(request.workload)
    assessed = reason in ("ok", "no_ground", "newcomer_late", "tenant_late")
    members: tuple[Sharer, ...] = ()
    arrangement = ""
    if assessed and code is not None:
        members = _members(request, float(found.limit_seconds[0]), node, here, sets)
        arrangement = arrangement_of((*node.tenants, request), node, sets)
    answer = SafeAnswer(
        request.name,
        request.workload,
        node.name,
        node.platform,
        reason == "ok",
        reason,
        bool(found.predicted[0]) and reason == "ok",
        members,
        arrangement=arrangement,
    )
    return (
        answer
        if reason == "ok"
        else replace(answer, helps=_helps(request, node, fleet, answer, sets))
    )


def _members(
    request: Request, limit: float, node: Node, here: FleetBounds, sets: SetBounds
) -> tuple[Sharer, ...]:
    people = sorted(
        (*node.tenants, request), key=lambda one: (one.workload, one is request, one.name)
    )
    p = sets.platform_code[node.platform]
    codes = tuple(sets.workload_code[one.workload] for one in people)
    found = []
    for place, one in enumerate(people):
        bound = sets.of(np.array([p]), np.array([codes]), one.confidence)[0][0, place]
        predicted, outcome = sets.explained(p, codes, one.confidence)[place]
        mine = limit if one is request else here.tenant_limit(one, node)
        found.append(
            Sharer(
                one.name or one.workload,
                one.workload,
                one is request,
                finite(mine),
                finite(predicted),
                finite(float(bound)),
                outcome,
                sets.standard.of_each(one.confidence, len(people)),
            )
        )
    return tuple(found)


def arrangement_of(people: Sequence[Request], node: Node, sets: SetBounds) -> str:
    """How they share a node, where that is a decision."""
    codes = [sets.workload_code[one.workload] for one in people]
    names = [one.name or one.workload for one in people]
    return sets.arrangement(sets.platform_code[node.platform], codes, names)


def _helps(
    request: Request, node: Node, fleet: Fleet, answer: SafeAnswer, sets: SetBounds
) -> tuple[str, ...]:
    """What would turn the no into a yes, one thing at a time."""
    found = []
    hurt = answer.hurt
    if hurt and all(member.bound_seconds is not None for member in hurt):
        limits = ", ".join(f"{m.name} at most {duration(m.bound_seconds or 0)}" for m in hurt)
        found.append(f"wider limits: {limits}")
    for tenant in node.tenants:
        rest = tuple(other for other in node.tenants if other is not tenant)
        if _is_safe(request, replace(node, tenants=rest), sets):
            found.append(f"without {tenant.name or tenant.workload} there")
    others = Fleet(tuple(other for other in fleet.nodes if other.name != node.name))
    if len(others):
        places = np.flatnonzero(FleetBounds(others, sets).assess(request).is_safe)
        if len(places):
            named = ", ".join(others.nodes[place].name for place in places[:MOST_OTHERS])
            found.append(f"another node: {named}" + (", …" if len(places) > MOST_OTHERS else ""))
    if answer.reason in ("newcomer_late", "tenant_late", "no_ground"):
        own = [one.confidence for one in (*node.tenants, request) if one.confidence is not None]
        for level in sorted((x for x in LEVELS if x < sets.standard.confidence), reverse=True):
            if own:
                break
            lower = sets.like(sets, replace(sets.standard, confidence=level))
            if _is_safe(request, node, lower):
                found.append(f"a confidence of {level:g}")
                break
    if answer.reason == "no_ground" and sets.standard.accept != PREDICTED:
        accepting = sets.like(sets, replace(sets.standard, accept=PREDICTED))
        if _is_safe(request, node, accepting):
            found.append("to accept predictions, for which nothing is promised")
    return tuple(found)


def _is_safe(request: Request, node: Node, sets: SetBounds) -> bool:
    return bool(FleetBounds(Fleet((node,)), sets).assess(request).reason[0] == CODES["ok"])
