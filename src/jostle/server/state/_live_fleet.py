"""The fleet as it is now: the nodes of a table, with the tenants that placements say are there.

Nodes that cannot be told apart are one kind, so that a question about thousands of nodes is one about a few.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from jostle._base.files import signature_of
from jostle.errors import BadData, JostleError
from jostle.placement import Fleet, Node, Request, Requests
from jostle.server.state._state_store import PlacementRow, Store

_ANEW_AFTER_SECONDS = 300.0  # well under the time after which changes are forgotten
_MOST_IDLE_KINDS = 2000


class LiveFleet:
    """Fleet with its placements as they are now, used by one thread at a time.

    path: the table of nodes; without one, the nodes of a cluster (of_cluster), or every platform of the model
    as a node of that name, without a limit on slots. nodes: {name: node with all its tenants}. version:
    another number whenever anything is different. trouble: why the table that lies there now is not the one
    that is used, if so.
    """

    def __init__(self, path: Path | None, store: Store) -> None:
        self.path, self.store = path, store
        self.nodes: dict[str, Node] = {}
        self.placed: dict[str, tuple[PlacementRow, Request]] = {}
        self.version = 0
        self.trouble: str | None = None
        self.of_cluster: tuple[Node, ...] = ()
        self._bare: dict[str, Node] = {}
        self._there: dict[str, dict[str, Request]] = {}
        self._seen, self._synced_at, self._next_expiry = 0, 0.0, float("inf")
        self._source: Any = None
        self._fleet: tuple[int, Fleet] | None = None
        self.kinds = NodeKinds()
        self._not_sorted = self._read_table() if path is not None else set()

    def fleet(self) -> Fleet:
        """Return all nodes with their tenants."""
        if self._fleet is None or self._fleet[0] != self.version:
            self._fleet = self.version, Fleet(tuple(self.nodes.values()))
        return self._fleet[1]

    def sync(self, platforms: Iterable[str], connection: sa.Connection | None = None) -> None:
        """Take what changed since the last time. platforms: of the model. connection: of a change under way.

        Raises NotPermitted where the database does not answer.
        """
        now = self.store.clock()
        anew = not 0 <= now - self._synced_at < _ANEW_AFTER_SECONDS
        rows = self.store.placements_since(0 if anew else self._seen, connection)
        dirty, self._not_sorted = self._not_sorted | self._take_table(platforms), set()
        if anew:
            dirty |= set(self._there)
            self.placed, self._there = {}, {}
        for row, request in _with_requests(rows):
            dirty |= self._forget(row.id)
            self._seen = max(self._seen, row.changed)
            if request is not None and row.node is not None and row.expires_at > now:
                self.placed[row.id] = row, request
                self._there.setdefault(row.node, {})[row.id] = request
                self._next_expiry = min(self._next_expiry, row.expires_at)
                dirty.add(row.node)
        dirty |= self._expire(now)
        self._synced_at = now
        for name in dirty & set(self._bare):
            bare = self._bare[name]
            there = self._there.get(name)
            node = replace(bare, tenants=(*bare.tenants, *there.values())) if there else bare
            self.nodes[name] = node
            self.kinds.put(name, node)
        self.version += bool(dirty)

    def without(self, name: str, id: str) -> Node:
        """Return the node as it would be without that placement."""
        bare, there = self._bare[name], self._there.get(name, {})
        others = (request for other, request in there.items() if other != id)
        return replace(bare, tenants=(*bare.tenants, *others))

    def _forget(self, id: str) -> set[str]:
        known = self.placed.pop(id, None)
        if known is None or known[0].node is None:
            return set()
        self._there[known[0].node].pop(id, None)
        return {known[0].node}

    def _expire(self, now: float) -> set[str]:
        if now < self._next_expiry:
            return set()
        dirty: set[str] = set()
        for id in [i for i, (row, _) in self.placed.items() if row.expires_at <= now]:
            dirty |= self._forget(id)
        times = (row.expires_at for row, _ in self.placed.values())
        self._next_expiry = min(times, default=float("inf"))
        return dirty

    def _take_table(self, platforms: Iterable[str]) -> set[str]:
        """Return names of nodes that are not as they were."""
        if self.path is None:
            source: Any = self.of_cluster or tuple(platforms)
            if source == self._source:
                return set()
            listed = self.of_cluster or [Node(name, name) for name in source]
            nodes = {node.name: node for node in listed}
        else:
            source = signature_of(self.path)
            if source == self._source:
                return set()
            try:
                return self._read_table()
            except JostleError as error:
                self.trouble, self._source = str(error), source
                return set()
        return self._exchange(nodes, source)

    def _read_table(self) -> set[str]:
        assert self.path is not None
        source = signature_of(self.path)
        nodes = {node.name: node for node in Fleet.read(self.path).nodes}
        if not nodes:  # or it is just being written
            raise BadData("the table has no node", where=str(self.path))
        self.trouble = None
        return self._exchange(nodes, source)

    def _exchange(self, nodes: dict[str, Node], source: Any) -> set[str]:
        for name in set(self.nodes) - set(nodes):
            del self.nodes[name]
            self.kinds.drop(name)
        dirty = {name for name, node in nodes.items() if self._bare.get(name) != node}
        self.version += 1
        self._bare, self._source = nodes, source
        self.nodes = {name: self.nodes.get(name, node) for name, node in nodes.items()}
        return dirty


class NodeKinds:
    """Nodes of a fleet by kind. of: {name of a node: number of its kind}. examples: a node of each kind,
    under a name of its own."""

    def __init__(self) -> None:
        self.of: dict[str, int] = {}
        self.examples: list[Node] = []
        self._numbers: dict[Any, int] = {}

    def put(self, name: str, node: Node) -> None:
        """Record the kind that a node is of from now on."""
        if len(self.examples) > len(self.of) + _MOST_IDLE_KINDS:
            self._sweep()
        key = _kind(node)
        number = self._numbers.setdefault(key, len(self.examples))
        if number == len(self.examples):
            self.examples.append(replace(node, name=f"kind {number}"))
        self.of[name] = number

    def drop(self, name: str) -> None:
        self.of.pop(name, None)

    def _sweep(self) -> None:
        """Leave out the kinds that no node is of any more."""
        used = sorted(set(self.of.values()))
        new = {old: number for number, old in enumerate(used)}
        self.of = {name: new[number] for name, number in self.of.items()}
        kinds = (replace(self.examples[old], name=f"kind {n}") for n, old in enumerate(used))
        self.examples = list(kinds)
        self._numbers = {_kind(node): number for number, node in enumerate(self.examples)}


def _kind(node: Node) -> Any:
    """Return equal for nodes that answer every question alike, as long as it names no node and no tenant."""
    tenants = tuple(
        (t.workload, t.deadline_seconds, t.slowdown, t.solo_seconds, t.confidence, t.apart)
        + ((t.name,) if t.apart else ())
        for t in node.tenants
    )
    free = node.free_slots, node.free_bytes
    return node.platform, free, node.labels, node.status, node.price_per_hour, tenants


def _with_requests(rows: list[PlacementRow]) -> list[tuple[PlacementRow, Request | None]]:
    if not rows:
        return []
    read = Requests.read([{**row.request, "name": row.id} for row in rows])
    return list(zip(rows, read.rows, strict=True))
