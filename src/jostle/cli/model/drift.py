"""`jostle drift`: which names no longer run as long as the model says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._options import Positional
from jostle._report import Report
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
    from jostle.answers import Drifts
    from jostle.models import load
    from jostle.runs import read_runs

    model = load(command.model)
    watch = model.watch()
    watch.replay(read_runs(command.dataset), command.since)
    return Drifts.of(watch, model.label).report()
