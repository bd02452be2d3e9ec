"""What OpenAPI says of each operation: what it takes, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from jostle._verbs.documents import schema_of
from jostle.answers import question_schema, served_verbs
from jostle.placement import Standard
from jostle.service.answers._about_fleet import TWICE

PROBLEMS = {
    400: "The body is not JSON.",
    401: "The API key is missing or wrong.",
    403: "A page of another origin asked.",
    404: "A name in the question is not known.",
    408: "The request did not arrive in time.",
    409: "The node does not take it.",
    413: "The request is too large.",
    415: "The body is not application/json.",
    422: "What was asked makes no sense.",
    503: "Not ready, or too much waits.",
}

TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
VISIBLE = {
    "type": "string",
    "pattern": "[^\\s\\u001c-\\u001f\\u0085]",
    "description": "A name: not blank alone.",
}
_ABOVE_0 = {"type": "number", "exclusiveMinimum": 0}
CONFIDENCE = {
    "type": "number",
    "exclusiveMinimum": 0,
    "exclusiveMaximum": 1,
    "description": "How sure bounds are, under 1.",
}
NAMES = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_SECONDS = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e9}
LIMIT = {"type": "string", "pattern": "^([1-9][0-9]{0,5}(ms|s|min|h|x))?$"}


def object_of(
    required: list[str] | None = None, more: bool = False, **properties: Any
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": more}
    return schema | ({"required": required} if required else {})


def list_of(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def maybe(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "null"}]}


_COLOCATION = object_of(
    ["workload", "platform"], workload=_NAME, platform=_NAME, corunners=list_of(_NAME)
)
_REQUEST: dict[str, Any] = object_of(
    ["workload"],
    workload=VISIBLE,
    name=maybe(TEXT),
    deadline=maybe(LIMIT),
    deadline_seconds=maybe(_SECONDS),
    slowdown=maybe({"type": "number", "minimum": 1, "maximum": 1e9}),
    solo_seconds=maybe(_SECONDS),
    confidence=maybe(CONFIDENCE),
    memory=maybe({"type": "string", "pattern": "^[0-9]{1,6}(MiB|GiB)$"}),
    memory_bytes=maybe({"type": "number", "minimum": 0, "maximum": 1e18}),
    needs=maybe(list_of(TEXT)),
    allowed=maybe(list_of(TEXT)),
    pin=maybe(TEXT),
    apart=maybe(list_of(TEXT)),
    worth=maybe(_SECONDS),
    stay_seconds=maybe(_SECONDS),
    node=maybe(TEXT),
)
# One way to say each.
_REQUEST["not"] = {"anyOf": [{"required": list(pair)} for pair in TWICE]}
_TENANT = {
    **_REQUEST,
    "required": ["workload", "node"],
    "properties": {**_REQUEST["properties"], "node": VISIBLE},
}
_NODE = object_of(
    ["name", "platform"],
    True,
    name=_NAME,
    platform=_NAME,
    slots={"type": "integer", "minimum": 0},
    memory=TEXT,
    labels=list_of(TEXT),
    price_per_hour={"type": "number", "minimum": 0},
    tenants=list_of({}),
)
_RUN = object_of(
    ["id", "workload", "platform", "runtime_seconds"],
    id=_NAME,
    workload=_NAME,
    platform=_NAME,
    corunners=list_of(_NAME),
    runtime_seconds=_ABOVE_0,
    measured_at={"type": "string", "format": "date-time"},
    window_id=TEXT,
)
_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_USE = object_of(
    ["values"],
    values=_NUMBERS,
    times_seconds=maybe(_NUMBERS),
    length_seconds=_ABOVE_0,
    end={"enum": ["done", "limit", "now"]},
)
_ABOUT: dict[str, dict[str, Any]] = {"model": {}, "forecasts": {"component": maybe(TEXT)}}
_ABOUT["placement"] = {
    "fleet": maybe(list_of({"anyOf": [_NODE, {"type": "object"}]})),
    "tenants": maybe(list_of(_TENANT)),
    **question_schema(Standard),
}


def _items(of: dict[str, Any], **rest: Any) -> dict[str, Any]:
    """Items are checked one by one, so anything is taken for one."""
    return object_of(["items"], items=list_of({"anyOf": [of, {}]}), **rest)


_VERBS = {
    f"/v1/{name}": verb
    for about in _ABOUT
    for verb in served_verbs(about)
    for name in (verb.name, *verb.also)
}
_ITEM = {"model": _COLOCATION, "placement": _REQUEST, "forecasts": _USE}
BODIES: dict[str, dict[str, Any]] = {
    **{
        path: _items(
            _ITEM[verb.about],
            **{
                **_ABOUT[verb.about],
                **question_schema(verb.question),
                "confidence": maybe(CONFIDENCE),
            },
        )
        for path, verb in _VERBS.items()
    },
    "/v1/runs": _items(_RUN),
    "/v1/placements/{id}": {
        **_REQUEST,
        "required": ["workload", "node"],
        "properties": {
            **_REQUEST["properties"],
            "node": _NAME,
            "ttl_seconds": {**_ABOVE_0, "maximum": 366 * 86_400},
            "require": {"enum": ["slot", "safe", "nothing"]},
        },
    },
}

DOCUMENT = object_of(["schema"], True, schema=TEXT)
ANSWERS: dict[str, dict[str, Any]] = {
    **{path: schema_of(verb.answer) for path, verb in _VERBS.items()},
    "/healthz": object_of(["status"], True, status=TEXT),
    "/readyz": object_of(["status"], True, status=TEXT),
}
_PROBLEM = object_of(
    ["type", "title", "status", "detail", "error"],
    type=TEXT,
    title=TEXT,
    status={"type": "integer"},
    detail=TEXT,
    error=TEXT,
)
_QUERY = {
    "/v1/runs": [
        {"name": name, "in": "query", "schema": {**_WHOLE, "maximum": 10**15 - 1}}
        for name in ("after", "limit")
    ]
}


def described(method: str, path: str, doors: Mapping[str, Any]) -> dict[str, Any]:
    """What FastAPI's `add_api_route` takes besides, as keywords. doors: schemas of plug-ins."""
    body, answer = doors.get(path, (BODIES.get(path), ANSWERS.get(path, DOCUMENT)))
    problems = {
        status: {
            "description": text,
            "content": {"application/problem+json": {"schema": _PROBLEM}},
        }
        for status, text in PROBLEMS.items()
    }
    extra: dict[str, Any] = {"parameters": []}
    for name in re.findall(r"{(\w+)}", path):
        text = {**_NAME, "maxLength": 253}
        extra["parameters"].append({"name": name, "in": "path", "required": True, "schema": text})
    if method == "GET":
        extra["parameters"] += _QUERY.get(path, [])
    elif body is not None and method != "DELETE":
        content = {"application/json": {"schema": body}}
        extra["requestBody"] = {"required": True, "content": content}
    kind, answer = ("text/plain", TEXT) if path == "/metrics" else ("application/json", answer)
    answer = {"description": "The answer.", "content": {kind: {"schema": answer}}}
    # What follows the first paragraph is about the command's exit code.
    help = _VERBS[path].help.partition("\n\n")[0] if path in _VERBS else ""
    about = {"summary": " ".join(help.split())} if help else {}
    return {"responses": {200: answer, **problems}, "openapi_extra": extra, **about}
