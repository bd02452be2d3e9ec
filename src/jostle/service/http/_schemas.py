"""What OpenAPI says of each operation: what it takes, and what it answers."""

from __future__ import annotations

import re
from typing import Any

from jostle._verbs.documents import schema_of
from jostle.answers import question_schema, served_verbs
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

_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_VISIBLE = {
    "type": "string",
    "pattern": "[^\\s\\u001c-\\u001f\\u0085]",
    "description": "A name: not blank alone.",
}
_ABOVE_0 = {"type": "number", "exclusiveMinimum": 0}
_BOOL = {"type": "boolean"}
_CONFIDENCE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_NAMES = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_WHOLE = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_STEP = {"type": "integer", "minimum": 1, "maximum": 10**9 - 1}
_SECONDS = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e9}
_LEVEL = {"anyOf": [{"type": "string", "pattern": "^0?[.][0-9]{0,12}[1-9]$"}, _CONFIDENCE]}
_LIMIT = {"type": "string", "pattern": "^([1-9][0-9]{0,5}(ms|s|min|h|x))?$"}


def _object(
    required: list[str] | None = None, more: bool = False, **properties: Any
) -> dict[str, Any]:
    found = {"type": "object", "properties": properties, "additionalProperties": more}
    return found | ({"required": required} if required else {})


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _any_or(of: dict[str, Any]) -> dict[str, Any]:
    """An item: whatever else it is, it gets a status with the reason and spoils no other."""
    return {"anyOf": [of, {}]}


def _any_object(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "object"}]}


def _maybe(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "null"}]}


_COLOCATION = _object(
    ["workload", "platform"], workload=_NAME, platform=_NAME, corunners=_list(_NAME)
)
_REQUEST: dict[str, Any] = _object(
    ["workload"],
    workload=_VISIBLE,
    name=_maybe(_TEXT),
    deadline=_maybe(_LIMIT),
    deadline_seconds=_maybe(_SECONDS),
    slowdown=_maybe({"type": "number", "minimum": 1, "maximum": 1e9}),
    solo_seconds=_maybe(_SECONDS),
    confidence=_maybe(_CONFIDENCE),
    memory=_maybe({"type": "string", "pattern": "^[0-9]{1,6}(MiB|GiB)$"}),
    memory_bytes=_maybe({"type": "number", "minimum": 0, "maximum": 1e18}),
    needs=_maybe(_list(_TEXT)),
    allowed=_maybe(_list(_TEXT)),
    pin=_maybe(_TEXT),
    apart=_maybe(_list(_TEXT)),
    worth=_maybe(_SECONDS),
    stay_seconds=_maybe(_SECONDS),
    node=_maybe(_TEXT),
)
# One way to say each.
_REQUEST["not"] = {"anyOf": [{"required": list(pair)} for pair in TWICE]}
_TENANT = {
    **_REQUEST,
    "required": ["workload", "node"],
    "properties": {**_REQUEST["properties"], "node": _VISIBLE},
}
_NODE = _object(
    ["name", "platform"],
    True,
    name=_NAME,
    platform=_NAME,
    slots={"type": "integer", "minimum": 0},
    memory=_TEXT,
    labels=_list(_TEXT),
    price_per_hour={"type": "number", "minimum": 0},
    tenants=_list({}),
)
_RUN = _object(
    ["id", "workload", "platform", "runtime_seconds"],
    id=_NAME,
    workload=_NAME,
    platform=_NAME,
    corunners=_list(_NAME),
    runtime_seconds=_ABOVE_0,
    measured_at={"type": "string", "format": "date-time"},
    window_id=_TEXT,
)
_ABOUT_FLEET = {
    "fleet": _maybe(_list(_any_object(_NODE))),
    "tenants": _maybe(_list(_TENANT)),
    "confidence": _maybe(_CONFIDENCE),
    "joint": _BOOL,
    "accept": {"enum": ["none", "predicted"]},
}


def _of_fleet(**options: Any) -> dict[str, Any]:
    return _object(["items"], items=_list(_any_or(_REQUEST)), **_ABOUT_FLEET, **options)


_MAP = _maybe({"type": "object", "additionalProperties": _TEXT})
_METADATA = _object(None, True, labels=_MAP, annotations=_MAP)
_POD = _object(
    ["Pod"],
    True,
    Pod=_object(["metadata"], True, metadata=_METADATA),
    Nodes={},
    NodeNames=_maybe(_list(_TEXT)),
)
BODIES: dict[str, dict[str, Any]] = {
    **{
        f"/v1/{name}": _object(
            ["items"], items=_list(_any_or(_COLOCATION)), **question_schema(verb.question)
        )
        for verb in served_verbs("model")
        for name in (verb.name, *verb.also)
    },
    **{
        f"/v1/{verb.name}": _of_fleet(**question_schema(verb.question))
        for verb in served_verbs("placement")
    },
    "/v1/runs": _object(["items"], items=_list(_any_or(_RUN))),
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
    "/v1/slurm/submit": _object(
        ["workload"],
        workload=_VISIBLE,
        deadline=_maybe(_LIMIT),
        confidence=_maybe(_LEVEL),
        limit_confidence=_maybe(_LEVEL),
        nodes=_maybe(_NAMES),
    ),
    "/v1/kubernetes/filter": _POD,
    "/v1/kubernetes/prioritize": _POD,
    "/v1/kubernetes/bind": _object(
        None,
        True,
        PodName={}, PodNamespace={}, PodUID={}, Node={},
    ),
}  # fmt: skip

_MODEL = _maybe(_object(["version", "data_version"], True, version=_TEXT, data_version=_TEXT))
_ITEM = _object(["status"], True, status=_TEXT, error=_TEXT)
_ITEMS = _object(["schema", "items"], True, schema=_TEXT, model=_MODEL, items=_list(_ITEM))
_DOCUMENT = _object(["schema"], True, schema=_TEXT)
_FILTERED = _object(
    ["NodeNames", "FailedNodes", "Error"],
    NodeNames=_maybe(_list(_TEXT)),
    FailedNodes=_object(None, True),
    Error=_TEXT,
    Nodes=_maybe(_object(None, True)),
)
_SCORE = {"type": "integer", "minimum": 0, "maximum": 10}
ANSWERS: dict[str, dict[str, Any]] = {
    **{
        f"/v1/{name}": schema_of(verb.answer)
        for verb in (*served_verbs("model"), *served_verbs("placement"))
        for name in (verb.name, *verb.also)
    },
    "/v1/kubernetes/filter": _FILTERED,
    "/v1/kubernetes/prioritize": _list(_object(["Host", "Score"], Host=_TEXT, Score=_SCORE)),
    "/v1/kubernetes/bind": _object(["Error"], Error=_TEXT),
    "/healthz": _object(["status"], True, status=_TEXT),
    "/readyz": _object(["status"], True, status=_TEXT),
}
_PROBLEM = _object(
    ["type", "title", "status", "detail", "error"],
    type=_TEXT,
    title=_TEXT,
    status={"type": "integer"},
    detail=_TEXT,
    error=_TEXT,
)
_QUERY = {
    "/v1/runs": [
        {"name": name, "in": "query", "schema": {**_WHOLE, "maximum": 10**15 - 1}}
        for name in ("after", "limit")
    ]
}


def described(method: str, path: str) -> dict[str, Any]:
    """What FastAPI's `add_api_route` takes besides, as keywords."""
    answer = ANSWERS.get(path, _DOCUMENT)
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
    elif path in BODIES and method != "DELETE":
        content = {"application/json": {"schema": BODIES[path]}}
        extra["requestBody"] = {"required": True, "content": content}
    kind, answer = ("text/plain", _TEXT) if path == "/metrics" else ("application/json", answer)
    found = {"description": "The answer.", "content": {kind: {"schema": answer}}}
    return {"responses": {200: found, **problems}, "openapi_extra": extra}
