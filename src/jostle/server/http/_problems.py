"""Errors over HTTP: RFC 9457 problem documents that hold the library's own sentences."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response

from jostle._base.documents import shortened
from jostle.errors import BadData, JostleError, NotEnoughRuns, NotPermitted, UnknownName, UsageError
from jostle.server.state._live_placements import NoPlace

JSON = "application/json"
PROBLEM = "application/problem+json"
_PLAIN = {"X-Content-Type-Options": "nosniff"}  # a name with markup is never a page


class HttpProblem(Exception):
    """A request that HTTP itself, or a limit of the service, does not let through."""

    def __init__(self, status: int, sentence: str, **headers: str) -> None:
        self.status, self.sentence = status, sentence
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        super().__init__(sentence)


def problem(
    status: int, sentence: str, error: str, headers: dict[str, str] | None = None
) -> Response:
    """Make a problem document. error: the name of the kind, as in jostle.errors."""
    document = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": shortened(sentence),
        "error": error,
    }
    return Response(orjson.dumps(document), status, {**(headers or {}), **_PLAIN}, PROBLEM)


def status_of(error: JostleError) -> int:
    """Return the HTTP status of an error of the library."""
    kinds: tuple[tuple[type[JostleError], int], ...] = (
        (NoPlace, 409),
        (UnknownName, 404),
        (NotPermitted, 503),
        (UsageError, 422),
        (BadData, 422),
        (NotEnoughRuns, 422),
    )
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)


def problem_of(error: Exception) -> Response:
    """Describe whatever was raised as a document; for what nobody foresaw, without its insides."""
    if isinstance(error, HttpProblem):
        kind = HTTPStatus(error.status).phrase.replace(" ", "")
        return problem(error.status, error.sentence, kind, error.headers)
    if isinstance(error, JostleError):
        status = status_of(error)
        headers = {"Retry-After": "1"} if status == 503 else None
        return problem(status, str(error), type(error).__name__, headers)
    if isinstance(error, RecursionError):
        return problem(400, "the JSON is nested too deep.", "BadRequest")
    return problem(500, "internal error; the log of the service says more.", "Internal")


def answered(document: Any, headers: dict[str, str] | None = None) -> Response:
    """Answer with JSON in which no number is NaN or infinite. document: or its bytes."""
    content = document if isinstance(document, bytes) else orjson.dumps(document)
    return Response(content, 200, {**(headers or {}), **_PLAIN}, JSON)
