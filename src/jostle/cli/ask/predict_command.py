"""`jostle predict`: how long, and at most how long, for one co-location or for a table of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from jostle._base.confidence import exact_confidence
from jostle._base.operation_names import load_verb
from jostle._base.option_fields import Short
from jostle._base.report import Report, duration
from jostle.cli.ask._colocation_options import AboutOne, one_question
from jostle.cli.console import note
from jostle.errors import UnknownName, UsageError
from jostle.models import CampaignQuestion
from jostle.operations import ExplainQuestion, Explanations, Predictions, PredictQuestion

if TYPE_CHECKING:
    from jostle.data import Colocations
    from jostle.models import AnsweredTable, Model


@dataclass(frozen=True, kw_only=True)
class AboutMany(AboutOne):
    """Options of what to predict: one co-location, or a table."""

    workload: Annotated[
        str | None, "What runs; `jostle place rank` tells where it runs fastest.", Short("-w")
    ] = None
    input_: Annotated[
        str | None,
        "Many at once: a CSV, Parquet, JSON or Arrow table (- for standard input) with columns workload, "
        "platform and corunners; its other columns stand in the output, too.",
        Short("-i"),
    ] = None
    column: Annotated[
        Mapping[str, str] | None, "What a column of the table is called, such as workload=job."
    ] = None
    separator: Annotated[str, "What parts the co-runners in a cell of the table."] = ";"
    output: Annotated[
        Path | None,
        "Write the answers to a table: .csv, .parquet, .arrow or .json.",
        Short("-o"),
    ] = None
    why: Annotated[
        bool,
        "Say why, of one --workload: what each co-runner costs, the runs behind it, the largest doubt and "
        "what would remove it.",
    ] = False
    dataset: Annotated[
        Path | None,
        "With --why: the runs it was fitted on, to find what was measured most like it.",
        Short("-d"),
    ] = None
    full: Annotated[bool, "With --why: all that the method itself knows of it."] = False
    traces: Annotated[
        Path | None,
        "A dataset with traces alone of workloads that an alignment model does not know yet.",
    ] = None


def predict(about: AboutMany, question: PredictQuestion) -> PredictedReport | Explanations:
    from jostle.data import Colocations
    from jostle.models import load

    model = load(about.model)
    if (about.workload is None) == (about.input_ is None):
        raise UsageError("say either --workload or --input")
    if about.why and about.input_ is not None:
        raise UsageError("--why goes with one --workload and --platform")
    if about.is_timed and about.input_ is not None:
        raise UsageError(
            "--then, --elapsed, --done and --future go with one --workload and --platform"
        )
    if about.output is not None and about.input_ is None:
        raise UsageError("--output goes with --input")
    if question.mix_by is not None and about.input_ is None and not question.share:
        raise UsageError("--mix-by goes with --input, or with --share for each name of the mix")
    if (about.full or about.dataset is not None) and not about.why:
        raise UsageError("--dataset and --full go with --why")
    if about.traces is not None:
        model = _with_profiles(model, about.traces)
    if about.input_ is not None:
        return _many(about, about.input_, model, question)
    workload = about.workload or ""
    if about.why:
        return _explained(about, workload, model, question)
    one = one_question(about, model, workload, throughout=question.throughout)
    _assumed(about, model, workload)
    answer = load_verb("model", "predict").of(model, one, question)
    lines = ()
    if answer.items[0].outcome == "too_few_runs" and isinstance(one, Colocations):
        lines = (_lower(model, one, answer.confidence),)
    return PredictedReport(answer, lines)


predict.__doc__ = PredictQuestion.__doc__


@dataclass(frozen=True)
class PredictedReport:
    """An answer with what the command adds. lines: for people. is_written: to a file, so it is not shown."""

    answer: Predictions
    lines: tuple[str, ...] = ()
    is_written: bool = False

    @property
    def exit_code(self) -> int:
        return self.answer.exit_code

    def report(self) -> Report:
        report = self.answer.report()
        return replace(report, tables=() if self.is_written else (*report.tables, *self.lines))


def _assumed(about: AboutMany, model: Model, workload: str) -> None:
    """Tell what was taken for usual or typical, as nothing is known of it."""
    predictor = model.predictor
    known = {"workload": predictor.workload_names, "platform": predictor.platform_names}
    asked = [("workload", workload), ("platform", about.platform)]
    for kind, name in [*asked, *(("workload", name) for name in about.beside)]:
        if name and name not in known[kind] and getattr(predictor, "answers_new_names", False):
            note(f"{UnknownName(kind, name, known[kind])} It is taken for a typical one.")
    missing = set(getattr(predictor, "covariate_names", ())) - set(about.set_ or {})
    for name in sorted(missing):
        note(f"{name} is not given, so what is usual of {workload} is assumed: --set {name}=...")


def _explained(
    about: AboutMany, workload: str, model: Model, question: PredictQuestion
) -> Explanations:
    shared = {field.name: getattr(question, field.name) for field in fields(CampaignQuestion)}
    asked = ExplainQuestion(
        **shared,
        confidence=question.confidence,
        throughout=question.throughout,
        dataset=about.dataset,
        full=about.full,
    )
    one = one_question(about, model, workload, throughout=question.throughout)
    return load_verb("model", "explain").of(model, one, asked)


def _many(
    about: AboutMany, source: str, model: Model, question: PredictQuestion
) -> PredictedReport:
    model = question.about(model)
    table = model.answer(
        source,
        question.confidence,
        columns=about.column,
        separator=about.separator,
        tail=question.tail,
        throughout=question.throughout,
        mix_by=None if question.share else question.mix_by,
    )
    if about.output is not None:
        table.write(about.output)
    _remarks(table)
    answer = Predictions.of_table(table, model.label)
    return PredictedReport(answer, is_written=about.output is not None)


def _remarks(table: AnsweredTable) -> None:
    """Note how many rows have no answer or no bound, and which columns of the table were not used."""
    import numpy as np

    if not len(table):
        note(f"{table.where}: no rows")
    elif all(row == [] for row in table.corunners) and table.ignored:
        note(
            f"{table.where}: no co-runners in it, so all rows are asked about alone; if one of its columns "
            f"({', '.join(table.ignored)}) holds them, say --column corunners=NAME"
        )
    for rows, words in (
        (table.outcome == "unknown_name", "name what the model does not know"),
        (table.outcome == "bad_row", "cannot be read as a question"),
        (table.is_answered & (table.status == "none"), "have no valid bound"),
        (
            table.is_answered & (np.char.find(table.reason.astype(str), "unknown ") >= 0),
            "name what the model does not know, which is taken for typical",
        ),
    ):
        at = np.flatnonzero(rows)
        if len(at):
            first = f"the first, row {table.numbers[at[0]]}: {table.reason[at[0]]}"
            note(f"{table.where}: {len(at)} of {len(table)} rows {words}; {first}")


def _with_profiles(model: Model, traces: Path) -> Model:
    """Add the profiles of further workloads to the model."""
    from jostle.data import read_traces
    from jostle.models import Model

    if not hasattr(model.predictor, "with_solo"):
        raise UsageError("--traces is for models of the method alignment")
    profiles = read_traces(traces)
    predictor = model.predictor.with_solo(profiles)
    for text in predictor.notes:
        if text not in model.notes:
            note(text)
    return Model(predictor, model.calibration, model.metadata)


def _lower(model: Model, one: Colocations, confidence: float) -> str:
    """Say how many runs the confidence asked for takes, and which usual confidence has a bound now."""
    share = exact_confidence(confidence)
    wanted = -(-share.numerator // (share.denominator - share.numerator))
    text = (
        f"{confidence:g} takes at least {wanted} calibration runs like it, of sets measured apart"
    )
    for level in (0.999, 0.995, 0.99, 0.98, 0.95, 0.9, 0.8, 0.5):
        bounds = model.bound(one, level)
        if bounds.is_valid.all():
            now = duration(float(bounds.seconds[0]))
            return (
                f"{text}; with -c {level:g} there is a bound now, of {bounds.n[0]} such runs: {now}"
            )
    return f"{text}; no confidence from 0.5 on has a bound here now"
