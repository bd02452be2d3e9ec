"""`jostle predict`: how long, and at most how long. AnsweredTable with NumPy alone, so it starts fast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from jostle._options import Limits, Short
from jostle.cli.console import (
    command_of,
    duration,
    named_values,
    note,
    print_json,
    print_table,
    say,
)
from jostle.cli.console._fields import Json
from jostle.cli.models._questions import AboutOne, one_colocation

if TYPE_CHECKING:
    from jostle.bounds import Bounds
    from jostle.models import AnsweredTable, Model
    from jostle.runs import Colocations


@dataclass(frozen=True, kw_only=True)
class PredictCommand(AboutOne):
    """Predict the runtime of a co-location, with an upper bound.

    Ends with 3 where not every bound could be given, with 4 where a row of a table asks nothing that can be
    answered, saying why.
    """

    workload: Annotated[str | None, "What runs.", Short("-w")] = None
    fastest: Annotated[
        int | None,
        "Instead of one platform, so many of those where it runs fastest.",
        Limits(1),
    ] = None
    input_: Annotated[
        str | None,
        "Many at once: a CSV, Parquet, JSON or Arrow table (- for standard input) with columns workload, "
        "platform and corunners; its other columns are kept.",
        Short("-i"),
    ] = None
    column: Annotated[
        tuple[str, ...], "What a column of the table is called, such as workload=job."
    ] = ()
    separator: Annotated[str, "What parts the co-runners in a cell of the table."] = ";"
    output: Annotated[
        Path | None,
        "Write the answers to a table: .csv, .parquet, .arrow or .json.",
        Short("-o"),
    ] = None
    traces: Annotated[
        Path | None,
        "A dataset with traces alone of workloads that an alignment model does not know yet.",
    ] = None
    tail: Annotated[
        bool,
        "Beyond what calibration runs can promise, read a bound from the law of their largest errors "
        "(model_based: no guarantee).",
    ] = False
    mix_by: Annotated[
        Literal["platform", "workload"] | None,
        "Hold the bounds over another mix than was measured: over the platforms (or workloads) as the table "
        "has them, or as `share` says.",
    ] = None
    share: Annotated[
        tuple[str, ...], "How often a name of that mix is asked about, such as edge-box=0.7."
    ] = ()
    measured: Annotated[
        tuple[str, ...],
        "How often a name was drawn when runs were measured, such as edge-box=0.2, where that is known: "
        "bounds over a mix are narrower then.",
    ] = ()
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
    if asked.output is not None and asked.input_ is None:
        raise UsageError("--output goes with --input")
    if asked.traces is not None:
        model = _knowing(model, asked.traces)
    model = _over_shares(model, asked)
    if asked.input_ is not None:
        _many(asked, model, asked.input_)
        return
    workload = asked.workload or ""
    if asked.fastest is None:
        questions = one_colocation(model.predictor, workload, asked.platform, asked.beside)
        bounds = model.bound(questions, asked.confidence, tail=asked.tail)
        seconds = model.predict(questions)
    else:
        questions, seconds, bounds = _fastest(asked, model, workload, asked.fastest)
    answers = _answers(questions, seconds, bounds)
    if asked.json_:
        print_json({"schema": "predict/v1", "confidence": bounds.confidence, "answers": answers})
    elif asked.fastest is not None:
        columns = ["platform", "predicted", "bound", "outcome"]
        rows = [
            [
                one["platform"],
                _seconds(one["runtime_seconds"]),
                _seconds(one["bound_seconds"]),
                one["outcome"],
            ]
            for one in answers
        ]
        print_table(columns, rows, right=(1, 2))
    else:
        say(_sentence(answers[0], bounds.confidence))
        if str(bounds.outcome[0]) == "too_few_runs":
            say(_lower(model, questions))
    if not bounds.is_valid.all():
        raise typer.Exit(3)


def _over_shares(model: Model, asked: PredictCommand) -> Model:
    """Whose bounds hold over the shares that were given."""
    from jostle.errors import UsageError

    if not asked.share:
        if asked.measured:
            raise UsageError("--measured goes with --share for each name of the mix")
        if asked.mix_by is not None and asked.input_ is None:
            raise UsageError("--mix-by goes with --input, or with --share for each name of the mix")
        return model
    measured = _shares("--measured", asked.measured) or None
    shares = _shares("--share", asked.share)
    return model.for_mix(shares, asked.mix_by or "platform", measured=measured)


def _shares(option: str, entries: tuple[str, ...]) -> dict[str, float]:
    from jostle.errors import UsageError

    found = {}
    for entry in entries:
        name, _, number = entry.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise UsageError(f"{option} {entry!r} is not NAME=NUMBER") from None
    return found


def _fastest(
    asked: PredictCommand, model: Model, workload: str, most: int
) -> tuple[Colocations, Any, Bounds]:
    """(the questions, seconds, bounds)."""
    from jostle.errors import UsageError
    from jostle.runs import Colocations

    if asked.platform is not None or asked.tail:
        raise UsageError(
            "the fastest are looked for among all platforms: drop `platform` and `tail`"
        )
    found = model.fastest(workload, asked.beside, most=most, confidence=asked.confidence)
    n = len(found)
    questions = Colocations.from_columns(
        workload=[workload] * n, platform=found.platforms, corunners=[list(asked.beside)] * n
    )
    return questions, found.seconds, found.bounds


def _seconds(value: float | None) -> str:
    """In a table."""
    return "" if value is None else "none" if value == float("inf") else duration(value)


def _many(asked: PredictCommand, model: Model, source: str) -> None:
    columns = named_values(asked.column)
    found = model.answer(
        source,
        asked.confidence,
        columns=columns,
        separator=asked.separator,
        tail=asked.tail,
        mix_by=None if asked.share else asked.mix_by,
    )
    if asked.output is not None:
        found.write(asked.output)
    if asked.json_:
        print_json(
            {"schema": "predict/v1", "confidence": found.confidence, "answers": found.rows()}
        )
    elif asked.output is None:
        _print_many(found)
    _remarks(found)
    if not found.is_answered.all():
        raise typer.Exit(4)
    if (found.status != "ok").any():
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


def _print_many(found: AnsweredTable) -> None:
    columns = ["workload", "platform", "beside", "predicted", "bound", "outcome", "measured"]
    with_reason = not found.is_answered.all()
    rows = [
        [
            str(row["workload"] or ""),
            str(row["platform"] or ""),
            " + ".join(row["corunners"]) or "alone" if row["corunners"] is not None else "",
            _seconds(row["runtime_seconds"]),
            _seconds(row["bound_seconds"]),
            row["outcome"] or row["status"],
            row["evidence"] or row["reason"],
        ]
        for row in found.rows()
    ]
    if with_reason:
        columns[-1] = "measured, or why there is no answer"
    print_table(columns, rows, right=(3, 4))


def _remarks(found: AnsweredTable) -> None:
    """How many rows have no answer or no bound, and what of the table was not asked about."""
    import numpy as np

    if not len(found):
        note(f"{found.where}: no rows")
    elif all(row == [] for row in found.corunners) and found.ignored:
        note(
            f"{found.where}: no co-runners in it, so all rows are asked about alone; if one of its columns "
            f"({', '.join(found.ignored)}) holds them, say --column corunners=NAME"
        )
    for status, words in (
        ("unknown_name", "name what the model does not know"),
        ("bad_row", "cannot be read as a question"),
        ("no_bound", "have no valid bound"),
    ):
        at = np.flatnonzero(found.status == status)
        if len(at):
            first = f"the first, row {found.numbers[at[0]]}: {found.reason[at[0]]}"
            note(f"{found.where}: {len(at)} of {len(found)} rows {words}; {first}")


def _knowing(model: Model, traces: Path) -> Model:
    """The model with the profiles of further workloads."""
    from jostle.errors import UsageError
    from jostle.methods import TakesSoloTraces
    from jostle.models import Model
    from jostle.traces import read_traces

    if not isinstance(model.predictor, TakesSoloTraces):
        raise UsageError("--traces is for models of the method alignment")
    found = read_traces(traces)
    predictor = model.predictor.with_solo(found)
    whole = None if model.whole is None else model.whole.with_solo(found)
    return Model(predictor, model.calibration, model.metadata, whole=whole)


def _lower(model: Model, questions: Colocations) -> str:
    """Which of the usual confidences has a bound where the one that was asked for has none."""
    for level in (0.999, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5):
        bounds = model.bound(questions, level)
        if bounds.is_valid.all():
            return f"with -c {level:g} there is one: {duration(float(bounds.seconds[0]))}"
    return "no confidence from 0.5 on has one here"


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
