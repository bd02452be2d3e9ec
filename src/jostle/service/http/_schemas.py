"""What OpenAPI says of each operation: what it takes, and what it answers."""

from __future__ import annotations

from typing import Any

PROBLEMS = {
    400: "The body is not JSON.",
    401: "The API key is missing or wrong.",
    403: "A page of another origin asked.",
    408: "The request did not arrive in time.",
    409: "The node does not take it.",
    413: "The request is too large.",
    415: "The body is not application/json.",
    422: "What was asked makes no sense.",
    503: "Not ready, or too much waits.",
}

_TEXT = {"type": "string"}
_NAME = {"type": "string", "minLength": 1}
_NUMBER = {"type": "number"}
_ABOVE_0 = {"type": "number", "exclusiveMinimum": 0}
_BOOL = {"type": "boolean"}
_CONFIDENCE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
_NAMES = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}


def _object(
    required: list[str] | None = None, more: bool = False, **properties: Any
) -> dict[str, Any]:
    found = {"type": "object", "properties": properties, "additionalProperties": more}
    return found | ({"required": required} if required else {})


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def _maybe(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, {"type": "null"}]}


_COLOCATION = _object(
    ["workload", "platform"], workload=_NAME, platform=_NAME, corunners=_list(_NAME)
)
_REQUEST: dict[str, Any] = _object(
    ["workload"],
    workload=_NAME,
    name=_TEXT,
    deadline={"type": "string", "description": "20ms or 1.5x"},
    deadline_seconds=_ABOVE_0,
    slowdown={"type": "number", "minimum": 1},
    solo_seconds=_ABOVE_0,
    confidence=_CONFIDENCE,
    memory=_TEXT,
    memory_bytes={"type": "number", "minimum": 0},
    needs=_list(_TEXT),
    allowed=_list(_TEXT),
    pin=_TEXT,
    apart=_list(_TEXT),
    worth=_ABOVE_0,
    stay_seconds=_ABOVE_0,
    node=_TEXT,
)
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
    "fleet": _list(_NODE),
    "tenants": _list(_REQUEST),
    "confidence": _CONFIDENCE,
    "joint": _BOOL,
    "accept": {"enum": ["none", "predicted"]},
}


def _of_fleet(**options: Any) -> dict[str, Any]:
    return _object(["items"], items=_list(_REQUEST), **_ABOUT_FLEET, **options)


_POD = _object(["Pod"], True, Pod=_object(None, True), Nodes={}, NodeNames=_maybe(_list(_TEXT)))
BODIES: dict[str, dict[str, Any]] = {
    "/v1/predict": _object(["items"], items=_list(_COLOCATION)),
    "/v1/bound": _object(["items"], items=_list(_COLOCATION), confidence=_CONFIDENCE),
    "/v1/explain": _object(["items"], items=_list(_COLOCATION), confidence=_CONFIDENCE),
    "/v1/safe": _of_fleet(on=_NAMES, together=_BOOL, explain=_BOOL),
    "/v1/rank": _of_fleet(
        by={"enum": ["bound", "cost", "neighbours"]}, top={"type": "integer", "minimum": 0}
    ),
    "/v1/assign": _of_fleet(
        goal=_TEXT, limit_seconds=_ABOVE_0, seed={"type": "integer", "minimum": 0}
    ),
    "/v1/walltime": _of_fleet(on=_NAMES, step_seconds={"type": "integer", "minimum": 1}),
    "/v1/runs": _object(["items"], items=_list(_RUN)),
    "/v1/placements/{id}": {
        **_REQUEST,
        "required": ["workload", "node"],
        "properties": {
            **_REQUEST["properties"],
            "ttl_seconds": _ABOVE_0,
            "require": {"enum": ["slot", "safe", "nothing"]},
        },
    },
    "/v1/slurm/submit": _object(
        ["workload"], workload=_NAME, deadline=_TEXT, confidence=_TEXT, limit_confidence=_TEXT, nodes=_NAMES
    ),
    "/v1/kubernetes/filter": _POD,
    "/v1/kubernetes/prioritize": _POD,
    "/v1/kubernetes/bind": _object(
        ["PodName", "PodNamespace", "PodUID", "Node"],
        True,
        PodName=_NAME, PodNamespace=_NAME, PodUID=_NAME, Node=_NAME,
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
    Nodes={"type": "null"},
)
_SCORE = {"type": "integer", "minimum": 0, "maximum": 10}
ANSWERS: dict[str, dict[str, Any]] = {
    **{f"/v1/{verb}": _ITEMS for verb in ("predict", "bound", "explain", "safe", "rank")},
    **{f"/v1/{verb}": _ITEMS for verb in ("assign", "walltime")},
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
        {"name": name, "in": "query", "schema": {"type": "integer", "minimum": 0}}
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
    if "{id}" in path:
        id = {"name": "id", "in": "path", "required": True, "schema": {**_NAME, "maxLength": 253}}
        extra["parameters"].append(id)
    if method == "GET":
        extra["parameters"] += _QUERY.get(path, [])
    elif path in BODIES and method != "DELETE":
        content = {"application/json": {"schema": BODIES[path]}}
        extra["requestBody"] = {"required": True, "content": content}
    found = {"description": "The answer.", "content": {"application/json": {"schema": answer}}}
    return {"responses": {200: found, **problems}, "openapi_extra": extra}
