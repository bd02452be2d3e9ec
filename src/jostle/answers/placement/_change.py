"""A fleet before and after a change, with every tenant followed from the one to the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from jostle.errors import UnknownName, UsageError
from jostle.placement import Fleet, Node, Request


@dataclass(frozen=True)
class Occupant:
    """A tenant at a place. key: the same before and after. name: for people, different for all."""

    key: tuple[str, int]
    name: str
    node: str
    request: Request


@dataclass(frozen=True)
class Population:
    """A fleet and who is in it. tenants: {node: its tenants, in the node's own order}."""

    fleet: Fleet
    tenants: Mapping[str, tuple[Occupant, ...]]

    @classmethod
    def of(cls, fleet: Fleet, mark: str = "") -> Population:
        """mark: of the keys, where tenants of several fleets are followed."""
        count = Counter(one.name or one.workload for node in fleet.nodes for one in node.tenants)
        taken: set[str] = set()
        tenants = {}
        for node in fleet.nodes:
            here = []
            for place, request in enumerate(node.tenants):
                name = request.name or request.workload
                name = name if count[name] == 1 else f"{node.name}/{name}"
                while name in taken:
                    name += "'"
                taken.add(name)
                here.append(Occupant((mark + node.name, place), name, node.name, request))
            tenants[node.name] = tuple(here)
        return cls(fleet, tenants)

    @classmethod
    def with_tenants(cls, nodes: Sequence[Node], every: Iterable[Occupant]) -> Population:
        """These nodes with these tenants instead of their own."""
        tenants: dict[str, list[Occupant]] = {node.name: [] for node in nodes}
        for one in every:
            tenants[one.node].append(one)
        for here in tenants.values():  # the order of tenants in a Node
            here.sort(key=lambda one: (one.request.workload, one.request.name))
        filled = [
            replace(node, tenants=tuple(one.request for one in tenants[node.name]))
            for node in nodes
        ]
        return cls(Fleet(tuple(filled)), {name: tuple(here) for name, here in tenants.items()})

    @property
    def every(self) -> list[Occupant]:
        return [one for here in self.tenants.values() for one in here]


@dataclass(frozen=True)
class Change:
    """add: nodes that come. move: {tenant: node}, a tenant by its name, or by its node's, a slash and its
    name. remove: names of nodes that go, with the tenants that do not move."""

    add: tuple[Node, ...] = ()
    remove: tuple[str, ...] = ()
    move: Mapping[str, str] | None = None

    def of(self, fleet: Fleet) -> tuple[Population, Population]:
        """(before, after). Raises UnknownName, and UsageError for a tenant's name that several have."""
        for name in self.remove:
            fleet.node(name)
        before, added = Population.of(fleet), Population.of(Fleet(self.add), "+")
        nodes = Fleet((*(n for n in fleet.nodes if n.name not in self.remove), *self.add))
        there = {one.key: one for one in (*before.every, *added.every)}
        moved = set()
        for name, target in (self.move or {}).items():
            key = _called(name, list(there.values())).key
            if key in moved:
                raise UsageError(f"the tenant {name!r} would move twice")
            moved.add(key)
            there[key] = replace(there[key], node=nodes.node(target).name)
        gone = set(self.remove)
        stay = [
            one
            for one in there.values()
            if one.node not in gone or one.key in moved or one.key[0].startswith("+")
        ]
        return before, Population.with_tenants(nodes.nodes, stay)


def _called(name: str, every: Sequence[Occupant]) -> Occupant:
    """The tenant of this name."""
    namesakes = [one for one in every if one.name == name]
    if len(namesakes) != 1:
        namesakes = [
            one
            for one in every
            if name
            in (
                called := one.request.name or one.request.workload,
                f"{one.key[0].removeprefix('+')}/{called}",
            )
        ]
    if not namesakes:
        raise UnknownName("tenant", name, [one.name for one in every])
    if len(namesakes) > 1:
        raise UsageError(
            f"{len(namesakes)} tenants are called {name!r}", fix=f"Such as {namesakes[0].name}."
        )
    return namesakes[0]
