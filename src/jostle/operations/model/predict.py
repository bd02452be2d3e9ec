"""How long, and at most how long. Answered with NumPy alone, so it starts fast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.documents import Record, Unanswered, VerbAnswer, answered
from jostle._base.option_fields import Confidence, Throughout
from jostle._base.report import Report, Table, duration, finite
from jostle.errors import JostleError, UsageError
from jostle.models import CampaignQuestion
from jostle.operations._operation import verb
from jostle.operations._query_fields import Local
from jostle.operations._query_items import (
    KnownNames,
    is_timed,
    read_items,
    read_timeline,
    with_new_names,
)

if TYPE_CHECKING:
    import numpy as np

    from jostle._base.progress import Progress
    from jostle.conformal import Bounds
    from jostle.data import Colocations
    from jostle.models import AnsweredTable, Model, Timelines


@dataclass(frozen=True)
class PredictQuestion(CampaignQuestion):
    """Predict the runtime of a co-location, with an upper bound.

    Ends with 3 where not every bound could be given, with 4 where a row of a table asks nothing that can be
    answered, saying why.
    """

    confidence: Confidence = DEFAULT_CONFIDENCE
    throughout: Throughout = False
    tail: Annotated[
        bool,
        "Beyond what calibration runs can promise, read a bound from the law of their largest errors "
        "(extrapolated: no guarantee); of these co-runners throughout.",
        Local(),
    ] = False
    mix_by: Annotated[
        Literal["platform", "workload"] | None,
        "Hold the bounds over another mix than was measured: over the platforms (or workloads) as the table "
        "has them, or as `share` says; of these co-runners throughout.",
        Local(),
    ] = None
    share: Annotated[
        tuple[str, ...],
        "How often a name of that mix is asked about, such as edge-box=0.7. If you know how often names were "
        "measured, `Model.for_mix(..., measured=...)` in Python gives narrower bounds.",
        Local(),
    ] = ()

    def __post_init__(self) -> None:
        """Raises UsageError."""
        object.__setattr__(self, "confidence", float(exact_confidence(self.confidence)))

    def about(self, model: Model) -> Model:
        """Return the model for the campaign that the question names, with bounds over its shares. Raises
        UsageError, UnknownName."""
        model = super().about(model)
        if not self.share:
            return model
        shares = {}
        for entry in self.share:
            name, _, number = entry.rpartition("=")
            try:
                shares[name] = float(number)
            except ValueError:
                raise UsageError(f"`share` {entry!r} is not NAME=NUMBER") from None
        return model.for_mix(shares, self.mix_by or "platform")


Status = Literal["guaranteed", "calibrated", "extrapolated", "adapting", "none"]
Over = Literal["throughout", "timeline", "future"]
_OVER = {
    "throughout": "",
    "timeline": " now, over this timeline",
    "future": " now, whatever may come",
}


@dataclass(frozen=True)
class Prediction(Record):
    """Prediction of one co-location, or of a timeline, whose corunners are those of now. over: of which
    company it speaks, this one `throughout`, this `timeline`, or whatever may come (`future`).
    runtime_seconds: from start to end, None where there is no answer. bound_seconds: None where no bound is
    valid. status: of the bound. reason: a sentence, of which `outcome` is the code. pool: of calibration
    runs, of which the bound is the `rank`-th score. evidence: how many runs tell of it."""

    status: Status = field(default="none", kw_only=True)
    workload: str
    platform: str
    corunners: Sequence[str]
    runtime_seconds: float | None
    bound_seconds: float | None
    outcome: str
    pool: str
    calibration_runs: int
    rank: int
    evidence: str
    over: Over = "throughout"
    reason: str = ""

    def to_document(self) -> dict[str, Any]:
        # Its fields are what JSON has already: thousands are answered at once.
        return dict(vars(self))

    @property
    def text(self) -> str:
        """The prediction in words."""
        beside = f"beside {' and '.join(self.corunners)}" if self.corunners else "alone"
        beside += _OVER[self.over]
        return f"{self.workload} on {self.platform} {beside}: {_cell(self.runtime_seconds)}"


@dataclass(frozen=True, repr=False)
class Predictions(VerbAnswer):
    """Predictions of co-locations. items: one for each co-location, in their order."""

    items: tuple[Prediction | Unanswered, ...]
    confidence: float
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "predict/v3"

    @classmethod
    def of_table(cls, table: AnsweredTable, label: dict[str, Any] | None) -> Predictions:
        """Make records of a table that was answered row by row."""
        columns = (
            table.asked, table.is_answered.tolist(), table.numbers, table.reason, table.rows(), table.rank,
        )  # fmt: skip
        items: list[Prediction | Unanswered] = []
        for _, is_answered, number, reason, row, rank in zip(*columns, strict=True):
            if not is_answered:
                items.append(Unanswered(reason, number))
                continue
            bound = row["bound_seconds"]
            about = (row["workload"], row["platform"], row["corunners"], row["runtime_seconds"])
            behind = (row["outcome"], row["pool"], row["calibration_runs"], int(rank))
            bound = None if bound == float("inf") else bound
            items.append(
                Prediction(
                    *(*about, bound, *behind, row["evidence"]), reason=reason, status=row["status"]
                )
            )
        return cls(tuple(items), table.confidence, label)

    @property
    def seconds(self) -> np.ndarray:
        """Predicted seconds, (n,); NaN without an answer."""
        import numpy as np

        values = [getattr(item, "runtime_seconds", None) for item in self.items]
        return np.array([np.nan if value is None else value for value in values], np.float64)

    @property
    def bounds(self) -> Bounds:
        """The bounds of all items, each of which must have an answer."""
        import numpy as np

        from jostle.conformal import Bounds

        def column(name: str, kind: Any) -> np.ndarray:
            return np.array([getattr(item, name) for item in self.items], kind)

        seconds = [getattr(item, "bound_seconds", None) for item in self.items]
        return Bounds(
            np.array([np.inf if value is None else value for value in seconds], np.float64),
            column("outcome", "<U20"),
            column("pool", "<U20"),
            column("calibration_runs", np.int64),
            column("rank", np.int64),
            self.confidence,
            column("evidence", "<U160"),
        )

    @property
    def exit_code(self) -> int:
        if len(good := answered(self.items)) < len(self.items):
            return 4
        return 3 if any(item.bound_seconds is None for item in good) else 0

    def report(self) -> Report:
        """Write sentences for one item, a table for several."""
        if len(self.items) == 1 and isinstance(self.items[0], Prediction):
            return Report(
                self.to_document(), self._sentences(self.items[0]), notes=self.campaign_notes
            )
        heads = ["workload", "platform", "beside", "predicted", "bound", "status", "measured"]
        rows = []
        for item in self.items:
            if isinstance(item, Unanswered):
                rows.append(["", "", "", "", "", "no answer", item.error])
                heads[-1] = "measured, or why there is no answer"
                continue
            beside = " + ".join(item.corunners) or "alone"
            seconds = [_cell(item.runtime_seconds), _cell(item.bound_seconds)]
            rows.append(
                [item.workload, item.platform, beside, *seconds, item.status, item.evidence]
            )
        return Report(self.to_document(), [Table(heads, rows)], notes=self.campaign_notes)

    def _sentences(self, item: Prediction) -> list[Table | str]:
        text = item.text
        if item.bound_seconds is not None:
            text += f", at most {duration(item.bound_seconds)} with confidence {self.confidence:g}"
        return [text, f"{item.status}: {item.reason}", f"measured: {item.evidence}"]


def _cell(seconds: float | None) -> str:
    return "none" if seconds is None else duration(seconds)


@verb(PredictQuestion, also=("bound",))
def predict(model: Model, items: Any, question: PredictQuestion, progress: Progress) -> Predictions:
    """Predict each item. items: Colocations, Timelines, or objects with workload, platform and corunners (or
    stretches, for a company that changes), of which a bad one has a reason. Raises UnknownName for
    Colocations with a name that the model has never met."""
    from jostle.data import Colocations

    model = question.about(model)
    if isinstance(items, Colocations):
        answers = tuple(
            predictions(
                model, items, question.confidence, question.tail, throughout=question.throughout
            )
        )
    elif hasattr(items, "elapsed_seconds"):
        answers = tuple(timed_predictions(model, items, question.confidence))
    else:
        known = KnownNames.of(model.predictor)

        def plain(some: Sequence[Any]) -> tuple[Any, ...]:
            read = read_items(some, known)
            return read.listed(
                predictions(
                    model,
                    read.colocations,
                    question.confidence,
                    question.tail,
                    throughout=question.throughout,
                )
            )

        answers = with_timelines(
            model, items, known, question.confidence, plain, question.throughout
        )
    return Predictions(answers, question.confidence, model.label)


def with_timelines(
    model: Model,
    items: Sequence[Any],
    known: KnownNames,
    confidence: float,
    plain: Callable[[Sequence[Any]], tuple[Any, ...]],
    throughout: bool,
) -> tuple[Any, ...]:
    """Answer each item with its prediction, or why there is none. plain: what answers the items that say
    nothing of time. throughout: see over_time."""
    timed = [place for place, item in enumerate(items) if is_timed(item)]
    if not timed:
        return plain(items)
    rest = sorted(set(range(len(items))) - set(timed))
    answers: dict[int, Any] = {}
    for place, one in zip(rest, plain([items[place] for place in rest]), strict=True):
        answers[place] = replace(one, row=place) if isinstance(one, Unanswered) else one
    for place in timed:
        try:
            asked = read_timeline(model, items[place], known, throughout)
            (one,) = timed_predictions(model, asked, confidence)
            answers[place] = with_new_names(one, known.new_names(items[place]))
        except JostleError as error:
            answers[place] = Unanswered(str(error), place)
    return tuple(answers[place] for place in range(len(items)))


def timed_predictions(model: Model, asked: Timelines, confidence: float) -> list[Prediction]:
    """Answer questions whose co-runners change."""
    good = with_bounds(
        asked.colocations.take(asked.now), *model.predict_and_bound(asked, confidence)
    )
    return [replace(one, over=over) for one, over in zip(good, asked.over, strict=True)]


def predictions(
    model: Model,
    colocations: Colocations,
    confidence: float,
    tail: bool = False,
    *,
    throughout: bool = False,
) -> list[Prediction]:
    """Answer each co-location at one confidence. throughout: see over_time."""
    from jostle.models import over_time

    if not len(colocations):
        return []
    asked = over_time(model, colocations, throughout=throughout or tail)
    if asked is not colocations:
        return timed_predictions(model, asked, confidence)
    return with_bounds(colocations, *model.predict_and_bound(colocations, confidence, tail=tail))


def with_bounds(colocations: Colocations, seconds: np.ndarray, bounds: Bounds) -> list[Prediction]:
    """Join predictions and bounds to a record for each co-location."""
    values = (
        finite(seconds.tolist()),
        finite(bounds.seconds.tolist()),
        *(one.tolist() for one in (bounds.outcome, bounds.pool, bounds.n, bounds.rank)),
        bounds.evidence.tolist(),
    )
    columns = colocations.to_columns()
    names = (columns[name] for name in ("workload", "platform", "corunners"))
    behind = zip(bounds.status.tolist(), bounds.reason, strict=True)
    return [
        Prediction(*row, status=status, reason=reason)
        for row, (status, reason) in zip(zip(*names, *values, strict=True), behind, strict=True)
    ]
