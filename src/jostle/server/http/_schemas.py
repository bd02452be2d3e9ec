"""What /openapi.json says: of each operation what it takes, and what it answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jostle._base.documents import schema_of
from jostle._base.version import VERSION
from jostle.operations import question_schema, served_verbs
from jostle.placement import REASONS, Standard
from jostle.server.asking._fleet_queries import CONFIDENCE, NODE_KEYS, NULL, VISIBLE, request_schema
from jostle.server.operations import OPERATIONS

PROBLEMS = {
    400: "The body is not JSON.",
    401: "The API key is missing or wrong.",
    403: "The host name, the origin or the role of the key is not allowed.",
    404: "A name in the question is not known.",
    408: "The request did not arrive in time.",
    409: "The node does not take it.",
    413: "The request is too large.",
    415: "The body is not application/json.",
    422: "What was asked makes no sense.",
    429: "One caller asks too often.",
    503: "Not ready, or too much waits.",
}
TEXT = {"type": "string"}
NAMES = {"anyOf": [TEXT, {"type": "array", "items": TEXT}]}
_NAME = {"type": "string", "minLength": 1, "maxLength": 253}


def object_of(
    required: list[str] | None = None, more: bool = False, **properties: Any
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "additionalProperties": more}
    return schema | ({"required": required} if required else {})


def list_of(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


def reference(name: str) -> dict[str, Any]:
    """Refer to a schema of `components/schemas`."""
    return {"$ref": f"#/components/schemas/{name}"}


def maybe(of: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [of, NULL]}


_STRETCH = object_of(
    ["start_seconds"], start_seconds={"type": "number", "minimum": 0}, corunners=list_of(_NAME)
)
_COLOCATION = object_of(
    ["workload", "platform"],
    workload=_NAME,
    platform=_NAME,
    corunners=list_of(_NAME),
    covariates={"type": "object", "additionalProperties": {"type": ["number", "string"]}},
    stretches=list_of(reference("Stretch")),
    elapsed_seconds={"type": "number", "minimum": 0},
    done_ratio={"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    future={"type": "boolean"},
)
_TENANT = request_schema(required=["workload", "node"])
_TENANT["properties"] |= {"node": VISIBLE}
_NODE = object_of(None, False, **{name: {} for name in sorted(NODE_KEYS)})
_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_USE = object_of(
    ["values"],
    values=_NUMBERS,
    times_seconds=maybe(_NUMBERS),
    length_seconds={"type": "number", "exclusiveMinimum": 0},
    end={"enum": ["done", "limit", "now"]},
)
_ABOUT: dict[str, dict[str, Any]] = {
    "model": {},
    "forecasts": {"component": maybe(TEXT)},
    "placement": {
        "fleet": maybe(list_of(reference("Node"))),
        "tenants": maybe(list_of(reference("Tenant"))),
        **question_schema(Standard),
    },
}
# Items are checked one by one, so anything is taken for one.
_ITEMS = {
    kind: list_of({"anyOf": [reference(name), {}]})
    for kind, name in {"model": "Colocation", "placement": "Request", "forecasts": "Use"}.items()
}
DOCUMENT = object_of(["schema"], True, schema=TEXT)
_STATUS = object_of(["status"], True, status=TEXT)
_PROBLEM = object_of(
    ["type", "title", "status", "detail", "error"],
    **dict.fromkeys(("type", "title", "detail", "error"), TEXT),
    status={"type": "integer"},
)


# What the operations ask for; what they answer is added by the class of each record.
_SHARED = {
    "Colocation": _COLOCATION,
    "Stretch": _STRETCH,
    "Request": request_schema(),
    "Tenant": _TENANT,
    "Node": _NODE,
    "Use": _USE,
    "Status": _STATUS,
    "Problem": _PROBLEM,
}
_COLOCATIONS = {"items": [{"workload": "sort", "platform": "box", "corunners": ["fft"]}]}
_REQUESTS = {"items": [{"workload": "sort", "deadline": "90s"}, {"workload": "fft"}]}
_RUN = {"id": "run-1", "workload": "sort", "platform": "box", "runtime_seconds": 12.5}
EXAMPLES: dict[str, dict[str, Any]] = {
    "/v1/predict": _COLOCATIONS,
    "/v1/bound": _COLOCATIONS | {"confidence": 0.95},
    "/v1/explain": _COLOCATIONS,
    "/v1/safe": _REQUESTS,
    "/v1/rank": _REQUESTS | {"least": "cost", "top": 3},
    "/v1/assign": _REQUESTS,
    "/v1/walltime": _REQUESTS,
    "/v1/at": {"items": [{"workload": "sort", "node": "east"}]},
    "/v1/limit": {"items": [{"values": [5e8, 7e8]}] * 20, "confidence": 0.9},
    "/v1/runs": {"items": [_RUN | {"corunners": ["fft"]}]},
    "/v1/placements/{id}": {"workload": "sort", "node": "east", "ttl_seconds": 600},
    "/v1/models/back": {"version": "1"},
}


def openapi(paths: Iterable[tuple[str, str]], doors: Mapping[str, Any]) -> dict[str, Any]:
    """Make the document that /openapi.json sends.

    paths: (method, path) of every operation.
    doors: {path: (schema of the body, of the answer)} of plug-ins; an answer may be a record's class.
    """
    about: dict[tuple[str, str], Any] = {}
    shared: dict[str, Any] = {}
    for kind, more in _ABOUT.items():
        for verb in served_verbs(kind):
            level = {"confidence": maybe({**CONFIDENCE, "description": "How sure bounds are."})}
            fields = {**more, **question_schema(verb.question), **level}
            body = object_of(["items"], items=_ITEMS[kind], **fields)
            for name in (verb.name, *verb.also):
                # What follows the first paragraph is about the command's exit code.
                help = verb.help.partition("\n\n")[0]
                about["POST", f"/v1/{name}"] = body, verb.answer, help
    for one in OPERATIONS.values():
        required, fields = one.question.schema()
        help = (one.act.__doc__ or "").partition("\n\n")[0]
        about[one.method, one.path] = object_of(required, **fields), one.answer, help
    for path in ("/healthz", "/readyz"):
        about["GET", path] = None, reference("Status"), ""
    documents: dict[str, Any] = {}
    for method, path in paths:
        body, answer, help = about.get((method, path)) or (*doors.get(path, (None, DOCUMENT)), "")
        answer = schema_of(answer, shared) if isinstance(answer, type) else answer
        described = _described(method, path, body, answer)
        described |= {"summary": " ".join(help.split())} if help else {}
        documents.setdefault(path, {})[method.lower()] = described
    description = "How long a workload takes, and at most how long, beside others."
    return {
        "openapi": "3.1.0",
        # x-reasons: a sentence for each code of a reason, for pages that show answers to people.
        "info": {
            "title": "Jostle",
            "version": VERSION,
            "description": description,
            "x-reasons": REASONS,
        },
        "paths": documents,
        "components": {"schemas": dict(sorted((shared | _SHARED).items()))},
    }


def _described(method: str, path: str, body: Any, answer: dict[str, Any]) -> dict[str, Any]:
    problem = {"application/problem+json": {"schema": reference("Problem")}}
    kind, answer = ("text/plain", TEXT) if path == "/metrics" else ("application/json", answer)
    responses: dict[str, Any] = {
        "200": {"description": "The answer.", "content": {kind: {"schema": answer}}},
        **{str(s): {"description": text, "content": problem} for s, text in PROBLEMS.items()},
    }
    named = re.findall(r"{(\w+)}", path)
    fields = {} if body is None else body["properties"]
    parameters = [{"name": n, "in": "path", "required": True, "schema": _NAME} for n in named]
    name = f"{method.lower()}_{'_'.join(re.findall(r'[a-z0-9]+', path))}"
    operation = {"operationId": name, "parameters": parameters, "responses": responses}
    if method == "GET":
        parameters += [{"name": name, "in": "query", "schema": of} for name, of in fields.items()]
    elif body is not None and method != "DELETE":
        rest = {
            "properties": {k: v for k, v in fields.items() if k not in named},
            "required": [name for name in body.get("required", ()) if name not in named],
        }
        content = {"schema": body | rest}
        content |= {"example": EXAMPLES[path]} if path in EXAMPLES else {}
        operation["requestBody"] = {"required": True, "content": {"application/json": content}}
    return operation
