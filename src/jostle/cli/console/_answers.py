"""Commands that print an answer: a record of options in, a Report or an Answer out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

from jostle.cli.console._fields import Json
from jostle.cli.console._options import command_of
from jostle.cli.console._output import show


@dataclass(frozen=True, kw_only=True)
class AsJson:
    """How to print."""

    json_: Json = False


def answering(
    settings: type | tuple[type, ...], act: Callable[..., Any], text: str | None = None
) -> Callable[..., Any]:
    """A function for typer, as of `command_of`, which prints what `act` gives: a Report, or an Answer with
    its `report()`, as tables and sentences or as one document; it ends with the answer's `exit_code`."""
    records = settings if isinstance(settings, tuple) else (settings,)

    def command(*values: Any) -> None:
        *questions, how = values
        answer = act(*questions)
        show(answer.report() if hasattr(answer, "report") else answer, how.json_)
        if answer.exit_code:
            raise typer.Exit(answer.exit_code)

    return command_of((*records, AsJson), command, text)
