"""One cell of the protocol: a method fitted on one draw of one share, and its numbers as a file."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle import _tensors
from jostle.evaluate.factorization._variants import NamedMethod

if TYPE_CHECKING:
    import pyarrow as pa

    from jostle.runs import Runs

SCHEMA = "protocol/v1"


@dataclass(frozen=True)
class Cell:
    """One fit. data: version of the dataset. by: the split draws a `row` or a `window`."""

    variant: NamedMethod
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


def run_cell(
    runs: Runs, cell: Cell, home: Path, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Fit, measure, and leave the cell's file in `home`."""
    write_whole(home / cell.file_name, cell_table(runs, cell, clock))


def cell_table(runs: Runs, cell: Cell, clock: Callable[[], float] = time.perf_counter) -> pa.Table:
    """What the cell's file holds."""
    import pyarrow as pa

    from jostle.evaluate.factorization._measures import measure_cell
    from jostle.evaluate.factorization._splits import observed_split

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


def write_whole(path: Path, table: pa.Table) -> None:
    """All of it or nothing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    _tensors.write_whole(path, sink.getvalue())
