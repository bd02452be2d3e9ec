"""All nodes for a workload, the best first; what was ruled out, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar

from jostle._base.documents import Record, Unanswered, VerbAnswer, answered
from jostle._base.option_fields import Limits, check_settings
from jostle._base.report import Report, Table, duration, finite
from jostle.operations._operation import verb
from jostle.operations._request_reports import because, each
from jostle.placement import Standard

if TYPE_CHECKING:
    import numpy as np

    from jostle._base.progress import Progress
    from jostle.placement import Assessed, FleetBounds, Placement, Request, Requests

SECONDS_PER_HOUR = 3600.0
MOST_SHOWN = 10
_T = TypeVar("_T")

Least = Literal["bound", "cost", "neighbours"]


@dataclass(frozen=True)
class RankQuestion:
    """List all nodes for each request, the best first, and why others are ruled out.

    Ends with 1 where a request may go nowhere.
    """

    least: Annotated[
        Least,
        "What the best has least of: its bound, its price for as long as it stays (or else for its bound), "
        "or the growth of any tenant's bound.",
    ] = "bound"
    top: Annotated[int | None, "Nodes to list for each.  [default: all]", Limits(0)] = None

    def __post_init__(self) -> None:
        """Raises UsageError."""
        check_settings(self)


@dataclass(frozen=True)
class RankedNode(Record):
    """A node with its place in a ranking. cost: the node's price for as long as it stays, or over the bound.
    growth_ratio: by how much the bound of any tenant grows at most, as a ratio minus 1. arrangement: how an
    accelerator would be shared, empty elsewhere."""

    node: str
    platform: str
    bound_seconds: float
    limit_seconds: float | None
    cost: float
    growth_ratio: float | None
    used_prediction: bool
    arrangement: str = ""


@dataclass(frozen=True)
class RuledOut(Record):
    """A node where the request may not go. reason: a key of REASONS. status: of the node."""

    node: str
    reason: str
    bound_seconds: float | None
    limit_seconds: float | None
    status: str


@dataclass(frozen=True)
class Ranking(Record):
    """The nodes for one request. safe_nodes: how many there are, of `considered`. nodes: the best first, as
    many as were asked for; each is computed when it is looked at. ruled_out: {reason: nodes}. details: of
    nodes that were ruled out."""

    request: str
    workload: str
    considered: int
    safe_nodes: int
    nodes: Sequence[RankedNode]
    ruled_out: Mapping[str, int]
    details: Sequence[RuledOut]
    promise: str
    status: Literal["ok"] = "ok"

    def __len__(self) -> int:
        return self.safe_nodes

    @property
    def best(self) -> RankedNode | None:
        return self.nodes[0] if len(self.nodes) else None

    def row(self, number: int) -> RankedNode:
        return self.nodes[number]

    def rows(self) -> list[RankedNode]:
        """List the nodes that are shown."""
        return list(self.nodes)


@dataclass(frozen=True, repr=False)
class Rankings(VerbAnswer):
    """Rankings of nodes for requests. items: one for each request, in their order; those that could be read
    are also the rankings' elements."""

    items: tuple[Ranking | Unanswered, ...]
    least: str
    standard: Standard
    model: dict[str, Any] | None = None
    unknown_names: tuple[str, ...] = ()

    schema: ClassVar[str] = "place_rank/v4"

    def __len__(self) -> int:
        return len(answered(self.items))

    def __getitem__(self, number: int) -> Ranking:
        return answered(self.items)[number]

    def __iter__(self) -> Iterator[Ranking]:
        return iter(answered(self.items))

    @property
    def exit_code(self) -> int:
        complete = self.items and len(self) == len(self.items) and all(len(one) for one in self)
        return 0 if complete else 1

    def report(self) -> Report:
        """Write the best nodes of each request, and how many were ruled out for which reason."""
        parts: list[Table | str] = []
        for ranking in self:
            parts += self._of_one(ranking)
        return Report(self.to_document(), parts, notes=self.notes)

    def _of_one(self, ranking: Ranking) -> list[Table | str]:
        cells = {
            "node": "node",
            "platform": "platform",
            "bound": lambda row: (
                duration(row.bound_seconds) + (" (predicted)" if row.used_prediction else "")
            ),
            "limit": "limit_seconds",
            "cost": "cost",
            "neighbours grow": "growth_ratio",
            "shared": "arrangement",
        }
        parts: list[Table | str] = [
            f"{ranking.request} may go to none of {ranking.considered} nodes."
        ]
        if len(ranking.nodes):
            title = f"{ranking.request}: {len(ranking)} of {ranking.considered} nodes, least {self.least}"
            parts = [Table.of(ranking.nodes[:MOST_SHOWN], cells, title)]
        parts += [f"{n} ruled out: {because(why)}." for why, n in ranking.ruled_out.items()]
        return [*parts, ranking.promise]


class _Lazy(Sequence[_T]):
    """Places in a fleet as records, each made when it is looked at."""

    def __init__(self, at: Sequence[int], make: Callable[[int], _T]) -> None:
        self._at, self._make = at, make

    def __len__(self) -> int:
        return len(self._at)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self._make(place) for place in self._at[number]]
        return self._make(self._at[number])


@verb(RankQuestion)
def rank(
    placement: Placement, requests: Requests, question: RankQuestion, progress: Progress
) -> Rankings:
    """List the nodes where each request may go, the best first."""
    from jostle.placement import RANKED

    which = "requests whose first node is taken"
    fleet, promise = placement.chosen(requests, which, RANKED, is_least=True)
    rows = iter(tuple(fleet.assess_each(requests.good)))
    items = each(
        requests, lambda one: _ranking(one, next(rows), fleet, question, promise), progress
    )
    return Rankings(items, question.least, placement.standard, placement.label)


def _ranking(
    request: Request,
    assessed: Assessed,
    fleet: FleetBounds,
    question: RankQuestion,
    promise: str,
) -> Ranking:
    import numpy as np

    from jostle.placement import NOTHING_CHOSEN, ON_PREDICTIONS, REASONS

    words, nodes = tuple(REASONS), fleet.nodes
    stays = assessed.bound_seconds if request.stay_seconds is None else request.stay_seconds
    with np.errstate(invalid="ignore"):  # free and without a bound
        cost = fleet.prices * stays / SECONDS_PER_HOUR
    keys = {"bound": assessed.bound_seconds, "cost": cost, "neighbours": assessed.growth}
    order = _ordered(assessed, keys[question.least])

    def node(at: int) -> RankedNode:
        return RankedNode(
            nodes[at].name,
            nodes[at].platform,
            float(assessed.bound_seconds[at]),
            finite(assessed.limit_seconds[at]),
            float(cost[at]),
            finite(assessed.growth[at]),
            bool(assessed.predicted[at]),
            fleet.arrangement((*nodes[at].tenants, request), nodes[at]),
        )

    def out(at: int) -> RuledOut:
        bound, limit = finite(assessed.bound_seconds[at]), finite(assessed.limit_seconds[at])
        reason = words[int(assessed.reason[at])]
        return RuledOut(nodes[at].name, reason, bound, limit, nodes[at].status)

    promise = promise if len(order) else NOTHING_CHOSEN
    promise += f" {ON_PREDICTIONS}" if assessed.predicted[order].any() else ""
    others = np.flatnonzero(~assessed.is_safe)
    codes, counts = np.unique(assessed.reason[others], return_counts=True)
    ruled_out = {words[code]: int(n) for code, n in zip(codes, counts, strict=True)}
    return Ranking(
        request.name,
        request.workload,
        len(nodes),
        len(order),
        _Lazy(order[: question.top].tolist(), node),
        ruled_out,
        _Lazy(others[: question.top].tolist(), out),
        promise,
    )


def _ordered(assessed: Assessed, key: np.ndarray) -> np.ndarray:
    import numpy as np

    at = np.flatnonzero(assessed.is_safe)
    return at[np.lexsort((assessed.bound_seconds[at], np.nan_to_num(key[at], nan=np.inf)))]
