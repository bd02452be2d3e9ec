"""What answers about requests share: one for each of them, and words for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jostle._base.documents import Unanswered
from jostle._base.progress import Progress
from jostle.errors import JostleError

if TYPE_CHECKING:
    from jostle.placement import Request, Requests


def each(requests: Requests, act: Callable[[Request], Any], progress: Progress) -> tuple[Any, ...]:
    """Answer each row in its order; a row without an answer says why and stops no other."""
    answers: list[Any] = []
    good, done = len(requests.good), 0
    for row, status, number in zip(requests.rows, requests.status, requests.numbers, strict=True):
        if row is None:
            answers.append(Unanswered(status, number))
            continue
        try:
            progress(done, good, float("nan"))
            answers.append(act(row))
        except JostleError as error:
            answers.append(Unanswered(str(error), number))
        done += 1
    progress(good, good, float("nan"))
    return tuple(answers)


def unread(requests: Requests) -> tuple[Unanswered, ...]:
    """Return rows that could not be read."""
    rows = zip(requests.rows, requests.status, requests.numbers, strict=True)
    return tuple(Unanswered(status, number) for row, status, number in rows if row is None)


def because(reason: str) -> str:
    """Write a reason in words."""
    from jostle.placement import REASONS

    return REASONS[reason]
