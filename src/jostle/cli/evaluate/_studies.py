"""`jostle evaluate NAME`: one command per installed study, made from the options of its class."""

from __future__ import annotations

from dataclasses import dataclass

import typer

from jostle.cli.console import fit_progress, note, registered_commands, show
from jostle.cli.console._fields import Json
from jostle.evaluate import Announced, Study, study_named, study_names


@dataclass(frozen=True, kw_only=True)
class EvaluateCommand:
    """What every study takes besides its own options."""

    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the group `evaluate` to the application."""
    commands = registered_commands(study_names, study_named, _run, EvaluateCommand)
    group = typer.Typer(
        cls=commands, help="Fit on a part of a dataset, test on the rest.", no_args_is_help=True
    )
    group.callback()(lambda: None)
    app.add_typer(group, name="evaluate")


def _run(study: Study, shared: EvaluateCommand) -> None:
    if isinstance(study, Announced) and (first := study.announced()):
        note(first)
    with fit_progress(study.name) as progress:
        report = study.run(progress=progress)
    show(report, as_json=shared.json_)
