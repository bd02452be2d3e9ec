"""`jostle report`: one file that says how good a model is, on what data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle._options import Positional, Short
from jostle.cli.console import command_of, note, print_json, say
from jostle.cli.console._fields import Confidence, Json, Model


@dataclass(frozen=True, kw_only=True)
class ReportCommand:
    """Write one HTML file that opens without a network: quality of the data, errors and coverage on runs not
    learned from, which pairs disturb most, a map of workloads, worst errors, and what to measure next."""

    dataset: Annotated[Path, "The dataset that the model was fitted to.", Positional()]
    model: Model
    output: Annotated[Path, "The file.", Short("-o")] = Path("report.html")
    confidence: Confidence = DEFAULT_CONFIDENCE
    seed: Annotated[int, "Of the folds that coverage is counted over."] = 0
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("report")(command_of(ReportCommand, report))


def report(asked: ReportCommand) -> None:
    """Write the file and say where it is, or print the document."""
    from jostle.errors import NotPermitted
    from jostle.models import load
    from jostle.report import find, to_html
    from jostle.runs import Dataset

    found = find(
        Dataset(asked.dataset), load(asked.model), confidence=asked.confidence, seed=asked.seed
    )
    for remark in found.notes:
        note(remark)
    if asked.json_:
        print_json(found.to_document())
        return
    try:
        asked.output.write_text(to_html(found), "utf-8")
    except OSError as error:
        raise NotPermitted(
            f"cannot write: {error.strerror}", where=str(asked.output), fix="Choose another file."
        ) from None
    say(asked.output)
