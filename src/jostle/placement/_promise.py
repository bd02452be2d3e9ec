"""What an answer promises, and which bounds it may rest on.

Bounds hold over what was asked about, not over what was chosen because its bound was small: the least of
many bounds is exceeded more often than each of them by itself (the winner's curse).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import nextafter
from typing import Annotated, Literal

from jostle._base.confidence import DEFAULT_CONFIDENCE, exact_confidence
from jostle._base.option_fields import Short
from jostle.errors import require_choice
from jostle.models import CampaignQuestion

CHOSEN = "chosen"
EACH = "each"
JOINT = "joint"
PREDICTED = "predicted"
Promise = Literal["chosen", "each", "joint", "predicted"]
PROMISES = (CHOSEN, EACH, JOINT, PREDICTED)

ASKED = (
    "At most {miss} of all co-locations asked about are expected to be accepted and then late, if limits "
    "were set without looking at the bounds. If only a part is accepted, up to {miss} divided by that part "
    "may be late in it. For the best of several nothing is promised."
)
ASKED_EACH = (
    "At most {miss} of all workloads asked about, each counted by itself, are expected to be accepted and "
    "then late, if limits were set without looking at the bounds. If only a part is accepted, up to {miss} "
    "divided by that part may be late in it. For the best of several nothing is promised."
)
OF_CHOSEN = (
    "At most {miss} of the {which} are expected to take longer than their bound (each is at {level:.4g}). "
    "This choice was replayed on calibration runs, for workloads drawn like those and limits set without "
    "looking at the bounds. Bounds are for these co-runners to the end: make the bound of what you place "
    "its deadline, and later placements keep it."
)
RANKED = (
    "Each bound holds over what was asked about. For the best of them, chosen because its bound is small, "
    "nothing is promised{why}: the least of many bounds is exceeded more often than each by itself."
)
NOTHING_CHOSEN = "No node is safe, so there is nothing to promise."
OPTIMISED = (
    "Each bound holds over what was asked about. For sets that were chosen out of many because their bounds "
    "are small nothing is promised{why}: those are exceeded more often than each by itself."
)
ON_PREDICTIONS = (
    "Where no bound is valid nothing is promised: "
    "there the answer rests on the prediction, as accepted."
)


@dataclass(frozen=True)
class Standard(CampaignQuestion):
    """Standard by which a set of workloads is assessed, and the campaign that is asked about.

    promise: `chosen`, that it holds of what is chosen, too (the first that is ranked, all that are assigned):
    the choice is replayed on calibration runs; `each`, of every bound by itself; `joint`, of all on a node at
    once: each of m workloads gets 1 - (1 - confidence) / m; `predicted`, as `each`, and where no bound is
    valid the prediction stands in, of which nothing is promised. Raises UsageError.
    """

    confidence: Annotated[float, "How sure every bound is, under 1.", Short("-c")] = (
        DEFAULT_CONFIDENCE
    )
    promise: Annotated[
        Promise,
        "That the confidence holds of what is chosen, too; of each bound by itself; of all on a node at once "
        "(a union bound); or of each, and where no bound is valid the prediction counts.",
    ] = CHOSEN

    def __post_init__(self) -> None:
        exact_confidence(self.confidence)
        require_choice("promise", self.promise, PROMISES)

    @property
    def takes_predictions(self) -> bool:
        """True if it takes them where no bound is valid."""
        return self.promise == PREDICTED

    def of_each(self, confidence: float | None, members: int) -> float:
        """Return the confidence of each bound in a set of so many members. confidence: a member's own, if
        any."""
        return _of_each(confidence or self.confidence, members if self.promise == JOINT else 1)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Name the confidence and the promise."""
        return [("confidence", f"{self.confidence:g}"), ("promise", str(self.promise))]

    @property
    def miss(self) -> str:
        """The share that may be late, as a percentage."""
        return f"{float(100 * (1 - exact_confidence(self.confidence))):.3g}%"

    def promised(self, *, used_predictions: bool) -> str:
        """Write in a sentence what is promised of answers to questions asked one by one."""
        text = (ASKED if self.promise == JOINT else ASKED_EACH).format(miss=self.miss)
        return f"{text} {ON_PREDICTIONS}" if used_predictions else text


@cache
def _of_each(confidence: float, members: int) -> float:
    """Share a confidence among the members of a set by a union bound, rounded to the nearest number
    that is not less."""
    whole = exact_confidence(confidence)
    if members < 2:
        return float(whole)
    share = 1 - (1 - whole) / members
    nearest = float(share)
    return nearest if Fraction(repr(nearest)) >= share else nextafter(nearest, 1.0)
