"""`jostle runs`: what a dataset holds, how well it repeats, and what in it looks wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._base.option_fields import Positional
from jostle._base.report import Report
from jostle.cli.console import as_typed
from jostle.errors import UsageError
from jostle.operations import dataset_report

if TYPE_CHECKING:
    from jostle.data import Dataset


@dataclass(frozen=True, kw_only=True)
class RunsCommand:
    """Options of `jostle runs`: the dataset to summarise."""

    dataset: Annotated[Path, "The dataset: a folder.", Positional()]
    repair: Annotated[
        bool,
        "First make it readable: move damaged files aside, remove leftovers, take in journals.",
    ] = False
    set_aside: Annotated[
        tuple[str, ...],
        "A run that nobody shall read: its run_id, or the line it was imported from; may be repeated. "
        "Recorded, and nothing is lost.",
    ] = ()
    take_back: Annotated[tuple[str, ...], "One that was set aside, or `all`; may be repeated."] = ()
    reason: Annotated[str, "Why, with --set-aside."] = "by hand"


def runs(command: RunsCommand) -> Report:
    """Summarise a dataset: counts, coverage, repeatability, suspicious values."""
    from jostle.data import Dataset, import_command

    if command.dataset.is_file():
        raise UsageError(
            "a table, not a dataset",
            where=str(command.dataset),
            fix=f"Import it, and name its columns: {import_command(command.dataset)}",
        )
    dataset = Dataset(command.dataset)
    _set_aside(dataset, command)
    return dataset_report(dataset, _repaired(dataset) if command.repair else [], as_typed)


def _set_aside(dataset: Dataset, command: RunsCommand) -> None:
    """Raises UnknownName, UsageError, NotPermitted."""
    from jostle.data import rows_named

    now, back = datetime.now(UTC), command.take_back
    if command.set_aside:
        rows = rows_named(dataset.all_run_ids(), command.set_aside)
        dataset.set_aside(rows, command.reason, at=now)
    if back:
        there = list(dataset.aside())
        dataset.set_aside(
            there if "all" in back else rows_named(there, back), "", at=now, back=True
        )


def _repaired(dataset: Dataset) -> list[str]:
    """Repair a dataset. Returns a sentence for each repair."""
    from jostle.collect import recover

    repairs = dataset.repair()
    if (dataset.path / "journal").is_dir() and (count := recover(dataset.path)):
        repairs.append(f"took in the journals of {count} campaigns that were killed")
    return repairs
