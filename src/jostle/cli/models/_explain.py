"""`jostle explain`: why a prediction is what it is, for one co-location."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._confidence import DEFAULT_CONFIDENCE
from jostle.cli.console import duration, print_json, print_table, say
from jostle.cli.models._predict import one_colocation

if TYPE_CHECKING:
    from jostle.bounds import Bounds


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("explain")(explain)


def explain(
    model: Annotated[Path, typer.Argument(help="The model: a folder written by jostle fit.")],
    workload: Annotated[str, typer.Option("--workload", "-w", help="What runs.")],
    platform: Annotated[
        str | None,
        typer.Option("--platform", "-p", help="Where.  [default: the model's only one]"),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", "-b", help="A co-runner; repeat for more.  [default: alone]"),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", "-d", help="The runs it was fitted on, to count the evidence."),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", "-c", help="How sure the bound is, under 1.")
    ] = DEFAULT_CONFIDENCE,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Take one prediction apart, as far as its method can: what it is made of, what is near, or what was
    asked on the way; and what stands behind the prediction and its bound."""
    from jostle.errors import UsageError
    from jostle.methods import Explains
    from jostle.models import load
    from jostle.runs import read_runs

    fitted = load(model)
    predictor = fitted.predictor
    if not isinstance(predictor, Explains):
        raise UsageError(f"a model of the method {fitted.metadata['method']} cannot be explained")
    asked = one_colocation(predictor, workload, platform, beside or [])
    bounds = fitted.bound(asked, confidence)
    runs = None if dataset is None else read_runs(dataset)
    report = predictor.explain(asked, runs=runs)
    counts = fitted.metadata.get("runs", {})
    if json_:
        print_json({**report.document, "model_runs": counts, **_of_bound(bounds)})
        return
    for part in report.tables:
        if isinstance(part, str):
            say(part)
        else:
            print_table(part.columns, part.rows, part.right, part.title)
        say()
    if runs is None:
        say(
            f"fitted on {counts.get('fitted')} runs; give --dataset to count those behind this answer\n"
        )
    _print_bound(_of_bound(bounds)["bound"])


def _of_bound(bounds: Bounds) -> dict[str, Any]:
    return {
        "bound": {
            "confidence": bounds.confidence,
            "seconds": float(bounds.seconds[0]),
            "outcome": str(bounds.outcome[0]),
            "pool": str(bounds.pool[0]),
            "calibration_runs": int(bounds.n[0]),
            "rank": int(bounds.rank[0]),
        }
    }


def _print_bound(bound: dict[str, Any]) -> None:
    from jostle.bounds import OUTCOMES

    at_most = (
        f"at most {duration(bound['seconds'])}" if bound["seconds"] != float("inf") else "no bound"
    )
    pool = (
        f"pool {bound['pool']!r}, score {bound['rank']} of {bound['calibration_runs']}"
        if bound["calibration_runs"]
        else f"no pool {bound['pool']!r}"
    )
    say(f"{at_most} with confidence {bound['confidence']:g} ({pool})")
    say(f"{bound['outcome']}: {OUTCOMES[bound['outcome']]}")
