"""`jostle evaluate bridge`, made from the fields of its study."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from jostle.cli.console import fit_progress, show
from jostle.cli.console._options import command_of
from jostle.cli.evaluate._factorization import group_of
from jostle.evaluate.bridge._study import BridgeStudy


def register(app: typer.Typer) -> None:
    """Add the command to the group `evaluate`, which must be there already."""
    group_of(app).command("bridge")(command_of(BridgeStudy, _run, _shared))


def _shared(
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """What every study takes besides its own options."""


def _run(study: Any, json_: bool) -> None:
    with fit_progress(study.name) as progress:
        report = study.run(progress=progress)
    show(report, json_)
