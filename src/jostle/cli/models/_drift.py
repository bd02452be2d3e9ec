"""`jostle drift`: which names no longer run as long as the model says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from jostle._options import Positional
from jostle._report import Report, Table
from jostle.cli.console import command_of, show
from jostle.cli.console._fields import Json

NO = 1


@dataclass(frozen=True, kw_only=True)
class DriftCommand:
    """Which platforms, devices and workloads drift: their runs no longer take as long as the model says.

    Goes through the runs in the order of their times. Ends with 1 where something drifts.
    """

    model: Annotated[Path, "A model that jostle fit has made.", Positional()]
    dataset: Annotated[Path, "Runs measured since.", Positional()]
    since: Annotated[
        str | None, "Only runs measured from then on, such as 2026-03-01T12:00 (UTC)."
    ] = None
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("drift")(command_of(DriftCommand, drift))


def drift(asked: DriftCommand) -> None:
    """Print every drift, the first to be found first."""
    from jostle.models import load
    from jostle.runs import read_runs

    watch = load(asked.model).watch()
    found = watch.replay(read_runs(asked.dataset), asked.since)
    document = {
        "schema": "drift/v1",
        "runs": watch.runs,
        "checked": watch.checked,
        "unknown_names": watch.unknown,
        "drifts": [one.to_row() for one in found],
    }
    rows = [
        [
            one.kind,
            one.name or "all of it",
            f"{one.ratio:.2f}",
            f"{one.runs}",
            one.at or f"run {one.found}",
        ]
        for one in found
    ]
    columns = ["what", "name", "times as long", "after runs", "found at"]
    told = f"{watch.checked} runs checked" + (
        f", {watch.unknown} of unknown names left out" * bool(watch.unknown)
    )
    if found:
        advice = "Fit anew on runs measured since, or ask model.watch() for bounds that follow."
        show(Report(document, [Table(columns, rows, (2, 3)), told, advice]), asked.json_)
        raise typer.Exit(NO)
    show(Report(document, [f"nothing drifts: {told}"]), asked.json_)
