"""A request against every node of a fleet at once: who would keep what, and why a node is ruled out.

Nodes with as many tenants are one block of arrays, so that thousands of nodes are a few calls of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from jostle.placement._reasons import CODES
from jostle.placement.asked._fleet import Fleet, Node
from jostle.placement.asked._requests import OK, Request
from jostle.placement.sets._bounds import SetBounds


@dataclass(frozen=True)
class Assessed:
    """A request on n nodes. reason: (n,) codes of REASONS. bound_seconds, limit_seconds: (n,) of the
    request. growth: (n,) by how much the bound of any tenant grows at most, as a ratio minus 1; 0 without
    tenants. predicted: (n,) bool, whether a prediction stood in for a bound."""

    reason: np.ndarray
    bound_seconds: np.ndarray
    limit_seconds: np.ndarray
    growth: np.ndarray
    predicted: np.ndarray

    @property
    def is_safe(self) -> np.ndarray:
        return self.reason == CODES["ok"]


@dataclass(frozen=True)
class _Block:
    """Nodes with k tenants each. at: (n,) places in the fleet. platform: (n,). tenants: (n, k) ascending.
    limit: (n, k). own: (n, k) index into confidences."""

    at: np.ndarray
    platform: np.ndarray
    tenants: np.ndarray
    limit: np.ndarray
    own: np.ndarray
    confidences: tuple[float | None, ...]


class FleetBounds:
    """A fleet as a model sees it, by one standard."""

    def __init__(self, fleet: Fleet, sets: SetBounds) -> None:
        self.fleet, self.sets = fleet, sets
        self._alone: dict[int, np.ndarray] = {}

    def assess(self, request: Request) -> Assessed:
        """The request on every node."""
        n, sets = len(self.fleet), self.sets
        reason = self.ruled_out(request)
        bound, limit = np.full(n, np.inf), np.full(n, np.nan)
        growth, predicted = np.full(n, np.nan), np.zeros(n, bool)
        code = sets.workload_code.get(request.workload)
        if code is None:
            return Assessed(reason, bound, limit, growth, predicted)
        limit = self.limits(request)
        for number, block in enumerate(self._blocks):
            open_ = np.flatnonzero(reason[block.at] == CODES["ok"])
            if not len(open_):
                continue
            at, tenants = block.at[open_], block.tenants[open_]
            mine, theirs, guessed, theirs_known = self._bounds(request, code, block, open_)
            bound[at] = mine
            # A tenant without an objective is held to nothing.
            late = theirs > block.limit[open_]
            no_ground = ~np.isfinite(mine) | (late & ~np.isfinite(theirs)).any(axis=1)
            unknown_limit = np.isnan(limit[at]) | np.isnan(block.limit[open_]).any(axis=1)
            why = np.full(len(at), CODES["ok"])
            why[late.any(axis=1)] = CODES["tenant_late"]
            why[mine > limit[at]] = CODES["newcomer_late"]
            why[no_ground | unknown_limit] = CODES["no_ground"]
            reason[at] = why
            held = np.isfinite(block.limit[open_])
            predicted[at] = guessed | (~theirs_known & held).any(axis=1)
            with np.errstate(invalid="ignore"):
                ratio = theirs / self._before(number)[open_] - 1
            growth[at] = ratio.max(axis=1) if tenants.shape[1] else 0.0
        return Assessed(reason, bound, limit, growth, predicted)

    def sets_with(
        self, request: Request, at: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """(places in the fleet (n,), platforms (n,), members (n, k), limits (n, k)) of the sets that the
        request would make with the tenants of these nodes, which must be open to it."""
        code, limit, found = self.sets.workload_code[request.workload], self.limits(request), []
        for block in self._blocks:
            rows = np.flatnonzero(np.isin(block.at, at))
            if len(rows):
                here = block.at[rows]
                members = np.column_stack([block.tenants[rows], np.full(len(rows), code)])
                limits = np.column_stack([block.limit[rows], limit[here]])
                order = np.argsort(members, axis=1, kind="stable")
                members, limits = (np.take_along_axis(x, order, 1) for x in (members, limits))
                found.append((here, block.platform[rows], members, limits))
        return found

    def _bounds(
        self, request: Request, code: int, block: _Block, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(the request's bound (n,), the tenants' (n, k), whether the first is a prediction (n,), whether
        the others are valid bounds (n, k))."""
        tenants = block.tenants[rows]
        n, k = tenants.shape
        place = (tenants < code).sum(axis=1)
        members = np.sort(np.column_stack([tenants, np.full(n, code)]), axis=1)
        theirs_at = np.arange(k)[None] + (np.arange(k)[None] >= place[:, None])
        theirs, known = np.full((n, k), np.inf), np.zeros((n, k), bool)
        seconds, valid = self.sets.of(block.platform[rows], members, request.confidence)
        every = np.arange(n)
        mine = seconds[every, place]
        guessed = np.isfinite(mine) & ~valid[every, place]
        found = {request.confidence: (seconds, valid)}
        for number, confidence in enumerate(block.confidences):
            if confidence not in found:
                found[confidence] = self.sets.of(block.platform[rows], members, confidence)
            seconds, valid = found[confidence]
            wanted = block.own[rows] == number
            theirs = np.where(wanted, np.take_along_axis(seconds, theirs_at, 1), theirs)
            known = np.where(wanted, np.take_along_axis(valid, theirs_at, 1), known)
        return mine, theirs, guessed, known

    def _before(self, number: int) -> np.ndarray:
        """(n, k) the tenants' bounds as they are now, of a block."""
        if number not in self._alone:
            block = self._blocks[number]
            found = np.full(block.tenants.shape, np.nan)
            for place, confidence in enumerate(block.confidences):
                if block.tenants.shape[1]:
                    seconds, _ = self.sets.of(block.platform, block.tenants, confidence)
                    found = np.where(block.own == place, seconds, found)
            self._alone[number] = found
        return self._alone[number]

    def limits(self, request: Request) -> np.ndarray:
        """(n,) seconds on each node; infinite without an objective, NaN where the time alone is unknown.

        The model must know the workload.
        """
        code = self.sets.workload_code[request.workload]
        limit = np.full(len(self.fleet), np.inf)
        if request.deadline_seconds is not None:
            limit[:] = request.deadline_seconds
        if request.slowdown is not None:
            if request.solo_seconds is not None:
                return np.minimum(limit, request.slowdown * request.solo_seconds)
            for p in np.unique(self._platform[self._platform >= 0]):
                here = self._platform == p
                limit[here] = np.minimum(
                    limit[here], request.slowdown * self.sets.solo(int(p))[code]
                )
        return limit

    def tenant_limit(self, tenant: Request, node: Node) -> float:
        """Seconds; infinite without an objective, NaN where the time alone is not known."""
        p = self.sets.platform_code[node.platform]
        if tenant.solo_seconds is not None and tenant.slowdown is not None:
            by_time = tenant.deadline_seconds or np.inf
            return float(min(by_time, tenant.slowdown * tenant.solo_seconds))
        code = self.sets.workload_code[tenant.workload]
        return self.sets.limit(p, code, tenant.deadline_seconds, tenant.slowdown)

    def arrangement(self, people: Sequence[Request], node: Node) -> str:
        """How they share a node, where that is a decision."""
        codes = [self.sets.workload_code[one.workload] for one in people]
        names = [one.name or one.workload for one in people]
        return self.sets.arrangement(self.sets.platform_code[node.platform], codes, names)

    def ruled_out(self, request: Request, names: Sequence[str] | None = None) -> np.ndarray:
        """(n,) codes of what needs no bound; the first reason of REASONS counts, so later ones go first.

        names: what the nodes are called, where not by their names.
        """
        nodes, n = self.fleet.nodes, len(self.fleet)
        names = [node.name for node in nodes] if names is None else names
        reason = np.full(n, CODES["ok"])
        if request.apart or self._has_apart:
            apart = [any(request.is_apart_from(t) for t in node.tenants) for node in nodes]
            reason[apart] = CODES["apart"]
        reason[self._free_bytes < request.memory_bytes] = CODES["no_memory"]
        reason[self._free_slots < 1] = CODES["no_slot"]
        if request.needs:
            needed = set(request.needs)
            reason[[not needed <= set(node.labels) for node in nodes]] = CODES["labels"]
        if request.allowed:
            allowed = set(request.allowed)
            pairs = zip(names, nodes, strict=True)
            out = [not {name, node.platform} & allowed for name, node in pairs]
            reason[out] = CODES["not_allowed"]
        if request.pin is not None:
            reason[[name != request.pin for name in names]] = CODES["pinned_elsewhere"]
        if self._is_service(request):
            reason[:] = CODES["not_modelled"]
        static = self.ruled_out_for_all
        reason[static != CODES["ok"]] = static[static != CODES["ok"]]
        if request.workload not in self.sets.workload_code:
            reason[static != CODES["bad_node"]] = CODES["unknown_workload"]
        return reason

    @cached_property
    def ruled_out_for_all(self) -> np.ndarray:
        """(n,) codes of what rules a node out for everybody."""
        reason = np.full(len(self.fleet), CODES["ok"])
        known = self.sets.workload_code
        for place, node in enumerate(self.fleet.nodes):
            if node.status != OK:
                reason[place] = CODES["bad_node"]
            elif node.platform not in self.sets.platform_code:
                reason[place] = CODES["unknown_platform"]
            elif any(tenant.workload not in known for tenant in node.tenants):
                reason[place] = CODES["unknown_tenant"]
            elif any(self._is_service(tenant) for tenant in node.tenants):
                reason[place] = CODES["not_modelled"]
        return reason

    def _is_service(self, request: Request) -> bool:
        """Whether it asks for what the model does not say."""
        asks = request.rate_per_second is not None or request.statistic == "max"
        return asks and not self.sets.knows_services

    @cached_property
    def _platform(self) -> np.ndarray:
        known = self.sets.platform_code
        return np.array([known.get(node.platform, -1) for node in self.fleet.nodes], int)

    @cached_property
    def _has_apart(self) -> bool:
        return any(tenant.apart for node in self.fleet.nodes for tenant in node.tenants)

    @cached_property
    def _free_slots(self) -> np.ndarray:
        return np.array([node.free_slots for node in self.fleet.nodes], float)

    @cached_property
    def _free_bytes(self) -> np.ndarray:
        return np.array([node.free_bytes for node in self.fleet.nodes], float)

    @cached_property
    def prices(self) -> np.ndarray:
        """(n,) for an hour."""
        return np.array([node.price_per_hour for node in self.fleet.nodes], float)

    @cached_property
    def _blocks(self) -> list[_Block]:
        code, found = self.sets.workload_code, []
        usable = np.flatnonzero(self.ruled_out_for_all == CODES["ok"])
        counts = np.array([len(self.fleet.nodes[place].tenants) for place in usable], int)
        for k in np.unique(counts):
            at = usable[counts == k]
            nodes = [self.fleet.nodes[place] for place in at]
            tenants = np.array([[code[t.workload] for t in node.tenants] for node in nodes], int)
            limit = np.array([[self.tenant_limit(t, node) for t in node.tenants] for node in nodes])
            given = [[t.confidence for t in node.tenants] for node in nodes]
            confidences = tuple(dict.fromkeys(c for row in given for c in row))
            own = np.array([[confidences.index(c) for c in row] for row in given], int)
            shape = (len(at), int(k))
            found.append(
                _Block(
                    at,
                    self._platform[at],
                    tenants.reshape(shape),
                    limit.reshape(shape),
                    own.reshape(shape),
                    confidences,
                )
            )
        return found
