"""`jostle predict`: how long, and at most how long. Answers with NumPy alone, so it starts fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jostle._options import Short
from jostle.cli.console import command_of, duration, print_json, print_table, say
from jostle.cli.console._fields import Json
from jostle.cli.models._questions import AboutOne, colocations_of, one_colocation

if TYPE_CHECKING:
    from jostle.bounds import Bounds
    from jostle.models import Model
    from jostle.runs import Colocations


@dataclass(frozen=True, kw_only=True)
class PredictCommand(AboutOne):
    """Predict the runtime of a co-location, with an upper bound.

    Ends with 3 where not every bound could be given, saying why.
    """

    workload: Annotated[str | None, "What runs.", Short("-w")] = None
    input_: Annotated[
        str | None,
        "Many at once: a CSV file (- for stdin) with columns workload, platform and corunners, the "
        "co-runners separated by ';'.",
        Short("-i"),
    ] = None
    traces: Annotated[
        Path | None,
        "A dataset with traces alone of workloads that an alignment model does not know yet.",
    ] = None
    json_: Json = False


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("predict")(command_of(PredictCommand, predict))


def predict(asked: PredictCommand) -> None:
    """Print the answers: a sentence, a table, or one document."""
    from jostle.errors import UsageError
    from jostle.models import load

    model = load(asked.model)
    if (asked.workload is None) == (asked.input_ is None):
        raise UsageError("say either --workload or --input")
    if asked.traces is not None:
        model = _knowing(model, asked.traces)
    if asked.input_ is None:
        workload = asked.workload or ""
        questions = one_colocation(model.predictor, workload, asked.platform, asked.beside)
    else:
        questions = colocations_of(asked.input_)
    bounds = model.bound(questions, asked.confidence)
    answers = _answers(questions, model.predict(questions), bounds)
    if asked.json_:
        print_json({"schema": "predict/v1", "confidence": bounds.confidence, "answers": answers})
    elif asked.input_ is None:
        say(_sentence(answers[0], bounds.confidence))
    else:
        _print_many(answers)
    if not bounds.is_valid.all():
        raise typer.Exit(3)


def _answers(questions: Colocations, seconds: Any, bounds: Bounds) -> list[dict[str, Any]]:
    return [
        {
            "workload": name,
            "platform": place,
            "corunners": list(others),
            "runtime_seconds": float(seconds[i]),
            "bound_seconds": float(bounds.seconds[i]),
            "outcome": str(bounds.outcome[i]),
            "pool": str(bounds.pool[i]),
            "calibration_runs": int(bounds.n[i]),
            "evidence": str(bounds.evidence[i]),
        }
        for i in range(len(questions))
        for name, place, others in [questions.row(i)]
    ]


def _print_many(answers: list[dict[str, Any]]) -> None:
    rows = [
        [
            a["workload"],
            a["platform"],
            " + ".join(a["corunners"]) or "alone",
            duration(a["runtime_seconds"]),
            duration(a["bound_seconds"]),
            a["outcome"],
            a["evidence"],
        ]
        for a in answers
    ]
    columns = ["workload", "platform", "beside", "predicted", "bound", "outcome", "measured"]
    print_table(columns, rows, right=(3, 4))


def _knowing(model: Model, traces: Path) -> Model:
    """The model with the profiles of further workloads."""
    from jostle.errors import UsageError
    from jostle.methods import TakesSoloTraces
    from jostle.models import Model
    from jostle.traces import read_traces

    if not isinstance(model.predictor, TakesSoloTraces):
        raise UsageError("--traces is for models of the method alignment")
    predictor = model.predictor.with_solo(read_traces(traces))
    return Model(predictor, model.calibration, model.metadata)


def _sentence(answer: dict[str, Any], confidence: float) -> str:
    from jostle.bounds import OUTCOMES

    beside = f"beside {' and '.join(answer['corunners'])}" if answer["corunners"] else "alone"
    text = f"{answer['workload']} on {answer['platform']} {beside}: "
    text += duration(answer["runtime_seconds"])
    if answer["bound_seconds"] != float("inf"):
        text += f", at most {duration(answer['bound_seconds'])} with confidence {confidence:g}"
    reason = OUTCOMES[answer["outcome"]]
    if answer["calibration_runs"]:
        reason += f" ({answer['calibration_runs']} in pool {answer['pool']!r})"
    return f"{text}\n{answer['outcome']}: {reason}\nmeasured: {answer['evidence']}"
