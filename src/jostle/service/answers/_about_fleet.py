"""Questions about a fleet as they come over HTTP: requests, and a fleet where it is not the service's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from jostle.errors import UnknownName, UsageError
from jostle.placement import Fleet, Placement, Request, Requests, Standard
from jostle.service.state._placing import LivePlaces
from jostle.service.state._served import Served

REQUEST_KEYS = frozenset({one.name for one in fields(Request)} | {"deadline", "memory"})
TWICE = (("deadline", "deadline_seconds"), ("deadline", "slowdown"), ("memory", "memory_bytes"))


@dataclass(frozen=True)
class FleetQuestion:
    """items: rows as in a table of requests. fleet, tenants: rows of tables; without a fleet, that of the
    service as it is now."""

    items: list[Any]
    standard: Standard
    fleet: list[Any] | None = None
    tenants: list[Any] | None = None

    def requests(self) -> Requests:
        """A status for each item, whatever it is."""
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
