"""Many questions in a table, each with an answer or with the reason why it has none."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from jostle._base.confidence import exact_confidence
from jostle._base.report import Glance
from jostle._base.tabular import Tabular, index_of
from jostle.conformal import STATUSES
from jostle.data import RAGGED, Colocations, read_rows, write_table
from jostle.data.tables import cells
from jostle.errors import BadRows, JostleError, UnknownName, UsageError
from jostle.models.timelines._timeline_predict import over_time

ASKED = ("workload", "platform", "corunners")
# Outcomes of a row without an answer: a name that the model does not know, a row that asks nothing.
UNKNOWN, BAD = "unknown_name", "bad_row"
_TEXTS = ("outcome", "pool", "evidence", "status", "reason")
_ANSWERED = ("runtime_seconds", "bound_seconds", "calibration_runs", *_TEXTS)


@dataclass(frozen=True, repr=False)
class AnsweredTable(Tabular, Glance):
    """Table with one answer for each of n rows, in their order.

    asked: the rows as they came, with their other columns. where: the file. numbers: (n,) where each row
    stands in it. ignored: the other columns. corunners: n lists, None for a bad row. seconds,
    bound_seconds: (n,), NaN where there is no answer, infinite where no bound is valid. outcome: (n,) of
    jostle.conformal.OUTCOMES, `unknown_name` or `bad_row`: the code of the reason. calibration_runs, rank:
    (n,), of the score that is the bound. status: (n,) of jostle.conformal.STATUSES. reason: (n,) sentences.
    """

    asked: list[dict[str, Any]]
    where: str
    numbers: list[int]
    corunners: list[list[str] | None]
    seconds: np.ndarray
    bound_seconds: np.ndarray
    outcome: np.ndarray
    pool: np.ndarray
    evidence: np.ndarray
    calibration_runs: np.ndarray
    rank: np.ndarray
    status: np.ndarray
    reason: np.ndarray
    confidence: float
    ignored: tuple[str, ...] = ()
    index: Any = None

    def __len__(self) -> int:
        return len(self.asked)

    def _facts(self) -> list[tuple[str, str]]:
        """Count the rows, and what became of them."""
        facts = [("rows", f"{len(self)}"), ("confidence", f"{self.confidence:g}")]
        status = self.status.tolist()
        return facts + [(one, f"{status.count(one)}") for one in STATUSES if one in status]

    @property
    def is_answered(self) -> np.ndarray:
        """True for rows with a prediction, (n,) bool."""
        return ~np.isin(self.outcome, (UNKNOWN, BAD))

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows' own columns, then the answers. A column of the rows that is called as an answer
        keeps its values under its name and `_asked`."""
        own = {name: [row.get(name) for row in self.asked] for name in _names(self.asked)}
        own["corunners"] = list(self.corunners)
        rest = ("outcome", "pool", "calibration_runs", "evidence", "status", "reason")
        return own | {
            "runtime_seconds": _numbers(self.seconds),
            "bound_seconds": _numbers(self.bound_seconds),
            **{name: getattr(self, name).tolist() for name in rest},
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return row by row what `columns` gives."""
        columns = self.columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def take(self, indices: Any) -> AnsweredTable:
        """Select rows. indices: (m,) row numbers, or an (n,) boolean mask."""
        at = np.arange(len(self))[indices].reshape(-1)
        lists = {n: [getattr(self, n)[i] for i in at] for n in ("asked", "numbers", "corunners")}
        arrays = {n: v[at] for n, v in vars(self).items() if isinstance(v, np.ndarray)}
        index = None if self.index is None else self.index[at]
        return replace(self, **lists, **arrays, index=index)

    def to_table(self) -> pa.Table:
        """Return an Arrow table; `polars.from_arrow` makes it one of polars."""
        columns = {}
        for name, values in self.columns().items():
            kind = pa.list_(pa.string()) if name == "corunners" else None
            try:
                columns[name] = pa.array(values, kind)
            except (pa.ArrowException, TypeError):  # cells of many kinds
                columns[name] = pa.array([None if v is None else str(v) for v in values])
        return pa.table(columns)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV, Parquet, Arrow or JSON file, by its ending. Raises UsageError, NotPermitted."""
        write_table(self.to_table(), path)


def answers(
    model: Any,
    table: Any,
    confidence: float,
    columns: Mapping[str, str] | None = None,
    separator: str = cells.SEPARATOR,
    *,
    tail: bool = False,
    mix_by: str | None = None,
    throughout: bool = False,
) -> AnsweredTable:
    """Answer a table as Model.answer does."""
    exact_confidence(confidence)  # one that makes no sense is refused, whatever is asked
    known = _Known(model)
    rows_read = read_rows(table, (*ASKED, *known.covariates), columns, others=_kept_as)
    parsed = [known.parsed(row, separator) for row in rows_read.rows]
    n = len(parsed)
    blank = {name: np.full(n, "", object) for name in ("pool", "evidence")}
    table_of_answers = AnsweredTable(
        asked=[{k: v for k, v in row.items() if k != RAGGED} for row in rows_read.rows],
        where=rows_read.where,
        numbers=rows_read.numbers,
        corunners=[None if one.row is None else list(one.row[2]) for one in parsed],
        seconds=np.full(n, np.nan),
        bound_seconds=np.full(n, np.nan),
        calibration_runs=np.zeros(n, np.int64),
        rank=np.zeros(n, np.int64),
        outcome=np.array([one.outcome for one in parsed], object),
        status=np.full(n, "none", object),
        reason=np.array([one.reason for one in parsed], object),
        confidence=confidence,
        ignored=rows_read.ignored,
        index=index_of(table),
        **blank,
    )
    good = [i for i in range(n) if not parsed[i].outcome]
    rows = [parsed[i].row for i in good]
    if mix_by is not None and rows:
        model = model.for_mix(_colocations(rows), mix_by)
    _fill(model, table_of_answers, rows, np.array(good, np.int64), tail, throughout)
    return table_of_answers


def colocations_of(model: Any, table: Any, separator: str = cells.SEPARATOR) -> Colocations:
    """Read the co-locations of a table, all of whose rows must ask something. table: as of Model.answer.
    Raises BadRows for rows that ask nothing, and what reading a table raises."""
    known = _Known(model)
    read = read_rows(table, (*ASKED, *known.covariates), others=_kept_as)
    parsed = [known.parsed(row, separator, any_name=True) for row in read.rows]
    bad = [(number, one.reason) for number, one in enumerate(parsed) if one.row is None]
    if bad:
        first = f"row {bad[0][0]}: {bad[0][1]}"
        raise BadRows(f"{len(bad)} rows ask nothing, first {first}", rows=bad[:20])
    return _colocations([one.row for one in parsed])


Asked = tuple[str, str, tuple[str, ...], dict[str, Any]]


@dataclass(frozen=True)
class _Parsed:
    """row: workload, platform, co-runners, covariates."""

    row: Asked | None
    outcome: str = ""
    reason: str = ""


class _Known:
    """The names of a model, and what is wrong with a row that has others."""

    def __init__(self, model: Any) -> None:
        predictor = model.predictor
        self.lists = {
            "workload": tuple(predictor.workload_names),
            "platform": tuple(predictor.platform_names),
        }
        self.sets = {kind: frozenset(names) for kind, names in self.lists.items()}
        self.covariates: tuple[str, ...] = tuple(getattr(predictor, "covariate_names", ()))
        self.answers_new = bool(getattr(predictor, "answers_new_names", False))
        only = self.lists["platform"]
        self.only_platform = only[0] if len(only) == 1 else None
        self.reasons: dict[tuple[str, str], str] = {}

    def parsed(self, row: Mapping[str, Any], separator: str, *, any_name: bool = False) -> _Parsed:
        """Parse the rows that ask something. any_name: whether names are left to the model."""
        try:
            if RAGGED in row:
                raise ValueError(str(row[RAGGED]))
            workload = cells.text(row.get("workload"), "workload")
            platform = cells.text(row.get("platform"), "platform") or self.only_platform
            for name, cell in (("workload", workload), ("platform", platform)):
                if cell is None:
                    raise ValueError(
                        f"the row has no {name} (columns: {', '.join(ASKED)}, or as `columns` says)"
                    )
            others = cells.entries(row.get("corunners"), "corunners", separator)
            if bad := [one for one in others if not isinstance(one, str) or not one.strip()]:
                raise ValueError(f"corunners holds {bad[0]!r}, not a name")
            more = {name: _covariate(row.get(name), name) for name in self.covariates}
        except ValueError as error:
            return _Parsed(None, BAD, str(error))
        names = (str(workload), str(platform), tuple(sorted(others)), more)
        unknown = [
            self._unknown(kind, name, column)
            for kind, name, column in (
                ("workload", names[0], "workload"),
                ("platform", names[1], "platform"),
                *(("workload", name, "co-runner") for name in dict.fromkeys(names[2])),
            )
            if name not in self.sets[kind] and not any_name
        ]
        return _Parsed(
            names, UNKNOWN if unknown and not self.answers_new else "", " ".join(unknown)
        )

    def _unknown(self, kind: str, name: str, column: str) -> str:
        key = (column, name)
        if key not in self.reasons:
            self.reasons[key] = str(UnknownName(column, name, self.lists[kind]))
        return self.reasons[key]


def _fill(
    model: Any,
    made: AnsweredTable,
    rows: Sequence[Any],
    at: np.ndarray,
    tail: bool,
    throughout: bool,
) -> None:
    """Fill in the model's answers; a co-location that it refuses does not stop the others."""
    if not len(rows):
        return
    query = over_time(model, _colocations(rows), throughout=throughout or tail)
    try:
        seconds, bounds = model.predict_and_bound(query, made.confidence, tail=tail)
    except UsageError:
        raise
    except JostleError as error:
        if len(rows) == 1:
            made.outcome[at], made.reason[at] = BAD, str(error)
            return
        half = len(rows) // 2
        _fill(model, made, rows[:half], at[:half], tail, throughout)
        _fill(model, made, rows[half:], at[half:], tail, throughout)
        return
    made.seconds[at], made.bound_seconds[at] = seconds, bounds.seconds
    made.outcome[at], made.pool[at] = bounds.outcome, bounds.pool
    made.evidence[at], made.calibration_runs[at] = bounds.evidence, bounds.n
    made.rank[at] = bounds.rank
    made.status[at] = bounds.status
    made.reason[at] = [
        f"{more}; {one}" if one else more
        for one, more in zip(made.reason[at], bounds.reason, strict=True)
    ]


def _colocations(rows: Sequence[Any]) -> Colocations:
    workload, platform, corunners, more = zip(*rows, strict=True) if rows else ((),) * 4
    return Colocations.from_columns(
        workload=workload,
        platform=platform,
        corunners=corunners,
        covariates={name: [one[name] for one in more] for name in (more[0] if more else ())},
    )


def _covariate(cell: Any, name: str) -> float | str | None:
    """Read a number, a text, or None if it is unknown. Raises ValueError."""
    if cell is None or cell == "" or cell != cell:
        return None
    if isinstance(cell, (bool, int, float, np.number)):
        return float(cell)
    try:
        return float(str(cell))
    except ValueError:
        return cells.text(cell, name)


def _kept_as(name: str) -> str:
    return f"{name}_asked" if name in _ANSWERED else name


def _names(rows: list[dict[str, Any]]) -> list[str]:
    """Return columns in the order they come in, those that are asked about in any case."""
    return list(dict.fromkeys([*ASKED, *(name for row in rows for name in row)]))


def _numbers(values: np.ndarray) -> list[float | None]:
    """Replace NaN, which some readers of files take for text, by None."""
    return [None if np.isnan(value) else float(value) for value in values]
