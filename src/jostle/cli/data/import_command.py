"""`jostle import`: bring measurements from elsewhere into a dataset. One command for each importer."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jostle._base.report import Report
from jostle.cli.console import as_typed, group_of, note, registered_commands
from jostle.cli.console._shared_options import DatasetOutput
from jostle.data import importer_named, importer_names, kind_of
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


class _OneImport(registered_commands(importer_names, importer_named, _import, ImportCommand)):
    """`jostle import FILE`, of the kind that --kind says or the file shows; a kind's name may stand first."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] not in importer_names() and args[0] != "--help":
            told = [args[at + 1] for at, word in enumerate(args[:-1]) if word == "--kind"]
            told += [word.partition("=")[2] for word in args if word.startswith("--kind=")]
            rest = [word for word in args if word != "--kind" and not word.startswith("--kind=")]
            if "--kind" in args:
                rest.remove(told[0])
            file = next((word for word in rest if not word.startswith("-")), "")
            args = [told[0] if told else kind_of(file), *rest]
        return super().resolve_command(ctx, args)


import_ = group_of(
    _OneImport,
    "Bring measurements from elsewhere into a dataset: jostle import FILE -o DATASET.  A file's kind is "
    "seen, or --kind says it; jostle import KIND --help has its options.",
    context_settings={"ignore_unknown_options": True},
)
