"""What changes for whom when a fleet changes: a node more or less, a tenant moved, a device bought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.errors import UnknownName, UsageError
from jostle.placement._promise import Standard
from jostle.placement.asked._fleet import Fleet, Node
from jostle.placement.asked._requests import Request
from jostle.placement.sets._bounds import SetBounds
from jostle.placement.sets._fleet_bounds import FleetBounds


@dataclass(frozen=True)
class Change:
    """add: nodes that come. remove: names of nodes that go, with their tenants. move: {tenant: node}."""

    add: tuple[Node, ...] = ()
    remove: tuple[str, ...] = ()
    move: Mapping[str, str] | None = None

    def of(self, fleet: Fleet) -> Fleet:
        """The fleet after it. Raises UnknownName, and UsageError for a tenant's name that several have."""
        for name in self.remove:
            fleet.node(name)
        nodes = [node for node in fleet.nodes if node.name not in self.remove]
        after = Fleet((*nodes, *self.add))
        for tenant, target in (self.move or {}).items():
            after = _moved(after, tenant, target)
        return after


def _moved(fleet: Fleet, tenant: str, target: str) -> Fleet:
    places = [
        (n, t) for n in fleet.nodes for t in n.tenants if tenant in (t.name, f"{n.name}/{t.name}")
    ]
    if not places:
        known = [t.name for n in fleet.nodes for t in n.tenants]
        raise UnknownName("tenant", tenant, known)
    if len(places) > 1:
        one = f"{places[0][0].name}/{tenant}"
        raise UsageError(f"{len(places)} tenants are called {tenant!r}", fix=f"Such as {one}.")
    (origin, moving), there = places[0], fleet.node(target)
    if origin.name == there.name:
        return fleet
    left = tuple(other for other in origin.tenants if other is not moving)
    swap = {
        origin.name: replace(origin, tenants=left),
        there.name: replace(there, tenants=(*there.tenants, moving)),
    }
    return Fleet(tuple(swap.get(node.name, node) for node in fleet.nodes))


@dataclass(frozen=True)
class Tenancy:
    """A tenant before or after. node: None where it has no place. keeps: None without an objective."""

    node: str | None
    bound_seconds: float | None
    limit_seconds: float | None
    keeps: bool | None


@dataclass(frozen=True)
class Places:
    """A request before or after, by itself. nodes: how many it may go to; best: the one with the least
    bound."""

    nodes: int
    best: str | None
    bound_seconds: float | None


@dataclass(frozen=True)
class WhatIf:
    """tenants: (name, before, after) of those for whom something changes. requests: (name, before, after).
    tenants_late: how many would not be sure to keep their limit, before and after."""

    tenants: tuple[tuple[str, Tenancy, Tenancy], ...]
    requests: tuple[tuple[str, Places, Places], ...]
    tenants_late: tuple[int, int]
    standard: Standard
    unread: tuple[tuple[int, str], ...] = ()

    @property
    def is_better_for_all(self) -> bool:
        """Whether nobody who was sure to keep a limit is not any more, and no request lost its last place."""
        hurt = any(b.keeps and not a.keeps for _, b, a in self.tenants)
        return not hurt and not any(b.nodes and not a.nodes for _, b, a in self.requests)

    def to_document(self) -> dict[str, Any]:
        def pair(name: str, before: Any, after: Any) -> dict[str, Any]:
            return {"name": name, "before": vars(before), "after": vars(after)}

        return {
            "schema": "place_whatif/v1",
            "nobody_worse": self.is_better_for_all,
            "confidence": self.standard.confidence,
            "joint": self.standard.joint,
            "accept": self.standard.accept,
            "promise": self.standard.promise(),
            "tenants_late_before": self.tenants_late[0],
            "tenants_late_after": self.tenants_late[1],
            "tenants": [pair(*row) for row in self.tenants],
            "requests": [pair(*row) for row in self.requests],
            "unread": [{"row": row, "status": why} for row, why in self.unread],
        }


def what_if(
    before: Fleet, after: Fleet, requests: Sequence[Request], sets: SetBounds
) -> tuple[list[Any], list[Any], tuple[int, int]]:
    """(tenants that changed, requests, tenants late before and after)."""
    old, new = _tenancies(before, sets), _tenancies(after, sets)
    gone = Tenancy(None, None, None, None)
    changed = [
        (name, old.get(name, gone), new.get(name, gone))
        for name in dict.fromkeys([*old, *new])
        if old.get(name, gone) != new.get(name, gone)
    ]
    options = [
        (request.name, _places(request, before, sets), _places(request, after, sets))
        for request in requests
    ]
    late = tuple(sum(t.keeps is False for t in found.values()) for found in (old, new))
    return changed, options, (late[0], late[1])


def _tenancies(fleet: Fleet, sets: SetBounds) -> dict[str, Tenancy]:
    """{tenant: how it is}; by its name, with that of its node where several have it."""
    names = [tenant.name for node in fleet.nodes for tenant in node.tenants]
    found, here = {}, FleetBounds(fleet, sets)
    for node in fleet.nodes:
        for place, tenant in enumerate(node.tenants):
            name = tenant.name if names.count(tenant.name) == 1 else f"{node.name}/{tenant.name}"
            while name in found:
                name += "'"
            bound, limit = np.inf, np.nan
            codes = [sets.workload_code.get(t.workload, -1) for t in node.tenants]
            if node.platform in sets.platform_code and min(codes) >= 0:
                p = sets.platform_code[node.platform]
                bound = float(
                    sets.of(np.array([p]), np.array([codes]), tenant.confidence)[0][0, place]
                )
                limit = here.tenant_limit(tenant, node)
            keeps = bool(np.isfinite(bound) and bound <= limit) if tenant.has_objective else None
            found[name] = Tenancy(node.name, _finite(bound), _finite(limit), keeps)
    return found


def _places(request: Request, fleet: Fleet, sets: SetBounds) -> Places:
    found = FleetBounds(fleet, sets).assess(request)
    at = np.flatnonzero(found.is_safe)
    if not len(at):
        return Places(0, None, None)
    best = at[np.argmin(found.bound_seconds[at])]
    return Places(len(at), fleet.nodes[best].name, float(found.bound_seconds[best]))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
