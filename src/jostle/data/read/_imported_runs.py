"""What an import of runs found: the good rows, the bad ones with their reasons, and how to keep them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from jostle.data.read._foreign_table import ForeignTable
from jostle.data.runs._row_rules import bad_rows
from jostle.data.runs._runs import Runs
from jostle.data.store._add_runs import add_runs
from jostle.data.store._dataset import Dataset
from jostle.data.store._import_questions import TableQuestion, mended
from jostle.data.traces._traces import Traces, write_traces


@dataclass(frozen=True)
class Imported:
    """Result of an import.

    runs: the good rows. source: the file's name. bad: (row, reason) of the others; row is a line
    of the file, counting the header, for CSV, and the row from 0 for Parquet. rejected: the bad
    rows as a table with columns `row` and `reason` first, or None. skipped: rows that hold no
    measurement (a zero where a rate should be, a pair that did not fit into memory). aside:
    run_ids that are set aside as soon as they are in the dataset. remedies: what was done to names and
    units. understood: what columns, labels and units were taken for. traces: of the same runs. is_made:
    whether a tool wrote the table, whose names and units are as they are.
    """

    runs: Runs
    source: str
    bad: list[tuple[int, str]] = field(default_factory=list)
    rejected: pa.Table | None = None
    skipped: int = 0
    aside: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    understood: tuple[str, ...] = ()
    traces: Traces | None = None
    is_made: bool = False

    def mended(
        self, path: str | os.PathLike[str], answer: Callable[[TableQuestion], bool]
    ) -> Imported:
        """Return the import with those mends done that `answer` accepts, before runs join the dataset in
        folder `path`: names that differ in case or blanks, units, co-runners that are never workloads."""
        dataset, done = Dataset(path), list(self.remedies)

        def noted(question: TableQuestion) -> bool:
            if is_yes := answer(question):
                done.append(f"{question.text}: {question.remedy}")
            return is_yes

        runs, aside = mended(self.runs, dataset.read() if dataset.exists else None, noted)
        return replace(self, runs=runs, aside=self.aside + aside, remedies=tuple(done))

    def write(self, path: str | os.PathLike[str]) -> list[Path]:
        """Add to the dataset in folder `path`; returns the files written, rejected rows first.

        Raises what :func:`add_runs` raises; then nothing is written.
        """
        written = add_runs(path, self.runs, self.source, self.rejected, self.aside)
        return written + ([] if self.traces is None else write_traces(path, self.traces))


def rejected_rows(
    foreign: ForeignTable, bad: Sequence[tuple[int, str]], may_reject: bool
) -> pa.Table | None:
    """Return one row for each bad row of the table: its number, all reasons, and its cells as text.

    None where none is bad. Raises BadRows that names them unless they may be rejected.
    """
    if not bad:
        return None
    if not may_reject:
        total = foreign.table.num_rows + len(foreign.ragged)
        fix = "Nothing was written. Correct them, or set them aside with `drop_bad`."

        def named(row: int) -> str:
            return f"{foreign.unit} {row}"

        raise bad_rows(list(bad), (len(bad), total), named, foreign.where, fix)
    reasons = dict(bad)
    at = {int(number): row for row, number in enumerate(foreign.numbers.tolist())}
    index = pa.array([at.get(row) for row in reasons], pa.int64())
    columns: dict[str, Any] = {"row": list(reasons), "reason": list(reasons.values())}
    for name in foreign.table.column_names:
        texts = [_text(cell) for cell in foreign.table.column(name).take(index).to_pylist()]
        columns[f"source_{name}" if name in columns else name] = pa.array(texts, pa.string())
    return pa.table(columns)


def _text(cell: Any) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    return ";".join(map(str, cell)) if isinstance(cell, list) else str(cell)
