"""Routes made of the library's operations, such as predict and rank: none has code of its own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import Response

from jostle._base.progress import Progress
from jostle.errors import NotPermitted, UsageError
from jostle.operations import Predictions, Verb, question_of, served_options, served_verbs
from jostle.placement import Standard
from jostle.server._serve_settings import ServeSettings
from jostle.server.asking._fleet_queries import REQUEST_KEYS, FleetQuestion
from jostle.server.asking._model_cache import predict_items
from jostle.server.asking._search_process import Apart, ApartQuery
from jostle.server.http._gather import Gatherer
from jostle.server.http._problems import answered
from jostle.server.http._reading import confidence_of, items_of, json_of, nodes_of, only, rows_of
from jostle.server.http._running_service import Serving
from jostle.server.state._served_model import Served

MOST_GATHERED = 32  # items of one request
STANDARD = tuple(served_options(Standard))
FLEET_KEYS = ("items", "fleet", "tenants", *STANDARD)
LATE = "the time limit passed before this item was reached. Ask for fewer at once."
Handler = Callable[[Request], Awaitable[Response]]


def model_verbs(service: Serving) -> dict[str, Handler]:
    """Make {operation: its handler} for operations that answer co-locations by the model."""
    gatherer = Gatherer(predict_items)
    return {
        name: _model_handler(verb, name, service, gatherer)
        for verb in served_verbs("model")
        for name in (verb.name, *verb.also)
    }


def _model_handler(verb: Verb, name: str, service: Serving, gatherer: Gatherer) -> Handler:
    settings, names = service.settings, served_options(verb.question)
    most = getattr(verb.question, "most_items", settings.most_items)

    async def handle(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, "items", *names)
        items, served = items_of(body, settings), service.served
        if len(items) > most:
            raise UsageError(f"{len(items)} items; at most {most} are taken at once")
        level = confidence_of(body, settings)
        values = {key: body.get(key) for key in names} | {"confidence": level}
        question = question_of(verb.question, values)
        for_campaign = getattr(question, "campaign", None) is not None
        is_plain = verb.name == "predict" and not for_campaign and served.model.acts is None
        if not is_plain or len(items) > MOST_GATHERED:
            # These take a while: in a thread, so that nobody else waits for them.
            until = _until(settings)
            content, outcomes = await service.answers.ask(
                lambda: _content(verb, served, items, question, until), settings.most_seconds
            )
        else:
            rows = await gatherer.ask(served, items, level)
            content, outcomes = _predicted(served, rows, level)
        service.metrics.count(name, outcomes)
        return answered(content, service.headers(served.label))

    return handle


def _content(verb: Verb, served: Served, items: list[Any], question: Any, until: Progress) -> Any:
    """Answer the items. Returns (what is sent, the outcome of each item)."""
    if verb.name == "predict" and question.campaign is None:
        level = question.confidence
        found = predict_items(served, items, level, question.throughout)
        return _predicted(served, found, level)
    document = verb.of(served.model, items, question, progress=until).to_document()
    return orjson.dumps(document), Counter(one["status"] for one in document["items"])


def _predicted(served: Served, rows: Sequence[Any], level: float) -> tuple[bytes, Counter[str]]:
    """Write the document of Predictions, without turning thousands of records into dicts first. Returns
    (bytes, counts of outcomes)."""
    outcomes = Counter(getattr(row, "outcome", row.status) for row in rows)
    document = Predictions((), level, served.label).to_document()
    return orjson.dumps(document | {"items": rows}), outcomes


def fleet_verbs(service: Serving, apart: Apart) -> dict[str, Handler]:
    """Make {path: its handler} for operations about where requests can go."""
    verbs = served_verbs("placement")
    return {verb.name: _fleet_handler(verb, service, apart) for verb in verbs}


def _fleet_handler(verb: Verb, service: Serving, apart: Apart) -> Handler:
    settings, names = service.settings, served_options(verb.question)

    async def handle(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, *FLEET_KEYS, *names)
        values = {name: body.get(name) for name in STANDARD}
        values["confidence"] = confidence_of(body, settings)
        query = FleetQuestion(
            items_of(body, settings),
            question_of(Standard, values),
            nodes_of(body, settings),
            rows_of(body, "tenants", settings, REQUEST_KEYS),
        )
        question = question_of(verb.question, {name: body.get(name) for name in names})
        served = service.served
        if verb.is_long:
            document = await _apart(query, question, served)
        else:
            document = await service.placing.ask(
                lambda: _here(query, question, served), settings.most_seconds
            )
        service.metrics.count(verb.name, (one["status"] for one in document["items"]))
        return answered(document, service.headers(served.label))

    def _here(query: FleetQuestion, question: Any, served: Served) -> dict[str, Any]:
        placement, requests = query.placement(service.places, served), query.requests()
        if hasattr(question, "served"):
            question.served(len(requests), len(placement.bounds_on(question.on)))
        return placement.ask(verb, requests, question, _until(settings)).to_document()

    async def _apart(query: FleetQuestion, question: Any, served: Served) -> dict[str, Any]:
        seconds = settings.most_seconds
        requests, fleet = await service.placing.ask(
            lambda: (query.requests(), query.placement(service.places, served).fleet), seconds
        )
        if hasattr(question, "limit_seconds"):
            question = replace(question, limit_seconds=min(question.limit_seconds, seconds))
        search = ApartQuery(verb.name, question, requests, fleet, query.standard)
        return await apart.ask(search, served, seconds)

    return handle


def forecast_verbs(service: Serving) -> dict[str, Handler]:
    """Make {operation: its handler} for operations about recorded runs, which come with the question."""
    return {verb.name: _forecast_handler(verb, service) for verb in served_verbs("forecasts")}


def _forecast_handler(verb: Verb, service: Serving) -> Handler:
    settings, names = service.settings, served_options(verb.question)

    async def handle(request: Request) -> Response:
        from jostle.usage import Peaks

        body = await json_of(request, settings)
        only(body, "items", "component", *names)
        items, component = items_of(body, settings), body.get("component") or "value"
        if not isinstance(component, str):
            raise UsageError("`component` is not a text")
        values = {key: body.get(key) for key in names}
        question = question_of(
            verb.question, values | {"confidence": confidence_of(body, settings)}
        )
        answer = await service.answers.ask(
            lambda: verb.of(Peaks.from_items(items, component), question), settings.most_seconds
        )
        service.metrics.count(verb.name, [answer.outcome])
        return answered(answer.to_document())

    return handle


def _until(settings: ServeSettings) -> Progress:
    """End the items that are reached too late."""
    deadline = time.monotonic() + 0.9 * settings.most_seconds

    def progress(done: int, total: int, _: float) -> None:
        if done < total and time.monotonic() > deadline:
            raise NotPermitted(LATE)

    return progress
