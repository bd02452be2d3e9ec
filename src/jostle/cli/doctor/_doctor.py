"""`jostle doctor`: what this machine can do, what is missing, and how to get it."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from jostle._report import Report, Table
from jostle.cli.console import command_of, show
from jostle.cli.console._fields import Json
from jostle.cli.doctor._findings import Finding, findings


@dataclass(frozen=True, kw_only=True)
class DoctorCommand:
    """What Jostle can do on this machine, what is missing, and how to get it.

    Ends with 0 whatever is missing: nothing here is needed by everybody.
    """

    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("doctor")(command_of(DoctorCommand, doctor))


def doctor(asked: DoctorCommand) -> None:
    """Print what was found, or one document."""
    found = findings()
    document = {"schema": "doctor/v1", "findings": [vars(one) for one in found]}
    parts: list[Table | str] = []
    for part in dict.fromkeys(one.part for one in found):
        rows = [_row(one) for one in found if one.part == part]
        parts += [Table(["", "", ""], rows, title=part), ""]
    missing = sum(one.works is False for one in found)
    parts.append(
        "everything is here" if not missing else f"{missing} missing, each with what helps"
    )
    show(Report(document, parts), asked.json_)


def _row(one: Finding) -> list[str]:
    mark = {True: "yes", False: "no", None: ""}[one.works]
    return [one.what, mark, f"{one.told}. {one.fix}" if one.fix else one.told]
