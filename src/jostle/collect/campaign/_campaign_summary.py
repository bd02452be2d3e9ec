"""How a campaign is measured, where it stands, and what came of it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from jostle._base.option_fields import Flag, Limits, NoOption
from jostle._base.report import percent


@dataclass(frozen=True)
class MeasureOptions:
    """Settings of how to measure.

    timeout_seconds: for a workload's set-up and for a repetition beyond its window, and for a whole window
    with command lines. most_disturbed_ratio: what a run lost to others is measured and taken off; a window
    in which a member lost more than this share of its time is rejected.
    """

    time_budget_seconds: Annotated[
        float | None, "Seconds after which no window is begun.", Flag("--budget"), Limits(0)
    ] = None
    most_disturbed_ratio: Annotated[
        float,
        "Share of its time that a run may lose to other processes before it is measured again; what is "
        "lost below that is measured and taken off.",
        Flag("--most-disturbed"),
        NoOption(),
        Limits(0, 1),
    ] = 1.0
    attempts: Annotated[
        int, "Times a rejected window is measured at most.", Limits(1), NoOption()
    ] = 3
    timeout_seconds: Annotated[
        float | None,
        "Seconds a set-up or a repetition may take.  [default: 10, of command lines a day]",
        Flag("--timeout"),
        Limits(0.1),
    ] = None

    @property
    def repetition_timeout_seconds(self) -> float:
        """Time limit of set-up, and of a repetition beyond its window."""
        return 10.0 if self.timeout_seconds is None else self.timeout_seconds

    @property
    def job_timeout_seconds(self) -> float:
        """Time limit of a window with command lines, and of preparing it."""
        return 86400.0 if self.timeout_seconds is None else self.timeout_seconds


@dataclass(frozen=True)
class CampaignProgress:
    """Counts of how far a campaign has come. done, total: planned windows. rejected: contaminated windows so
    far.

    remaining_seconds: an estimate, at most what the time budget leaves. doing: engine and members.
    """

    done: int
    total: int
    rejected: int
    elapsed_seconds: float
    remaining_seconds: float
    doing: str


@dataclass(frozen=True)
class Summary:
    """Result of a call of measure(). planned: windows; of these `already` were there before.

    ok, failed, timeout, contaminated: windows that ended so in this call; a contaminated one is
    repeated until it is ok or its attempts are used up (given_up). remaining: planned windows not
    measured yet. finished: nothing remains. warnings: sentences for people. disturbance_median_ratio,
    disturbance_most_ratio: share of its time that a run of this call lost to others, and error_median_ratio:
    standard error of its undisturbed time, as a share; None without runs.
    """

    dataset: str
    campaign: str
    platforms: tuple[str, ...]
    planned: int
    already: int
    ok: int
    failed: int
    timeout: int
    contaminated: int
    given_up: int
    remaining: int
    finished: bool
    interrupted: bool
    elapsed_seconds: float
    warnings: tuple[str, ...]
    disturbance_median_ratio: float | None = None
    disturbance_most_ratio: float | None = None
    error_median_ratio: float | None = None

    @property
    def disturbance(self) -> str:
        """A clause for people; empty where nobody lost anything."""
        if not self.disturbance_most_ratio:
            return ""
        lost, most, error = (
            percent(one or 0.0)
            for one in (
                self.disturbance_median_ratio,
                self.disturbance_most_ratio,
                self.error_median_ratio,
            )
        )
        return (
            f"other programs took {lost} of a run's time (median; at most {most}), which is taken off; "
            f"what is left is known to within {error} (median standard error)"
        )

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document, schema measure/v1."""
        return {"schema": "measure/v1", **asdict(self)}


@dataclass(frozen=True)
class FleetSummary:
    """Result of a campaign over many machines.

    campaigns: one summary for each kind of machine. workers: all that ever took part, by name.

    lost: windows that had to be given to another worker. refused: why workers could not take part.
    """

    campaigns: tuple[Summary, ...]
    workers: tuple[str, ...]
    lost: int
    refused: tuple[str, ...]
    interrupted: bool

    @property
    def finished(self) -> bool:
        """True if there was a worker and nothing remains."""
        return bool(self.campaigns) and all(one.finished for one in self.campaigns)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document, schema measure-fleet/v1."""
        return {"schema": "measure-fleet/v1", "finished": self.finished, **asdict(self)}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after everything measured has been written; `summary` says what was done."""

    def __init__(self, summary: Any) -> None:
        super().__init__("interrupted; the same command goes on from here")
        self.summary = summary


class FleetInterrupted(Interrupted):
    """The same of a campaign over machines."""


@contextmanager
def interrupts(stop: threading.Event) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask to stop instead of raising, so that no write is cut in the middle."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = signal.SIGINT, signal.SIGTERM
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
