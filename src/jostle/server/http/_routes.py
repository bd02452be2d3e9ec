"""Routes of the service alone, such as on its state; a route of the library begins in server/operations."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from jostle._base.documents import AnswerDocument
from jostle.errors import UsageError
from jostle.server.http._problems import HttpProblem, answered
from jostle.server.http._reading import json_of
from jostle.server.http._running_service import Serving
from jostle.server.operations import OPERATIONS, Operation

_MOST_DIGITS = 15
_MOST_ROWS = 200  # of an answer that is written by the event loop


def operation_handlers(service: Serving) -> dict[tuple[str, str], Any]:
    """Make {(method, path): handler} for all operations."""
    return {(one.method, one.path): handler_of(one, service) for one in OPERATIONS.values()}


def handler_of(operation: Operation, service: Serving) -> Any:
    """Make the handler of an operation."""

    async def handle(request: Request) -> Response:
        names, values = request.path_params, dict(request.query_params)
        if operation.method in ("POST", "PUT"):
            values = await json_of(request, service.settings)
        else:
            values = {name: _number(name, text) for name, text in values.items()}
        if twice := sorted(values.keys() & names.keys()):
            raise UsageError(f"unknown key {twice[0]!r}", fix="It stands in the path.")
        answer = await operation(service, operation.question.read({**values, **names}))
        rows = (len(one) for one in vars(answer).values() if isinstance(one, tuple))
        is_large = max(rows, default=0) > _MOST_ROWS
        content = await asyncio.to_thread(_content, answer) if is_large else _content(answer)
        return answered(content, service.headers(answer.model))

    return handle


def _content(answer: AnswerDocument) -> bytes:
    return orjson.dumps(answer.to_document())


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
        raise HttpProblem(422, f"{name[:100]} is not a whole number from 0 on.")
    return int(text)
