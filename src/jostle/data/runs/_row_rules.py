"""The rules that every row of a table of runs obeys, and a report of the rows that do not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from jostle.data.runs._name_columns import encode_lists, filled, flags, repeated
from jostle.data.runs._schema import OPTIONAL, STATUSES
from jostle.data.runs._segments import bad_stretches, has_stretches
from jostle.data.tables.arrow_compute import pc
from jostle.errors import BadRows

SHOWN = 20
SHORTEST_SECONDS = 1e-9  # no clock tells less of a run
_KEPT = 1000

RowName = Callable[[int], str]


def _plain_row(row: int) -> str:
    return f"row {row}"


class Findings:
    """Rows that break a rule, and the reasons. Reasons are put into words only where they are shown."""

    def __init__(self, number_of_rows: int) -> None:
        self.number_of_rows = number_of_rows
        self._checks: list[tuple[np.ndarray, RowName]] = []

    def add(self, rows: np.ndarray, reason: str | RowName) -> None:
        """Add bad rows with a reason. rows: (k,) row numbers; reason: a text, or what makes one from a row
        number."""
        if len(rows):
            reason_of = (lambda _: reason) if isinstance(reason, str) else reason
            self._checks.append((np.unique(rows), reason_of))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rows(self) -> np.ndarray:
        """Sorted numbers of the bad rows, each once."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(r for r, _ in self._checks)]))

    def reasons(self, rows: np.ndarray) -> list[str]:
        """Return what is wrong with each of these rows, all of it."""
        texts: dict[int, list[str]] = {int(row): [] for row in rows}
        for at, reason_of in self._checks:
            for row in np.intersect1d(at, rows, assume_unique=True):
                texts[int(row)].append(reason_of(int(row)))
        return [", and ".join(texts[int(row)]) for row in rows]

    def require_none(
        self, *, where: str | None = None, row_name: RowName = _plain_row, fix: str | None = None
    ) -> None:
        """Raises BadRows: the first rows with their reasons, and how many there are."""
        if number := len(self):
            rows = self.rows[:_KEPT]
            bad = list(zip(rows.tolist(), self.reasons(rows), strict=True))
            raise bad_rows(bad, (number, self.number_of_rows), row_name, where, fix)


def bad_rows(
    bad: list[tuple[int, str]],
    of: tuple[int, int],
    row_name: RowName,
    where: str | None,
    fix: str | None,
) -> BadRows:
    """Make the error for bad rows. bad: (row, reason) of the first, or all, of so many bad ones `of` so many
    rows."""
    number, total = of
    lines = [f"\n  {row_name(row)}: {reason}" for row, reason in bad[:SHOWN]]
    if number > SHOWN:
        lines.append(f"\n  and {number - SHOWN} more")
    what = f"{number} of {total} rows cannot be used:{''.join(lines)}"
    return BadRows(what, rows=bad, where=where, fix=fix)


def find_bad_rows(
    table: pa.Table,
    workload_features: pa.Table | None,
    platform_features: pa.Table | None,
    row_name: RowName = _plain_row,
) -> Findings:
    """Check a table whose columns conform to a schema of runs; row_name names a row in reasons."""
    findings = Findings(table.num_rows)

    def value(column: str) -> RowName:
        return lambda row: repr(table.column(column)[row].as_py())

    for name in ("workload", "platform", "run_id", "window_id"):
        empty = pc.or_kleene(pc.is_null(table.column(name)), pc.equal(table.column(name), ""))
        findings.add(np.flatnonzero(flags(empty)), f"{name} is empty")
    _check_corunners(findings, table, workload_features)
    _check_outcome(findings, table)
    for name, (kind, _, _) in OPTIONAL.items():
        if pa.types.is_floating(kind) and name in table.column_names:
            amounts = filled(table.column(name), 1.0)
            findings.add(
                np.flatnonzero(~((amounts > 0) & np.isfinite(amounts))),
                lambda row, name=name: f"{name} is {value(name)(row)}, not above 0",
            )
    if has_stretches(table.schema):
        for rows, reason in bad_stretches(table, workload_features):
            findings.add(rows, reason)
    rows, earlier = repeated(table.column("run_id"))
    first = dict(zip(rows.tolist(), earlier.tolist(), strict=True))
    run_id = value("run_id")
    findings.add(rows, lambda row: f"run_id {run_id(row)} already stands in {row_name(first[row])}")
    for key, features in (("workload", workload_features), ("platform", platform_features)):
        if features is not None:
            column = table.column(key)
            known = pc.is_in(column, value_set=features.column(key).combine_chunks())
            lost = flags(pc.and_(pc.invert(known), pc.fill_null(pc.not_equal(column, ""), False)))
            findings.add(
                np.flatnonzero(lost),
                lambda row, key=key: f"{key} {value(key)(row)} is not in the {key} features",
            )
    return findings


def _check_corunners(
    findings: Findings, table: pa.Table, workload_features: pa.Table | None
) -> None:
    lists = table.column("corunners")
    null = np.flatnonzero(flags(pc.is_null(lists)))
    findings.add(null, "corunners is null (an empty list says that it ran alone)")
    offsets, codes, names = encode_lists(lists)
    row = np.repeat(np.arange(table.num_rows), np.diff(offsets))
    empty = (codes < 0) | (codes == (names.index("") if "" in names else -1))
    findings.add(row[empty], "a co-runner's name is empty")
    if workload_features is not None:
        known = set(workload_features.column("workload").to_pylist())
        unknown = [code for code, name in enumerate(names) if name and name not in known]
        at = row[np.isin(codes, unknown)]

        def reason(bad: int) -> str:
            here = codes[offsets[bad] : offsets[bad + 1]]
            named = names[int(here[np.isin(here, unknown)][0])]
            return f"co-runner {named!r} is not in the workload features"

        findings.add(at, reason)


def _check_outcome(findings: Findings, table: pa.Table) -> None:
    status, runtime = table.column("status"), table.column("runtime_seconds")
    unknown = ~flags(pc.is_in(status, value_set=pa.array(STATUSES)))
    findings.add(
        np.flatnonzero(unknown),
        lambda row: f"status {status[row].as_py()!r} is none of {', '.join(STATUSES)}",
    )
    ok = flags(pc.equal(status, "ok"))
    seconds = pc.fill_null(runtime, np.nan).to_numpy()
    findings.add(np.flatnonzero(ok & np.isnan(seconds)), "runtime_seconds is missing or NaN")
    findings.add(np.flatnonzero(ok & np.isinf(seconds)), "runtime_seconds is infinite")
    findings.add(
        np.flatnonzero(ok & (seconds <= 0) & np.isfinite(seconds)),
        lambda row: f"runtime_seconds is {seconds[row]}, not above 0",
    )
    findings.add(
        np.flatnonzero(ok & (seconds > 0) & (seconds < SHORTEST_SECONDS)),
        lambda row: f"runtime_seconds is {seconds[row]}, under 1 ns",
    )
    contradictory = ~ok & ~unknown & flags(pc.is_valid(runtime))
    findings.add(
        np.flatnonzero(contradictory),
        lambda row: f"runtime_seconds is given although status is {status[row].as_py()!r}",
    )
    excused = ok & flags(pc.is_valid(table.column("reason")))
    findings.add(np.flatnonzero(excused), "a reason is given although status is ok")
