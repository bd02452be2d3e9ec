"""The time to ask a batch system for: the bound, wherever the job may land."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from jostle._base.documents import Record, Unanswered, VerbAnswer, answered
from jostle._base.option_fields import Flag, Limits, Throughout
from jostle._base.report import Report, Table
from jostle.errors import UsageError
from jostle.operations._operation import verb
from jostle.operations._request_reports import because, each
from jostle.operations.model.predict import Over
from jostle.placement import Standard

if TYPE_CHECKING:
    from jostle._base.progress import Progress
    from jostle.placement import FleetBounds, Placement, Request, Requests

_ELSEWHERE = ("pinned_elsewhere", "not_allowed", "labels")
_OPEN = ("ok", "tenant_late", "no_ground")  # where a bound may be


@dataclass(frozen=True)
class WalltimeQuestion:
    """The time to ask a batch system for: a bound that holds on every node the request may go to.

    Ends with 1 where there is none.
    """

    on: Annotated[
        tuple[str, ...] | str | None, "A node it may go to; repeat for more.  [default: all]"
    ] = None
    step_seconds: Annotated[
        float, "Seconds, to whose multiple the time is rounded up.", Flag("--step"), Limits(1)
    ] = 1.0
    throughout: Throughout = False

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if not 1 <= self.step_seconds < math.inf or self.step_seconds != int(self.step_seconds):
            raise UsageError(f"a step of {self.step_seconds} s is not a whole number of seconds")


@dataclass(frozen=True)
class Walltime(Record):
    """Time to ask a batch system for. seconds: whole seconds that hold on every node that could be bounded,
    None where none could. covered, considered: nodes with a valid bound, of those that the request may go to.
    ruled_out: {reason: nodes} of the others. over: of which company it speaks, as of Prediction."""

    request: str
    workload: str
    seconds: float | None
    bound_seconds: float | None
    widest_node: str | None
    covered: int
    considered: int
    ruled_out: Mapping[str, int]
    used_predictions: bool = False
    over: Over = "throughout"
    status: Literal["ok"] = "ok"

    also: ClassVar[tuple[str, ...]] = ("text",)

    @property
    def text(self) -> str | None:
        """HH:MM:SS, or D-HH:MM:SS past a day, as batch systems take it."""
        if self.seconds is None:
            return None
        whole = int(self.seconds)
        days, rest = divmod(whole, 86_400)
        clock = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
        return f"{days}-{clock}" if days else clock


@dataclass(frozen=True, repr=False)
class Walltimes(VerbAnswer):
    """Times to ask for, one for each request, in their order."""

    items: tuple[Walltime | Unanswered, ...]
    standard: Standard
    model: dict[str, Any] | None = None
    unknown_names: tuple[str, ...] = ()

    schema: ClassVar[str] = "place_walltime/v3"
    also: ClassVar[tuple[str, ...]] = ("is_answered", "promise")

    @property
    def rows(self) -> tuple[Walltime, ...]:
        """Those of requests that could be read."""
        return answered(self.items)

    @property
    def is_answered(self) -> bool:
        """True if every request has a time, and there was one."""
        whole = bool(self.rows) and len(self.rows) == len(self.items)
        return whole and all(row.seconds is not None for row in self.rows)

    @property
    def promise(self) -> str:
        return self.standard.promised(used_predictions=any(r.used_predictions for r in self.rows))

    @property
    def exit_code(self) -> int:
        return 0 if self.is_answered else 1

    def report(self) -> Report:
        """Write a line for each request."""
        cells = {
            "request": "request",
            "ask for": lambda row: row.text or "none",
            "bound": "bound_seconds",
            "longest on": "widest_node",
            "holds on": lambda row: f"{row.covered} of {row.considered}",
            "not on": lambda row: (
                "; ".join(f"{n} {because(why)}" for why, n in row.ruled_out.items()) or "–"
            ),
        }
        parts: list[Table | str] = [Table.of(self.rows, cells), self.promise]
        if any(row.over == "future" for row in self.rows):
            parts.append("Times hold whoever comes, as newcomers lately came in the log.")
        return Report(self.to_document(), parts, notes=self.notes)


@verb(WalltimeQuestion)
def walltime(
    placement: Placement, requests: Requests, question: WalltimeQuestion, progress: Progress
) -> Walltimes:
    """Raises UnknownName for a node that is not in the fleet."""
    fleet = placement.bounds_on(question.on)
    items = each(requests, lambda one: _walltime(one, fleet, question), progress)
    return Walltimes(items, placement.standard, placement.label)


def _walltime(request: Request, fleet: FleetBounds, question: WalltimeQuestion) -> Walltime:
    import numpy as np

    from jostle.placement import REASONS, newcomer_bounds

    # Its own limit does not matter here: the batch system gets one that holds.
    request = replace(request, deadline_seconds=None, slowdown=None)
    over: Over = "throughout"
    assessed = fleet.assess(request)
    words = np.array([tuple(REASONS)[int(code)] for code in assessed.reason], object)
    bounds, predicted = assessed.bound_seconds, assessed.predicted
    if not question.throughout and getattr(fleet.sets.model, "acts", None) is not None:
        over, open_ = "future", np.flatnonzero(np.isin(words, _OPEN))
        bounds, predicted = np.full(len(words), np.inf), np.zeros(len(words), bool)
        bounds[open_], predicted[open_] = newcomer_bounds(
            fleet.sets, [fleet.nodes[place] for place in open_], request
        )
        words[open_] = np.where(np.isfinite(bounds[open_]), "ok", "no_ground")
    considered = ~np.isin(words, _ELSEWHERE)
    good = considered & np.isfinite(bounds)
    ruled_out = Counter(sorted(words[~np.isin(words, ("ok", "tenant_late", *_ELSEWHERE))]))
    about, n = (request.name, request.workload), int(considered.sum())
    if not good.any():
        return Walltime(*about, None, None, None, 0, n, ruled_out)
    widest = int(np.argmax(np.where(good, bounds, -np.inf)))
    bound = float(bounds[widest])
    seconds = float(math.ceil(bound / question.step_seconds) * question.step_seconds)
    name, guessed = fleet.nodes[widest].name, bool(predicted[good].any())
    return Walltime(*about, seconds, bound, name, int(good.sum()), n, ruled_out, guessed, over)
