"""May these share? Every request with the tenants of every node, each against its own limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.documents import Record, Unanswered, VerbAnswer, answered
from jostle._base.option_fields import NoOption
from jostle._base.report import Report, Table, duration
from jostle.errors import UsageError
from jostle.operations._operation import verb
from jostle.operations._request_reports import because, each, unread
from jostle.operations.placement._sharers import SafeAnswer
from jostle.placement import Standard

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.placement import Node, Placement, Request, Requests

MOST_EXPLAINED = 64  # requests times nodes


@dataclass(frozen=True)
class SafeQuestion:
    """May these share? Every request with the tenants of every node, each against its own limit: who would be
    hurt, by how much, and what would help.

    Ends with 1 where the answer is no for any of them. To see what a change of the fleet does for whom, print
    one document (--json) of the fleet before and one of the fleet after it, and compare them.
    """

    on: Annotated[
        tuple[str, ...] | str | None, "A node to ask about; repeat for more.  [default: all]"
    ] = None
    together: Annotated[bool, "All requests come to the node at once."] = False
    explain: Annotated[
        bool | None,
        "Who would be hurt and what would help.  [default: where requests times nodes are at most 64]",
        NoOption(),
    ] = None

    def served(self, requests: int, nodes: int) -> None:
        """Raises UsageError for what a service does not take."""
        if self.explain and not self.together and requests * nodes > MOST_EXPLAINED:
            raise UsageError(
                f"{requests} requests on {nodes} nodes are too many to explain",
                fix=f"Explained are {MOST_EXPLAINED} at most: name nodes in `on`, or leave `explain` out.",
            )


@dataclass(frozen=True)
class SafeRequest(Record):
    """Answers about one request on each node."""

    request: str
    workload: str
    answers: tuple[SafeAnswer, ...]
    status: Literal["ok"] = "ok"

    also: ClassVar[tuple[str, ...]] = ("is_safe", "used_predictions")

    @property
    def is_safe(self) -> bool:
        """True if it may go to all of them, and there is one."""
        return bool(self.answers) and all(one.is_safe for one in self.answers)

    @property
    def used_predictions(self) -> bool:
        return any(one.used_predictions for one in self.answers)


@dataclass(frozen=True, repr=False)
class SafeAnswers(VerbAnswer):
    """Answers about requests on nodes. items: one for each request, in their order."""

    items: tuple[SafeRequest | Unanswered, ...]
    standard: Standard
    model: dict[str, Any] | None = None
    unknown_names: tuple[str, ...] = ()

    schema: ClassVar[str] = "place_safe/v3"
    also: ClassVar[tuple[str, ...]] = ("is_safe", "promise")

    @property
    def answers(self) -> tuple[SafeAnswer, ...]:
        """One for each request and node."""
        return tuple(one for item in answered(self.items) for one in item.answers)

    @property
    def is_safe(self) -> bool:
        """True if the answer is yes for everything that was asked, and something was."""
        good = answered(self.items)
        return bool(good) and len(good) == len(self.items) and all(one.is_safe for one in good)

    @property
    def promise(self) -> str:
        used = any(one.used_predictions for one in self.answers)
        return self.standard.promised(used_predictions=used)

    @property
    def exit_code(self) -> int:
        return 0 if self.is_safe else 1

    def report(self) -> Report:
        """Write one answer in detail, or a line for each of several."""
        parts: list[Table | str] = []
        if len(self.answers) == 1:
            parts += _in_detail(self.answers[0])
        else:
            cells = {
                "request": "request",
                "node": "node",
                "safe": "is_safe",
                "why": lambda one: because(one.reason),
                "hurt": lambda one: ", ".join(_hurt(one)) or "–",
                "what would help": lambda one: "; ".join(one.helps) or "–",
            }
            parts.append(Table.of(self.answers, cells))
        return Report(self.to_document(), [*parts, self.promise], notes=self.notes)


def _in_detail(answer: SafeAnswer) -> list[Table | str]:
    beside = ", ".join(member.name for member in answer.members if not member.is_newcomer)
    where = f"{answer.request} on {answer.node}" + (f" beside {beside}" if beside else "")
    yes = "Yes" if answer.is_safe else "No"
    parts: list[Table | str] = [f"{yes}: {where}: {because(answer.reason)}."]
    cells = {
        "workload": "name",
        "who": lambda one: "newcomer" if one.is_newcomer else "tenant",
        "predicted": "predicted_seconds",
        "bound": "bound_seconds",
        "limit": "limit_seconds",
        "keeps it": lambda one: {True: "yes", False: "no", None: "no limit"}[one.keeps],
        "over by": "over_seconds",
        "bound is": "bound_status",
    }
    if answer.members:
        parts.append(Table.of(answer.members, cells))
    if answer.arrangement:
        parts.append(f"Shared: {answer.arrangement}.")
    return [*parts, *(f"What would help: {text}." for text in answer.helps)]


def _hurt(answer: SafeAnswer) -> list[str]:
    return [
        member.name
        + (f" by {duration(member.over_seconds)}" if member.over_seconds is not None else "")
        for member in answer.hurt
    ]


@verb(SafeQuestion)
def safe(
    placement: Placement, requests: Requests, question: SafeQuestion, progress: Progress
) -> SafeAnswers:
    """Assess every request by itself on every node, or all at once with `together`. Raises UnknownName for a
    node that is not in the fleet, UsageError."""
    from jostle.operations.placement._explained_nodes import safe_at_once, safe_each

    fleet = placement.bounds_on(question.on)
    nodes = fleet.nodes
    if question.together:
        return _together(placement, requests, nodes, progress)

    explain = question.explain
    if explain is None:
        explain = len(requests.good) * len(nodes) <= MOST_EXPLAINED

    good = requests.good
    rows = safe_each(good, fleet, placement.bounds) if explain else safe_at_once(good, fleet)
    answers = iter(tuple(rows))

    def one(request: Request) -> SafeRequest:
        return SafeRequest(request.name, request.workload, tuple(next(answers)))

    items = each(requests, one, progress)
    return SafeAnswers(items, placement.standard, placement.label)


def _together(
    placement: Placement, requests: Requests, nodes: Sequence[Node], progress: Progress
) -> SafeAnswers:
    """Assess each request beside the others and beside the tenants of each node."""
    from jostle.operations.placement._explained_nodes import safe_together

    answers: dict[str, list[SafeAnswer]] = {request.name: [] for request in requests.good}
    for number, node in enumerate(nodes):
        progress(number, len(nodes), float("nan"))
        for one in safe_together(requests.good, node, placement.bounds):
            answers[one.request].append(one)
    bad = iter(unread(requests))
    items = tuple(
        next(bad) if row is None else SafeRequest(row.name, row.workload, tuple(answers[row.name]))
        for row in requests.rows
    )
    return SafeAnswers(items, placement.standard, placement.label)
