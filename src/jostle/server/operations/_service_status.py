"""What is there: the fleet with its tenants, the model, what drifts, whether bounds hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.documents import from_document
from jostle.errors import UsageError
from jostle.operations import Drifts
from jostle.placement import Fleet, Placement, Standard
from jostle.server.asking._fleet_queries import request_row
from jostle.server.operations._http_operation import Nothing, Question, StateAnswer, operation

if TYPE_CHECKING:
    from jostle.server.http._running_service import Serving
    from jostle.server.state._live_placements import LivePlaces
    from jostle.server.state._served_model import Served

MOST_BOUNDED = 2000  # tenants whose bounds are looked up
_SHOWN = ("name", "platform", "slots", "free_slots", "memory_bytes", "free_bytes", "labels", "price_per_hour",
          "status")  # fmt: skip


@dataclass(frozen=True)
class FleetNow(StateAnswer, schema="fleet/v1"):
    """Nodes of the fleet with their tenants. nodes: with what is free on each; tenants with a limit have
    their bound beside it, None without one. trouble: why the table that lies there now is not the one that is
    used, if so."""

    nodes: tuple[dict[str, Any], ...]
    trouble: str | None


def _as_fleet(answers: Any) -> Fleet:
    return from_document(Fleet, {"nodes": list(answers[0].nodes)})


@operation("GET", "/v1/fleet", Nothing, _as_fleet)
async def fleet(service: Serving, _: Nothing) -> FleetNow:
    """Return the service's fleet as it is now, with its tenants."""
    standard = Standard(service.settings.confidence)

    def now(places: LivePlaces, served: Served) -> FleetNow:
        nodes = _nodes(places.now(served, standard))
        return FleetNow(tuple(nodes), service.fleet.trouble, model=served.label)

    return await service.ask_places(now)


def _nodes(placement: Placement) -> list[dict[str, Any]]:
    import numpy as np

    nodes, rows = placement.fleet.nodes, []
    count = np.cumsum([len(node.tenants) for node in nodes])
    bounded = Fleet(nodes[: np.searchsorted(count, MOST_BOUNDED, "right")])
    bounds = Placement(bounded, placement.sets).bounds
    limits, now = bounds.limit.tolist(), bounds.now[0].tolist()
    for at, node in enumerate(nodes):
        tenants = [request_row(tenant) for tenant in node.tenants]
        if at < len(bounded) and tenants:
            own = zip(
                node.tenants,
                tenants,
                limits[at][-len(tenants) :],
                now[at][-len(tenants) :],
                strict=True,
            )
            for tenant, row, limit, bound in own:
                if tenant.has_objective:
                    row |= {"limit_seconds": limit, "bound_seconds": bound}
        rows.append({name: getattr(node, name) for name in _SHOWN} | {"tenants": tenants})
    return rows


@dataclass(frozen=True)
class Coverage(StateAnswer, schema="coverage/v1"):
    """Share of observed runs under their bound, by day. days: of each day (UTC) with observed runs, how many:
    all, with a bound, at or under it."""

    confidence: float
    days: tuple[dict[str, Any], ...]


@operation("GET", "/v1/coverage", Nothing, lambda parts: list(parts[0].days))
async def coverage(service: Serving, _: Nothing) -> Coverage:
    """Count by day how many observed runs ended at or under their bounds."""
    days = await service.write(service.store.coverage_by_day)
    return Coverage(service.settings.confidence, tuple(days))


@operation("GET", "/v1/drift", Nothing, lambda parts: list(parts[0].drifts))
async def drifts(service: Serving, _: Nothing) -> Drifts:
    """Say what drifts, by the observed runs that came since the model answers."""
    return await service.write(service.drifts.answer)


@dataclass(frozen=True)
class ServedModels(StateAnswer, schema="models/v1"):
    """Models that the service answers with. models: of each its versions, names, what it learned, and what
    bounds rest on. trouble: why what lies there now is not served, or not learned, if so."""

    models: tuple[dict[str, Any], ...]
    trouble: str | None
    confidence: float


@operation("GET", "/v1/models", Nothing, lambda parts: list(parts[0].models))
async def models(service: Serving, _: Nothing) -> ServedModels:
    """Describe what is served: versions, names, and what bounds rest on."""
    served, listed = service.folder.served, []
    if served is not None:
        metadata = served.model.metadata
        about = {key: metadata.get(key) for key in ("method", "fitted_at", "jostle_version")}
        listed.append(
            {
                **served.label,
                "path": str(service.settings.model),
                **about,
                "updates": metadata.get("updates") or [],
                "calibrated": served.is_calibrated,
                "workloads": list(served.model.predictor.workload_names),
                "platforms": list(served.known.platforms),
                "pools": await service.answers.ask(
                    lambda: served.pools, service.settings.most_seconds
                ),
            }
        )
    trouble = service.learning.trouble or service.folder.trouble
    return ServedModels(tuple(listed), trouble, service.settings.confidence)


@dataclass(frozen=True)
class ModelsBack(Question):
    """Choice of the model to take back."""

    version: Annotated[str, "Of the model that answers now."]


@dataclass(frozen=True)
class ModelIsBack(StateAnswer, schema="models_back/v1"):
    """Model that answers after a step back. model: the one that answers from now on."""


@operation("POST", "/v1/models/back", ModelsBack, lambda parts: parts[0].model["version"])
async def step_back(service: Serving, question: ModelsBack) -> ModelIsBack:
    """Put the model of before in its place again; what was learned since is not learned again."""
    from jostle.models import step_back as back

    def act() -> dict[str, Any]:
        service.folder.look()
        if service.served.version != question.version:
            fix = f"It is {service.served.version} now."
            raise UsageError(f"model {question.version[:40]!r} does not answer", fix=fix)
        back(service.settings.model)
        service.folder.look()
        return service.served.label

    return ModelIsBack(model=await service.write(act))
