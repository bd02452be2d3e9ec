"""`jostle evaluate limits DATASET`: a log replayed, and what requests would have cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jostle._base.option_fields import Positional
from jostle.operations import ReplayedRequests
from jostle.usage import RetryPolicy


@dataclass(frozen=True, kw_only=True)
class ReplayCommand:
    """Options of `jostle evaluate limits`: the log to replay."""

    dataset: Annotated[Path, "The dataset: a log with peaks of memory.", Positional()]


def evaluate_limits(command: ReplayCommand, policy: RetryPolicy) -> ReplayedRequests:
    """Replay a log in time, of which only the runs that had ended are known, and count what the requests of
    `jostle limit` and of simple rules would have wasted, how many runs would have died, and the hours lost.
    """
    from jostle import operations

    return operations.evaluate_limits(command.dataset, policy)
