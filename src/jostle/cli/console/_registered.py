"""Commands from a registry: one for each name, its options those of the class behind the name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from jostle.cli.console._command_options import command_of


def registered_commands(
    names: Callable[[], Sequence[str]],
    named: Callable[[str], type],
    act: Callable[..., Any],
    *shared: type,
) -> type[TyperGroup]:
    """What typer.Typer takes as `cls`: a command for each of `names()`.

    named: gives the class of a name, and is asked only when its command is. shared: settings that all of
    them have besides. act: takes an object of each.
    """

    class Registered(TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            return sorted(names())

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            if cmd_name not in names():
                return None
            app = typer.Typer(add_completion=False)
            app.command(cmd_name)(command_of((named(cmd_name), *shared), act))
            return get_command(app)

    return Registered


def group_of(commands: type[TyperGroup], text: str, **options: Any) -> typer.Typer:
    """An application of these commands."""
    app = typer.Typer(
        cls=commands, no_args_is_help=True, help=text, add_completion=False, **options
    )
    app.callback()(lambda: None)
    return app
