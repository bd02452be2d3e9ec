"""`jostle runs`: what a dataset holds, how well it repeats, and what in it looks wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._options import Positional
from jostle._report import Report
from jostle.answers import dataset_report
from jostle.cli.console import as_typed

if TYPE_CHECKING:
    from jostle.runs import Dataset


@dataclass(frozen=True, kw_only=True)
class RunsCommand:
    """Which dataset is summarised."""

    dataset: Annotated[Path, "The dataset: a folder.", Positional()]
    repair: Annotated[
        bool,
        "First make it readable: move damaged files aside, remove leftovers, take in journals.",
    ] = False


def runs(command: RunsCommand) -> Report:
    """Summarise a dataset: counts, coverage, repeatability, suspicious values."""
    from jostle.runs import Dataset

    dataset = Dataset(command.dataset)
    return dataset_report(dataset, _repaired(dataset) if command.repair else [], as_typed)


def _repaired(dataset: Dataset) -> list[str]:
    """What was repaired, a sentence each."""
    from jostle.measure import recover

    repairs = dataset.repair()
    if (dataset.path / "journal").is_dir() and (count := recover(dataset.path)):
        repairs.append(f"took in the journals of {count} campaigns that were killed")
    return repairs
