"""The fleet as it is now: nodes, what is free, and how far every tenant is from its limit."""

from __future__ import annotations

from typing import Any

import numpy as np

from jostle._report import finite
from jostle.placement import Fleet, Placement

MOST_BOUNDED = 2000  # tenants whose bounds are looked up


def fleet_document(placement: Placement, label: dict[str, str]) -> dict[str, Any]:
    """Every node with its tenants; those with a limit have their bound beside it, null without one."""
    nodes = []
    for node, limits in zip(placement.fleet.nodes, _limits(placement), strict=True):
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


def _limits(placement: Placement) -> list[list[dict[str, Any]]]:
    """{limit_seconds, bound_seconds} of each tenant that has a limit, the first MOST_BOUNDED."""
    nodes = placement.fleet.nodes
    count = np.cumsum([len(node.tenants) for node in nodes])
    here = Placement(Fleet(nodes[: np.searchsorted(count, MOST_BOUNDED, "right")]), placement.sets)
    bounds, rows = here.bounds.now[0].tolist(), []
    for node, bound, limit in zip(
        here.fleet.nodes, bounds, here.bounds.limit.tolist(), strict=True
    ):
        last = [*zip(limit, bound, strict=True)][len(bound) - len(node.tenants) :]
        rows.append(
            [
                {"limit_seconds": seconds, "bound_seconds": most} if tenant.has_objective else {}
                for tenant, (seconds, most) in zip(node.tenants, last, strict=True)
            ]
        )
    return rows + [[{} for _ in node.tenants] for node in nodes[len(rows) :]]
