"""`jostle explain`: why a prediction is what it is, for one co-location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from jostle._options import Short
from jostle._verbs import load_verb
from jostle.cli.console import command_of
from jostle.cli.models._questions import AboutOne, one_colocation


@dataclass(frozen=True, kw_only=True)
class AboutExplained(AboutOne):
    """What to explain."""

    workload: Annotated[str, "What runs.", Short("-w")]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    verb = load_verb("model", "explain")

    def explain(about: AboutExplained, question: Any) -> Any:
        from jostle.models import load

        model = load(about.model)
        one = one_colocation(model.answering, about.workload, about.platform, about.beside)
        return verb.of(model, one, question)

    app.command("explain")(command_of((AboutExplained, verb.question), explain, verb.help))
