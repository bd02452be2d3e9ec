"""Where a job goes and how long it may take, in one question: the plugin of Slurm has two seconds."""

from __future__ import annotations

import math
import re
import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from jostle._confidence import exact_confidence
from jostle._report import duration
from jostle.errors import UsageError
from jostle.placement import REASONS, Fleet, Placement, Request, Requests, Standard
from jostle.service.http._problems import answered
from jostle.service.http._reading import json_of, names_of, only
from jostle.service.http._schemas import (
    CONFIDENCE,
    DOCUMENT,
    LIMIT,
    NAMES,
    VISIBLE,
    maybe,
    object_of,
)
from jostle.service.http._service import Serving
from jostle.service.state._placing import LivePlaces, NoPlace, WantedPlacement
from jostle.service.state._served import Served

KEYS = ("workload", "deadline", "confidence")
# A job past its time limit is killed: so the limit is surer than a deadline, unless the job says otherwise.
LIMIT_CONFIDENCE = 0.99
_ATTEMPTS = 5
_LEVEL = re.compile(r"0?[.][0-9]{0,12}[1-9]")
_LEVELS = {"anyOf": [{"type": "string", "pattern": f"^{_LEVEL.pattern}$"}, CONFIDENCE]}


@dataclass(frozen=True)
class SubmittedJob:
    """row: as in a table of requests. nodes: those it may go to, all if None. limit_confidence: of its time
    limit."""

    row: dict[str, Any]
    nodes: list[str] | None
    limit_confidence: float = LIMIT_CONFIDENCE

    def request(self) -> Request:
        """Raises UsageError."""
        read = Requests.read([{"workload": None, **self.row}])
        if read.rows[0] is None:
            raise UsageError(read.status[0])
        return read.rows[0]


class SlurmDoor:
    """What the submit plugin asks, in one question."""

    schemas: ClassVar[dict[str, Any]] = {
        "/v1/slurm/submit": (
            object_of(
                ["workload"],
                workload=VISIBLE,
                deadline=maybe(LIMIT),
                confidence=maybe(_LEVELS),
                limit_confidence=maybe(_LEVELS),
                nodes=maybe(NAMES),
            ),
            DOCUMENT,
        )
    }

    def __init__(self, service: Serving) -> None:
        self.service, self.standard = service, Standard(service.settings.confidence)
        self.operations = {("POST", "/v1/slurm/submit"): self.submit}

    async def watch(self) -> None:
        """Nothing goes on beside its answers."""

    async def close(self) -> None:
        """It has no connections."""

    async def submit(self, request: HttpRequest) -> Response:
        service, settings = self.service, self.service.settings
        body = await json_of(request, settings)
        only(body, *KEYS, "nodes", "limit_confidence")
        if not isinstance(body.get("workload"), str):
            raise UsageError("`workload` is not a name")
        nodes = names_of(body, "nodes")
        row = {key: body[key] for key in KEYS if body.get(key) is not None}
        own = _confidence_of(body.get("confidence"), None)
        sure = _confidence_of(body.get("limit_confidence"), LIMIT_CONFIDENCE)
        job = SubmittedJob({**row, "confidence": own}, nodes, sure or LIMIT_CONFIDENCE)
        answer = await service.ask_places(
            lambda p, s: place_job(job, p, s, self.standard, settings.stay_seconds)
        )
        return answered({"schema": "slurm_submit/v1", **answer}, service.headers())


def place_job(
    job: SubmittedJob, places: LivePlaces, served: Served, standard: Standard, stay: float
) -> dict[str, Any]:
    """The node with the least bound that still takes it, held under a placement of its own.

    Raises UsageError for a job that cannot be.
    """
    request = job.request()
    ranking = None
    for _ in range(_ATTEMPTS):
        (ranking,) = places.now(served, standard).rank([request])
        rows = [row for row in ranking.rows() if job.nodes is None or row.node in job.nodes]
        if not rows:
            break
        id = f"slurm-{uuid.uuid4().hex[:16]}"
        try:
            places.put(WantedPlacement(id, rows[0].node, job.row, stay, "safe"), served, standard)
        except NoPlace:  # another replica was faster
            continue
        minutes = _time_limit(job, rows[0].node, places, served)
        bound = duration(rows[0].bound_seconds)
        return {
            "model": served.label,
            "placed": True,
            "node": rows[0].node,
            "bound_seconds": rows[0].bound_seconds,
            "time_limit_minutes": minutes,
            "placement": id,
            "comment": f"jostle: at most {bound} on {rows[0].node}, placement={id}",
        }
    reasons = sorted(ranking.ruled_out) if ranking is not None else []
    why = "; ".join(REASONS[reason] for reason in reasons) or REASONS["not_allowed"]
    return {
        "model": served.label,
        "placed": False,
        "node": None,
        "bound_seconds": None,
        "time_limit_minutes": None,
        "placement": None,
        "comment": f"jostle: no node is sure to keep the limit ({why})",
    }


def _time_limit(job: SubmittedJob, node: str, places: LivePlaces, served: Served) -> int | None:
    """Whole minutes, None where no bound is valid at that confidence."""
    fleet = Fleet((places.fleet.nodes[node],))
    sets = places.sets(served, Standard(job.limit_confidence))
    (row,) = Placement(fleet, sets).walltime([Request(job.request().workload)]).rows
    return None if row.bound_seconds is None else max(1, math.ceil(row.bound_seconds / 60.0))


def _confidence_of(value: Any, default: float | None) -> float | None:
    """A number, or a text such as 0.95, as the plugin has it. Raises UsageError."""
    if value is None:
        return default
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number and not (isinstance(value, str) and _LEVEL.fullmatch(value)):
        raise UsageError("a confidence is not a number between 0 and 1", fix="Write it as 0.95.")
    return float(exact_confidence(float(value)))
