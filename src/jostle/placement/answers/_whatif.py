"""What changes for whom when a fleet changes: a node more or less, a tenant moved, a device bought."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jostle._report import finite
from jostle.placement._promise import Standard
from jostle.placement.answers._change import Population
from jostle.placement.asked._fleet import Fleet, Node
from jostle.placement.asked._requests import Request
from jostle.placement.assign._answer import Assignment
from jostle.placement.sets._bounds import SetBounds
from jostle.placement.sets._fleet_bounds import CODES, REASONS, FleetBounds
from jostle.progress import Progress

WORDS = tuple(REASONS)


@dataclass(frozen=True)
class Tenancy:
    """A tenant before or after. node: None where it has no place. keeps: None without an objective."""

    node: str | None
    bound_seconds: float | None
    limit_seconds: float | None
    keeps: bool | None
    used_prediction: bool = False


@dataclass(frozen=True)
class Places:
    """A request before or after, by itself. nodes: how many it may go to; best: the one with the least
    bound."""

    nodes: int
    best: str | None
    bound_seconds: float | None
    used_prediction: bool = False


@dataclass(frozen=True)
class Misplaced:
    """A tenant that does not fit where it is after the change. reason: a key of REASONS."""

    tenant: str
    node: str
    reason: str


@dataclass(frozen=True)
class Reassigned:
    """All requests placed at once, before and after. gained, lost: those that have a place only after, only
    before."""

    goal: str
    placed: tuple[int, int]
    cost: tuple[float, float]
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @classmethod
    def of(cls, before: Assignment, after: Assignment) -> Reassigned:
        old, new = ({one.request for one in found.placed} for found in (before, after))
        return cls(
            before.goal,
            (len(old), len(new)),
            (before.cost, after.cost),
            tuple(sorted(new - old)),
            tuple(sorted(old - new)),
        )


@dataclass(frozen=True)
class WhatIf:
    """tenants: (name, before, after) of those for whom something changes. requests: (name, before, after).
    homeless: {tenant whose node went: where it may go}. misplaced: tenants that do not fit where they are
    after, and did before. unusable: (node, reason) of nodes that came and take nobody. tenants_late: how
    many would not be sure to keep their limit, before and after. reassigned: where all requests were placed
    at once, too."""

    tenants: tuple[tuple[str, Tenancy, Tenancy], ...]
    requests: tuple[tuple[str, Places, Places], ...]
    tenants_late: tuple[int, int]
    standard: Standard
    unread: tuple[tuple[int, str], ...] = ()
    homeless: tuple[tuple[str, Places], ...] = ()
    misplaced: tuple[Misplaced, ...] = ()
    unusable: tuple[tuple[str, str], ...] = ()
    reassigned: Reassigned | None = None

    @property
    def is_better_for_all(self) -> bool:
        """Whether nobody who was sure to keep a limit is not any more, every tenant still has a node that it
        fits, and no request lost its last place."""
        hurt = any(b.keeps and not a.keeps for _, b, a in self.tenants)
        lost = any(b.nodes and not a.nodes for _, b, a in self.requests)
        lost = lost or bool(self.reassigned and self.reassigned.lost)
        return not (hurt or lost or self.homeless or self.misplaced)

    @property
    def promise(self) -> str:
        used = any(side.used_prediction for _, *sides in self.tenants for side in sides)
        used = used or any(side.used_prediction for _, *sides in self.requests for side in sides)
        return self.standard.promise(used_predictions=used)

    def to_document(self) -> dict[str, Any]:
        def pair(name: str, before: Any, after: Any) -> dict[str, Any]:
            return {"name": name, "before": vars(before), "after": vars(after)}

        return {
            "schema": "place_whatif/v1",
            "nobody_worse": self.is_better_for_all,
            "confidence": self.standard.confidence,
            "joint": self.standard.joint,
            "accept": self.standard.accept,
            "promise": self.promise,
            "tenants_late_before": self.tenants_late[0],
            "tenants_late_after": self.tenants_late[1],
            "tenants": [pair(*row) for row in self.tenants],
            "requests": [pair(*row) for row in self.requests],
            "homeless": [{"name": name, **vars(places)} for name, places in self.homeless],
            "misplaced": [vars(one) for one in self.misplaced],
            "unusable": [{"node": node, "reason": why} for node, why in self.unusable],
            "reassigned": None if self.reassigned is None else vars(self.reassigned),
            "unread": [{"row": row, "status": why} for row, why in self.unread],
        }


def what_if(
    before: Population,
    after: Population,
    requests: Sequence[Request],
    sets: SetBounds,
    progress: Progress,
) -> WhatIf:
    """Everything but the requests placed at once. progress: called with (requests done, all, NaN)."""
    old, new = _tenancies(before, sets), _tenancies(after, sets)
    names = {one.key: one.name for population in (after, before) for one in population.every}
    gone = Tenancy(None, None, None, None)
    changed = [
        (names[key], old.get(key, gone), new.get(key, gone))
        for key in dict.fromkeys([*old, *new])
        if old.get(key, gone) != new.get(key, gone)
    ]
    views = FleetBounds(before.fleet, sets), FleetBounds(after.fleet, sets)
    out = [one for one in before.every if one.key not in new]
    homeless = tuple((one.name, _places(one.request, views[1])) for one in out)
    options = []
    for number, request in enumerate(requests):
        progress(number, len(requests), float("nan"))
        options.append((request.name, *(_places(request, view) for view in views)))
    was = {(one.tenant, one.reason) for one in _misplaced(before, sets, None)}
    bad = [one for one in _misplaced(after, sets, before) if (one.tenant, one.reason) not in was]
    late = tuple(sum(t.keeps is False for t in found.values()) for found in (old, new))
    return WhatIf(
        tuple(changed),
        tuple(options),
        (late[0], late[1]),
        sets.standard,
        homeless=homeless,
        misplaced=tuple(bad),
        unusable=_unusable(before.fleet, views[1]),
    )


def _tenancies(population: Population, sets: SetBounds) -> dict[tuple[str, int], Tenancy]:
    """{key of a tenant: how it is}."""
    found, here = {}, FleetBounds(population.fleet, sets)
    for node in population.fleet.nodes:
        codes = [sets.workload_code.get(t.workload, -1) for t in node.tenants]
        answers = node.platform in sets.platform_code and min(codes, default=-1) >= 0
        for place, one in enumerate(population.tenants[node.name]):
            tenant, bound, limit, valid = one.request, np.inf, np.nan, False
            if answers:
                p = np.array([sets.platform_code[node.platform]])
                bounds, good = sets.of(p, np.array([codes]), tenant.confidence)
                bound, valid = float(bounds[0, place]), bool(good[0, place])
                limit = here.tenant_limit(tenant, node)
            keeps = bool(np.isfinite(bound) and bound <= limit) if tenant.has_objective else None
            guessed = bool(np.isfinite(bound)) and not valid
            found[one.key] = Tenancy(node.name, finite(bound), finite(limit), keeps, guessed)
    return found


def _unusable(before: Fleet, after: FleetBounds) -> tuple[tuple[str, str], ...]:
    """New nodes that take nobody, and why."""
    known = set(before.nodes)
    return tuple(
        (node.name, WORDS[int(code)])
        for node, code in zip(after.fleet.nodes, after.ruled_out_for_all, strict=True)
        if code != CODES["ok"] and node not in known
    )


def _misplaced(
    population: Population, sets: SetBounds, unless_in: Population | None
) -> list[Misplaced]:
    """Tenants that the rules keep off their nodes, looked at where they changed from another population."""
    known: dict[str, Node] = {}
    if unless_in is not None:
        known = {node.name: node for node in unless_in.fleet.nodes}
    found = []
    for node in population.fleet.nodes:
        if known.get(node.name) == node:
            continue
        for one in population.tenants[node.name]:
            others = tuple(o.request for o in population.tenants[node.name] if o is not one)
            without = Node(**{**vars(node), "tenants": others})
            code = int(FleetBounds(Fleet((without,)), sets).ruled_out(one.request)[0])
            if code != CODES["ok"]:
                found.append(Misplaced(one.name, node.name, WORDS[code]))
    return found


def _places(request: Request, fleet: FleetBounds) -> Places:
    found = fleet.assess(request)
    at = np.flatnonzero(found.is_safe)
    if not len(at):
        return Places(0, None, None)
    best = at[np.argmin(found.bound_seconds[at])]
    name = fleet.fleet.nodes[best].name
    return Places(len(at), name, float(found.bound_seconds[best]), bool(found.predicted[best]))
