"""`jostle import`: bring measurements from elsewhere into a dataset. One command for each importer."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from jostle._base.report import Report
from jostle.cli.console import as_typed, group_of, note, registered_commands
from jostle.cli.console._shared_options import DatasetOutput
from jostle.data import importer_named, importer_names
from jostle.errors import BadData
from jostle.operations import imported_report, log_report, profile_report, traces_report

if TYPE_CHECKING:
    from jostle.data import Imported, Importer, TableQuestion


@dataclass(frozen=True, kw_only=True)
class ImportCommand:
    """What every importer takes besides its own options."""

    output: DatasetOutput
    fix: Annotated[
        tuple[Literal["all", "names", "units", "corunners", "none"], ...],
        "What is mended without being asked: names that differ in case or blanks, units that are a "
        "thousand times off, runs beside co-runners that are never workloads; may be repeated.  "
        "[default: asks; where nobody can answer, names and units stop the import]",
    ] = ()


def _import(importer: Importer, command: ImportCommand) -> Report:
    from jostle.data import Imported, ImportedLog, Traces, write_profiles, write_traces

    measured = importer.read()
    if isinstance(measured, Imported):
        measured = _asked(importer, command, measured)
        return imported_report(measured, command.output, measured.write(command.output), as_typed)
    if isinstance(measured, ImportedLog):
        written = measured.write(command.output)
        return log_report(measured.source, command.output, *written, as_typed)
    if isinstance(measured, Traces):
        files = write_traces(command.output, measured)
        return traces_report(measured, command.output, files, notes=measured.notes)
    write_profiles(command.output, [measured])
    return profile_report(measured)


def _asked(importer: Importer, command: ImportCommand, imported: Imported) -> Imported:
    """With what is to be mended in a person's own table; what was published is as it is. Raises BadData where
    there are questions and nobody who answers."""
    from jostle.data import CsvImport, ParquetImport

    if not isinstance(importer, CsvImport | ParquetImport):
        return imported
    if command.fix:
        return imported.mended(
            command.output, lambda one: bool({"all", one.kind}.intersection(command.fix))
        )
    if sys.stdin.isatty() and sys.stderr.isatty():
        return imported.mended(command.output, _confirmed)
    asked: list[TableQuestion] = []
    imported.mended(command.output, lambda one: asked.append(one) is None)
    lines = [f"\n  {one.kind}: {one.text}. To be done: {one.remedy}." for one in asked]
    kinds = dict.fromkeys(one.kind for one in asked)
    if kinds.keys() <= {
        "corunners"
    }:  # which may be so: a co-runner need not have been measured itself
        for one in asked:
            note(f"note: {one.text}. With --fix corunners: {one.remedy}.")
        return imported
    raise BadData(
        f"before the import:{''.join(lines)}",
        where=imported.source,
        fix=f"\nNothing was written. Say which: --fix all, --fix {' --fix '.join(kinds)}, or --fix none.",
    )


def _confirmed(question: TableQuestion) -> bool:
    note(f"{question.text}.")
    return typer.confirm(f"{question.remedy[0].upper()}{question.remedy[1:]}?", err=True)


import_ = group_of(
    registered_commands(importer_names, importer_named, _import, ImportCommand),
    "Bring measurements from elsewhere into a dataset.",
)
