"""Questions about a fleet as they come over HTTP: requests, and a fleet where it is not the service's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from jostle.errors import UnknownName
from jostle.operations import question_schema
from jostle.placement import Fleet, Node, Placement, Request, Requests, Standard

if TYPE_CHECKING:
    from jostle.server.state._live_placements import LivePlaces
    from jostle.server.state._served_model import Served

REQUEST_KEYS = frozenset({one.name for one in fields(Request)} | {"deadline", "memory"})
NODE_KEYS = ({one.name for one in fields(Node)} | {"node", "memory"}) - {"status"}
TWICE = (("deadline", "deadline_seconds"), ("deadline", "slowdown"), ("memory", "memory_bytes"))
VISIBLE = {"type": "string", "pattern": "[^\\s\\u001c-\\u001f\\u0085]"}  # not blank alone
LIMIT = {"type": "string", "pattern": "^([1-9][0-9]{0,5}(ms|s|min|h|x))?$"}
CONFIDENCE = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
NULL = {"type": "null"}


@dataclass(frozen=True)
class FleetQuestion:
    """A question about a fleet, as it was sent. items: rows as in a table of requests. fleet, tenants: rows
    of tables; without a fleet, that of the service as it is now."""

    items: list[Any]
    standard: Standard
    fleet: list[dict[str, Any]] | None = None
    tenants: list[Any] | None = None

    def requests(self) -> Requests:
        """Read the items as requests, with a status for each, whatever it is."""
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
        requests = Requests.read(rows)
        status = tuple(odd.get(place, status) for place, status in enumerate(requests.status))
        return replace(requests, status=status)

    def placement(self, places: LivePlaces, served: Served) -> Placement:
        """Raises what reading a fleet raises."""
        if self.fleet is None:
            here = places.now(served, self.standard)
        else:
            # Every row has the columns there are, so that a bad one gets a status of its own.
            rows = [{"name": None, "platform": None, **row} for row in self.fleet]
            here = Placement(Fleet.read(rows), places.sets(served, self.standard))
        if self.tenants:  # as if they were there, too
            return Placement(here.fleet.with_tenants(self.tenants), here.sets)
        return here


def given_twice(row: Mapping[str, Any]) -> str | None:
    """Say why a request that gives one thing in two ways cannot be read; None if it does not."""
    both = next((pair for pair in TWICE if pair[0] in row and pair[1] in row), None)
    return None if both is None else f"both {both[0]} and {both[1]} are given"


def request_row(request: Request) -> dict[str, Any]:
    """Make a row of a request, without empty fields."""
    values = {key: value for key, value in vars(request).items() if value not in (None, (), "")}
    return {key: list(one) if isinstance(one, tuple) else one for key, one in values.items()}


def node_row(node: Node) -> dict[str, Any]:
    """Make the row of a node as a table of nodes has it."""
    names = ("name", "platform", "slots", "memory_bytes", "labels", "price_per_hour", "sharing")
    row = {name: getattr(node, name) for name in names}
    row = {k: list(v) if isinstance(v, tuple) else v for k, v in row.items() if v not in (None, ())}
    return row | {"tenants": [request_row(tenant) for tenant in node.tenants]}


def request_schema(**changed: Any) -> dict[str, Any]:
    """Build the JSON schema of a request from its fields; of two spellings of one thing it allows one."""
    shapes = {"workload": VISIBLE, "confidence": {"anyOf": [CONFIDENCE, NULL]}}
    shapes["deadline"] = {"anyOf": [LIMIT, NULL]}
    shapes["memory"] = {"anyOf": [{"type": "string", "pattern": "^[0-9]{1,6}(MiB|GiB)$"}, NULL]}
    return {
        "type": "object",
        "properties": question_schema(Request) | shapes,
        "required": ["workload"],
        "additionalProperties": False,
        "not": {"anyOf": [{"required": list(pair)} for pair in TWICE]},
    } | changed
