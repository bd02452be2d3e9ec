"""`jostle explain`: why a prediction is what it is, for one co-location."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._options import Short
from jostle._report import Report, Table
from jostle.cli.console import command_of, duration, show
from jostle.cli.console._fields import Json
from jostle.cli.models._questions import AboutOne, one_colocation

if TYPE_CHECKING:
    from jostle.bounds import Bounds


@dataclass(frozen=True, kw_only=True)
class ExplainCommand(AboutOne):
    """What a prediction rests on: what each co-runner costs, the runs behind it, the largest doubt and what
    would remove it; with --full what its method makes it of, and what is near."""

    workload: Annotated[str, "What runs.", Short("-w")]
    dataset: Annotated[
        Path | None,
        "The runs it was fitted on, to find what was measured most like it.",
        Short("-d"),
    ] = None
    full: Annotated[bool, "All that the method itself knows of the prediction."] = False
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain")(command_of(ExplainCommand, explain))


def explain(asked: ExplainCommand) -> None:
    """Print what the method says of the prediction, and what stands behind the bound."""
    from jostle.errors import UsageError
    from jostle.methods import Explains
    from jostle.models import load
    from jostle.runs import read_runs

    model = load(asked.model)
    predictor = model.answering
    explains = isinstance(predictor, Explains)
    if asked.full and not explains:
        raise UsageError(f"the method {model.metadata['method']} knows no more of a prediction")
    question = one_colocation(predictor, asked.workload, asked.platform, asked.beside)
    runs = None if asked.dataset is None else read_runs(asked.dataset)
    rests = model.why(question, asked.confidence, runs=runs)
    bound = _of_bound(rests.bounds)
    document: dict[str, Any] = {"schema": "explain/v3"}
    parts: list[Table | str] = [*rests.report().tables, ""]
    if explains:
        found = predictor.explain(question, runs=runs)
        document |= {key: value for key, value in found.document.items() if key != "schema"}
        if asked.full:
            parts += [line for part in found.tables for line in (part, "")]
    document |= {
        "why": rests.to_json(),
        "model_runs": model.metadata.get("runs", {}),
        "bound": bound,
    }
    show(Report(document, [*parts, *_lines(bound)]), asked.json_)


def _of_bound(bounds: Bounds) -> dict[str, Any]:
    return {
        "confidence": bounds.confidence,
        "seconds": float(bounds.seconds[0]),
        "outcome": str(bounds.outcome[0]),
        "pool": str(bounds.pool[0]),
        "calibration_runs": int(bounds.n[0]),
        "rank": int(bounds.rank[0]),
        "evidence": str(bounds.evidence[0]),
    }


def _lines(bound: dict[str, Any]) -> list[str]:
    from jostle.bounds import OUTCOMES

    at_most = (
        f"at most {duration(bound['seconds'])}" if bound["seconds"] != float("inf") else "no bound"
    )
    pool = (
        f"pool {bound['pool']!r}, score {bound['rank']} of {bound['calibration_runs']}"
        if bound["calibration_runs"]
        else f"no pool {bound['pool']!r}"
    )
    return [
        f"{at_most} with confidence {bound['confidence']:g} ({pool})",
        f"{bound['outcome']}: {OUTCOMES[bound['outcome']]}",
        f"measured: {bound['evidence']}",
    ]
