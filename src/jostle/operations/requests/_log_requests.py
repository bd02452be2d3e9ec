"""The request of memory and of time of each workload of a log, and how likely a run needs more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from jostle._base.confidence import exact_confidence
from jostle._base.documents import Record, VerbAnswer
from jostle._base.option_fields import Flag
from jostle._base.report import Report, Table, duration, percent
from jostle.errors import NotEnoughRuns, UsageError, require_known
from jostle.operations.requests._logged_history import (
    GB,
    memory_history,
    names_of,
    runs_of,
    starts_of,
    time_history,
)
from jostle.usage import LeastCost, RankedLimit, RetryPolicy, RunHistory, limit_in_order, replay


@dataclass(frozen=True)
class RequestQuestion(RetryPolicy):
    """Recommend what memory and time to request for each workload of a log, so that it costs least.

    From the peaks and times of its runs, with their covariates, under a retry policy.
    """

    confidence: Annotated[
        float | None, "Instead: a limit that a run stays below with this confidence."
    ] = None
    values: Annotated[
        Mapping[str, float] | None,
        "A covariate of the runs to come, NAME=NUMBER; repeat for more.",
        Flag("--set"),
    ] = None
    since: Annotated[
        str | None, "Only workloads with a run that began since, such as 2026-01-31T00:00."
    ] = None

    def __post_init__(self) -> None:
        """Raises UsageError."""
        if self.confidence is None:
            super().__post_init__()
        else:
            exact_confidence(self.confidence)

    @property
    def since_seconds(self) -> float:
        """Seconds since 1970 from which on runs count as new. Raises UsageError."""
        if self.since is None:
            return -np.inf
        try:
            return np.datetime64(self.since, "us").astype(np.int64) / 1e6
        except ValueError:
            fix = "Such as 2026-01-31T00:00:00, in UTC."
            raise UsageError(f"`since` {self.since!r} is not a time", fix=fix) from None


@dataclass(frozen=True)
class Requested(Record):
    """Recommended request of one resource for one workload. request: in bytes or seconds. rule: `jostle`, a
    simple rule that proved cheaper, `requested` where nothing has ended, `bound`, or `unsteady`: peaks turn
    on their order, so that no bound holds, and the largest seen or requested stands. over_ratio: how likely a
    run needs more, NaN where unknown. now: what was requested last. confidence: of a bound, the best there is
    where runs are few."""

    request: float
    rule: str
    over_ratio: float
    now: float
    runs: int
    confidence: float | None = None


@dataclass(frozen=True)
class WorkloadRequest(Record):
    """Recommended requests for a workload: memory in bytes, time in seconds; None where the log says nothing
    of it."""

    workload: str
    memory: Requested | None
    time: Requested | None


@dataclass(frozen=True, repr=False)
class LogRequests(VerbAnswer):
    """Recommended requests for the workloads of a log. retry: what a run gets that dies. most_memory,
    most_time: the most that was ever requested or needed, which the retry `max` asks for."""

    items: tuple[WorkloadRequest, ...]
    retry: str
    most_memory: float
    most_time: float
    confidence: float | None = None
    model: dict[str, Any] | None = None

    schema: ClassVar[str] = "requests/v1"

    def report(self) -> Report:
        """Write a row for each workload."""
        cells = {
            "workload": lambda one: one.workload,
            "runs": lambda one: str(
                max((r.runs for r in (one.memory, one.time) if r is not None), default=0)
            ),
            "memory": lambda one: _memory(one.memory),
            "now": lambda one: "–" if one.memory is None else _gb(one.memory.now),
            "by": lambda one: "–" if one.memory is None else _rule(one.memory),
            "needs more": lambda one: _over(one.memory),
            "time": lambda one: _seconds(one.time),
            "takes longer": lambda one: _over(one.time),
        }
        lines = [Table.of(self.items, cells), self.sentence]
        notes = []
        if self.items and all(one.memory is None for one in self.items):
            notes.append("no run says how much memory it had at most or requested: times only")
        return Report(self.to_document(), lines, notes=notes)

    @property
    def sentence(self) -> str:
        """A sentence on the requests."""
        if self.confidence is not None:
            return f"Limits that a run stays below with confidence {self.confidence:g}."
        how = {
            "x2": "what dies gets twice as much",
            "max": "what dies gets the most there is",
            "none": "what dies is lost",
        }
        return f"Requests that cost least where {how[self.retry]}."


def limit(data: Any, **options: Any) -> LogRequests:
    """Find what to request of memory and time for each workload of a log.

    Parameters
    ----------
    data :
        What :func:`fit` takes: runs with peaks of memory.
    **options :
        Fields of :class:`RequestQuestion`, such as ``retry="max"`` or ``confidence=0.95``.

    Returns
    -------
    LogRequests
    """
    return requests_of(data, RequestQuestion(**options))


def requests_of(data: Any, question: RequestQuestion | None = None) -> LogRequests:
    """Say what to request for each workload of a log.

    Raises NotEnoughRuns where no peak and no time is known, UsageError for an unknown covariate.
    """
    question = question or RequestQuestion()
    runs = runs_of(data)
    memory, time = memory_history(runs), time_history(runs)
    if not np.isfinite([*memory.value, *time.value]).any():
        raise NotEnoughRuns("no run says what it needed", fix="Import a log with peaks and times.")
    at = None
    if question.values is not None:
        known = [name for name, one in runs.covariates.items() if one.dtype.kind == "f"]
        for name in question.values:
            require_known("covariate", name, known)
        at = np.array([question.values.get(name, np.nan) for name in known])
    found = [
        _Resource(each, question, is_time) for each, is_time in ((memory, False), (time, True))
    ]
    new = names_of(runs)[~(starts_of(runs) < question.since_seconds)]
    items = tuple(
        WorkloadRequest(name, found[0].request(name, at, GB), found[1].request(name, at, 3600.0))
        for name in sorted(set(new.tolist()))
    )
    most = [one.most for one in found]
    return LogRequests(items, question.retry, most[0] * GB, most[1] * 3600, question.confidence)


class _Resource:
    """What is learned of memory or of time."""

    def __init__(self, runs: RunHistory, question: RequestQuestion, is_time: bool) -> None:
        self._confidence = question.confidence
        policy = RetryPolicy() if question.confidence is not None else question
        self._learned: LeastCost = replay(runs, policy, is_time)[1]
        self.most = float(np.nanmax([*runs.requested, self._learned.most]))  # 0 where none is known

    def request(self, workload: str, at: np.ndarray | None, unit: float) -> Requested | None:
        value, rule, over = self._learned.next_request(workload, at)
        last = self._learned.requested_last.get(workload, np.nan)
        peaks, is_open = self._learned.peaks(workload)
        confidence = None
        if self._confidence is not None and len(peaks):
            ranked = best_limit(peaks, is_open, self._confidence)
            value, rule, confidence = ranked.value, "bound", ranked.confidence_now
            if ranked.outcome == "unsteady":
                value, rule, confidence = float(np.fmax(last, peaks.max())), "unsteady", None
            over = np.nan if confidence is None else 1 - confidence
        if not np.isfinite(value):  # every run died at its limit: nothing bounds what they need
            value, rule, over, confidence = last, "requested", np.nan, None
        if not np.isfinite(value):
            return None
        return Requested(value * unit, rule, over, last * unit, len(peaks), confidence)


def best_limit(peaks: np.ndarray, is_open: np.ndarray, confidence: float) -> RankedLimit:
    """Bound the next peak with this confidence, or else with the best that so many runs have. Returns it with
    the confidence that it has as `confidence_now`."""
    ranked = limit_in_order(peaks, is_open, confidence)
    if ranked.outcome == "too_few_runs" and ranked.confidence_now:
        confidence = ranked.confidence_now
        ranked = limit_in_order(peaks, is_open, confidence)
    return replace(ranked, confidence_now=confidence)


def _gb(value: float) -> str:
    return "–" if not np.isfinite(value) else f"{value / GB:.3g} GB"


def _memory(one: Requested | None) -> str:
    return "–" if one is None else _gb(one.request)


def _seconds(one: Requested | None) -> str:
    return "–" if one is None else duration(one.request)


def _rule(one: Requested) -> str:
    return one.rule if one.confidence is None else f"bound at {one.confidence:.4g}"


def _over(one: Requested | None) -> str:
    return "–" if one is None else percent(one.over_ratio)
