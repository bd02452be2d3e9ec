"""Observed runs: stored once under their ids, with what the model would have answered."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from jostle._base.documents import Unanswered, shortened
from jostle._base.option_fields import Limits
from jostle.errors import JostleError, UsageError
from jostle.operations import question_of, question_schema, read_items, why_not
from jostle.server.operations._http_operation import Question, StateAnswer, checked_id, operation

if TYPE_CHECKING:
    from jostle.server.http._running_service import Serving
    from jostle.server.state._served_model import Served

AT_ONCE = 2000  # runs in one request of a client
MOST_ROWS = 1000
_COLOCATION = ("workload", "platform", "corunners")


@dataclass(frozen=True)
class SentRun:
    """A run as it is sent. Raises UsageError for one that cannot be."""

    id: Annotated[str, "Its own: sent again, it is stored once."]
    workload: Annotated[str, "What ran."]
    platform: Annotated[str, "Where it ran."]
    runtime_seconds: Annotated[float, "Measured.", Limits(1e-9)]
    corunners: Annotated[tuple[str, ...], "What ran beside it."] = ()
    measured_at: Annotated[str | None, "A time with its zone: 2026-01-31T12:00:00Z."] = None
    window_id: Annotated[str | None, "The same of runs that ran together."] = None
    stretches: list[dict[str, Any]] | None = field(default=None, init=False)

    @classmethod
    def read(cls, item: Any) -> SentRun:
        """Read a run from an object of JSON."""
        if not isinstance(item, dict):
            raise UsageError(f"the item is {type(item).__name__}, not an object")
        why = why_not({key: item[key] for key in _COLOCATION if key in item}, None)
        if why != "the item cannot be read":
            raise UsageError(why)
        rest = {key: value for key, value in item.items() if key != "stretches"}
        return question_of(cls, rest)._with_stretches(item.get("stretches"))

    def __post_init__(self) -> None:
        checked_id(self.id)
        checked_id(self.window_id or self.id)
        object.__setattr__(self, "corunners", sorted(self.corunners))
        if self.measured_at is not None:
            object.__setattr__(self, "measured_at", _time_of(self.measured_at))

    def _with_stretches(self, stretches: Any) -> SentRun:
        """Replace the co-runners by stretches: who was beside it from when on."""
        if stretches is None:
            return self
        from pyarrow import ArrowException

        from jostle.data import Runs

        try:
            runs = Runs.from_columns(
                workload=[self.workload],
                platform=[self.platform],
                runtime_seconds=[self.runtime_seconds],
                stretches=[stretches],
            )
            (company,), (told,) = runs.table.select(["corunners", "stretches"]).to_pydict().values()
        except (JostleError, ArrowException, TypeError, ValueError, KeyError) as error:
            fix = "Give a list of {start_seconds, corunners}, the first from 0."
            raise UsageError(f"stretches cannot be read: {str(error)[:200]}", fix=fix) from None
        object.__setattr__(self, "corunners", company)
        object.__setattr__(self, "stretches", told)
        return self

    @property
    def stored(self) -> dict[str, Any]:
        """The run as it is kept, beside its id."""
        return {k: v for k, v in vars(self).items() if v is not None and k != "id"}


def _time_of(text: str) -> str:
    try:
        when = datetime.fromisoformat(text)
        if when.tzinfo is None:
            raise ValueError
        when.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"measured_at is {shortened(repr(text), 80)}, not a time with its zone",
            fix="Write it as 2026-01-31T12:00:00Z.",
        ) from None
    return when.isoformat()


@dataclass(frozen=True)
class AddRuns(Question):
    """Observed runs to store. items: objects as SentRun reads them, or Runs."""

    items: Any

    @classmethod
    def read(cls, values: Any) -> AddRuns:
        if list(values) != ["items"] or not isinstance(values["items"], list):
            raise UsageError("there is no list `items` alone", fix="Send one object for each run.")
        return cls(values["items"])

    @classmethod
    def schema(cls) -> tuple[list[str], dict[str, Any]]:
        run = {"type": "object", "properties": question_schema(SentRun)}
        return ["items"], {"items": {"type": "array", "items": {"anyOf": [run, {}]}}}

    def sent(self) -> list[dict[str, Any]]:
        """List the requests that send these runs, under their run_ids."""
        if isinstance(self.items, list):
            return [{"items": self.items}]
        if n := int(self.items.unknown_corunners.sum()):
            fix = "Send the others: a service takes a run with all that ran beside it."
            raise UsageError(f"{n} runs had co-runners that nobody knows", fix=fix)
        table = self.items.table
        names = [*_COLOCATION, "runtime_seconds", "measured_at", "window_id", "stretches"]
        names = [name for name in names if name in table.column_names]
        table = table.select(["run_id", *names]).rename_columns(["id", *names])
        items = [{k: v for k, v in row.items() if v is not None} for row in table.to_pylist()]
        for item in items:
            if "measured_at" in item:
                item["measured_at"] = item["measured_at"].isoformat()
        return [{"items": items[n : n + AT_ONCE]} for n in range(0, len(items), AT_ONCE)]


@dataclass(frozen=True)
class RunsAdded(StateAnswer, schema="runs/v1"):
    """Status of each observed run that was sent. items: of each run, in their order, its status, id,
    bound_seconds and within_bound, None without a valid bound; of a conflict, why."""

    items: tuple[dict[str, Any], ...]


@operation(
    "POST", "/v1/runs", AddRuns, lambda parts: [i["status"] for part in parts for i in part.items]
)
async def add_runs(service: Serving, question: AddRuns) -> RunsAdded:
    """Store observed runs under their ids; of each `stored`, `already_stored`, `conflict` or `error`.

    On the disk of the service when this returns. Again does no harm.
    """
    from jostle.server.http._reading import items_of

    items, served = items_of(vars(question), service.settings), service.folder.served
    added = await service.write(lambda: _added(service, served, items))
    service.metrics.count("runs", (one["status"] for one in added))
    return RunsAdded(tuple(added), model=None if served is None else served.label)


def _added(service: Serving, served: Served | None, items: list[Any]) -> list[dict[str, Any]]:
    """Store what can be stored; a status for each."""
    from jostle.server.state._state_store import ObservedRun

    runs: dict[int, SentRun] = {}
    answers: list[Any] = [None] * len(items)
    for place, item in enumerate(items):
        try:
            runs[place] = SentRun.read(item)
        except UsageError as error:
            answers[place] = Unanswered(str(error), place).to_document()
    level, now = service.settings.confidence, service.clock()
    bounds = _bounds_of(served, runs, level)
    version = None if served is None else served.version
    observed = [
        ObservedRun(r.id, r.stored, now, level, r.runtime_seconds, bounds.get(place), version)
        for place, r in runs.items()
    ]
    statuses = service.store.add_runs(observed) if observed else []
    for place, one, status in zip(runs, observed, statuses, strict=True):
        bound = one.bound_seconds
        within = None if bound is None else one.runtime_seconds <= bound
        about = {"id": one.id, "bound_seconds": bound, "within_bound": within}
        answers[place] = {"status": status, **about}
        if status == "conflict":
            why = f"another run is stored under the id {one.id!r}; it was kept"
            answers[place]["error"] = why
    if stored := statuses.count("stored"):
        service.metrics.runs.inc(stored)
        service.follow()
    return answers


def _bounds_of(served: Served | None, runs: dict[int, SentRun], level: float) -> dict[int, float]:
    """Bound those of the runs that the model knows. Returns {place: the bound}, for valid bounds."""
    if served is None or not runs:
        return {}
    items = [{key: getattr(one, key) for key in _COLOCATION} for one in runs.values()]
    read, places = read_items(items, served.known), list(runs)
    changing = {place for place, one in runs.items() if one.stretches}  # a bound is of one company
    bounds = served.model.bound(read.colocations, level).seconds.tolist() if read.at else []
    pairs = zip(read.at, bounds, strict=True)
    return {
        places[at]: bound
        for at, bound in pairs
        if math.isfinite(bound) and places[at] not in changing
    }


@dataclass(frozen=True)
class ListRuns(Question):
    """Choice of observed runs."""

    after: Annotated[int, "The number of the last one known.", Limits(0, 10**15 - 1)] = 0
    limit: Annotated[int, "So many at most.", Limits(0, 10**15 - 1)] = 100


@dataclass(frozen=True)
class ObservedRuns(StateAnswer, schema="observed_runs/v1"):
    """Observed runs with what was known when they came. items: of each its number, id, itself, and what was
    known when it came. last: to ask after next."""

    items: tuple[dict[str, Any], ...]
    last: int


@operation("GET", "/v1/runs", ListRuns, lambda parts: list(parts[0].items))
async def observed_runs(service: Serving, question: ListRuns) -> ObservedRuns:
    """Return observed runs in the order in which they came."""
    most = min(question.limit, MOST_ROWS)
    rows = await service.write(lambda: service.store.runs_after(question.after, most))
    known = ("received_at", "confidence", "bound_seconds", "model_version")
    items = [
        {"number": row["number"], "id": row["id"], **row["run"], **{k: row[k] for k in known}}
        for row in rows
    ]
    return ObservedRuns(tuple(items), items[-1]["number"] if items else question.after)
