"""The paper's protocol: methods x observed shares x replicates, one finished cell at a time.

Source: Pitot (MLSys 2025), Sec. 5.1. Of a dataset a share is observed (of it 80% to train on and 20% to
validate and calibrate with), the rest is the test; every replicate draws anew. A cell's numbers are
facts: each is one immutable Parquet file, named by a hash of all that determines it, written whole or not
at all. So a killed run loses only the cells in flight, and studies share the cells they have in common.

    <folder>/cells/<method>-<observed>-<replicate>-<hash>.parquet
    <folder>/<study>.parquet       all cells of a study in one tidy table

History: protocol/v1, the first.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle.errors import NotPermitted, UnreadableFile, UsageError
from jostle.evaluate.factorization._cells import SCHEMA, Cell, run_cell, write_whole
from jostle.evaluate.factorization._elsewhere import (
    core_count,
    read_ok,
    run_in_processes,
    run_on_cluster,
)
from jostle.evaluate.factorization._variants import Comparison

if TYPE_CHECKING:
    import pyarrow as pa


Progress = Callable[[int, int, str], None]


def run_protocol(
    dataset: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    study: Comparison,
    *,
    observed: Sequence[float],
    replicates: int = 5,
    seed: int = 0,
    by: str = "row",
    workers: int | None = None,
    scheduler: Any = None,
    progress: Progress | None = None,
) -> pa.Table:
    """Fit what is not in `folder` yet and return the study's tidy table, also left in
    `folder`/<study>.parquet.

    workers: cells at once, each in its own process on its share of the cores; by default as many as
    there are cores. scheduler: the address of a Dask scheduler (or a client) whose workers fit instead;
    they are sent the runs and send back their numbers. progress: called with (cells done, cells in
    all, the cell). Columns of the table: see docs/evaluate-factorization.md. Raises UsageError,
    UnreadableFile and what a fit raises.
    """
    from jostle.runs import Dataset

    for share in observed:
        if not 0 < share < 1:
            raise UsageError(f"observed {share} is not between 0 and 1")
    if replicates < 1 or not observed:
        raise UsageError("there must be at least one replicate and one observed share")
    data = Dataset(dataset).version()
    cells = [
        Cell(variant, share, replicate, seed, by, data)
        for replicate in range(replicates)
        for share in observed
        for variant in study.variants
    ]
    home = Path(folder) / "cells"
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise NotPermitted(f"cannot make the folder: {error.strerror}", where=str(home)) from None
    missing = [cell for cell in cells if not (home / cell.file_name).is_file()]
    done = len(cells) - len(missing)
    report = progress or (lambda *_: None)
    workers = min(workers or core_count(), max(len(missing), 1))

    def told(number: int, cell: str) -> None:
        report(done + number, len(cells), cell)

    if scheduler is not None and missing:
        run_on_cluster(scheduler, read_ok(str(dataset)), home, missing, told)
    elif workers == 1:
        runs = None
        for number, cell in enumerate(missing):
            told(number, str(cell))
            runs = runs if runs is not None else read_ok(str(dataset))
            run_cell(runs, cell, home)
    else:
        run_in_processes(str(dataset), home, missing, workers, told)
    report(len(cells), len(cells), "")
    table = gather(home, study, cells)
    table = table.replace_schema_metadata({"schema": SCHEMA, "reference": study.reference})
    write_whole(Path(folder) / f"{study.name}.parquet", table)
    return table


def gather(home: Path, study: Comparison, cells: Sequence[Cell]) -> pa.Table:
    """The finished cells of a study in one table, with the study's names for their methods.

    Raises UnreadableFile for a cell that is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    parts = []
    for cell in cells:
        path = home / cell.file_name
        try:
            part = pq.read_table(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise UnreadableFile(
                f"not a readable result: {error}", where=str(path), fix="Remove it and run again."
            ) from None
        named = {"study": study.name, "method": cell.variant.name}
        for place, (name, text) in enumerate(named.items()):
            part = part.add_column(place, name, pa.array([text] * len(part)))
        parts.append(part)
    return pa.concat_tables(parts)
