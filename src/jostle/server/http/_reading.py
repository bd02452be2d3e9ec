"""Limits of a request: of size, of time, of what it may hold; read under these."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

import orjson
from starlette.requests import ClientDisconnect, Request

from jostle._base.confidence import exact_confidence
from jostle.errors import UsageError
from jostle.server._serve_settings import ServeSettings
from jostle.server.asking._fleet_queries import NODE_KEYS, REQUEST_KEYS
from jostle.server.http._problems import HttpProblem

MOST_BODIES = 8  # of the largest size, that one address may be sending
LARGE_BODY_BYTES = 16 << 10  # parsed beside the event loop
REQUEST_BYTES = 8 << 10  # of a body, that count as one more request
MOST_PARTS = 20  # objects, lists and names in them, for each item that is taken


async def json_of(request: Request, settings: ServeSettings) -> dict[str, Any]:
    """Read the body, a JSON object. Raises HttpProblem."""
    body = await _body(request, settings)
    kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise HttpProblem(415, f"the body is {kind[:80]!r}, not application/json.")
    service = request.app.state.service
    service.callers.charge(request.scope["state"]["caller"], len(body) / REQUEST_BYTES)
    if len(body) <= LARGE_BODY_BYTES:
        return _object_in(body, settings)
    return await service.reading.ask(lambda: _object_in(body, settings), settings.most_seconds)


def _object_in(body: bytes, settings: ServeSettings) -> dict[str, Any]:
    """Raises HttpProblem. Parsing yields to no other thread, so what would take long is counted before."""
    parts = sum(map(body.count, (b"{", b"[", b":")))
    if parts > MOST_PARTS * settings.most_items and len(body) > LARGE_BODY_BYTES:
        raise HttpProblem(413, f"{parts} objects, lists and names at once. Send them in parts.")
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        text = str(error).partition(": line")[0]
        raise HttpProblem(
            400, f"not readable JSON: {text}. NaN and Infinity are not JSON."
        ) from None
    if not isinstance(document, dict):
        raise HttpProblem(422, f"the body is {type(document).__name__}, not an object.")
    return document


async def _body(request: Request, settings: ServeSettings) -> bytes:
    most, seconds = settings.most_body_bytes, settings.most_seconds
    too_large = HttpProblem(
        413, f"the request is larger than {most} bytes. Send it in parts.", Connection="close"
    )
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > most:
        raise too_large
    parts, size = [], 0
    receiving = request.app.state.service.callers.bodies
    address = request.client.host if request.client else ""
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                receiving[address] += len(part)
                if size > most:
                    raise too_large
                if receiving[address] > MOST_BODIES * most:
                    raise HttpProblem(429, "one caller sends too much at once.", Retry_After="1")
                parts.append(part)
    except TimeoutError:
        raise HttpProblem(
            408, f"the request did not arrive within {seconds:g} s.", Connection="close"
        ) from None
    except ClientDisconnect:
        raise HttpProblem(400, "the caller went away.") from None
    finally:
        receiving[address] -= size
        if not receiving[address]:
            del receiving[address]
    return b"".join(parts)


def only(body: Mapping[str, Any], *known: str) -> None:
    """Raises UsageError for a key that means nothing here: it must have been meant for something."""
    if odd := body.keys() - set(known):
        raise UsageError(
            f"unknown key {min(odd)[:100]!r}", fix=f"Known: {', '.join(sorted(known))}."
        )


def items_of(body: Mapping[str, Any], settings: ServeSettings) -> list[Any]:
    """Raises UsageError, HttpProblem."""
    items = body.get("items")
    if not isinstance(items, list):
        raise UsageError("`items` is not a list", fix="Send one object for each question.")
    if len(items) > settings.most_items:
        most = settings.most_items
        raise HttpProblem(413, f"{len(items)} items; at most {most} are taken. Send them in parts.")
    return items


def confidence_of(body: Mapping[str, Any], settings: ServeSettings) -> float:
    """Raises UsageError."""
    value = body.get("confidence")
    return settings.confidence if value is None else float(exact_confidence(value))


def nodes_of(body: Mapping[str, Any], settings: ServeSettings) -> list[Any] | None:
    """Read a fleet with its tenants from the body; None if there is none. Raises UsageError."""
    nodes = rows_of(body, "fleet", settings, NODE_KEYS)
    for node in nodes or ():
        tenants = node.get("tenants")
        for tenant in tenants if isinstance(tenants, list) else ():
            if isinstance(tenant, dict):
                only(tenant, *REQUEST_KEYS)
    return nodes


def rows_of(
    body: Mapping[str, Any], key: str, settings: ServeSettings, known: Collection[str]
) -> list[Any] | None:
    """Read a list of objects with these keys from the body; None if there is none. Raises UsageError."""
    rows = body.get(key)
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"`{key}` is not a list of objects")
    if len(rows) > settings.most_items:
        raise UsageError(f"{len(rows)} rows in `{key}`; at most {settings.most_items} are taken")
    for row in rows:
        only(row, *known)
    return rows
