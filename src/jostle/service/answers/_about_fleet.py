"""safe, rank, assign, walltime: where requests can go, item by item, within the time there is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from jostle._report import finite
from jostle.errors import JostleError, UnknownName, UsageError
from jostle.placement import BY, Fleet, Placement, Request, Requests, Standard
from jostle.service.answers._items import failed
from jostle.service.state._placing import LivePlaces
from jostle.service.state._served import Served

REQUEST_KEYS = frozenset({one.name for one in fields(Request)} | {"deadline", "memory"})
TWICE = (("deadline", "deadline_seconds"), ("deadline", "slowdown"), ("memory", "memory_bytes"))
MOST_EXPLAINED = 64  # requests times nodes
LATE = "the time limit passed before this item was reached. Ask for fewer at once."


@dataclass(frozen=True)
class FleetQuestion:
    """items: rows as in a table of requests. fleet, tenants: rows of tables; without a fleet, that of the
    service as it is now. options: what the operation takes besides."""

    items: list[Any]
    standard: Standard
    fleet: list[Any] | None = None
    tenants: list[Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    rows: Requests | None = None

    def read(self) -> FleetQuestion:
        """With its items read, to be sent elsewhere as such."""
        return replace(self, items=[], fleet=None, tenants=None, rows=self.requests())

    def requests(self) -> Requests:
        """A status for each item, whatever it is."""
        if self.rows is not None:
            return self.rows
        rows, odd = [], {}
        for place, item in enumerate(self.items):
            if not isinstance(item, dict):
                odd[place] = f"the item is {type(item).__name__}, not an object with a workload"
            elif unknown := sorted(map(str, item.keys() - REQUEST_KEYS)):
                odd[place] = str(UnknownName("key", unknown[0][:200], sorted(REQUEST_KEYS)))
            elif "workload" not in item:
                odd[place] = "the item has no workload"
            elif why := given_twice(item):
                odd[place] = why
            rows.append({"workload": None} if place in odd else item)
        found = Requests.read(rows)
        status = tuple(odd.get(place, status) for place, status in enumerate(found.status))
        return replace(found, status=status)

    def placement(self, places: LivePlaces, served: Served) -> Placement:
        """Raises what reading a fleet raises."""
        if self.fleet is None:
            here = places.now(served, self.standard)
            if self.tenants:  # as if they were there, too
                return Placement(here.fleet.with_tenants(self.tenants), here.sets)
            return here
        if not all(isinstance(node, dict) for node in self.fleet):
            raise UsageError("`fleet` is not a list of objects")
        # Every row has the columns there are, so that a bad one gets a status of its own.
        rows = [{"name": None, "platform": None, **row} for row in self.fleet]
        fleet = Fleet.read(rows).with_tenants(self.tenants) if self.tenants else Fleet.read(rows)
        return Placement(fleet, places.sets(served, self.standard))


def given_twice(row: Mapping[str, Any]) -> str | None:
    """Why a request that says one thing in two ways cannot be read."""
    for one, other in TWICE:
        if one in row and other in row:
            return f"both {one} and {other} are given"
    return None


def safe_answer(asked: FleetQuestion, placement: Placement, deadline: float) -> dict[str, Any]:
    """Whether each may go to each node; all to one node at once with `together`."""
    requests, on = asked.requests(), asked.options.get("on")
    together = bool(asked.options.get("together", False))
    nodes = len(placement.fleet) if on is None else 1 if isinstance(on, str) else len(on)
    explain = asked.options.get("explain")
    if explain is None or together:
        explain = together or len(requests) * nodes <= MOST_EXPLAINED
    if explain and len(requests) * nodes > MOST_EXPLAINED:
        raise UsageError(
            f"{len(requests)} requests on {nodes} nodes are too many to explain",
            fix=f"Explained are {MOST_EXPLAINED} at most: name nodes in `on`, or leave `explain` out.",
        )
    if together:
        found = placement.safe(requests, on, together=True)
        by_name: dict[str, list[Any]] = {}
        for one in found.answers:
            by_name.setdefault(one.request, []).append(one)
        items = [
            _safe_item(by_name[row.name]) if row is not None else failed(status)
            for row, status in zip(requests.rows, requests.status, strict=True)
        ]
    else:
        items = _each(
            requests,
            lambda row: _safe_item(placement.safe([row], on, explain=explain).answers),
            deadline,
        )
    used = any(item.get("used_predictions") for item in items)
    return {
        "safe": bool(items) and all(item.get("safe", False) for item in items),
        "promise": placement.standard.promise(used_predictions=used),
        "items": items,
    }


def _safe_item(answers: Sequence[Any]) -> dict[str, Any]:
    return {
        "status": "ok",
        "safe": bool(answers) and all(one.is_safe for one in answers),
        "used_predictions": any(one.used_predictions for one in answers),
        "answers": [one.to_document() for one in answers],
    }


def rank_answer(asked: FleetQuestion, placement: Placement, deadline: float) -> dict[str, Any]:
    """The nodes for each, the best first, and why others are ruled out."""
    by, top = asked.options.get("by", "bound"), asked.options.get("top")
    if top is not None and (not isinstance(top, int) or isinstance(top, bool) or top < 0):
        raise UsageError(f"`top` is {top!r}, not a whole number")
    if by not in BY:
        raise UsageError(f"rank by {by!r}", fix=f"Known: {', '.join(BY)}.")

    def one(row: Request) -> dict[str, Any]:
        (found,) = placement.rank([row], by=by)
        return {"status": "ok", **finite(found.to_document(top))}

    return {"items": _each(asked.requests(), one, deadline)}


def walltime_answer(asked: FleetQuestion, placement: Placement, deadline: float) -> dict[str, Any]:
    """The time to ask a batch system for, for each."""
    on, step = asked.options.get("on"), asked.options.get("step_seconds", 1.0)
    placement.walltime([], on, step_seconds=step)

    def one(row: Request) -> dict[str, Any]:
        (found,) = placement.walltime([row], on, step_seconds=step).rows
        return {"status": "ok", **finite(found.to_document())}

    items = _each(asked.requests(), one, deadline)
    used = any(item.get("used_predictions") for item in items)
    promise = placement.standard.promise(used_predictions=used)
    return {"promise": promise, "items": items}


def assign_answer(asked: FleetQuestion, placement: Placement, seconds: float) -> dict[str, Any]:
    """Where all of them go, at once."""
    options, requests = asked.options, asked.requests()
    limit = options.get("limit_seconds", min(2.0, seconds))
    found = placement.assign(
        requests,
        options.get("goal", "most_accepted"),
        limit_seconds=min(float(limit), seconds),
        seed=int(options.get("seed", 0)),
    )
    document = finite(found.to_document())
    by_name = {
        one["request"]: {"status": "ok", "placed": True, **one} for one in document.pop("placed")
    }
    for one in document.pop("unplaced"):
        by_name[one["request"]] = {"status": "ok", "placed": False, **one}
    document.pop("schema")
    document.pop("unread")
    document["items"] = [
        by_name[row.name] if row is not None else failed(status)
        for row, status in zip(requests.rows, requests.status, strict=True)
    ]
    return document


def _each(
    requests: Requests, answer: Callable[[Request], dict[str, Any]], deadline: float
) -> list[dict[str, Any]]:
    items = []
    for row, status in zip(requests.rows, requests.status, strict=True):
        if row is None:
            items.append(failed(status))
        elif time.monotonic() > deadline:
            items.append(failed(LATE))
        else:
            try:
                items.append(answer(row))
            except JostleError as error:
                items.append(failed(str(error)))
    return items
