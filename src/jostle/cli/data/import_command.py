"""`jostle import`: bring measurements from elsewhere into a dataset, by the importer of their kind."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer.core import TyperCommand
from typer.main import get_command

from jostle._base.option_fields import Positional, options_of
from jostle._base.report import Report
from jostle.cli.console import as_typed, command_of, flags_of, note
from jostle.cli.console._shared_options import DatasetOutput
from jostle.data import importer_named, importer_names, kind_of
from jostle.errors import BadData, JostleError, UsageError
from jostle.operations import imported_report, log_report, profile_report, traces_report

if TYPE_CHECKING:
    from jostle.data import Imported, Importer, TableQuestion


@dataclass(frozen=True)
class AnyFile:
    """Bring measurements from elsewhere into a dataset: jostle import FILE -o DATASET.

    A file's kind is seen, or --kind says it; jostle import --kind KIND --help has its options.
    """

    file: Annotated[Path, "The file.", Positional()]


@dataclass(frozen=True, kw_only=True)
class ImportCommand:
    """Options of every import besides those of its kind."""

    output: DatasetOutput
    kind: Annotated[
        str | None, f"What the file is: {', '.join(importer_names())}.  [default: as it shows]"
    ] = None
    fix: Annotated[
        tuple[Literal["all", "names", "units", "separator", "corunners", "none"], ...],
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
    """Mend what has to be mended in a person's own table; published data stay as they are. Raises BadData if
    there are questions and nobody answers them."""
    from jostle.data import CsvImport, ParquetImport

    if not isinstance(importer, CsvImport | ParquetImport) or imported.is_made:
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


class ImportOfKind(TyperCommand):
    """Command whose further options are those of the kind that --kind or the file names."""

    @property
    def kinds(self) -> Sequence[str]:
        return importer_names()

    def make_context(self, info_name: str | None, args: list[str], **rest: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        told = [after for word, after in pairwise(args) if word == "--kind"]
        told += [word.partition("=")[2] for word in args if word.startswith("--kind=")]
        if kind := told[0] if told else (file := _file(args)) and kind_of(file, _given(args)):
            return self.of_kind(kind).make_context(info_name, args, **rest)
        return super().make_context(info_name, args or ["--help"], **rest)

    @staticmethod
    def of_kind(name: str) -> Any:
        """Make the command for files of one kind. Raises UnknownName."""
        app = typer.Typer(add_completion=False)
        app.command()(command_of((importer_named(name), ImportCommand), _import))
        return get_command(app)


def _given(args: Sequence[str]) -> set[str]:
    """List the options of importers that are given, by their names in Python."""
    words = {word[2:].partition("=")[0].replace("-", "_") for word in args if word.startswith("--")}
    return words - {"output", "fix", "json", "help"}


def _file(args: Sequence[str]) -> str:
    """Find the first word that belongs to no option. Raises UsageError for an option that no kind has."""
    kinds: list[type] = [ImportCommand]
    for name in importer_names():
        with suppress(JostleError):  # of another package, that cannot be loaded
            kinds.append(importer_named(name))
    options = [option for kind in kinds for option in options_of(kind)]
    takes = {flag: one.kind is not bool for one in options for flag in flags_of(one)}
    words = iter(args)
    for word in words:
        flag = word.partition("=")[0]
        if not word.startswith("-") or word == "-":
            return word
        if flag.startswith("--") and flag not in (*takes, "--json", "--help"):
            raise UsageError(f"no kind of import has an option {flag}")
        if takes.get(word):
            next(words, None)
    return ""


import_ = typer.Typer(add_completion=False)
import_.command("import", cls=ImportOfKind)(command_of((AnyFile, ImportCommand), _import))
