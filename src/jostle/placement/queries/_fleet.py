"""Fleets: nodes with slots, memory, labels and prices, and the tenants that are there now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jostle._base.report import Glance
from jostle.data import RAGGED, read_rows
from jostle.data.tables import cells
from jostle.errors import BadData, UnknownName, UsageError, require_known
from jostle.placement.queries._requests import (
    OK,
    Request,
    Requests,
    another_name,
    memory_of,
    request_of_row,
)

COLUMNS = (
    "name",
    "node",  # where there is no name: what tenants, requests and answers call it
    "platform",
    "slots",
    "memory",
    "memory_bytes",
    "labels",
    "price_per_hour",
    "tenants",
    "sharing",
)


@dataclass(frozen=True)
class Node:
    """A machine of a fleet.

    platform: what the model knows it by. slots: workloads at once, None without a limit.
    memory_bytes: None without a limit. price_per_hour: in any currency. tenants: who is there now.
    status: `ok`, or why nothing can be placed there. sharing: of an accelerator, the ways in which it may be
    shared (see `place_devices`), those of the question if empty.
    """

    name: str
    platform: str
    slots: int | None = None
    memory_bytes: float | None = None
    labels: tuple[str, ...] = ()
    price_per_hour: float = 0.0
    tenants: tuple[Request, ...] = ()
    status: str = OK
    sharing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises UsageError for a node that cannot be."""
        for name in ("name", "platform"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name):
                raise UsageError(f"the node {self.name!r} has no {name}")
        if self.slots is not None and (self.slots != int(self.slots) or self.slots < 0):
            raise UsageError(f"the node {self.name!r} has {self.slots} slots")
        for name in ("memory_bytes", "price_per_hour"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise UsageError(f"the node {self.name!r} has a {name} of {value}")
        order = sorted(self.tenants, key=lambda tenant: (tenant.workload, tenant.name))
        object.__setattr__(self, "tenants", tuple(order))

    @property
    def free_slots(self) -> float:
        """Infinite without a limit."""
        return float("inf") if self.slots is None else self.slots - len(self.tenants)

    @property
    def free_bytes(self) -> float:
        """Infinite without a limit."""
        if self.memory_bytes is None:
            return float("inf")
        return self.memory_bytes - sum(tenant.memory_bytes for tenant in self.tenants)


@dataclass(frozen=True, repr=False)
class Fleet(Glance):
    """Nodes of a fleet, with different names. ignored: columns of their table that mean nothing here."""

    nodes: tuple[Node, ...]
    ignored: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raises UsageError where two nodes have one name."""
        object.__setattr__(self, "nodes", tuple(self.nodes))
        names = [node.name for node in self.nodes]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise UsageError(f"two nodes are called {twice!r}")

    def __len__(self) -> int:
        return len(self.nodes)

    def _facts(self) -> list[tuple[str, str]]:
        """Count nodes, platforms and tenants."""
        return [
            ("nodes", f"{len(self)}"),
            ("platforms", f"{len({node.platform for node in self.nodes})}"),
            ("tenants", f"{sum(len(node.tenants) for node in self.nodes)}"),
            ("out of use", f"{sum(node.status != 'ok' for node in self.nodes)}"),
        ]

    def node(self, name: str) -> Node:
        """Return the node of this name.

        Raises UnknownName.
        """
        for node in self.nodes:
            if node.name == name:
                return node
        raise UnknownName("node", name, [node.name for node in self.nodes])

    @classmethod
    def read(
        cls, source: Any, columns: Mapping[str, str] | None = None, tenants: Any = None
    ) -> Fleet:
        """Read a table of nodes (see `read_rows`).

        columns: {name here: name in the table}. tenants: a table of requests with the column `node`, in
        addition to those in the column `tenants`: a list of objects or of names, each with its limit as in
        `fft@1.5x` or `sort@20ms`. A bad row gives a node on which nothing can be placed, with the reason as
        its status. Raises UnreadableFile, BadData, UnknownName (also for a tenant on no node of the fleet).
        """
        table = read_rows(source, COLUMNS, columns)
        if table.rows and not any({"name", "node", "platform"} & set(row) for row in table.rows):
            raise BadData(
                "no column is called 'name' or 'platform'",
                where=table.where,
                fix=f"Map one of: {', '.join(map(str, table.ignored)) or 'none'}.",
            )
        nodes: list[Node] = []
        taken: set[str] = set()
        for number, row in zip(table.numbers, table.rows, strict=True):
            named = {"name": row.get("node")} | row
            try:
                node = _node_of(named)
                if node.name in taken:
                    if not cells.is_empty(named["name"]):
                        raise ValueError(f"the name {node.name!r} stands in an earlier row")
                    node = replace(node, name=another_name(node.name, taken))
            except (ValueError, UsageError) as error:
                name = another_name(f"row {number}", taken)
                node = Node(name, "(unreadable)", slots=0, status=str(error))
            taken.add(node.name)
            nodes.append(node)
        fleet = cls(tuple(nodes), table.ignored)
        return fleet if tenants is None else fleet.with_tenants(tenants)

    @classmethod
    def of(cls, source: Any) -> Fleet:
        """Make a fleet of what a caller has: a Fleet, nodes, or what `read` takes."""
        if isinstance(source, Fleet):
            return source
        if isinstance(source, Node):
            return cls((source,))
        if isinstance(source, (list, tuple)) and all(isinstance(node, Node) for node in source):
            return cls(tuple(source))
        return cls.read(source)

    def with_tenants(self, source: Any) -> Fleet:
        """Add tenants to a fleet. source: requests with their `node`; a bad row closes its node if the node
        is known, and is an error otherwise. Raises UnknownName, UsageError."""
        requests = Requests.of(source)
        added: dict[str, list[Request]] = {}
        for row, status, number in zip(
            requests.rows, requests.status, requests.numbers, strict=True
        ):
            if row is None or row.node is None:
                reason = status if row is None else "it has no node"
                raise UsageError(f"the tenant in row {number}: {reason}", fix="Mend the row.")
            require_known("node", row.node, self._names)
            added.setdefault(row.node, []).append(row)
        nodes = [
            replace(node, tenants=(*node.tenants, *added[node.name]))
            if node.name in added
            else node
            for node in self.nodes
        ]
        unused = (f"{name} of tenants" for name in requests.ignored)
        return replace(self, nodes=tuple(nodes), ignored=(*self.ignored, *unused))

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(node.name for node in self.nodes)


def _node_of(row: Mapping[str, Any]) -> Node:
    """Raises ValueError."""
    if RAGGED in row:
        raise ValueError(str(row[RAGGED]))
    name, platform = (cells.text(row.get(column), column) for column in ("name", "platform"))
    if name is None and platform is None:
        raise ValueError("neither name nor platform is given")
    slots = cells.number(row.get("slots"), "slots", above=False)
    if slots is not None and slots != int(slots):
        raise ValueError(f"slots is {slots:g}, not a whole number")
    memory = cells.size(memory_of(row), "memory")
    price = cells.number(row.get("price_per_hour"), "price_per_hour", above=False)
    return Node(
        name or platform or "",
        platform or name or "",
        None if slots is None else int(slots),
        memory,
        cells.names(row.get("labels"), "labels"),
        price or 0.0,
        _tenants(row.get("tenants")),
        sharing=cells.names(row.get("sharing"), "sharing"),
    )


def _tenants(cell: Any) -> tuple[Request, ...]:
    tenants = []
    for entry in cells.entries(cell, "tenants"):
        if isinstance(entry, Mapping):
            tenants.append(request_of_row(entry))
        elif isinstance(entry, str):
            tenants.append(Request.of_text(entry))
        elif isinstance(entry, Request):
            tenants.append(entry)
        else:
            raise ValueError(f"the tenant {entry!r} is neither a name nor an object")
    return tuple(Requests.of(tenants).good) if _differ(tenants) else tuple(tenants)


def _differ(tenants: list[Request]) -> bool:
    """Return whether every tenant that has a name has one of its own."""
    names = [tenant.name for tenant in tenants if tenant.name]
    return len(set(names)) == len(names)
