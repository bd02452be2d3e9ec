"""What runs where: made, moved, renewed and let go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from jostle._base.option_fields import Limits
from jostle.errors import UsageError
from jostle.operations import question_of
from jostle.placement import Request, Standard
from jostle.server.asking._fleet_queries import (
    REQUEST_KEYS,
    given_twice,
    request_row,
    request_schema,
)
from jostle.server.operations._http_operation import (
    Nothing,
    Question,
    StateAnswer,
    checked_id,
    operation,
)

if TYPE_CHECKING:
    from jostle.server.http._running_service import Serving

LONGEST_STAY_SECONDS = 366 * 86_400.0


@dataclass(frozen=True)
class PlacementName(Question):
    """Name of a placement."""

    id: Annotated[str, "Of the placement."]

    def __post_init__(self) -> None:
        checked_id(self.id)


@dataclass(frozen=True)
class Stay(PlacementName):
    """Node of a placement, and for how long."""

    node: Annotated[str, "On which node of the fleet it is."]
    ttl_seconds: Annotated[
        float | None, "It ends then unless renewed.", Limits(most=LONGEST_STAY_SECONDS, above=0)
    ] = None
    require: Annotated[
        Literal["slot", "safe", "nothing"],
        "That one is free there; that everybody keeps the limit, too; nothing of what runs already.",
    ] = "slot"


@dataclass(frozen=True)
class PutPlacement(Question):
    """A placement to make or to change. row: what runs, as in a table of requests."""

    row: dict[str, Any]
    where: Stay

    @classmethod
    def of(
        cls,
        id: str,
        request: Request | str,
        node: str,
        *,
        ttl_seconds: float | None = None,
        require: Literal["slot", "safe", "nothing"] = "slot",
    ) -> PutPlacement:
        """Make the question. request: or text such as fft@1.5x."""
        try:
            row = Request.of_text(request) if isinstance(request, str) else request
        except ValueError as error:
            raise UsageError(str(error)) from None
        where = {"id": id, "node": node, "ttl_seconds": ttl_seconds, "require": require}
        return cls.read(request_row(row) | where)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> PutPlacement:
        if why := given_twice(values):
            raise UsageError(why)
        keys = values.keys() & (REQUEST_KEYS - {"node"})
        where = question_of(Stay, {k: values[k] for k in values.keys() - keys})
        return cls({k: values[k] for k in sorted(keys - {"name"})}, where)

    @classmethod
    def schema(cls) -> tuple[list[str], dict[str, Any]]:
        required, fields = Stay.schema()
        return ["workload", *required], request_schema()["properties"] | fields

    def sent(self) -> list[dict[str, Any]]:
        return [self.row | self.where.sent()[0]]


@dataclass(frozen=True)
class PlacementChanged(StateAnswer, schema="placement/v1"):
    """A placement that was made or changed. expires_at: seconds since 1970."""

    status: Literal["placed", "removed", "not_there"]
    id: str
    node: str | None = None
    expires_at: float | None = None


@operation("PUT", "/v1/placements/{id}", PutPlacement, lambda parts: parts[0].expires_at)
async def put_placement(service: Serving, question: PutPlacement) -> PlacementChanged:
    """Say that it runs on the node, or move or renew it; until when, in seconds since 1970.

    Raises UsageError where the node does not take it.
    """
    from jostle.server.state._live_placements import WantedPlacement

    where, standard = question.where, Standard(service.settings.confidence)
    stay = where.ttl_seconds or service.settings.stay_seconds
    wanted = WantedPlacement(where.id, where.node, question.row, stay, where.require)
    row = await service.ask_places(lambda places, served: places.put(wanted, served, standard))
    return PlacementChanged("placed", row.id, row.node, row.expires_at)


@operation(
    "DELETE", "/v1/placements/{id}", PlacementName, lambda parts: parts[0].status == "removed"
)
async def delete_placement(service: Serving, question: PlacementName) -> PlacementChanged:
    """Say that it runs no more; whether it was there."""
    removed = await service.ask_places(lambda places, _: places.let_go(question.id))
    return PlacementChanged("removed" if removed else "not_there", question.id)


@dataclass(frozen=True)
class Placements(StateAnswer, schema="placements/v1"):
    """The placements of the fleet. items: of each its id, node, request, whether it is held only, and until
    when."""

    items: tuple[dict[str, Any], ...]


@operation("GET", "/v1/placements", Nothing, lambda parts: list(parts[0].items))
async def placements(service: Serving, _: Nothing) -> Placements:
    """List what runs where now."""

    def read(places: Any, served: Any) -> list[dict[str, Any]]:
        places.fleet.sync(served.known.platforms)
        return [
            {"id": row.id, "node": row.node, **row.request, "held": row.held,
             "expires_at": row.expires_at}
            for row, _ in places.fleet.placed.values()
        ]  # fmt: skip

    return Placements(tuple(await service.ask_places(read)))
