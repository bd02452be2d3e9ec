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
from jostle.placement.asked._fleet import Node
from jostle.placement.asked._requests import Request
from jostle.placement.sets._fleet_bounds import FleetBounds

# Why a kind of request may not go to a kind of node that has room for nobody: room is looked at here.
_ROOM = (CODES["no_slot"], CODES["no_memory"])


@dataclass(frozen=True)
class Checked:
    """n sets. feasible: (n,) whether everybody keeps the limit. late: (n,) whether somebody is over a valid
    bound, so that no larger set is feasible. seconds: (n, k) the bounds of the requests."""

    feasible: np.ndarray
    late: np.ndarray
    seconds: np.ndarray


class Problem:
    """kinds: a Request for each of I kinds; names: the requests of each, sorted. places: a Node for each of T
    kinds; nodes: the nodes' names of each, sorted. counts (I,), copies (T,): how many of each there are.
    codes (I,) of workloads, platform (T,), levels: the confidences of their own that occur, level (I,)
    which of them. limit (T, I) seconds. permitted (T, I). tenants: of each kind of node (codes, limits,
    confidences)."""

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
        self.tenants = [
            (
                np.array([sets.workload_code[t.workload] for t in node.tenants], int),
                view.limit[n, len(view.limit[n]) - len(node.tenants) :],
                [t.confidence for t in node.tenants],
            )
            for n, node in enumerate(self.places)
        ]
        own = [kind.confidence for kind in kinds] + [c for *_, row in self.tenants for c in row]
        self.levels = list(dict.fromkeys(own))
        self.level = np.array([self.levels.index(kind.confidence) for kind in kinds], int)

    @property
    def size(self) -> tuple[int, int]:
        return len(self.kinds), len(self.places)

    def most_worth(self) -> float:
        """No assignment places more: every request that any node may take, as far as there are slots."""
        may = self.permitted.any(axis=0)
        worths = np.sort(np.repeat(self.worth[may], self.counts[may]))[::-1]
        room = int((self.slots * self.copies)[self.permitted.any(axis=1)].sum())
        return float(worths[:room].sum())

    def has_room(self, place: np.ndarray, items: np.ndarray) -> np.ndarray:
        """(n,) whether sets of kinds, (n, k), fit the slots and memory of kinds of nodes, (n,)."""
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
        """Of n sets: place (n,) kinds of nodes, items (n, k) kinds of requests."""
        n, k = items.shape
        feasible, late = self.has_room(place, items), np.zeros(n, bool)
        seconds = np.full((n, k), np.inf)
        beside = np.array([len(codes) for codes, *_ in self.tenants], int)[place]
        for m in np.unique(beside[feasible]):
            at = np.flatnonzero(feasible & (beside == m))
            found, limit, is_item = self._seconds(place[at], items[at], int(m))
            kept = found <= limit
            known = np.isfinite(found)
            seconds[at] = found[:, int(m) :]
            late[at] = (known & ~kept).any(axis=1)
            feasible[at] = (kept & (known | ~is_item)).all(axis=1)
        return Checked(feasible, late, seconds)

    def _seconds(
        self, place: np.ndarray, items: np.ndarray, m: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """((n, m + k) bounds of tenants and requests, their limits, which are requests)."""
        n, k = items.shape
        codes, limit, level = (np.zeros((n, m + k), t) for t in (int, float, int))
        codes[:, m:], limit[:, m:] = self.codes[items], self.limit[place[:, None], items]
        level[:, m:] = self.level[items]
        if m:
            for t in np.unique(place):
                here, (tenant, tenant_limit, confidence) = place == t, self.tenants[t]
                codes[here, :m], limit[here, :m] = tenant, tenant_limit
                level[here, :m] = [self.levels.index(c) for c in confidence]
        order = np.argsort(codes, axis=1, kind="stable")
        members = np.take_along_axis(codes, order, 1)
        found = np.full((n, m + k), np.inf)
        for number, confidence in enumerate(self.levels):
            wanted = level == number
            rows = wanted.any(axis=1)
            if rows.any():
                sorted_, _ = self.sets.of(self.platform[place[rows]], members[rows], confidence)
                back = np.empty_like(sorted_)
                np.put_along_axis(back, order[rows], sorted_, 1)
                found[rows] = np.where(wanted[rows], back, found[rows])
        return found, limit, np.arange(m + k)[None] >= m


def _kept(name: str, avoided: set[str]) -> str:
    return name if name in avoided else ""


def _anonymous(node: Node, mentioned: set[str], avoided: set[str]) -> Node:
    tenants = tuple(replace(t, name=_kept(t.name, avoided), node=None) for t in node.tenants)
    return replace(node, name=node.name if node.name in mentioned else "-", tenants=tenants)


def _grouped(things: Sequence[Any], kind_of: Any) -> tuple[list[Any], list[list[str]]]:
    """(kinds in a fixed order, sorted names of each)."""
    found: dict[Any, list[str]] = defaultdict(list)
    for thing in things:
        found[kind_of(thing)].append(thing.name)
    kinds = sorted(found, key=repr)
    return kinds, [sorted(found[kind]) for kind in kinds]
