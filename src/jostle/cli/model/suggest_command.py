"""`jostle suggest`: which runs to measure next."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._base.option_fields import Short
from jostle._base.report import Report, Table, duration
from jostle.cli.console._shared_options import Model
from jostle.models import CampaignQuestion

if TYPE_CHECKING:
    from jostle.data import Colocations


@dataclass(frozen=True, kw_only=True)
class SuggestCommand(CampaignQuestion):
    """Options of `jostle suggest`: the questions, and the platforms that can be measured."""

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


def suggest(command: SuggestCommand) -> Report:
    """Suggest which runs to measure next: those that narrow the answers asked about most, with what they
    take.

    Without --workload and --platform it asks about the names with few runs; if all have enough, about every
    workload on every platform.
    """
    from jostle.models import load, usual_questions

    model = command.about(load(command.model))
    names = command.workload, command.platform
    questions = usual_questions(model, *names, beside=command.beside, seed=command.seed)
    candidates = _here(questions, command.on, model.predictor.platform_names)
    answer = model.suggest(candidates, asked=questions, most=command.most, seed=command.seed)
    document = {
        "schema": "suggest/v1",
        "model": str(command.model),
        "questions": len(questions),
        "doubt": answer.doubt,
        "runs": [{**vars(run), "corunners": list(run.corunners)} for run in answer.runs],
    }
    if not answer.runs:
        text = "nothing to suggest: the model knows no names"
        return Report(
            document, ["no run that can be measured tells more" if len(questions) else text]
        )
    if command.output is not None:
        import pyarrow as pa

        from jostle.data import write_table

        kinds = {
            "workload": pa.string(),
            "platform": pa.string(),
            "corunners": pa.list_(pa.string()),
        }
        write_table(pa.Table.from_pylist(document["runs"], pa.schema(kinds)), command.output)
    cells = {
        "workload": "workload",
        "platform": "platform",
        "beside": "corunners",
        "takes": lambda run: duration(run.seconds),
        "doubt after it": lambda run: f"x{run.doubt:.3f}",
    }
    text = (
        f"{len(questions)} answers asked about are usually off by x{answer.doubt:.3f} now. Learn the runs "
        "with jostle update --chosen: as they were chosen, they calibrate no bound."
    )
    return Report(document, [Table.of(answer.runs, cells), text])


def _here(candidates: Colocations, on: tuple[str, ...], platforms: tuple[str, ...]) -> Colocations:
    """Keep the candidates on the platforms that can be measured. Raises UnknownName."""
    import numpy as np

    from jostle.errors import require_known

    if not on:
        return candidates
    require_known("platform", on, platforms)
    here = np.array([name in on for name in candidates.platform_names], bool)
    return candidates.take(here[candidates.platform])
