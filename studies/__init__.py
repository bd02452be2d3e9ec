"""The papers' protocols, tables and figures, and the campaigns and laws that methods are compared on.

`python -m studies NAME ...` from the repository's root runs one; without a name it lists them. What compares
methods on a user's own data is `jostle evaluate`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from jostle._base.report import Report
from studies.contract import Announced, Study

STUDIES = {
    "accelerator": "studies.accelerator.study:AcceleratorStudy",
    "alignment": "studies.alignment.study:AlignmentStudy",
    "bridge": "studies.bridge.study:BridgeStudy",
    "mechanisms": "studies.one_model.mechanisms:MechanismsStudy",
    "papers": "studies.papers.study:PapersStudy",
    "one_model": "studies.one_model.study:OneModelStudy",
    "placement": "studies.placement.study:PlacementStudy",
}


def study_of(name: str) -> Any:
    """The class behind a name of STUDIES, imported."""
    module, _, kind = STUDIES[name].partition(":")
    return getattr(import_module(module), kind)


class Studies(TyperGroup):
    """A command for each study, imported when it is called for; its options are those of its class."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(STUDIES)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from jostle.cli.console import command_of

        if cmd_name not in STUDIES:
            return None
        app = typer.Typer(add_completion=False)
        app.command(cmd_name)(command_of(study_of(cmd_name), _run))
        return get_command(app)


def application() -> Any:
    """One command per study."""
    text = "The papers' protocols and figures."
    app = typer.Typer(cls=Studies, no_args_is_help=True, help=text, add_completion=False)
    app.callback()(lambda: None)
    return app


def _run(study: Study) -> Report:
    from jostle.cli.console import fit_progress, note

    if isinstance(study, Announced) and (first := study.announced()):
        note(first)
    with fit_progress(study.name) as progress:
        return study.run(progress=progress)


def run(arguments: list[str]) -> int:
    """Run a command line; returns its exit code."""
    from jostle.cli import exit_code

    return exit_code(arguments, application)
