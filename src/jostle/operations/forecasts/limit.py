"""What a run never exceeds, and how likely it goes over a limit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.documents import VerbAnswer
from jostle._base.option_fields import Limits, Short
from jostle._base.report import Report
from jostle.errors import UsageError
from jostle.operations._operation import verb

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.usage import Peaks, Residents


@dataclass(frozen=True)
class LimitQuestion:
    """Find what a run never exceeds over its whole life, or in what is left of one that goes on.

    Its peak, of memory or of any counter, stays at or below the limit with the confidence, where it is a run
    like the recorded ones; of several workloads: their sum at any time. Ends with 3 where runs are too few.
    """

    confidence: Annotated[
        float | None,
        "How sure the limit is, under 1.  [default: 0.9 from traces; of a log what costs least]",
        Short("-c"),
    ] = None
    over: Annotated[
        float | None,
        "Also P(it uses more than this); of counts: per second.",
        Short("-l"),
        Limits(0, 1e300),
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError."""
        exact_confidence(self.sure)
        if self.over is not None and not abs(self.over) < float("inf"):
            raise UsageError(f"`over` is {self.over}, not a finite number")

    @property
    def sure(self) -> float:
        """The confidence, or the default one."""
        return DEFAULT_CONFIDENCE if self.confidence is None else self.confidence


@dataclass(frozen=True, repr=False)
class LimitAnswer(VerbAnswer):
    """A limit that a run keeps with the stated confidence. limit: what it does not exceed, infinite where
    there is none. outcome: `guaranteed`; `censored`, which holds where what ended runs early did not depend
    on what they would have used; `estimated`, of several residents, which are in words in `residents`;
    `follows_trend`, where peaks turn on their order; `unsteady`, where they do as no line and no step does;
    or `too_few_runs`. best_limit: that at confidence_now, where runs are too few. any_limit: of several
    residents, a limit that holds however they go together, with any_confidence. raised_ratio: how far the
    order of peaks raised a guaranteed one. runs_before: how many runs are left out, since peaks stepped after
    them. runs: behind it, of several workloads the fewest, and open_runs of them that may have used more than
    was seen. runs_needed: of which so many may be open. confidence_now: the highest with a guaranteed limit
    from these runs. now_seconds, highest_so_far: of a run that goes on, of which the rest is for what is
    left. over_ratio: P(more than `over`), between over_low_ratio and over_high_ratio. fits: how many more
    there is room for below `over`. unlike_ratio: the share of runs at least as strange as this one so far;
    unlike: a warning of that, None where it is like the others."""

    component: str
    confidence: float
    limit: float
    outcome: str
    runs: int
    open_runs: int
    runs_needed: int
    confidence_now: float
    now_seconds: float | None = None
    highest_so_far: float | None = None
    over: float | None = None
    over_low_ratio: float | None = None
    over_high_ratio: float | None = None
    residents: str | None = None
    fits: int | None = None
    unlike_ratio: float | None = None
    unlike: str | None = None
    best_limit: float | None = None
    any_limit: float | None = None
    any_confidence: float | None = None
    raised_ratio: float = 1.0
    runs_before: int = 0
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "limit/v1"
    also: ClassVar[tuple[str, ...]] = ("over_ratio", "promise")

    @property
    def over_ratio(self) -> float | None:
        if self.over_low_ratio is None or self.over_high_ratio is None:
            return None
        return (self.over_low_ratio + self.over_high_ratio) / 2

    @property
    def exit_code(self) -> int:
        return 3 if self.outcome in ("too_few_runs", "unsteady") else 0

    @property
    def promise(self) -> str:
        """A sentence on what holds, and why not more."""
        what = "a run" if self.now_seconds is None else "what is left of this run"
        behind = f"{self.runs} {'run' if self.runs == 1 else 'runs'}"
        behind += "" if self.residents is None else " of each, or more"
        if self.runs_before:
            behind += f" since peaks stepped (the {self.runs_before} before are left out)"
        if self.open_runs:
            behind += f", {self.open_runs} of which may have used more than was seen"
        if self.outcome == "guaranteed":
            more = (self.raised_ratio - 1) * 100
            why = f", and {more:.2g}% higher, as their order may be a trend" if more else ""
            return f"{what} stays at or below it {self.confidence:.4g} of the time, by ranks of {behind}{why}"
        if self.outcome == "estimated":
            return (
                f"the sum of {self.residents} stays at or below it about {self.confidence:.4g} of the time, "
                f"estimated from {behind}"
            )
        if self.outcome == "censored":
            return (
                f"{what} stays at or below it about {self.confidence:.4g} of the time, from {behind}, if "
                "what ended those did not depend on what they would have used"
            )
        if self.outcome == "follows_trend":
            return (
                f"{what} stays at or below it about {self.confidence:.4g} of the time, if the trend of "
                f"{behind} goes on: their peaks turn on their order"
            )
        if self.outcome == "unsteady":
            return f"no limit from {behind}: their peaks turn on their order, so the next may be beyond"
        takes = f"{self.confidence:.4g} takes {self.runs_needed} runs"
        if self.best_limit is None:
            return f"no limit at any confidence from {behind}: it takes {self.runs_needed}"
        return (
            f"{what} stays at or below it {self.confidence_now:.4g} of the time, the most that "
            f"{behind} can say (-c {self.confidence_now:.4g}); {takes}"
        )

    def report(self) -> Report:
        """Write the limit in a few lines."""
        value = self.limit if self.best_limit is None else self.best_limit
        limit = "" if value == float("inf") else f" at most {value:.6g}"
        lines = [f"{self.component}{limit}: {self.promise}"]
        if self.now_seconds is not None:
            lines[0] = f"at {self.now_seconds:.6g} s, {self.highest_so_far:.6g} so far: {lines[0]}"
        if self.any_limit is not None and self.any_limit < float("inf"):
            lines.append(
                f"at most {self.any_limit:.6g} with {self.any_confidence:.4g} however they go together"
            )
        if self.over_ratio is not None:
            between = f" ({self.over_low_ratio:.4f} to {self.over_high_ratio:.4f})"
            between = between if self.residents is None else ""
            lines.append(f"P(over {self.over:.6g}): {self.over_ratio:.4f}{between}")
        if self.fits is not None:
            lines.append(f"{self.fits} more fit below {self.over:.6g} with {self.confidence:.4g}")
        notes = [f"warning: {self.unlike}"] if self.unlike else []
        return Report(self.to_document(), lines, notes=notes, exit_code=self.exit_code)


@verb(LimitQuestion)
def limit(peaks: Peaks | Residents, question: LimitQuestion, progress: Progress) -> LimitAnswer:
    """Bound what a run uses, from recorded runs and from the one that goes on, if there is one; or from
    residents of a node.

    Raises UsageError if it is asked how many more fit, and no number is given that they have to stay below.
    """
    from jostle.usage import Residents

    ranked, live, fits = peaks.ranked(question.sure), peaks.live, None
    node = peaks if isinstance(peaks, Residents) else None
    if node is not None and node.more is not None:
        if question.over is None:
            raise UsageError("how many fit depends on what there is", fix="Say `over`.")
        fits = node.fits(question.over, question.sure)
    low, high = (None, None) if question.over is None else peaks.over(question.over, question.sure)
    unlike, best, whole = peaks.unlikeness(), None, (None, None)
    if ranked.outcome == "too_few_runs" and ranked.confidence_now:
        best = peaks.ranked(ranked.confidence_now).value
    if node is not None and not node.is_measured:
        whole = node.without_assumptions(question.sure)
    return LimitAnswer(
        peaks.component,
        question.sure,
        ranked.value,
        ranked.outcome,
        ranked.runs,
        ranked.open_runs,
        ranked.needed,
        ranked.confidence_now,
        now_seconds=None if live is None else live.length_seconds,
        highest_so_far=None if live is None else float(live.values.max()),
        over=question.over,
        over_low_ratio=low,
        over_high_ratio=high,
        residents=None if node is None else node.residents_text,
        fits=fits,
        unlike_ratio=None if unlike is None else unlike.p_ratio,
        unlike=unlike.text if unlike is not None and unlike.is_unlike else None,
        best_limit=best,
        any_limit=whole[0],
        any_confidence=whole[1],
        raised_ratio=ranked.raised_ratio,
        runs_before=ranked.runs_before,
    )
