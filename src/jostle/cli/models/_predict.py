"""`jostle predict`: how long, and at most how long. Answers with NumPy alone, so it starts fast."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle.cli.console import duration, print_json, print_table

if TYPE_CHECKING:
    from jostle.models import Model
    from jostle.runs import Colocations


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("predict")(predict)


def predict(
    model: Annotated[Path, typer.Argument(help="The model: a folder written by jostle fit.")],
    workload: Annotated[str | None, typer.Option("--workload", "-w", help="What runs.")] = None,
    platform: Annotated[
        str | None,
        typer.Option("--platform", "-p", help="Where.  [default: the model's only one]"),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", "-b", help="A co-runner; repeat for more.  [default: alone]"),
    ] = None,
    input_: Annotated[
        str | None,
        typer.Option(
            "--input",
            "-i",
            help="Many at once: a CSV file (- for stdin) with columns workload, platform and "
            "corunners, the co-runners separated by ';'.",
        ),
    ] = None,
    traces: Annotated[
        Path | None,
        typer.Option(
            help="A dataset with traces alone of workloads that an alignment model does not know yet."
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", "-c", help="How sure the bound is, under 1.")
    ] = DEFAULT_CONFIDENCE,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Predict the runtime of a co-location, with an upper bound.

    Ends with 3 where not every bound could be given, saying why.
    """
    from jostle.errors import UsageError
    from jostle.models import load

    fitted = load(model)
    if (workload is None) == (input_ is None):
        raise UsageError("say either --workload or --input")
    if traces is not None:
        fitted = _knowing(fitted, traces)
    one = input_ is None
    asked = (
        one_colocation(fitted.predictor, workload or "", platform, beside or [])
        if one
        else _read(input_)
    )
    seconds = fitted.predict(asked)
    bounds = fitted.bound(asked, confidence)
    answers = [
        {
            "workload": name,
            "platform": place,
            "corunners": list(others),
            "runtime_seconds": float(seconds[i]),
            "bound_seconds": float(bounds.seconds[i]),
            "outcome": str(bounds.outcome[i]),
            "pool": str(bounds.pool[i]),
            "calibration_runs": int(bounds.n[i]),
        }
        for i in range(len(asked))
        for name, place, others in [asked.row(i)]
    ]
    if json_:
        print_json({"schema": "predict/v1", "confidence": bounds.confidence, "answers": answers})
    elif one:
        typer.echo(_sentence(answers[0], bounds.confidence))
    else:
        print_table(
            ["workload", "platform", "beside", "predicted", "bound", "outcome"],
            [
                [
                    a["workload"],
                    a["platform"],
                    " + ".join(a["corunners"]) or "alone",
                    duration(a["runtime_seconds"]),
                    duration(a["bound_seconds"]),
                    a["outcome"],
                ]
                for a in answers
            ],
            right=(3, 4),
        )
    if not bounds.is_valid.all():
        raise typer.Exit(3)


def _knowing(fitted: Model, traces: Path) -> Model:
    """The model with the profiles of further workloads."""
    from jostle.errors import UsageError
    from jostle.methods import TakesSoloTraces
    from jostle.models import Model
    from jostle.traces import read_traces

    if not isinstance(fitted.predictor, TakesSoloTraces):
        raise UsageError("--traces is for models of the method alignment")
    predictor = fitted.predictor.with_solo(read_traces(traces))
    return Model(predictor, fitted.calibration, fitted.metadata)


def _sentence(answer: dict[str, Any], confidence: float) -> str:
    from jostle.bounds import OUTCOMES

    beside = f"beside {' and '.join(answer['corunners'])}" if answer["corunners"] else "alone"
    said = f"{answer['workload']} on {answer['platform']} {beside}: "
    said += duration(answer["runtime_seconds"])
    if answer["bound_seconds"] != float("inf"):
        said += f", at most {duration(answer['bound_seconds'])} with confidence {confidence:g}"
    reason = OUTCOMES[answer["outcome"]]
    if answer["outcome"] == "guaranteed":
        reason += f" ({answer['calibration_runs']} in pool {answer['pool']!r})"
    return f"{said}\n{answer['outcome']}: {reason}"


def one_colocation(
    predictor: Any, workload: str, platform: str | None, beside: list[str]
) -> Colocations:
    """What is asked about. Raises UsageError where no platform is named and the model answers on several."""
    from jostle.errors import UsageError
    from jostle.methods import HasInputPlatforms
    from jostle.runs import Colocations

    inputs = predictor.input_platforms if isinstance(predictor, HasInputPlatforms) else ()
    known = [name for name in predictor.platform_names if name not in inputs]
    if platform is None and len(known) != 1:
        few = ", ".join(known[:5]) + (", …" if len(known) > 5 else "")
        raise UsageError(f"say --platform: the model knows {len(known)} ({few})")
    return Colocations.from_columns(
        workload=[workload], platform=[platform or known[0]], corunners=[beside]
    )


def _read(source: str) -> Colocations:
    import csv

    from jostle.errors import BadRows, UnreadableFile
    from jostle.runs import Colocations

    where = "standard input" if source == "-" else source
    try:
        if source == "-":
            rows = list(csv.DictReader(sys.stdin))
        else:
            with open(source, newline="", encoding="utf-8") as file:
                rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UnreadableFile(f"not a readable CSV file: {error}", where=where) from None
    for line, row in enumerate(rows, start=2):
        for column in ("workload", "platform"):
            if not row.get(column):
                raise BadRows(f"line {line} has no {column}", where=where)
    return Colocations.from_columns(
        workload=[row["workload"] for row in rows],
        platform=[row["platform"] for row in rows],
        corunners=[[n for n in (row.get("corunners") or "").split(";") if n] for row in rows],
    )
