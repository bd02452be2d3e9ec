"""One request on one node: who shares it, and whether all keep their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from jostle._base.documents import Record
from jostle.conformal import status_of


@dataclass(frozen=True)
class Sharer(Record):
    """A workload of a set on one node. limit_seconds: None without an objective. bound_seconds: None where no
    bound is valid. keeps: whether it is expected to keep its limit; None without one."""

    name: str
    workload: str
    is_newcomer: bool
    limit_seconds: float | None
    predicted_seconds: float | None
    bound_seconds: float | None
    outcome: str
    confidence: float

    also: ClassVar[tuple[str, ...]] = ("bound_status", "keeps", "over_seconds")

    @property
    def bound_status(self) -> str:
        """One of the five statuses of a bound."""
        return status_of(self.outcome)

    @property
    def keeps(self) -> bool | None:
        if self.limit_seconds is None:
            return None
        return self.bound_seconds is not None and self.bound_seconds <= self.limit_seconds

    @property
    def over_seconds(self) -> float | None:
        """Seconds by which the bound is over the limit; None if it is not."""
        if self.keeps is not False or self.bound_seconds is None or self.limit_seconds is None:
            return None
        return self.bound_seconds - self.limit_seconds


@dataclass(frozen=True)
class SafeAnswer(Record):
    """Answer to whether a request may go to a node. reason: a key of REASONS. helps: sentences, what would
    help. arrangement: how they would share an accelerator, empty elsewhere."""

    request: str
    workload: str
    node: str
    platform: str
    is_safe: bool
    reason: str
    used_predictions: bool = False
    members: tuple[Sharer, ...] = ()
    helps: tuple[str, ...] = ()
    arrangement: str = ""

    also: ClassVar[tuple[str, ...]] = ("hurt_names",)

    @property
    def hurt(self) -> tuple[Sharer, ...]:
        """The members that would not keep their limits."""
        return tuple(member for member in self.members if member.keeps is False)

    @property
    def hurt_names(self) -> list[str]:
        return [member.name for member in self.hurt]
