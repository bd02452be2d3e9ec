"""`jostle evaluate NAME`: one command per installed study, made from the options of its class."""

from __future__ import annotations

from typing import Annotated

import typer

from jostle.cli.console import fit_progress, registered_commands, show
from jostle.evaluate import Study, study_named, study_names


def register(app: typer.Typer) -> None:
    """Add the group `evaluate` to the application."""
    commands = registered_commands(study_names, study_named, _run, _shared)
    group = typer.Typer(
        cls=commands, help="Fit on a part of a dataset, test on the rest.", no_args_is_help=True
    )
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
