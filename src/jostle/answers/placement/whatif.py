"""What changes for whom when a fleet changes: a node more or less, a tenant moved, a device bought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from jostle._options import check_settings
from jostle._report import Report, Table, finite
from jostle._verbs.documents import Record, Unanswered, VerbAnswer, answered
from jostle.answers._requests import because, bound_text, each
from jostle.answers._verb import verb
from jostle.answers.placement.assign import Goal
from jostle.errors import UsageError
from jostle.placement import Fleet, Node, Standard

if TYPE_CHECKING:
    from jostle.answers.placement._change import Population
    from jostle.placement import (
        Assignment,
        FleetBounds,
        Placement,
        Request,
        Requests,
        SetBounds,
    )
    from jostle.progress import Progress

_MOST_NAMED = 20
_KEEPS = {True: "yes", False: "no", None: "–"}


@dataclass(frozen=True)
class WhatifQuestion:
    """What changes for whom when a node comes or goes, or a tenant moves: who would no longer be sure to keep
    a limit, who has no place, and where else it could go.

    Ends with 1 where somebody is worse off.
    """

    add: Annotated[
        Mapping[str, str],
        "A node that comes, NAME=PLATFORM. From Python also nodes, or a table of them.",
    ] = field(default_factory=dict)
    add_fleet: Annotated[Path | None, "A table of nodes that come."] = None
    remove: Annotated[tuple[str, ...], "A node that goes, with its tenants."] = ()
    move: Annotated[
        Mapping[str, str] | None, "A tenant that moves, TENANT=NODE, before any node goes."
    ] = None
    goal: Annotated[
        Goal | None, "Assign all requests at once, too, before and after, for this."
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError, and what reading a table of nodes raises."""
        check_settings(self)
        if isinstance(self.remove, str):
            object.__setattr__(self, "remove", (self.remove,))
        if isinstance(self.add, Mapping):
            nodes = tuple(Node(name, platform) for name, platform in self.add.items())
        else:
            is_some = isinstance(self.add, (Node, str, Path)) or len(self.add)
            nodes = Fleet.of(self.add).nodes if is_some else ()
        if self.add_fleet is not None:
            nodes += Fleet.read(self.add_fleet).nodes
        object.__setattr__(self, "add", nodes)
        object.__setattr__(self, "add_fleet", None)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All that come."""
        return tuple(self.add)  # pyright: ignore[reportReturnType]

    def sent(self) -> dict[str, Any]:
        """Its fields for a service, which takes new nodes by name and platform. Raises UsageError."""
        if odd := [node for node in self.nodes if node != Node(node.name, node.platform)]:
            raise UsageError(f"a service takes of the node {odd[0].name!r} its name and platform")
        return vars(self) | {"add": {node.name: node.platform for node in self.nodes}}


@dataclass(frozen=True)
class Tenancy(Record):
    """A tenant before or after. node: None where it has no place. keeps: None without an objective."""

    node: str | None
    bound_seconds: float | None
    limit_seconds: float | None
    keeps: bool | None
    used_prediction: bool = False


@dataclass(frozen=True)
class Places(Record):
    """A request before or after, by itself. nodes: how many it may go to; best: the one with the least
    bound."""

    nodes: int
    best: str | None
    bound_seconds: float | None
    used_prediction: bool = False


class ChangedTenant(NamedTuple):
    """A tenant for whom something changes."""

    name: str
    before: Tenancy
    after: Tenancy


class ChangedRequest(NamedTuple):
    """A request, whether or not something changes for it."""

    name: str
    before: Places
    after: Places
    status: Literal["ok"] = "ok"


class Homeless(NamedTuple):
    """A tenant whose node went. places: where it may go."""

    name: str
    places: Places


class UnusableNode(NamedTuple):
    """A node that came and takes nobody. reason: a key of REASONS."""

    node: str
    reason: str


@dataclass(frozen=True)
class Misplaced(Record):
    """A tenant that does not fit where it is after the change. reason: a key of REASONS."""

    tenant: str
    node: str
    reason: str


@dataclass(frozen=True)
class Reassigned(Record):
    """All requests placed at once, before and after. gained, lost: those that have a place only after, only
    before."""

    goal: str
    placed: tuple[int, int]
    cost: tuple[float, float]
    gained: tuple[str, ...]
    lost: tuple[str, ...]

    @classmethod
    def of(cls, before: Assignment, after: Assignment) -> Reassigned:
        old, new = ({one.request for one in plan.placed} for plan in (before, after))
        return cls(
            before.goal,
            (len(old), len(new)),
            (before.cost, after.cost),
            tuple(sorted(new - old)),
            tuple(sorted(old - new)),
        )

    @property
    def text(self) -> str:
        """For people."""
        text = (
            f"Assigned at once, for {self.goal}: {self.placed[0]} placed before, {self.placed[1]} after, "
            f"at a cost of {self.cost[0]:.6g} and {self.cost[1]:.6g}"
        )
        for word, names in (("gained a place", self.gained), ("lost theirs", self.lost)):
            if names:
                more = ", …" if len(names) > _MOST_NAMED else ""
                text += f"; {word}: {', '.join(names[:_MOST_NAMED])}{more}"
        return f"{text}."


@dataclass(frozen=True)
class WhatIf(VerbAnswer):
    """items: of requests, in their order. tenants: those for whom something changes. tenants_late: how many
    would not be sure to keep their limit, before and after. homeless: whose node went. misplaced: tenants
    that do not fit where they are after, and did before. unusable: nodes that came and take nobody.
    reassigned: where all requests were placed at once, too."""

    items: tuple[ChangedRequest | Unanswered, ...]
    tenants: tuple[ChangedTenant, ...]
    tenants_late: tuple[int, int]
    standard: Standard
    homeless: tuple[Homeless, ...] = ()
    misplaced: tuple[Misplaced, ...] = ()
    unusable: tuple[UnusableNode, ...] = ()
    reassigned: Reassigned | None = None
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "place_whatif/v2"
    also: ClassVar[tuple[str, ...]] = ("is_better_for_all", "promise")

    @property
    def requests(self) -> tuple[ChangedRequest, ...]:
        return answered(self.items)

    @property
    def is_better_for_all(self) -> bool:
        """Whether nobody who was sure to keep a limit is not any more, every tenant still has a node that it
        fits, and no request lost its last place."""
        hurt = any(one.before.keeps and not one.after.keeps for one in self.tenants)
        lost = any(one.before.nodes and not one.after.nodes for one in self.requests)
        lost = lost or bool(self.reassigned and self.reassigned.lost)
        return not (hurt or lost or self.homeless or self.misplaced)

    @property
    def exit_code(self) -> int:
        return 0 if self.is_better_for_all else 1

    @property
    def promise(self) -> str:
        sides = [side for one in (*self.tenants, *self.requests) for side in one[1:3]]
        return self.standard.promised(used_predictions=any(s.used_prediction for s in sides))

    def report(self) -> Report:
        """Tenants for whom something changes, and requests with what they gain or lose."""
        tenants = [
            [
                one.name,
                one.before.node or "nowhere",
                one.after.node or "nowhere",
                bound_text(one.before.bound_seconds) if one.before.node else "–",
                bound_text(one.after.bound_seconds) if one.after.node else "–",
                f"{_KEEPS[one.before.keeps]} → {_KEEPS[one.after.keeps]}",
            ]
            for one in self.tenants
        ]
        heads = ["tenant", "from", "to", "bound before", "bound after", "keeps its limit"]
        parts: list[Table | str] = [
            Table(heads, tenants, (3, 4)) if tenants else "Nothing changes for any tenant."
        ]
        requests = [
            [
                one.name,
                f"{one.before.nodes} → {one.after.nodes}",
                f"{one.before.best or 'none'} → {one.after.best or 'none'}",
                bound_text(one.before.bound_seconds),
                bound_text(one.after.bound_seconds),
            ]
            for one in self.requests
        ]
        if requests:
            heads = ["request", "nodes", "best node", "bound before", "bound after"]
            parts.append(Table(heads, requests, (3, 4)))
        for name, places in self.homeless:
            there = f"it may go to {places.best}, one of {places.nodes}."
            there = there if places.best else "and it may go to none."
            parts.append(f"{name} has no node any more; {there}")
        parts += [
            f"{one.tenant} does not fit on {one.node}: {because(one.reason)}."
            for one in self.misplaced
        ]
        parts += [f"{node} takes nobody: {because(why)}." for node, why in self.unusable]
        before, after = self.tenants_late
        parts.append(f"Tenants not sure to keep their limit: {before} before, {after} after.")
        parts += [self.reassigned.text] if self.reassigned is not None else []
        return Report(self.to_document(), [*parts, self.promise], notes=self.notes)


@verb(WhatifQuestion, is_long=True, needs_items=False)
def whatif(
    placement: Placement, requests: Requests, question: WhatifQuestion, progress: Progress
) -> WhatIf:
    """Everybody followed from the fleet before to the fleet after. Raises UnknownName, UsageError."""
    from jostle.answers.placement._change import Change
    from jostle.placement import Effort, FleetBounds, assign_requests

    if not (question.nodes or question.move or question.remove):
        raise UsageError("nothing changes", fix="Say `add`, `remove` or `move`.")
    before, after = Change(question.nodes, question.remove, question.move).of(placement.fleet)
    old, new = _tenancies(before, placement.sets), _tenancies(after, placement.sets)
    names = {one.key: one.name for population in (after, before) for one in population.every}
    gone = Tenancy(None, None, None, None)
    changed = tuple(
        ChangedTenant(names[key], old.get(key, gone), new.get(key, gone))
        for key in dict.fromkeys([*old, *new])
        if old.get(key, gone) != new.get(key, gone)
    )
    views = [FleetBounds(side.fleet, placement.sets) for side in (before, after)]
    was = {(one.tenant, one.reason) for one in _misplaced(before, placement.sets, None)}
    bad = _misplaced(after, placement.sets, before)
    reassigned = None
    items = each(
        requests,
        lambda one: ChangedRequest(one.name, _places(one, views[0]), _places(one, views[1])),
        progress,
    )
    if question.goal is not None:
        plans = [assign_requests(requests.good, view, question.goal, Effort()) for view in views]
        reassigned = Reassigned.of(*plans)
    late = [sum(one.keeps is False for one in side.values()) for side in (old, new)]
    out = [one for one in before.every if one.key not in new]
    return WhatIf(
        items,
        changed,
        (late[0], late[1]),
        placement.standard,
        homeless=tuple(Homeless(one.name, _places(one.request, views[1])) for one in out),
        misplaced=tuple(one for one in bad if (one.tenant, one.reason) not in was),
        unusable=_unusable(before.fleet, views[1]),
        reassigned=reassigned,
        model=placement.label,
    )


def _tenancies(population: Population, sets: SetBounds) -> dict[tuple[str, int], Tenancy]:
    """{key of a tenant: how it is}."""
    import numpy as np

    from jostle.placement import FleetBounds

    tenancies, here = {}, FleetBounds(population.fleet, sets)
    bounds, valid = here.now
    for n, node in enumerate(population.fleet.nodes):
        first, is_known = here.tenants.shape[1] - len(node.tenants), here.is_known[n]
        for column, one in enumerate(population.tenants[node.name], first):
            bound, limit, good = np.inf, np.nan, False
            if is_known:
                bound, limit = float(bounds[n, column]), float(here.limit[n, column])
                good = bool(valid[n, column])
            keeps = bool(np.isfinite(bound) and bound <= limit)
            tenancies[one.key] = Tenancy(
                node.name,
                finite(bound),
                finite(limit),
                keeps if one.request.has_objective else None,
                bool(np.isfinite(bound)) and not good,
            )
    return tenancies


def _unusable(before: Fleet, after: FleetBounds) -> tuple[UnusableNode, ...]:
    """New nodes that take nobody, and why."""
    from jostle.placement import CODES, REASONS

    known = set(before.nodes)
    return tuple(
        UnusableNode(node.name, tuple(REASONS)[int(code)])
        for node, code in zip(after.nodes, after.ruled_out_for_all, strict=True)
        if code != CODES["ok"] and node not in known
    )


def _misplaced(
    population: Population, sets: SetBounds, unless_in: Population | None
) -> list[Misplaced]:
    """Tenants that the rules keep off their nodes, looked at where they changed from another population."""
    from jostle.placement import CODES, REASONS, FleetBounds

    known: dict[str, Node] = {}
    if unless_in is not None:
        known = {node.name: node for node in unless_in.fleet.nodes}
    misplaced = []
    for node in population.fleet.nodes:
        if known.get(node.name) == node:
            continue
        for one in population.tenants[node.name]:
            others = tuple(o.request for o in population.tenants[node.name] if o is not one)
            without = replace(node, tenants=others)
            code = int(FleetBounds([without], sets).ruled_out([one.request])[0, 0])
            if code != CODES["ok"]:
                misplaced.append(Misplaced(one.name, node.name, tuple(REASONS)[code]))
    return misplaced


def _places(request: Request, fleet: FleetBounds) -> Places:
    import numpy as np

    assessed = fleet.assess(request)
    at = np.flatnonzero(assessed.is_safe)
    if not len(at):
        return Places(0, None, None)
    best = at[np.argmin(assessed.bound_seconds[at])]
    name, bound = fleet.nodes[best].name, float(assessed.bound_seconds[best])
    return Places(len(at), name, bound, bool(assessed.predicted[best]))
