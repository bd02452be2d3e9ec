"""The packing problem: kinds of requests, kinds of nodes, and which sets of the one may go to the other.

Requests that ask for the same are one kind, and so are nodes that cannot be told apart. Both are sorted by
what they are, not by where they stand, so the order in which they were given does not matter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from jostle.placement._reasons import CODES
from jostle.placement.queries._fleet import Node
from jostle.placement.queries._requests import Request
from jostle.placement.sets._fleet_bounds import FleetBounds

# Why a kind of request may not go to a kind of node that has room for nobody: room is looked at here.
_ROOM = (CODES["no_slot"], CODES["no_memory"])


@dataclass(frozen=True)
class Checked:
    """Results of checking n sets. feasible: (n,) whether everybody keeps the limit. late: (n,) whether
    somebody is over a valid bound, so that no larger set is feasible. seconds: (n, k) the bounds of the
    requests."""

    feasible: np.ndarray
    late: np.ndarray
    seconds: np.ndarray


class Problem:
    """Kinds of requests and nodes of a packing problem. kinds: a Request for each of I kinds; names: the
    requests of each, sorted. places: a Node for each of T kinds; nodes: the nodes' names of each, sorted.
    counts (I,), copies (T,): how many of each there are. codes (I,) of workloads, platform (T,), levels: the
    confidences of their own that occur, level (I,) which of them. limit (T, I) seconds. permitted (T, I).
    tenants, tenant_limit, tenant_level: (T, k), codes -1 for nobody."""

    def __init__(self, requests: Sequence[Request], fleet: FleetBounds) -> None:
        self.sets = fleet.sets
        mentioned = {name for r in requests for name in (*r.allowed, r.pin) if name is not None}
        usable = [
            node
            for node, code in zip(fleet.nodes, fleet.ruled_out_for_all, strict=True)
            if code == CODES["ok"]
        ]
        tenants = [tenant for node in usable for tenant in node.tenants]
        avoided = {name for one in (*requests, *tenants) for name in one.apart}
        known = [r for r in requests if r.workload in self.sets.workload_code]
        self.kinds, self.names = _grouped(known, lambda r: replace(r, name=_kept(r.name, avoided)))
        self.places, self.nodes = _grouped(usable, lambda n: _anonymous(n, mentioned, avoided))
        self.counts = np.array([len(names) for names in self.names], int)
        self.copies = np.array([len(names) for names in self.nodes], int)
        self.worth = np.array([kind.worth for kind in self.kinds], float)
        stay = [np.nan if kind.stay_seconds is None else kind.stay_seconds for kind in self.kinds]
        self.stay = np.array(stay, float)
        self.prices = np.array([node.price_per_hour for node in self.places], float)
        self.is_used = np.array([bool(node.tenants) for node in self.places], bool)
        most = int(self.counts.sum())
        # Of sets with more members than any that was calibrated on nobody is bounded.
        size = self.sets.most_members
        room = [min(node.free_slots, most, size - len(node.tenants)) for node in self.places]
        self.slots = np.maximum(np.array(room, float), 0).astype(int)
        self._free = np.array([node.free_bytes for node in self.places], float)
        self._memory = np.array([kind.memory_bytes for kind in self.kinds], float)
        self._arrays()

    def _arrays(self) -> None:
        sets = self.sets
        self.codes = np.array([sets.workload_code[k.workload] for k in self.kinds], int)
        self.platform = np.array([sets.platform_code[n.platform] for n in self.places], int)
        # By their real names: nodes that a request mentions are kinds of their own.
        nodes = [
            replace(n, name=names[0]) for n, names in zip(self.places, self.nodes, strict=True)
        ]
        view = FleetBounds(nodes, sets)
        reason = view.ruled_out(self.kinds).T
        self.permitted = (reason == CODES["ok"]) | np.isin(reason, _ROOM)
        self.limit = sets.limits(self.kinds, self.platform).T
        self.permitted &= ~np.isnan(self.limit)
        kinds = self.kinds
        self.has_apart = any(kind.apart for kind in kinds)
        if self.has_apart:
            self.compatible = np.array([[not a.is_apart_from(b) for b in kinds] for a in kinds])
        self.tenants, self.tenant_limit = view.tenants, view.limit
        self.levels = list(dict.fromkeys((*view.confidences, *(k.confidence for k in kinds))))
        self.tenant_level = view.own
        self.level = np.array([self.levels.index(kind.confidence) for kind in kinds], int)

    @property
    def size(self) -> tuple[int, int]:
        return len(self.kinds), len(self.places)

    def most_worth(self) -> float:
        """Bound the worth that any assignment places: every request that some node may take, as far as there
        are slots."""
        may = self.permitted.any(axis=0)
        worths = np.sort(np.repeat(self.worth[may], self.counts[may]))[::-1]
        room = int((self.slots * self.copies)[self.permitted.any(axis=1)].sum())
        return float(worths[:room].sum())

    def has_room(self, place: np.ndarray, items: np.ndarray) -> np.ndarray:
        """Return (n,) whether sets of kinds, (n, k), fit the slots and memory of kinds of nodes, (n,)."""
        k = items.shape[1]
        fits = (self.slots[place] >= k) & (self._memory[items].sum(axis=1) <= self._free[place])
        fits &= self.permitted[place[:, None], items].all(axis=1)
        if self.has_apart:
            for i in range(k):
                for j in range(i):
                    fits &= self.compatible[items[:, i], items[:, j]]
        for i in range(k):
            fits &= (items == items[:, i : i + 1]).sum(axis=1) <= self.counts[items[:, i]]
        return fits

    def check(self, place: np.ndarray, items: np.ndarray) -> Checked:
        """Check n sets of requests against the limits of everybody on the node.

        place: (n,) kind of the node of each set.
        items: (n, k) kinds of the requests in each set.
        """
        feasible, late = self.has_room(place, items), np.zeros(len(items), bool)
        seconds = np.full(items.shape, np.inf)
        at = np.flatnonzero(feasible)
        here, kinds, tenants = place[at], items[at], self.tenants.shape[1]
        limit = np.column_stack([self.tenant_limit[here], self.limit[here[:, None], kinds]])
        bound, _ = self.sets.of_each(
            self.platform[here],
            np.column_stack([self.tenants[here], self.codes[kinds]]),
            np.column_stack([self.tenant_level[here], self.level[kinds]]),
            self.levels,
        )
        keeps, is_bounded = bound <= limit, np.isfinite(bound)
        seconds[at], late[at] = bound[:, tenants:], (is_bounded & ~keeps).any(axis=1)
        feasible[at] = keeps.all(axis=1) & is_bounded[:, tenants:].all(axis=1)
        return Checked(feasible, late, seconds)


def _kept(name: str, avoided: set[str]) -> str:
    return name if name in avoided else ""


def _anonymous(node: Node, mentioned: set[str], avoided: set[str]) -> Node:
    tenants = tuple(replace(t, name=_kept(t.name, avoided), node=None) for t in node.tenants)
    return replace(node, name=node.name if node.name in mentioned else "-", tenants=tenants)


def _grouped(things: Sequence[Any], kind_of: Any) -> tuple[list[Any], list[list[str]]]:
    """Return (kinds in a fixed order, sorted names of each)."""
    names: dict[Any, list[str]] = defaultdict(list)
    for thing in things:
        names[kind_of(thing)].append(thing.name)
    kinds = sorted(names, key=repr)
    return kinds, [sorted(names[kind]) for kind in kinds]
