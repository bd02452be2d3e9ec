"""Answers of a service as the library's own types again, and questions as its documents."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from jostle._report import Report, Table
from jostle.errors import BadData, JostleError, NotEnoughRuns, NotPermitted, UsageError
from jostle.placement import (
    REASONS,
    Assessed,
    Assignment,
    Binding,
    Fleet,
    Placed,
    RankedNode,
    Ranking,
    Request,
    Requests,
    SafeAnswer,
    SafeAnswers,
    Sharer,
    Standard,
    Unplaced,
    Walltime,
    Walltimes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_CODES = {name: code for code, name in enumerate(REASONS)}
_KINDS: dict[str, type[JostleError]] = {
    "UsageError": UsageError,
    "NoPlace": UsageError,
    "NotEnoughRuns": NotEnoughRuns,
}


@dataclass(frozen=True)
class AnsweredRanking(Ranking):
    """A ranking whose rows came from a service. answered: in their order."""

    answered: tuple[RankedNode, ...] = ()

    def row(self, number: int) -> RankedNode:
        return self.answered[number]


def error_of(document: Any, status: int, where: str) -> JostleError:
    """A problem document as the error that the library would raise."""
    given: Mapping[str, Any] = document if isinstance(document, dict) else {}
    sentence = str(given.get("detail") or f"the service answers with status {status}")
    if status in (401, 403) or status >= 500:
        return NotPermitted(sentence, where=where)
    return _KINDS.get(str(given.get("error")), BadData)(sentence)


def request_of(document: dict[str, Any]) -> Request:
    """A tenant, of a document that tells more of it."""
    return _record(Request, document)


def request_row(request: Request) -> dict[str, Any]:
    """Without what says nothing."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in vars(request).items()
        if value not in (None, (), "")
    }


def fleet_rows(fleet: Fleet) -> list[dict[str, Any]]:
    """Nodes as rows of a table."""
    return [
        {
            "name": node.name,
            "platform": node.platform,
            **({} if node.slots is None else {"slots": node.slots}),
            **({} if node.memory_bytes is None else {"memory_bytes": node.memory_bytes}),
            "labels": list(node.labels),
            "price_per_hour": node.price_per_hour,
            "tenants": [request_row(tenant) for tenant in node.tenants],
        }
        for node in fleet.nodes
    ]


def report_of(item: dict[str, Any]) -> Report:
    """What explains a prediction."""
    tables = [
        part if isinstance(part, str) else Table(part["columns"], part["rows"], title=part["title"])
        for part in item["tables"]
    ]
    return Report({**item["explanation"], "bound": item["bound"]}, tables)


def safe_answers_of(document: dict[str, Any], asked: Requests) -> SafeAnswers:
    """In the order in which the service answered."""
    found = []
    for item in _good(document):
        for one in item["answers"]:
            kept = ("request", "workload", "node", "platform", "reason", "used_predictions")
            members = tuple(_record(Sharer, member) for member in one["members"])
            found.append(
                SafeAnswer(
                    **{key: one[key] for key in kept},
                    is_safe=one["safe"],
                    members=members,
                    helps=tuple(one["helps"]),
                )
            )
    return SafeAnswers(
        tuple(found), _standard(document), _unread(document, asked), document["promise"]
    )


def rankings_of(document: dict[str, Any], asked: Requests, fleet: Fleet, by: str) -> list[Ranking]:
    """fleet: the one that was asked about."""
    place = {node.name: at for at, node in enumerate(fleet.nodes)}
    standard, found = _standard(document), []
    for request, item in zip(asked.good, document["items"], strict=True):
        if item["status"] != "ok":
            continue
        n = len(fleet)
        reason = np.full(n, _CODES["bad_node"])
        columns = {key: np.full(n, np.nan) for key in ("limit", "growth", "cost")}
        bound, predicted = np.full(n, np.inf), np.zeros(n, bool)
        order, answered = [], []
        for row in item["nodes"]:
            at = place.get(row["node"])
            if at is None:  # the fleet has changed since it was read
                continue
            order.append(at)
            numbers = {"bound_seconds": row["bound_seconds"], "cost": _or(row["cost"], np.nan)}
            answered.append(_record(RankedNode, row | numbers))
            reason[at], predicted[at] = _CODES["ok"], row["used_prediction"]
            bound[at] = row["bound_seconds"]
            columns["limit"][at] = _or(row["limit_seconds"], np.inf)
            columns["growth"][at] = _or(row["growth_ratio"], np.nan)
            columns["cost"][at] = _or(row["cost"], np.nan)
        for row in item["details"]:
            at = place.get(row["node"])
            if at is not None:
                reason[at] = _CODES.get(row["reason"], _CODES["bad_node"])
                bound[at] = _or(row["bound_seconds"], np.inf)
                columns["limit"][at] = _or(row["limit_seconds"], np.nan)
        assessed = Assessed(reason, bound, columns["limit"], columns["growth"], predicted)
        at = np.array(order, np.int64)
        ranked: Any = (request, fleet, by, standard, at, assessed, columns["cost"], None)
        found.append(
            AnsweredRanking(*ranked, promise_given=item["promise"], answered=tuple(answered))
        )
    return found


def assignment_of(document: dict[str, Any], asked: Requests) -> Assignment:
    """Who goes where."""
    good = _good(document)
    kept = ("goal", "worth", "worth_at_most", "cost", "nodes_used", "promise")
    return Assignment(
        **{key: document[key] for key in kept},
        standard=_standard(document),
        placed=tuple(_record(Placed, one) for one in good if one["placed"]),
        unplaced=tuple(_record(Unplaced, one) for one in good if not one["placed"]),
        cost_at_least=document["cost_at_least"],
        is_optimal=document["optimal"],
        binding=tuple(_record(Binding, one) for one in document["binding"]),
        unread=_unread(document, asked),
    )


def walltimes_of(document: dict[str, Any], asked: Requests) -> Walltimes:
    """A row for each request that could be read."""
    rows = tuple(_record(Walltime, one) for one in _good(document))
    return Walltimes(rows, _standard(document), _unread(document, asked))


def _good(document: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in document["items"] if item["status"] == "ok"]


def _unread(document: dict[str, Any], asked: Requests) -> tuple[tuple[int, str], ...]:
    """What could not be read here, and what had no answer there."""
    rows = [
        (number, status)
        for row, status, number in zip(asked.rows, asked.status, asked.numbers, strict=True)
        if row is None
    ]
    sent = [
        number for row, number in zip(asked.rows, asked.numbers, strict=True) if row is not None
    ]
    for number, item in zip(sent, document["items"], strict=True):
        if item["status"] != "ok":
            rows.append((number, item["error"]))
    return tuple(sorted(rows))


def _standard(document: dict[str, Any]) -> Standard:
    return Standard(document["confidence"], document["joint"], document["accept"])


def _record(kind: Any, document: dict[str, Any]) -> Any:
    """The fields of a dataclass, out of a document that holds more."""
    return kind(**{one.name: document[one.name] for one in fields(kind) if one.name in document})


def _or(value: float | None, missing: float) -> float:
    return missing if value is None else value
