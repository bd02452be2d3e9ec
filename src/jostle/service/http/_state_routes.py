"""What changes: observed runs and placements; and what is read of them and of the fleet."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from jostle._verbs.documents import Unanswered, shortened
from jostle.answers import read_items, why_not
from jostle.errors import UsageError
from jostle.placement import Standard
from jostle.service.answers._about_fleet import REQUEST_KEYS, given_twice
from jostle.service.answers._fleet_now import fleet_document
from jostle.service.http._problems import HttpProblem, answered
from jostle.service.http._reading import items_of, json_of, number_of, only
from jostle.service.http._service import Serving
from jostle.service.state._placing import LivePlaces, WantedPlacement
from jostle.service.state._served import Served
from jostle.service.state._store import ObservedRun

LONGEST_ID = 253
RUN_KEYS = frozenset(
    {"id", "workload", "platform", "corunners", "runtime_seconds", "measured_at", "window_id"}
)
MOST_ROWS = 1000


def checked_id(value: Any) -> str:
    """Raises UsageError."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_ID or "\0" in value:
        raise UsageError(
            f"the id {shortened(repr(value), 80)} is not a name",
            fix=f"Give 1 to {LONGEST_ID} characters.",
        )
    return value


def read_run(item: Any) -> dict[str, Any]:
    """An observed run as it is kept. Raises UsageError."""
    if not isinstance(item, dict):
        raise UsageError(f"the item is {type(item).__name__}, not an object")
    if odd := sorted(item.keys() - RUN_KEYS):
        raise UsageError(f"unknown key {odd[0]!r}", fix=f"Known: {', '.join(sorted(RUN_KEYS))}.")
    checked_id(item.get("id"))
    about = {key: item.get(key) for key in ("workload", "platform")}
    why = why_not({**about, "corunners": item.get("corunners") or []}, None)
    if why != "the item cannot be read":
        raise UsageError(why)
    seconds: Any = item.get("runtime_seconds")
    number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not number or not math.isfinite(seconds) or seconds <= 0:
        raise UsageError(
            f"runtime_seconds is {shortened(repr(seconds), 80)}, not a finite number above 0"
        )
    run = {
        **about,
        "corunners": sorted(item.get("corunners") or []),
        "runtime_seconds": float(seconds),
    }
    if (when := item.get("measured_at")) is not None:
        run["measured_at"] = _time_of(when)
    if (window := item.get("window_id")) is not None:
        run["window_id"] = checked_id(window)
    return run


def _time_of(value: Any) -> str:
    try:
        when = datetime.fromisoformat(value)
        if when.tzinfo is None:
            raise ValueError
        when.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise UsageError(
            f"measured_at is {shortened(repr(value), 80)}, not a time with its zone",
            fix="Write it as 2026-01-31T12:00:00Z.",
        ) from None
    return when.isoformat()


def runs_added(service: Serving, served: Served | None, items: list[Any]) -> list[dict[str, Any]]:
    """Store what can be stored, with what the model would have answered; a status for each item."""
    good: list[tuple[int, ObservedRun]] = []
    statements: list[Any] = [None] * len(items)
    level, now = service.settings.confidence, service.clock()
    read: dict[int, dict[str, Any]] = {}
    for place, item in enumerate(items):
        try:
            read[place] = read_run(item)
        except UsageError as error:
            statements[place] = Unanswered(str(error), place).to_document()
    bounds = _bounds_of(served, read, level)
    for place, run in read.items():
        version = None if served is None else served.version
        seconds = run["runtime_seconds"]
        one = ObservedRun(items[place]["id"], run, now, level, seconds, bounds.get(place), version)
        good.append((place, one))
    statuses = service.store.add_runs([one for _, one in good]) if good else []
    for (place, one), status in zip(good, statuses, strict=True):
        bound = one.bound_seconds
        is_within = None if bound is None else one.runtime_seconds <= bound
        statements[place] = {
            "status": status,
            "id": one.id,
            "bound_seconds": bound,
            "within_bound": is_within,
        }
        if status == "conflict":
            statements[place]["error"] = (
                f"another run is stored under the id {one.id!r}; it was kept"
            )
    if stored := sum(status == "stored" for status in statuses):
        service.metrics.runs.inc(stored)
        service.follow()
    return statements


def _bounds_of(
    served: Served | None, runs: dict[int, dict[str, Any]], level: float
) -> dict[int, float]:
    """{place: the valid bound} of those that the model knows."""
    if served is None or not runs:
        return {}
    keys = ("workload", "platform", "corunners")
    read = read_items([{key: run[key] for key in keys} for run in runs.values()], served.known)
    if not read.at:
        return {}
    places, seconds = list(runs), served.model.bound(read.colocations, level).seconds.tolist()
    return {
        places[at]: bound
        for at, bound in zip(read.at, seconds, strict=True)
        if math.isfinite(bound)
    }


def wanted_of(id: str, body: dict[str, Any], service: Serving) -> WantedPlacement:
    """Raises UsageError."""
    only(body, *REQUEST_KEYS, "ttl_seconds", "require")
    row = {key: value for key, value in body.items() if key in REQUEST_KEYS - {"node", "name"}}
    if why := given_twice(body):
        raise UsageError(why)
    node, require = body.get("node"), body.get("require", "slot")
    if not isinstance(node, str) or not node:
        raise UsageError("`node` is not a name", fix="Say on which node of the fleet it is.")
    if not isinstance(require, str):
        raise UsageError("`require` is not a text")
    seconds = number_of(body, "ttl_seconds", service.settings.stay_seconds)
    return WantedPlacement(id, node, row, seconds, require)


def state_handlers(service: Serving) -> dict[tuple[str, str], Any]:
    """{(method, path): handler}."""
    settings = service.settings
    standard = Standard(settings.confidence)

    async def add_runs(request: Request) -> Response:
        body = await json_of(request, settings)
        only(body, "items")
        items, served = items_of(body, settings), service.folder.served
        statements = await service.write(lambda: runs_added(service, served, items))
        service.metrics.count("runs", (one["status"] for one in statements))
        label = None if served is None else served.label
        return answered(
            {"schema": "runs/v1", "model": label, "items": statements}, service.headers(served)
        )

    async def list_runs(request: Request) -> Response:
        after = _whole(request, "after", 0)
        most = min(_whole(request, "limit", 100), MOST_ROWS)
        rows = await service.write(lambda: service.store.runs_after(after, most))
        items = [
            {"number": r["number"], "id": r["id"], **r["run"], "received_at": r["received_at"],
             "confidence": r["confidence"], "bound_seconds": r["bound_seconds"],
             "model_version": r["model_version"]}
            for r in rows
        ]  # fmt: skip
        last = items[-1]["number"] if items else after
        document = {"schema": "observed_runs/v1", "items": items, "last": last}
        return answered(document, service.headers())

    async def put(request: Request) -> Response:
        id = checked_id(request.path_params["id"])
        body = await json_of(request, settings)
        wanted = wanted_of(id, body, service)
        row = await service.ask_places(lambda places, served: places.put(wanted, served, standard))
        document = {
            "schema": "placement/v1",
            "model": service.served.label,
            "status": "placed",
            "id": id,
            "node": row.node,
            "expires_at": row.expires_at,
        }
        return answered(document, service.headers())

    async def delete(request: Request) -> Response:
        id = checked_id(request.path_params["id"])
        removed = await service.ask_places(lambda places, _: places.let_go(id))
        document = {
            "schema": "placement/v1",
            "status": "removed" if removed else "not_there",
            "id": id,
        }
        return answered(document, service.headers())

    async def list_placements(request: Request) -> Response:
        def read(places: LivePlaces, served: Served) -> list[dict[str, Any]]:
            places.fleet.sync(served.known.platforms)
            return [
                {"id": row.id, "node": row.node, **row.request, "held": row.held,
                 "expires_at": row.expires_at}
                for row, _ in places.fleet.placed.values()
            ]  # fmt: skip

        items = await service.ask_places(read)
        return answered({"schema": "placements/v1", "items": items}, service.headers())

    async def fleet(request: Request) -> Response:
        document = await service.ask_places(
            lambda p, s: fleet_document(p.now(s, standard), s.label)
        )
        return answered({**document, "trouble": service.fleet.trouble}, service.headers())

    async def coverage(request: Request) -> Response:
        days = await service.write(service.store.coverage_by_day)
        document = {"schema": "coverage/v1", "confidence": settings.confidence, "days": days}
        return answered(document, service.headers())

    async def drift(request: Request) -> Response:
        served = service.served
        document = await service.write(service.drifts.document)
        return answered(document, service.headers(served))

    return {
        ("GET", "/v1/drift"): drift,
        ("POST", "/v1/runs"): add_runs,
        ("GET", "/v1/runs"): list_runs,
        ("PUT", "/v1/placements/{id}"): put,
        ("DELETE", "/v1/placements/{id}"): delete,
        ("GET", "/v1/placements"): list_placements,
        ("GET", "/v1/fleet"): fleet,
        ("GET", "/v1/coverage"): coverage,
    }


def _whole(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name, str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise HttpProblem(422, f"{name} is not a whole number from 0 on.")
    return int(text)
