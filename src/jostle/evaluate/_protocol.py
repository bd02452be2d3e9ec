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

import hashlib
import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle import _tensors
from jostle.errors import NotPermitted, UnreadableFile, UsageError
from jostle.evaluate._ablations import Study, Variant
from jostle.evaluate._elsewhere import read_ok, run_in_processes, run_on_cluster, usable_cores

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.runs import Runs

SCHEMA = "protocol/v1"
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Cell:
    """One fit. data: version of the dataset. by: the split draws a `row` or a `window`."""

    variant: Variant
    observed: float
    replicate: int
    seed: int
    by: str
    data: str

    @property
    def file_name(self) -> str:
        """Equal for equal cells only, whatever the study: a method's name is not what it is."""
        from jostle import __version__

        parts = (SCHEMA, __version__, self.data, self.by, self.seed, self.observed, self.replicate)
        digest = hashlib.sha256(repr((*parts, self.variant.method)).encode()).hexdigest()[:12]
        kind = re.sub(r"[^a-z0-9]+", "-", self.variant.method.name.lower())
        return f"{kind}-{self.observed:g}-{self.replicate}-{digest}.parquet"

    def __str__(self) -> str:
        return f"{self.variant.name}, {self.observed:.0%} observed, replicate {self.replicate}"


def run_protocol(
    dataset: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    study: Study,
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
    workers = min(workers or usable_cores(), max(len(missing), 1))

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


def run_cell(
    runs: Runs, cell: Cell, home: Path, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Fit, measure, and leave the cell's file in `home`."""
    write_whole(home / cell.file_name, cell_table(runs, cell, clock))


def cell_table(runs: Runs, cell: Cell, clock: Callable[[], float] = time.perf_counter) -> pa.Table:
    """What the cell's file holds."""
    import pyarrow as pa

    from jostle.evaluate._factorization import observed_split
    from jostle.evaluate._measures import measure_cell

    seed = cell.seed + cell.replicate
    split = observed_split(runs, cell.observed, seed, cell.by)
    rows = measure_cell(runs, cell.variant.method, split, seed, clock)
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    n = len(rows)
    columns = {
        "observed": [cell.observed] * n,
        "replicate": [cell.replicate] * n,
        "seed": [cell.seed] * n,
        "split_by": [cell.by] * n,
        "settings": [repr(cell.variant.method)] * n,
    } | columns
    return pa.table(columns).replace_schema_metadata({"schema": SCHEMA})


def gather(home: Path, study: Study, cells: Sequence[Cell]) -> pa.Table:
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


def write_whole(path: Path, table: pa.Table) -> None:
    """All of it or nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    _tensors.write_whole(path, sink.getvalue())
