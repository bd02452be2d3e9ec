"""Requests against every node of a fleet at once: who would keep what, and why a node is ruled out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from jostle.placement._reasons import CODES
from jostle.placement.queries._fleet import Fleet, Node
from jostle.placement.queries._requests import OK, Request
from jostle.placement.sets._set_bounds import SetBounds

PAIRS_AT_ONCE = 100_000  # of a request and a node


@dataclass(frozen=True)
class Assessed:
    """Answer for a request on each of n nodes; all arrays are (n,).

    reason: codes of REASONS.
    bound_seconds, limit_seconds: those of the request there.
    growth: how much the request raises a tenant's bound, as a ratio minus 1, for the tenant that it raises
    most; 0 without tenants.
    predicted: True where a prediction stood in for a bound.
    """

    reason: np.ndarray
    bound_seconds: np.ndarray
    limit_seconds: np.ndarray
    growth: np.ndarray
    predicted: np.ndarray

    @property
    def is_safe(self) -> np.ndarray:
        """True for rows that keep every limit."""
        return self.reason == CODES["ok"]


@dataclass(frozen=True)
class JoinedSets:
    """Sets of the tenants of a node and a request, n of them; the request comes last. platform: (n,).
    members: (n, k) codes, -1 for nobody. limit: (n, k) seconds, infinite without an objective, NaN where it
    is not known. own: (n, k) places in confidences."""

    platform: np.ndarray
    members: np.ndarray
    limit: np.ndarray
    own: np.ndarray
    confidences: tuple[float | None, ...] = (None,)

    def take(self, rows: np.ndarray) -> JoinedSets:
        members, limit, own = self.members[rows], self.limit[rows], self.own[rows]
        return JoinedSets(self.platform[rows], members, limit, own, self.confidences)

    def bounds(self, sets: SetBounds) -> tuple[np.ndarray, np.ndarray]:
        """Return (seconds, whether valid), both (n, k)."""
        return sets.of_each(self.platform, self.members, self.own, self.confidences)

    def is_kept(self, sets: SetBounds) -> np.ndarray:
        """Return (n,) whether the request is bounded and everybody would keep the limit."""
        seconds, _ = self.bounds(sets)
        return np.isfinite(seconds[:, -1]) & (seconds <= self.limit).all(axis=1)

    def assess(self, sets: SetBounds) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return (codes of REASONS (n,), bounds (n, k), whether a prediction stood in for one that counts
        (n,))."""
        seconds, valid = self.bounds(sets)
        # A tenant without an objective is held to nothing.
        late, is_bounded = seconds > self.limit, np.isfinite(seconds)
        tenants = late[:, :-1]
        reason = np.full(len(seconds), CODES["ok"])
        reason[tenants.any(axis=1)] = CODES["tenant_late"]
        reason[late[:, -1]] = CODES["newcomer_late"]
        no_ground = ~is_bounded[:, -1] | (tenants & ~is_bounded[:, :-1]).any(axis=1)
        reason[no_ground | np.isnan(self.limit).any(axis=1)] = CODES["no_ground"]
        counts = np.isfinite(self.limit) & (self.members >= 0)
        counts[:, -1] = is_bounded[:, -1]
        return reason, seconds, np.asarray((counts & ~valid).any(axis=1))


class FleetBounds:
    """A fleet as a model sees it, by one standard. tenants: (n, k) codes, -1 before them; limit: (n, k)
    seconds, infinite without an objective; own: (n, k) places in confidences; all three of nodes of which the
    model knows everybody."""

    def __init__(self, fleet: Fleet | Sequence[Node], sets: SetBounds) -> None:
        self.nodes = fleet.nodes if isinstance(fleet, Fleet) else tuple(fleet)
        self.sets = sets

    def __len__(self) -> int:
        return len(self.nodes)

    def assess(self, request: Request) -> Assessed:
        """Return the request on every node."""
        return next(self.assess_each([request]))

    def assess_each(self, requests: Sequence[Request]) -> Iterator[Assessed]:
        """Return each request on every node, many in one call of the model."""
        step = max(1, PAIRS_AT_ONCE // max(1, len(self)))
        for start in range(0, len(requests), step):
            whole = self.assess_all(requests[start : start + step])
            columns = whole.reason, whole.bound_seconds, whole.limit_seconds, whole.growth
            yield from map(Assessed, *columns, whole.predicted)

    def assess_all(self, requests: Sequence[Request], only: np.ndarray | None = None) -> Assessed:
        """Assess each request on each node, as arrays (requests, nodes). only: the pairs that are bounded, by
        default all that may be."""
        reason, limit = self.ruled_out(requests), self.sets.limits(requests, self._platform)
        bound, growth = np.full(reason.shape, np.inf), np.full(reason.shape, np.nan)
        predicted = np.zeros(reason.shape, bool)
        open_ = reason == CODES["ok"]
        row, at = (open_ if only is None else open_ & only).nonzero()
        if not len(row):
            return Assessed(reason, bound, limit, growth, predicted)
        joined = self.joined(requests, row, at, limit)
        reason[row, at], seconds, predicted[row, at] = joined.assess(self.sets)
        bound[row, at], tenants = seconds[:, -1], joined.members[:, :-1] >= 0
        now = np.where(np.isfinite(self.now[0]), self.now[0], np.nan)[at]  # how far is not known
        grown = np.where(tenants, seconds[:, :-1] / now - 1, -np.inf)
        most = grown.max(axis=1, initial=-np.inf)
        growth[row, at] = np.where(tenants.any(axis=1), most, 0.0)
        return Assessed(reason, bound, limit, growth, predicted)

    def joined(
        self, requests: Sequence[Request], row: np.ndarray, at: np.ndarray, limit: np.ndarray
    ) -> JoinedSets:
        """Return the sets of requests, by their places, with the tenants of nodes, by theirs, which must
        be open to them. limit: (requests, nodes)."""
        known = tuple(dict.fromkeys([*self.confidences, *[r.confidence for r in requests]]))
        code = np.array([self.sets.workload_code.get(r.workload, -1) for r in requests], int)
        own = np.array([known.index(r.confidence) for r in requests], int)
        return JoinedSets(
            self._platform[at],
            np.column_stack([self.tenants[at], code[row]]),
            np.column_stack([self.limit[at], limit[row, at]]),
            np.column_stack([self.own[at], own[row]]),
            known,
        )

    def arrangement(self, people: Sequence[Request], node: Node) -> str:
        """Return how they share a node, where that is a decision."""
        codes = [self.sets.workload_code[one.workload] for one in people]
        names = [one.name or one.workload for one in people]
        return self.sets.arrangement(self.sets.platform_code[node.platform], codes, names)

    def ruled_out(self, requests: Sequence[Request]) -> np.ndarray:
        """Return (requests, nodes) codes of what needs no bound; the first reason of REASONS counts, so
        later ones go first."""
        nodes, sets = self.nodes, self.sets
        reason = np.full((len(requests), len(nodes)), CODES["ok"])
        static = self.ruled_out_for_all
        closed, readable = static != CODES["ok"], static != CODES["bad_node"]
        for request, mine in zip(requests, reason, strict=True):
            if request.apart or self._has_apart:
                mine[[any(map(request.is_apart_from, n.tenants)) for n in nodes]] = CODES["apart"]
            mine[self._free_bytes < request.memory_bytes] = CODES["no_memory"]
            mine[self._free_slots < 1] = CODES["no_slot"]
            if request.needs:
                needed = set(request.needs)
                mine[[not needed.issubset(node.labels) for node in nodes]] = CODES["labels"]
            if request.allowed:
                allowed = set(request.allowed)
                mine[[allowed.isdisjoint((n.name, n.platform)) for n in nodes]] = CODES[
                    "not_allowed"
                ]
            if request.pin is not None:
                mine[[node.name != request.pin for node in nodes]] = CODES["pinned_elsewhere"]
            if self._is_service(request):
                mine[:] = CODES["not_modelled"]
            mine[closed] = static[closed]
            if request.workload not in sets.workload_code:
                mine[readable] = CODES["unknown_workload"]
        return reason

    @cached_property
    def ruled_out_for_all(self) -> np.ndarray:
        """Codes of what rules a node out for everybody, (n,)."""
        reason = np.full(len(self), CODES["ok"])
        known = self.sets.workload_code
        for place, node in enumerate(self.nodes):
            if node.status != OK:
                reason[place] = CODES["bad_node"]
            elif node.platform not in self.sets.platform_code:
                reason[place] = CODES["unknown_platform"]
            elif not known.keys() >= {tenant.workload for tenant in node.tenants}:
                reason[place] = CODES["unknown_tenant"]
            elif any(map(self._is_service, node.tenants)):
                reason[place] = CODES["not_modelled"]
        return reason

    def _is_service(self, request: Request) -> bool:
        """Return whether it asks for what the model does not say."""
        asks = request.rate_per_second is not None or request.statistic == "max"
        return asks and not self.sets.knows_services

    @cached_property
    def _platform(self) -> np.ndarray:
        known = self.sets.platform_code
        return np.array([known.get(node.platform, -1) for node in self.nodes], int)

    @cached_property
    def _has_apart(self) -> bool:
        return any(tenant.apart for node in self.nodes for tenant in node.tenants)

    @cached_property
    def _free_slots(self) -> np.ndarray:
        return np.array([node.free_slots for node in self.nodes], float)

    @cached_property
    def _free_bytes(self) -> np.ndarray:
        return np.array([node.free_bytes for node in self.nodes], float)

    @cached_property
    def prices(self) -> np.ndarray:
        """Price of each node for an hour, (n,)."""
        return np.array([node.price_per_hour for node in self.nodes], float)

    @cached_property
    def now(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the tenants as they are, and whether these are valid, both (n, k)."""
        seconds, valid = np.full(self.tenants.shape, np.inf), np.zeros(self.tenants.shape, bool)
        some = np.flatnonzero((self.tenants >= 0).any(axis=1))
        seconds[some], valid[some] = self.sets.of_each(
            self._platform[some], self.tenants[some], self.own[some], self.confidences
        )
        return seconds, valid

    @cached_property
    def tenants(self) -> np.ndarray:
        code = self.sets.workload_code
        return self._of_tenants([code[one.workload] for one in self._everybody], -1)

    @cached_property
    def limit(self) -> np.ndarray:
        platform = np.repeat(self._platform, (self.tenants >= 0).sum(axis=1))
        return self._of_tenants(self.sets.limits(self._everybody, platform[:, None])[:, 0], np.inf)

    @cached_property
    def confidences(self) -> tuple[float | None, ...]:
        return tuple(dict.fromkeys([one.confidence for one in self._everybody])) or (None,)

    @cached_property
    def own(self) -> np.ndarray:
        known = self.confidences
        return self._of_tenants([known.index(one.confidence) for one in self._everybody], -1)

    @cached_property
    def _everybody(self) -> list[Request]:
        """The tenants of known nodes, node by node."""
        pairs = zip(self.nodes, self.is_known, strict=True)
        return [tenant for node, known in pairs if known for tenant in node.tenants]

    @cached_property
    def is_known(self) -> list[bool]:
        """True if the model knows the platform and every tenant."""
        known, code = self.sets.platform_code, self.sets.workload_code
        return [
            n.platform in known and all(t.workload in code for t in n.tenants) for n in self.nodes
        ]

    def _of_tenants(self, values: Sequence[Any] | np.ndarray, filler: float) -> np.ndarray:
        """Return (n, k) of a value for everybody, in the last columns."""
        pairs = zip(self.nodes, self.is_known, strict=True)
        count = np.array([len(node.tenants) if known else 0 for node, known in pairs], int)
        width = max((len(node.tenants) for node in self.nodes), default=0)
        table = np.full((len(self), width), filler)
        table[np.arange(width) >= width - count[:, None]] = values
        return table
