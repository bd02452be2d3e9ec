"""`jostle evaluate NAME`: one command per installed study, made from the options of its class."""

from __future__ import annotations

from typing import Annotated, Any

import click
import typer
from typer.core import TyperGroup
from typer.main import get_command

from jostle.cli.console import fit_progress, show
from jostle.cli.console._options import command_of
from jostle.cli.evaluate._accelerator import accelerator
from jostle.evaluate import Study, study_named, study_names


class _Studies(TyperGroup):
    """Commands by the names of the studies; a study is loaded when its command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *study_names()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        if known is not None or cmd_name not in study_names():
            return known
        app = typer.Typer(add_completion=False)
        app.command(cmd_name)(command_of(study_named(cmd_name), _run, _shared))
        return get_command(app)


def register(app: typer.Typer) -> None:
    """Add the group `evaluate` to the application."""
    group = typer.Typer(
        cls=_Studies, help="Fit on a part of a dataset, test on the rest.", no_args_is_help=True
    )
    group.command("accelerator")(accelerator)
    group.callback()(lambda: None)
    app.add_typer(group, name="evaluate")


def group_of(app: typer.Typer) -> typer.Typer:
    """The group `evaluate`, for modules that add to it; it must be registered already."""
    for group in app.registered_groups:
        if group.name == "evaluate" and group.typer_instance is not None:
            return group.typer_instance
    raise LookupError("the group 'evaluate' must be registered first")


def _shared(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """What every study takes besides its own options."""


def _run(study: Study, json_: bool) -> None:
    with fit_progress(study.name) as progress:
        report = study.run(progress=progress)
    show(report, as_json=json_)
