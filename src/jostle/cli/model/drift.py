"""`jostle drift`: which names no longer run as long as the model says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._options import Positional
from jostle._report import Report, Table
from jostle.cli.console._fields import Model


@dataclass(frozen=True, kw_only=True)
class DriftCommand:
    """Which model is compared with which runs."""

    model: Model
    dataset: Annotated[Path, "Runs measured since.", Positional()]
    since: Annotated[
        str | None, "Only runs measured from then on, such as 2026-03-01T12:00 (UTC)."
    ] = None


def drift(command: DriftCommand) -> Report:
    """Which platforms, devices and workloads drift: their runs no longer take as long as the model says.

    Goes through the runs in the order of their times. Ends with 1 where something drifts.
    """
    from jostle.models import load
    from jostle.runs import read_runs

    watch = load(command.model).watch()
    drifts = watch.replay(read_runs(command.dataset), command.since)
    document = {
        "schema": "drift/v1",
        "runs": watch.runs,
        "checked": watch.checked,
        "unknown_names": watch.unknown,
        "drifts": [one.to_row() for one in drifts],
    }
    text = f"{watch.checked} runs checked"
    if watch.unknown:
        text += f", {watch.unknown} of unknown names left out"
    if not drifts:
        return Report(document, [f"nothing drifts: {text}"])
    cells = {
        "what": lambda one: one.kind,
        "name": lambda one: one.name or "all of it",
        "times as long": lambda one: f"{one.ratio:.2f}",
        "after runs": lambda one: str(one.runs),
        "found at": lambda one: one.at or f"run {one.found}",
    }
    advice = "Fit anew on runs measured since, or ask model.watch() for bounds that follow."
    return Report(document, [Table.of(drifts, cells, (2, 3)), text, advice], exit_code=1)
