"""Questions of a client as documents, and problems as errors again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jostle.errors import BadData, JostleError, NotEnoughRuns, NotPermitted, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jostle.placement import Fleet, Request

_KINDS: dict[str, type[JostleError]] = {
    "UsageError": UsageError,
    "NoPlace": UsageError,
    "NotEnoughRuns": NotEnoughRuns,
}


def error_of(document: Any, status: int, where: str) -> JostleError:
    """A problem document as the error that the library would raise."""
    problem: Mapping[str, Any] = document if isinstance(document, dict) else {}
    sentence = str(problem.get("detail") or f"the service answers with status {status}")
    if status in (401, 403) or status >= 500:
        return NotPermitted(sentence, where=where)
    return _KINDS.get(str(problem.get("error")), BadData)(sentence)


def request_row(request: Request) -> dict[str, Any]:
    """Without what says nothing."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in vars(request).items()
        if value not in (None, (), "")
    }


def fleet_rows(fleet: Fleet) -> list[dict[str, Any]]:
    """Nodes as rows of a table."""
    return [
        {
            "name": node.name,
            "platform": node.platform,
            **({} if node.slots is None else {"slots": node.slots}),
            **({} if node.memory_bytes is None else {"memory_bytes": node.memory_bytes}),
            "labels": list(node.labels),
            "price_per_hour": node.price_per_hour,
            "tenants": [request_row(tenant) for tenant in node.tenants],
        }
        for node in fleet.nodes
    ]
