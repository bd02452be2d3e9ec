"""`jostle place score`: whether each co-location of a Parquet table is safe, however large it is."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle._options import Positional, Short
from jostle.cli.console import fit_progress, named_values, show
from jostle.cli.console._fields import Confidence, Json, Model
from jostle.cli.placement import _place_tables as tables


@dataclass(frozen=True, kw_only=True)
class PlaceScoreCommand:
    """Is each co-location of a Parquet table safe? A row is a workload, a platform, its corunners, and its
    limit as deadline_seconds or slowdown; corunner_limits_seconds holds theirs. Batch by batch, so that a
    table of any length fits; on the workers of a Dask scheduler where one is given."""

    model: Model
    table: Annotated[Path, "The Parquet table.", Positional()]
    output: Annotated[Path, "The Parquet file to write.", Short("-o")]
    column: Annotated[tuple[str, ...], "A column of the table, NAME=THEIRS."] = ()
    confidence: Confidence = DEFAULT_CONFIDENCE
    joint: Annotated[bool, "That all in a row keep their limits at once, by a union bound."] = False
    accept: Annotated[
        Literal["none", "predicted"], "What counts where no bound is valid: predicted says so."
    ] = "none"
    dataset: Annotated[
        Path | None, "Measured runs, whose times alone count for limits such as 1.5x."
    ] = None
    scheduler: Annotated[
        str | None, "Address of a Dask scheduler whose workers score; they must see the table."
    ] = None
    json_: Json = False


def score(asked: PlaceScoreCommand) -> None:
    """Score the table."""
    from jostle.models import load
    from jostle.placement import place
    from jostle.runs import read_runs

    runs = None if asked.dataset is None else read_runs(asked.dataset)
    placement = place(
        load(asked.model),
        (),
        confidence=asked.confidence,
        joint=asked.joint,
        accept=asked.accept,
        runs=runs,
    )
    with fit_progress("scoring") as progress:
        found = placement.score(
            asked.table,
            asked.output,
            columns=named_values(asked.column),
            scheduler=asked.scheduler,
            progress=progress,
        )
    show(tables.score_report(found), asked.json_)
