"""Requests: workloads that want a place, or have one, each with the objective that it must keep."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any

from jostle._base.confidence import exact_confidence
from jostle._base.option_fields import Limits, OneOf
from jostle._base.report import Glance
from jostle.data import RAGGED, read_rows
from jostle.data.tables import cells
from jostle.errors import BadData, UsageError

OK = "ok"
STATISTICS = ("mean", "p95", "p99", "max")
LEVELS = {"p95": 0.95, "p99": 0.99}  # confidences of runs at most so long


def _statistic(cell: Any, what: str) -> str | None:
    statistic = cells.text(cell, what)
    if statistic is not None and statistic not in STATISTICS:
        raise ValueError(f"{what} is {statistic!r}, none of {', '.join(STATISTICS)}")
    return statistic


def _confidence(cell: Any, what: str) -> float | None:
    value = cells.number(cell, what)
    try:
        return None if value is None else float(exact_confidence(value))
    except UsageError as error:
        raise ValueError(error.what) from None


_seconds = partial(cells.seconds, unit="s")
# How the cell of each column is read.
READERS: dict[str, Callable[[Any, str], Any]] = {
    "workload": cells.text,
    "name": cells.text,
    "deadline_seconds": _seconds,
    "slowdown": cells.slowdown,
    "solo_seconds": _seconds,
    "stay_seconds": _seconds,
    "elapsed_seconds": partial(cells.number, above=False),
    "done_ratio": partial(cells.number, above=False),
    "memory_bytes": cells.size,
    "worth": cells.number,
    "confidence": _confidence,
    "rate_per_second": cells.number,
    "statistic": _statistic,
    "pes_ratio": cells.number,
    "needs": cells.names,
    "allowed": cells.names,
    "apart": cells.names,
    "pin": cells.text,
    "node": cells.text,
}
COLUMNS = (*READERS, "deadline", "memory")


@dataclass(frozen=True)
class Request:
    """A workload that wants a place, or a tenant that has one. The tighter of both limits counts, and without
    either nothing is promised to it."""

    workload: Annotated[str, "Which workload."]
    name: Annotated[str, "Its own; by default that of its workload."] = ""
    deadline_seconds: Annotated[float | None, "Its runtime at most.", Limits(above=0)] = None
    slowdown: Annotated[float | None, "At most so many times its time alone.", Limits(1, 1e9)] = (
        None
    )
    solo_seconds: Annotated[
        float | None, "Its time alone, where it is known better than by the model.", Limits(above=0)
    ] = None
    confidence: Annotated[float | None, "Its own, else that of the question."] = None
    memory_bytes: Annotated[float, "On the node.", Limits(0, 1e18)] = 0.0
    needs: Annotated[tuple[str, ...], "Labels that the node must have."] = ()
    allowed: Annotated[tuple[str, ...], "Nodes or platforms, all if empty."] = ()
    pin: Annotated[str | None, "The node it must be on."] = None
    apart: Annotated[
        tuple[str, ...], "Names or workloads of requests that must not be on the same node."
    ] = ()
    stay_seconds: Annotated[
        float | None,
        "How long it stays on its node, for costs; else as long as its bound.",
        Limits(above=0),
    ] = None
    elapsed_seconds: Annotated[float | None, "For how long a tenant has run.", Limits(0)] = None
    done_ratio: Annotated[
        float | None,
        "The share of its work that is done by then, by its own count.",
        Limits(0, 0.999999),
    ] = None
    worth: Annotated[float, "Against others, where not all find a place.", Limits(above=0)] = 1.0
    node: Annotated[str | None, "Where a tenant is."] = None
    rate_per_second: Annotated[
        float | None, "Of a service's queries, none where runs follow each other.", Limits(above=0)
    ] = None
    statistic: Annotated[
        str | None,
        "What the limit is about; of a model of runs, p95 and p99 are a confidence where it has none.",
        OneOf(STATISTICS),
    ] = None
    pes_ratio: Annotated[
        float | None, "Of an accelerator's PEs, what it may use at most.", Limits(most=1, above=0)
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError for what no request can ask."""
        try:
            fields = _checked(vars(self))
        except ValueError as error:
            raise UsageError(f"the request {self.name or self.workload!r}: {error}") from None
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def has_objective(self) -> bool:
        """True if the request has a limit."""
        return self.deadline_seconds is not None or self.slowdown is not None

    def is_apart_from(self, other: Request) -> bool:
        """Return whether one of the two must not be beside the other."""
        mine, theirs = {self.name, self.workload}, {other.name, other.workload}
        return bool(mine & set(other.apart)) or bool(theirs & set(self.apart))

    @classmethod
    def of_text(cls, text: str, name: str = "") -> Request:
        """Read `workload`, `workload@1.5x` or `workload@20ms`. Raises ValueError."""
        workload, at, limit = text.rpartition("@")
        if not at:
            return cls(text, name or text)
        seconds, slowdown = cells.limit(limit, "the limit")
        if seconds is None and slowdown is None:
            raise ValueError(f"{text!r} has no limit after @")
        return cls(workload, name or workload, deadline_seconds=seconds, slowdown=slowdown)


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a request from cells. Raises ValueError."""
    if cells.text(row.get("workload"), "workload") is None:
        raise ValueError("workload is empty")
    fields = {name: read(row.get(name), name) for name, read in READERS.items()}
    for name, value in (("name", ""), ("memory_bytes", 0.0), ("worth", 1.0)):
        fields[name] = value if fields[name] is None else fields[name]
    share = fields["pes_ratio"]
    if fields["confidence"] is None and fields["rate_per_second"] is None:
        fields["confidence"] = LEVELS.get(fields["statistic"] or "")
    if fields["done_ratio"] is not None and fields["done_ratio"] >= 1:
        raise ValueError(
            f"done_ratio is {fields['done_ratio']:g}, not a share under 1, such as 0.4; leave it empty of "
            "what runs past its end, and the time tells"
        )
    if fields["done_ratio"] and not fields["elapsed_seconds"]:
        raise ValueError("done_ratio is given without elapsed_seconds, for how long it has run")
    if share is not None and share > 1:
        raise ValueError(f"pes_ratio is {share:g}, not above 0 and at most 1")
    return fields


def memory_of(row: Mapping[str, Any]) -> Any:
    """Return the cell that says it. Raises ValueError where two do."""
    columns = [name for name in ("memory", "memory_bytes") if not cells.is_empty(row.get(name))]
    if len(columns) > 1:
        raise ValueError("both memory and memory_bytes are given")
    return row[columns[0]] if columns else None


def another_name(name: str, taken: Collection[str]) -> str:
    """Return the name, with a number after it where it is taken."""
    again, free = 1, name
    while free in taken:
        again += 1
        free = f"{name} {again}"
    return free


def request_of_row(row: Mapping[str, Any]) -> Request:
    """Raises ValueError with a reason."""
    if RAGGED in row:
        raise ValueError(str(row[RAGGED]))
    row = dict(row)
    if not cells.is_empty(row.get("deadline")):
        seconds, slowdown = cells.limit(row["deadline"], "deadline")
        for name, value in (("deadline_seconds", seconds), ("slowdown", slowdown)):
            if value is not None and not cells.is_empty(row.get(name)):
                raise ValueError(f"both deadline and {name} are given")
            row[name] = value if value is not None else row.get(name)
    row["memory_bytes"] = memory_of(row)
    for name in ("deadline_seconds", "slowdown"):
        other = row.get("slowdown" if name == "deadline_seconds" else "deadline_seconds")
        if isinstance(row.get(name), float) and row[name] != row[name]:
            # Some tables have NaN where others have null; but never is it an objective of nothing.
            if cells.is_empty(other):
                raise ValueError(f"{name} is not a number")
            row[name] = None
    return Request(**_checked(row))


@dataclass(frozen=True, repr=False)
class Requests(Glance):
    """Rows that ask for a place, n of them. rows: a Request each, None where it could not be read. status:
    `ok` or why not. numbers: where each stands in its file. ignored: columns that mean nothing here."""

    rows: tuple[Request | None, ...]
    status: tuple[str, ...]
    numbers: tuple[int, ...] = ()
    where: str = ""
    ignored: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.rows)

    def _facts(self) -> list[tuple[str, str]]:
        """Count the rows, and those that could not be read."""
        return [("requests", f"{len(self)}"), ("unreadable", f"{len(self) - len(self.good)}")]

    @property
    def good(self) -> list[Request]:
        """Those that could be read."""
        return [row for row in self.rows if row is not None]

    @classmethod
    def read(cls, source: Any, columns: Mapping[str, str] | None = None) -> Requests:
        """Read a table of requests (see `read_rows`), with a status per row, so that one bad row spoils no
        batch.

        columns: {name here: name in the table}. Raises UnreadableFile, BadData, UnknownName.
        """
        table = read_rows(source, COLUMNS, columns)
        if table.rows and not any("workload" in row for row in table.rows):
            raise BadData(
                "no column is called 'workload'",
                where=table.where,
                fix=f"Call so, or map, one of: {', '.join(map(str, table.ignored)) or 'none'}.",
            )
        rows: list[Request | None] = []
        status = []
        for row in table.rows:
            try:
                rows.append(request_of_row(row))
                status.append(OK)
            except (ValueError, UsageError) as error:
                rows.append(None)
                status.append(str(error))
        return cls._named(rows, status, tuple(table.numbers), table.where, table.ignored)

    @classmethod
    def of(cls, source: Any) -> Requests:
        """Make requests of what a caller has: Requests, one Request or several, or what `read` takes."""
        if isinstance(source, Requests):
            return source
        if isinstance(source, Request):
            source = [source]
        if isinstance(source, Iterable) and not isinstance(source, (str, Mapping)):
            listed = list(source) if not hasattr(source, "to_pylist") else None
            if listed is not None and all(isinstance(row, Request) for row in listed):
                return cls._named(listed, [OK] * len(listed), tuple(range(len(listed))))
        return cls.read(source)

    @classmethod
    def _named(
        cls,
        rows: list[Request | None],
        status: list[str],
        numbers: tuple[int, ...],
        where: str = "",
        ignored: tuple[str, ...] = (),
    ) -> Requests:
        """Name each request that has no name, and drop those whose name an earlier one has."""
        taken = {row.name for row in rows if row is not None and row.name}
        names: set[str] = set()
        named: list[Request | None] = []
        for place, row in enumerate(rows):
            if row is not None and not row.name:
                row = replace(row, name=another_name(row.workload, taken))
                taken.add(row.name)
            if row is not None and row.name in names:
                status[place] = f"the name {row.name!r} stands in an earlier row"
                row = None
            if row is not None:
                names.add(row.name)
            named.append(row)
        return cls(tuple(named), tuple(status), numbers, where, ignored)
