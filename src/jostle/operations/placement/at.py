"""Everybody on their nodes at an instant: who ends when beside whom, and which promises hold to the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.documents import Record, Unanswered, VerbAnswer
from jostle._base.report import Report, Table, duration
from jostle.conformal import status_of
from jostle.operations._operation import verb
from jostle.placement import Standard

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.placement import Node, Placement, Request, Requests


@dataclass(frozen=True)
class AtQuestion:
    """Predict who ends when: residents, each for as long as it has run and as far as it has come, and
    requests that begin now on the node they name, beside one another.

    Ends with 1 where somebody's limit is not sure to be kept to the end.
    """

    on: Annotated[
        tuple[str, ...] | str | None, "A node to ask about; repeat for more.  [default: all]"
    ] = None


@dataclass(frozen=True)
class End(Record):
    """Predicted end of one workload on a node. end_seconds: from now, if nobody comes. runtime_seconds,
    bound_seconds: from its start to its end, over what `over` says: a known `timeline` of who is there, or
    the `future`, with newcomers as lately seen in the log. limit_seconds: what was promised to it, None where
    nothing was; in a model of a log one that is kept is the bound, as later ones are let in for as long as it
    is kept."""

    name: str
    workload: str
    node: str
    elapsed_seconds: float
    end_seconds: float | None
    runtime_seconds: float | None
    bound_seconds: float | None
    outcome: str
    over: str
    limit_seconds: float | None
    status: Literal["ok"] = "ok"

    also: ClassVar[tuple[str, ...]] = ("bound_status", "is_kept")

    @property
    def bound_status(self) -> str:
        """One of the five statuses of a bound."""
        return status_of(self.outcome)

    @property
    def is_kept(self) -> bool:
        """True if its limit holds, with the confidence of the bound; nothing promised is kept."""
        if self.limit_seconds is None:
            return True
        return self.bound_seconds is not None and self.bound_seconds <= self.limit_seconds


@dataclass(frozen=True, repr=False)
class Ends(VerbAnswer):
    """Predicted ends of workloads on nodes. items: of each request, in their order. residents: of everybody
    who is there, but for nodes of which nothing can be told, as the model does not know a name there; untold
    says which, and why."""

    items: tuple[End | Unanswered, ...]
    residents: tuple[End, ...]
    standard: Standard
    model: dict[str, Any] | None = None
    untold: tuple[str, ...] = ()

    schema: ClassVar[str] = "place_at/v2"
    also: ClassVar[tuple[str, ...]] = ("is_kept",)

    @property
    def is_kept(self) -> bool:
        """True if every request and everybody there has an answer, and keeps their limit."""
        everybody = (*self.items, *self.residents)
        return not self.untold and all(isinstance(one, End) and one.is_kept for one in everybody)

    @property
    def notes(self) -> list[str]:
        """Sentences on what has no answer, also on nodes of which nothing can be computed."""
        return [*super().notes, *self.untold]

    @property
    def exit_code(self) -> int:
        return 0 if self.is_kept else 1

    def report(self) -> Report:
        """Write a line for each tenant and request, by node."""
        listed = [one for one in (*self.residents, *self.items) if isinstance(one, End)]
        cells = {
            "node": "node",
            "who": "name",
            "has run": lambda one: (
                duration(one.elapsed_seconds) if one.elapsed_seconds else "begins"
            ),
            "ends in": "end_seconds",
            "takes in all": "runtime_seconds",
            "at most": "bound_seconds",
            "bound is": "bound_status",
            "limit": "limit_seconds",
            "kept": "is_kept",
        }
        if not listed:
            is_empty = not (self.items or self.untold)
            why = "nobody is on these nodes, and nobody comes" if is_empty else "the notes say why"
            return Report(self.to_document(), [f"Nothing is told: {why}."], notes=self.notes)
        parts: list[Table | str] = [
            Table.of(sorted(listed, key=lambda one: one.node), cells),
            "Ends are if nobody else comes.",
        ]
        if any(one.over == "future" for one in listed):
            parts.append(
                "What each takes in all is with newcomers as lately seen in the log; a limit that is kept "
                "is the bound, as others are let in for as long as nobody breaks it."
            )
        return Report(self.to_document(), parts, notes=self.notes)


_NO_NODE = "it names no node: name it in a column `node` of the requests, or ask `on` one node only"


@verb(AtQuestion, needs_items=False)
def at(placement: Placement, requests: Requests, question: AtQuestion, progress: Progress) -> Ends:
    """Compute when everybody on these nodes ends. A request without a node goes to the only one there is.
    Raises UnknownName for a node that is not in the fleet."""
    from jostle.placement import ends_at

    nodes = placement.bounds_on(question.on).nodes
    by_name = {node.name: node for node in nodes}
    only = nodes[0].name if len(nodes) == 1 else None
    known = placement.sets.workload_code
    answers: dict[int, End | Unanswered] = {}
    coming: dict[str, list[tuple[int, Request]]] = {}
    rows = zip(requests.rows, requests.status, requests.numbers, strict=True)
    for place, (row, status, number) in enumerate(rows):
        name = None if row is None else row.node or row.pin or only
        if row is None:
            answers[place] = Unanswered(status, number)
        elif name not in by_name or row.workload not in known:
            why = f"the model does not know the workload {row.workload!r}"
            if name not in by_name:
                why = f"the node {name!r} is not asked about" if name else _NO_NODE
            answers[place] = Unanswered(why, number)
        else:
            coming.setdefault(name, []).append((place, row))
    people: list[tuple[Node, Request, int]] = []
    untold: list[str] = []
    for name, node in by_name.items():
        strange = [one.workload for one in node.tenants if one.workload not in known]
        strange += [node.platform] if node.platform not in placement.sets.platform_code else []
        if not strange:
            people += [(node, one, -1) for one in node.tenants]
            people += [(node, one, place) for place, one in coming.get(name, ())]
            continue
        why = f"the model does not know {strange[0]!r} on the node {name!r}"
        untold += [f"nothing is told of who is there: {why}"] if node.tenants else []
        for place, _ in coming.get(name, ()):
            answers[place] = Unanswered(why, place)
    told = ends_at(placement.sets, [(node, one) for node, one, _ in people])
    residents = []
    for (node, one, place), end in zip(people, told, strict=True):
        row = End(one.name, one.workload, node.name, *end)
        if place < 0:
            residents.append(row)
        else:
            answers[place] = row
    items = tuple(answers[place] for place in range(len(requests)))
    return Ends(items, tuple(residents), placement.standard, placement.label, tuple(untold))
