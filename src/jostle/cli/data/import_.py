"""`jostle import`: bring measurements from elsewhere into a dataset. One command for each importer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jostle._report import Report
from jostle.answers import imported_report, log_report, profile_report, traces_report
from jostle.cli.console import as_typed, group_of, registered_commands
from jostle.cli.console._fields import DatasetOutput
from jostle.runs import importer_named, importer_names

if TYPE_CHECKING:
    from jostle.runs import Importer


@dataclass(frozen=True, kw_only=True)
class ImportCommand:
    """What every importer takes besides its own options."""

    output: DatasetOutput


def _import(importer: Importer, command: ImportCommand) -> Report:
    from jostle.runs import Imported, ImportedLog
    from jostle.traces import Traces, write_profiles, write_traces

    measured = importer.read()
    if isinstance(measured, Imported):
        return imported_report(measured, command.output, measured.write(command.output), as_typed)
    if isinstance(measured, ImportedLog):
        return log_report(measured.source, command.output, *measured.write(command.output))
    if isinstance(measured, Traces):
        files = write_traces(command.output, measured)
        return traces_report(measured, command.output, files, notes=measured.notes)
    write_profiles(command.output, [measured])
    return profile_report(measured)


import_ = group_of(
    registered_commands(importer_names, importer_named, _import, ImportCommand),
    "Bring measurements from elsewhere into a dataset.",
)
