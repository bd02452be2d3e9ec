"""The fleet as it is now: nodes, what is free, and how far every tenant is from its limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle._report import finite
from jostle.placement import Node, Placement

MOST_BOUNDED = 2000  # tenants whose bounds are looked up


def fleet_document(placement: Placement, label: dict[str, str]) -> dict[str, Any]:
    """Every node with its tenants; those with a limit have their bound beside it, null without one."""
    left, nodes = MOST_BOUNDED, []
    for node in placement.fleet.nodes:
        left -= len(node.tenants)
        limits = _limits(node, placement) if left >= 0 else [{} for _ in node.tenants]
        nodes.append(
            {
                "name": node.name,
                "platform": node.platform,
                "slots": node.slots,
                "free_slots": node.free_slots,
                "memory_bytes": node.memory_bytes,
                "free_bytes": node.free_bytes,
                "labels": list(node.labels),
                "price_per_hour": node.price_per_hour,
                "status": node.status,
                "tenants": [
                    {k: v for k, v in vars(tenant).items() if v not in (None, (), "")} | limit
                    for tenant, limit in zip(node.tenants, limits, strict=True)
                ],
            }
        )
    return {"schema": "fleet/v1", "model": label, "nodes": finite(nodes)}


def _limits(node: Node, placement: Placement) -> list[dict[str, Any]]:
    """{limit_seconds, bound_seconds} of each tenant that has a limit."""
    sets, found = placement.sets, []
    codes = [sets.workload_code.get(tenant.workload, -1) for tenant in node.tenants]
    known = node.platform in sets.platform_code and min(codes, default=-1) >= 0
    order = np.argsort(codes, kind="stable")
    for place, tenant in enumerate(node.tenants):
        if not tenant.has_objective:
            found.append({})
            continue
        if not known:
            found.append({"limit_seconds": None, "bound_seconds": None})
            continue
        platform = np.array([sets.platform_code[node.platform]])
        members = np.array([codes])[:, order]
        seconds = sets.of(platform, members, tenant.confidence)[0][0]
        at = int(np.flatnonzero(order == place)[0])
        limit = placement.bounds.tenant_limit(tenant, node)
        found.append({"limit_seconds": limit, "bound_seconds": float(seconds[at])})
    return found
