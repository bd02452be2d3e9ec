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

from jostle._confidence import exact_confidence
from jostle.errors import UsageError

NO_BOUND = "none"
PREDICTED = "predicted"
ACCEPT = (NO_BOUND, PREDICTED)
Accept = Literal["none", "predicted"]

ASKED = (
    "Of all co-locations asked about, at most {miss} are expected to be both accepted and late, for "
    "limits set without looking at the bounds. Among those accepted the share can be {miss} divided by "
    "the share accepted. Among those ranked or optimised nothing is promised."
)
ASKED_EACH = (
    "Of all workloads asked about, at most {miss} are expected to be both accepted and late, each counted "
    "by itself, for limits set without looking at the bounds. Among those accepted the share can be {miss} "
    "divided by the share accepted. Among those ranked or optimised nothing is promised."
)
CHOSEN = (
    "Of the co-locations placed, at most {among} are expected to be late: calibrated on chosen ones, over "
    "requests whose workloads and limits are drawn like those of the calibration runs."
)
RANKED = (
    "Each bound holds over what was asked about. For the best of {count}, chosen because its bound is small, "
    "nothing is promised: the least of many bounds is exceeded more often than each by itself."
)
NOTHING_CHOSEN = "No node is safe, so there is nothing to promise."
OPTIMISED = (
    "Each bound holds over what was asked about. For sets that were chosen out of many because their bounds "
    "are small nothing is promised: those are exceeded more often than each by itself."
)
ON_PREDICTIONS = (
    "Where no bound is valid nothing is promised: "
    "there the answer rests on the prediction, as accepted."
)


@dataclass(frozen=True)
class Standard:
    """By what a set of workloads is assessed.

    joint: each of m workloads on a node gets 1 - (1 - confidence) / m. Raises UsageError.
    """

    confidence: Annotated[float, "How sure every bound is, under 1."] = 0.9
    joint: Annotated[
        bool, "That all on a node keep their limits at once, by a union bound, not each by itself."
    ] = False
    accept: Annotated[
        Literal["none", "predicted"],
        "What to take where no bound is valid: nothing, or the prediction.",
    ] = NO_BOUND

    def __post_init__(self) -> None:
        exact_confidence(self.confidence)
        if self.accept not in ACCEPT:
            raise UsageError(f"accept {self.accept!r}", fix=f"Known: {', '.join(ACCEPT)}.")

    @property
    def takes_predictions(self) -> bool:
        """Whether it takes them where no bound is valid."""
        return self.accept == PREDICTED

    def of_each(self, confidence: float | None, members: int) -> float:
        """The confidence of each bound in a set of so many members. confidence: a member's own, if any."""
        return _of_each(confidence or self.confidence, members if self.joint else 1)

    def promise(self, *, used_predictions: bool = False) -> str:
        """In a sentence, of answers to questions asked one by one."""
        miss = f"{float(100 * (1 - exact_confidence(self.confidence))):.3g}%"
        text = (ASKED if self.joint else ASKED_EACH).format(miss=miss)
        return f"{text} {ON_PREDICTIONS}" if used_predictions else text


@cache
def _of_each(confidence: float, members: int) -> float:
    """By a union bound over so many: the nearest number that is not less."""
    whole = exact_confidence(confidence)
    if members < 2:
        return float(whole)
    share = 1 - (1 - whole) / members
    nearest = float(share)
    return nearest if Fraction(repr(nearest)) >= share else nextafter(nearest, 1.0)
