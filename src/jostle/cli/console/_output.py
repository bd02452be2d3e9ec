"""What commands print: results on stdout as lines, tables or one JSON document; notes on stderr."""

from __future__ import annotations

import json
import re
import sys
from shutil import get_terminal_size
from typing import Any
from unicodedata import category

import typer

from jostle._base.report import Report, Table, finite


def say(text: object = "") -> None:
    """Print a line of the result on stdout."""
    typer.echo(_harmless(str(text)))


def note(text: object) -> None:
    """Print a line beside the result on stderr."""
    typer.echo(_harmless(str(text)), err=True)


def as_typed(text: str) -> str:
    """Write a remark of the library, which names an argument as `separator`, with the option that gives it,
    and with a full stop."""
    named = re.sub(r"`(\w+)`", lambda name: "--" + name[1].replace("_", "-"), text)
    return named if named.endswith((".", "?", "!")) else f"{named}."


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document on stdout; a number that is NaN or infinite becomes null."""
    document = finite(document)
    text = json.dumps(document, ensure_ascii=False)
    # What a terminal would obey, and halves of characters, which cannot be printed, are spelled out.
    typer.echo(text if _harmless(text) == text else json.dumps(document))


def print_error(text: str, kind: str, code: int, as_json: bool) -> None:
    """Print why a command ends with this code: a sentence on stderr, or a document on stdout."""
    if as_json:
        document = {"schema": "error/v1", "error": kind, "message": text, "exit_code": code}
        print_json(document)
    else:
        note(f"jostle: {text}")


def show(report: Report, as_json: bool) -> None:
    """Print the document of a report, or its tables and lines and where its figures are; its notes besides,
    unless the document has them."""
    for remark in () if as_json and "notes" in report.document else report.notes:
        note(remark)
    if as_json:
        print_json(report.document)
        return
    # Through a pipe there is no width to fit.
    width = get_terminal_size().columns if sys.stdout.isatty() else None
    for part in report.tables:
        say(part.to_text(width) if isinstance(part, Table) else part)
    for path in report.figures:
        say(path)


def _harmless(text: str) -> str:
    """Spell out what a terminal would obey, as names come from files; lines and tabs stay."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in "\n\t" or category(c) == "Zs" else repr(c)[1:-1] for c in text
    )
