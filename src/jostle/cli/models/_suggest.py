"""`jostle suggest`: which runs to measure next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from jostle._options import Short
from jostle._report import Report, Table
from jostle.cli.console import command_of, show
from jostle.cli.console._fields import Json, Model


@dataclass(frozen=True, kw_only=True)
class SuggestCommand:
    """Which runs to measure next: those that narrow the answers asked about most, with what they take.

    Without --workload and --platform it asks about the names with few runs, and where all have enough about
    every workload on every platform.
    """

    model: Model
    workload: Annotated[
        tuple[str, ...], "Ask about this workload on every platform; may be repeated."
    ] = ()
    platform: Annotated[
        tuple[str, ...], "Ask about this platform with every workload; may be repeated."
    ] = ()
    on: Annotated[
        tuple[str, ...],
        "Only runs on this platform can be measured; may be repeated.  [default: on all]",
    ] = ()
    beside: Annotated[bool, "Ask about, and suggest, runs beside one other workload, too."] = False
    most: Annotated[int, "So many runs at most.", Short("-n")] = 10
    output: Annotated[
        Path | None,
        "A table to write them into (CSV, Parquet, JSON), with columns workload, platform, corunners.",
        Short("-o"),
    ] = None
    seed: Annotated[
        int,
        "Of the sample of runs that the answer rests on, and of questions, where they are many.",
    ] = 0
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("suggest")(command_of(SuggestCommand, suggest))


def suggest(asked: SuggestCommand) -> None:
    """Print the runs, the one that tells most first."""
    import numpy as np

    from jostle.errors import UnknownName
    from jostle.models import load, usual_questions

    model = load(asked.model)
    named = asked.workload, asked.platform
    questions = usual_questions(model, *named, beside=asked.beside, seed=asked.seed)
    candidates = questions
    if asked.on:
        names = candidates.platform_names
        for name in asked.on:
            if name not in model.predictor.platform_names:
                raise UnknownName("platform", name, model.predictor.platform_names)
        here = np.array([name in asked.on for name in names], bool)
        candidates = candidates.take(here[candidates.platform])
    found = model.suggest(candidates, asked=questions, most=asked.most, seed=asked.seed)
    document = {
        "schema": "suggest/v1",
        "model": str(asked.model),
        "questions": len(questions),
        "doubt": found.doubt,
        "runs": [{**vars(run), "corunners": list(run.corunners)} for run in found.runs],
    }
    if not found.runs:
        text = "nothing to suggest: the model knows no names"
        if len(questions):
            text = "no run that can be measured tells more"
        show(
            Report(document, [text]),
            asked.json_,
        )
        return
    rows = [
        [
            run.workload,
            run.platform,
            ", ".join(run.corunners),
            f"{run.seconds:.3g}",
            f"x{run.doubt:.3f}",
        ]
        for run in found.runs
    ]
    columns = ["workload", "platform", "beside", "takes (s)", "doubt after it"]
    told = (
        f"{len(questions)} answers asked about are usually off by x{found.doubt:.3f} now. Learn the runs "
        "with jostle update --chosen: as they were chosen, they calibrate no bound."
    )
    if asked.output is not None:
        import pyarrow as pa

        from jostle._tables import write_table

        write_table(
            pa.table(
                {
                    "workload": [run.workload for run in found.runs],
                    "platform": [run.platform for run in found.runs],
                    "corunners": pa.array(
                        [list(run.corunners) for run in found.runs], pa.list_(pa.string())
                    ),
                }
            ),
            asked.output,
        )
    show(Report(document, [Table(columns, rows, (3, 4)), told]), asked.json_)
