"""Placements made and let go, one after the other, so that nobody takes a slot that was just taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from jostle.errors import JostleError, UsageError, require_known
from jostle.placement import (
    PREDICTED,
    REASONS,
    Fleet,
    FleetBounds,
    Node,
    Placement,
    Request,
    Requests,
    SetBounds,
    Standard,
    level_of_chosen,
)
from jostle.server.state._live_fleet import LiveFleet
from jostle.server.state._served_model import Served
from jostle.server.state._state_store import PlacementRow, Store

MOST_ROWS = 2_000_000  # answers that are kept for the next question
MOST_LEVELS = 16  # of confidence, that the kinds of nodes are kept by
MOST_COMPARED = 64  # nodes by what is expected there
# No bound is valid there yet: nothing is promised to such a one, and it may go where it breaks no promise.
NOT_MEASURED = (
    "unknown_node",
    "unknown_workload",
    "unknown_platform",
    "unknown_tenant",
    "no_ground",
)


class NoPlace(JostleError):
    """The node does not take it: reason is a key of REASONS."""

    exit_code = 1

    def __init__(self, node: str, reason: str) -> None:
        self.reason = reason
        super().__init__(REASONS[reason], where=f"node {node}", fix="Nothing was placed.")


@dataclass(frozen=True)
class WantedPlacement:
    """A placement that is asked for. request: its row, as in a table of requests. require: `slot`, that one
    is free there; `safe`, that everybody keeps the limit, too; `others`, that all others do; `nothing`, for
    what runs there already."""

    id: str
    node: str
    request: dict[str, Any]
    stay_seconds: float
    require: str = "slot"
    held: bool = False


class LivePlaces:
    """The fleet as one model sees it, and changes of who is where. Used by one thread at a time."""

    def __init__(self, fleet: LiveFleet, store: Store) -> None:
        self.fleet, self.store = fleet, store
        self._sets: dict[Standard, tuple[Any, SetBounds]] = {}
        self._placement: tuple[Any, Placement] | None = None
        self._kinds: tuple[Any, dict[int, FleetBounds]] = None, {}

    def sets(self, served: Served, standard: Standard) -> SetBounds:
        """Return the model's bounds of sets, kept between questions."""
        # Names that drift have no valid bound, and the others' stay: only where predictions are accepted
        # does a set's answer change with every run.
        changed = served.changed if standard.takes_predictions else served.signs
        key = served.version, changed
        of, sets = self._sets.get(standard, (None, None))
        if sets is None or of != key or sets.rows > MOST_ROWS:
            if len(self._sets) > 8:
                self._sets.clear()
            sets = SetBounds(served.model, standard)
            self._sets[standard] = key, sets
        return sets

    def now(self, served: Served, standard: Standard) -> Placement:
        """Return the fleet as it is now, with the model's bounds."""
        self.fleet.sync(served.known.platforms)
        sets = self.sets(served, standard)
        key = self.fleet.version, id(sets)
        if self._placement is None or self._placement[0] != key:
            self._placement = key, Placement(self.fleet.fleet(), sets)
        return self._placement[1]

    def by_kind(self, request: Request, served: Served, standard: Standard) -> FleetBounds:
        """Assess one node of every kind, in the order of their numbers. Bounds are so sure that the least of
        them holds, if the calibration can say how sure that is; the fleet has been synced."""
        sets, kinds = self.sets(served, standard), self.fleet.kinds
        there = [kinds.examples[number] for number in set(kinds.of.values())]
        sets = sets.by(level_of_chosen(sets, [request], there, is_least=True))
        key = len(kinds.examples), id(kinds.examples)
        if self._kinds[0] != key or len(self._kinds[1]) > MOST_LEVELS:
            self._kinds = key, {}
        return self._kinds[1].setdefault(id(sets), FleetBounds(kinds.examples, sets))

    def put(self, wanted: WantedPlacement, served: Served, standard: Standard) -> PlacementRow:
        """Make, move or renew a placement; on the disk afterwards.

        Raises NoPlace, UnknownName for a node, UsageError for a request that cannot be, NotPermitted.
        """
        request = checked_request(wanted)
        with self.store.changing() as change:
            self.fleet.sync(served.known.platforms, change.connection)
            require_known("node", wanted.node, self.fleet.nodes)
            if wanted.require != "nothing":
                node = self.fleet.without(wanted.node, wanted.id)
                reason = self.why_not(request, node, served, standard, wanted.require)
                if reason != "ok":
                    raise NoPlace(wanted.node, reason)
            end = change.now + wanted.stay_seconds
            where = (wanted.id, wanted.node, wanted.request, wanted.held)
            row = PlacementRow(*where, end, change.number)
            change.put(row)
        return row

    def follow(
        self,
        prefix: str,
        there: Mapping[str, tuple[str, dict[str, Any]]],
        stay_seconds: float,
        now: float,
        served: Served,
    ) -> None:
        """Return placements whose ids begin so are of those that run: of those that are gone they go, others
        are made, or live on for as long again. there: {id: (node, request where nothing was promised)}."""
        self.fleet.sync(served.known.platforms)
        before = {id: row for id, (row, _) in self.fleet.placed.items() if id.startswith(prefix)}
        gone = [id for id, row in before.items() if id not in there and not row.held]
        new: dict[str, tuple[str, dict[str, Any]]] = {}
        for id, (node, wish) in there.items():
            row = before.get(id)
            row = row if row is not None and row.node == node else None
            lives = row is not None and not row.held and row.expires_at > now + stay_seconds / 2
            if node in self.fleet.nodes and not lives:
                # Only what was held for it, where it now is, was promised.
                new[id] = node, wish if row is None else row.request
        if gone or new:
            with self.store.changing() as change:  # one for all, however many there are
                for id in gone:
                    change.let_go(id)
                end = change.now + stay_seconds
                for id, where in new.items():
                    change.put(PlacementRow(id, *where, False, end, change.number))

    def placed(self, served: Served) -> dict[str, tuple[str, str]]:
        """Return (node, workload) of each placement that is alive."""
        self.fleet.sync(served.known.platforms)
        rows = self.fleet.placed.items()
        return {id: (str(row.node), request.workload) for id, (row, request) in rows}

    def passing(self, reasons: Mapping[str, str], id: str) -> dict[str, str]:
        """Say why each node does not pass, {node: reason}; `ok` also if no bound is valid and nobody was
        promised anything. reasons: keys of REASONS, by node. id: its own placement, which does not count."""
        passing = dict(reasons)
        for name, why in reasons.items():
            if why in NOT_MEASURED:
                node = self.fleet.nodes.get(name)
                others = () if node is None else [t for t in node.tenants if t.name != id]
                promised = any(tenant.has_objective for tenant in others)
                is_full = node is not None and node.slots is not None and len(others) >= node.slots
                passing[name] = "no_slot" if is_full else "tenant_late" if promised else "ok"
        return passing

    def unpromised(
        self,
        request: Request,
        reasons: Mapping[str, str],
        id: str,
        served: Served,
        standard: Standard,
    ) -> tuple[str, float] | None:
        """Choose a node for a request whose limit no node is sure to keep: where it is expected to end first,
        of those with the fewest tenants. Returns (node, seconds expected there, infinite if nothing tells),
        or None if it passes nowhere. reasons, id: see passing."""
        nodes, passing = self.fleet.nodes, self.passing(reasons, id)
        free = [nodes[name] for name, why in passing.items() if why == "ok" and name in nodes]
        free = sorted(free, key=lambda node: len(node.tenants))[:MOST_COMPARED]
        if not free:
            return None
        sets = self.sets(served, replace(standard, promise=PREDICTED))
        expected = FleetBounds(free, sets).assess(request).bound_seconds
        best = int(expected.argmin())  # the first of equals
        return free[best].name, float(expected[best])

    def let_go(self, id: str) -> bool:
        """End a placement, on the disk. Returns whether it was there. Raises NotPermitted."""
        with self.store.changing() as change:
            return change.let_go(id)

    def why_not(
        self, request: Request, node: Node, served: Served, standard: Standard, require: str
    ) -> str:
        """Return the key of REASONS why a request may not go to a node; `ok` if it may."""
        if require == "slot":
            full = node.free_slots < 1
            if full or node.free_bytes < request.memory_bytes:
                return "no_slot" if full else "no_memory"
            return "ok" if node.status == "ok" else "bad_node"
        if require == "others":
            request = replace(request, deadline_seconds=None, slowdown=None)
        here = Placement(Fleet((node,)), self.sets(served, standard))
        return list(REASONS)[int(here.bounds.assess(request).reason[0])]


def checked_request(wanted: WantedPlacement) -> Request:
    """Raises UsageError."""
    read = Requests.read([{"workload": None, **wanted.request}])
    if read.rows[0] is None:
        raise UsageError(read.status[0])
    return replace(read.rows[0], name=wanted.id)
