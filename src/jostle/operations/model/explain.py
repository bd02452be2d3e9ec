"""Why a prediction is what it is, of one co-location or of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.documents import Record, Unanswered, VerbAnswer
from jostle._base.option_fields import Confidence, Short, Throughout
from jostle._base.report import Report, Table, duration
from jostle.errors import JostleError, UsageError
from jostle.models import CampaignQuestion
from jostle.operations._operation import verb
from jostle.operations._query_items import KnownNames, is_timed, read_items, read_timeline

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.conformal import Bounds
    from jostle.data import Colocations, Runs
    from jostle.models import Model, Timelines


@dataclass(frozen=True)
class ExplainQuestion(CampaignQuestion):
    """Explain what a prediction rests on: what each co-runner costs, the runs behind it, the largest doubt
    and what would remove it; with `full` also what its method makes it of, and what is near."""

    confidence: Confidence = DEFAULT_CONFIDENCE
    throughout: Throughout = False
    dataset: Annotated[
        Path | None,
        "The runs it was fitted on, to find what was measured most like it.",
        Short("-d"),
    ] = None
    full: Annotated[bool, "All that the method itself knows of the prediction."] = False

    most_items: ClassVar[int] = 64  # of one request to a service

    def __post_init__(self) -> None:
        """Raises UsageError."""
        object.__setattr__(self, "confidence", float(exact_confidence(self.confidence)))


@dataclass(frozen=True)
class ExplainedBound(Record):
    """A bound with the calibration error it rests on. seconds: None where no bound is valid. rank: of the
    score in its pool. outcome: the code of reason."""

    confidence: float
    seconds: float | None
    outcome: str
    pool: str
    calibration_runs: int
    rank: int
    evidence: str
    status: str
    reason: str

    @classmethod
    def of(cls, bounds: Bounds) -> ExplainedBound:
        """Describe the first of these bounds."""
        seconds, outcome = float(bounds.seconds[0]), str(bounds.outcome[0])
        return cls(
            bounds.confidence,
            None if seconds == float("inf") else seconds,
            outcome,
            str(bounds.pool[0]),
            int(bounds.n[0]),
            int(bounds.rank[0]),
            str(bounds.evidence[0]),
            str(bounds.status[0]),
            bounds.reason[0],
        )

    @property
    def lines(self) -> list[str]:
        """The lines that people read."""
        at_most = "no bound" if self.seconds is None else f"at most {duration(self.seconds)}"
        pool = f"no calibration run of the kind {self.pool!r}"
        if self.calibration_runs:
            pool = f"error {self.rank} of {self.calibration_runs}, smallest first, of the kind {self.pool!r}"
        return [
            f"{at_most} with confidence {self.confidence:g} ({pool})",
            f"{self.status}: {self.reason}",
            f"measured: {self.evidence}",
        ]


@dataclass(frozen=True)
class ExplainedItem(Record):
    """Explanation of one co-location. why: what the answer rests on, of a model of any method. method: what
    the method itself makes of it, None where it knows no more. tables: all that for people."""

    workload: str
    platform: str
    corunners: Sequence[str]
    why: Mapping[str, Any]
    bound: ExplainedBound
    method: Mapping[str, Any] | None
    tables: Sequence[str | Table]
    status: Literal["ok"] = "ok"


@dataclass(frozen=True, repr=False)
class Explanations(VerbAnswer):
    """Explanations of co-locations. items: one for each co-location, in their order. model_runs: what the
    model learned from."""

    items: tuple[ExplainedItem | Unanswered, ...]
    model_runs: Mapping[str, Any]
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "explain/v5"

    def report(self) -> Report:
        parts = [part for item in self.items for part in getattr(item, "tables", ())]
        return Report(self.to_document(), parts, notes=self.notes)


@verb(ExplainQuestion)
def explain(
    model: Model, items: Any, question: ExplainQuestion, progress: Progress
) -> Explanations:
    """Explain the prediction of each item. items: as of `predict`. progress: before each item, which it may
    refuse with a JostleError. Raises UsageError for `full` where the method knows no more."""
    from jostle.data import Colocations, read_runs

    model = question.about(model)
    if question.full and not hasattr(model.predictor, "explain"):
        raise UsageError(f"the method {model.metadata['method']} knows no more of a prediction")
    runs = None if question.dataset is None else read_runs(question.dataset)
    if isinstance(items, Colocations) or hasattr(items, "elapsed_seconds"):
        answers = [_explained(model, items.take([n]), question, runs) for n in range(len(items))]
    else:
        known = KnownNames.of(model.predictor)
        answers = []
        for place, item in enumerate(items):
            try:
                progress(place, len(items), float("nan"))
                answers.append(_of_item(model, item, known, question))
            except JostleError as error:
                answers.append(Unanswered(str(error), place))
    return Explanations(tuple(answers), model.metadata.get("runs", {}), model.label)


def _of_item(
    model: Model, item: Any, known: KnownNames, question: ExplainQuestion
) -> ExplainedItem:
    """Raises JostleError."""
    if is_timed(item):
        asked = read_timeline(model, item, known, question.throughout)
        return _explained(model, asked, question, None)
    read = read_items([item], known)
    if read.errors:
        raise UsageError(read.errors[0])
    return _explained(model, read.colocations, question, None)


def _explained(
    model: Model, one: Colocations | Timelines, question: ExplainQuestion, runs: Runs | None
) -> ExplainedItem:
    from jostle.models import Timelines, over_time

    if not isinstance(one, Timelines):
        one = over_time(model, one, throughout=question.throughout)
    why = model.explain(one, question.confidence, runs=runs)
    bound, predictor, document = ExplainedBound.of(why.bounds), model.predictor, None
    parts: list[str | Table] = [*why.report().tables, ""]
    now = one.colocations.take(one.now) if isinstance(one, Timelines) else one
    if hasattr(predictor, "explain"):
        report = predictor.explain(now)
        document = report.document
        if question.full:
            parts += [line for part in report.tables for line in (part, "")]
    workload, platform, corunners = now.row(0)
    tables = [*parts, *bound.lines]
    return ExplainedItem(workload, platform, corunners, why.to_json(), bound, document, tables)
