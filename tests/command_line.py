"""A command line as a user has it: an error is a sentence on stderr and an exit code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.main import get_command
from typer.testing import CliRunner

from jostle.cli import exit_code
from jostle.cli._command_app import build
from jostle.errors import JostleError


def application() -> Any:
    """All commands with their options, as click has them."""
    return get_command(build())


def commands() -> Iterator[str]:
    """The words of every command that does something."""
    top = application()
    context = top.make_context("jostle", [], resilient_parsing=True)
    for name in top.list_commands(context):
        group = top.get_command(context, name)
        inner = group.list_commands(context) if hasattr(group, "list_commands") else []
        yield from [f"{name} {other}" for other in inner] or [name]


class Done(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


def jostle(*words: object, stdin: str | None = None) -> Done:
    """`jostle` with these words; a word may be a path or a number."""
    with CliRunner().isolation(input=stdin) as (out, err, _):
        code = exit_code([str(word) for word in words])
        sys.stdout.flush()
        sys.stderr.flush()
        return Done(code, out.getvalue().decode(), err.getvalue().decode())


def assert_fails(error: type[JostleError], message: str, *words: object, stdin: str = "") -> None:
    """That a command line ends with the exit code of an error and a sentence that matches."""
    done = jostle(*words, stdin=stdin)
    assert done.exit_code == error.exit_code, done.output
    assert re.search(message, done.stderr), done.stderr
