"""The paper's protocol: methods x observed shares x replicates, one finished cell at a time.

Source: Pitot (MLSys 2025), Sec. 5.1. Of a dataset a share is observed (of it 80% to train on and 20% to
validate and calibrate with), the rest is the test; every replicate draws anew.

    <folder>/cells/<method>-<observed>-<replicate>-<hash>.parquet
    <folder>/<comparison>.parquet       all cells of a comparison in one tidy table

History: protocol/v1, the first.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jostle._base.progress import Progress, no_progress
from jostle.errors import UsageError
from studies.cells import Runner, write_table
from studies.factorization.cells import SCHEMA, ProtocolCell
from studies.factorization.comparisons import Comparison

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Draws:
    """What is drawn of a dataset. observed: shares of the runs. replicates: draws of each share, each with a
    seed one higher. by: single rows as the paper does, or whole windows. Raises UsageError."""

    observed: Sequence[float]
    replicates: int = 5
    seed: int = 0
    by: str = "row"

    def __post_init__(self) -> None:
        for share in self.observed:
            if not 0 < share < 1:
                raise UsageError(f"observed {share} is not between 0 and 1")
        if self.replicates < 1 or not self.observed:
            raise UsageError("there must be at least one replicate and one observed share")


def run_protocol(
    dataset: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    comparison: Comparison,
    draws: Draws,
    *,
    workers: int | None = None,
    scheduler: Any = None,
    progress: Progress = no_progress,
) -> pa.Table:
    """Fit what is not in `folder` yet and return the comparison's tidy table, also left in
    `folder`/<comparison>.parquet.

    workers, scheduler: as of Runner; by default as many workers as there are cores. Columns of the table:
    see docs/factorization.md. Raises UnreadableFile and what a fit raises.
    """
    import pyarrow as pa

    from jostle.data import Dataset, read_runs

    data = Dataset(dataset).version()
    cells = [
        ProtocolCell(variant, share, replicate, draws.seed, draws.by, data)
        for replicate in range(draws.replicates)
        for share in draws.observed
        for variant in comparison.variants
    ]
    runner = Runner(workers, scheduler, Path(folder) / "cells")
    parts = runner.run(cells, lambda: read_runs(dataset).ok(), progress)
    named = [
        part.add_column(0, "study", pa.array([comparison.name] * len(part))).add_column(
            1, "method", pa.array([cell.variant.name] * len(part))
        )
        for cell, part in zip(cells, parts, strict=True)
    ]
    table = pa.concat_tables(named).replace_schema_metadata(
        {"schema": SCHEMA, "reference": comparison.reference}
    )
    write_table(Path(folder) / f"{comparison.name}.parquet", table)
    return table
