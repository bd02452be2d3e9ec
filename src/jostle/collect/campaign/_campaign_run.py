"""Running a campaign: window after window, until all is done, time is up or interrupted."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

from jostle.collect.campaign._campaign import Campaign, PlannedWindow
from jostle.collect.campaign._campaign_storage import Storage, recover
from jostle.collect.campaign._campaign_summary import (
    CampaignProgress,
    Interrupted,
    MeasureOptions,
    Summary,
    interrupts,
)
from jostle.collect.campaign._journal import Journal
from jostle.collect.campaign._slot_pool import SlotPool
from jostle.collect.kernels.opcodes._opcode_counting import DEFAULT_TIMEOUT_SECONDS
from jostle.collect.window._assess import MINIMUM_REPETITIONS, MemberResult, WindowResult
from jostle.collect.window._window import Stopped

# Beyond its length a window takes about this for set-up, warm-up and probes: for the first estimate
# only.
_OVERHEAD_SECONDS = 0.05
# A window should hold this many times the repetitions that it needs.
_MARGIN = 1.5


def measure(
    campaign: Campaign,
    dataset: str | Path,
    options: MeasureOptions | None = None,
    *,
    progress: Callable[[CampaignProgress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Summary:
    """Measure what the dataset does not hold yet of a campaign.

    dataset: a folder, made if need be. progress: called before each window. Raises Interrupted on
    Ctrl-C (in the main thread), UsageError where another process measures the same campaign into
    the dataset, NotPermitted where processes cannot be pinned, BadData for modules or datasets that
    cannot be read.
    """
    options = options or MeasureOptions()
    stop = threading.Event()
    counting = options.timeout_seconds or DEFAULT_TIMEOUT_SECONDS
    storage = Storage(Path(dataset), campaign, counting, stop.is_set)
    session = Session(campaign, storage, options, progress, clock, stop)
    with interrupts(stop):
        session.run()
    summary = session.summary()
    if summary.interrupted:
        raise Interrupted(summary)
    return summary


@dataclass(eq=False)
class Session:
    """State of one call of measure(): the windows that wait, the slots, what was learned."""

    campaign: Campaign
    storage: Storage
    options: MeasureOptions
    progress: Callable[[CampaignProgress], None] | None
    clock: Callable[[], float]
    stop: threading.Event = field(default_factory=threading.Event)
    waiting: deque[tuple[PlannedWindow, int]] = field(default_factory=deque)
    already: int = 0
    given_up: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    disturbances: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    # The longest repetition seen, by engine and member names: how long windows must be.
    longest_seconds: dict[str, float] = field(default_factory=dict)
    # Workloads that failed alone and their status: sets with them are not tried.
    broken: dict[tuple[str, str], str] = field(default_factory=dict)
    taken_seconds: deque[float] = field(default_factory=lambda: deque(maxlen=50))

    def __post_init__(self) -> None:
        self.began, self.plan = self.clock(), self.campaign.plan()

    def load(self) -> None:
        """Find out what of the plan the dataset does not hold yet."""
        recover(self.storage.path)
        history = self.storage.history(self.plan)
        for planned in self.plan:
            status, tries = history[planned.key]
            if status is not None:
                self.already += 1
                if status != "ok" and len(planned.members) == 1:
                    self.broken[planned.engine, planned.members[0].name] = status
            elif tries >= self.options.attempts:
                self.given_up += 1
            else:
                self.waiting.append((planned, tries))

    def run(self) -> None:
        """Measure until nothing waits, time is up, or the campaign is stopped."""
        self.load()
        if not self.waiting:
            return
        self.storage.write_features()
        if self.stop.is_set():
            return
        most = max(len(planned.members) for planned, _ in self.waiting)
        with (
            self.storage.journal(self.clock) as journal,
            SlotPool(self.campaign, most, self.options, self.stop.is_set) as pool,
        ):
            while self.waiting and not self.stop.is_set() and self.has_time():
                self.announce(self.waiting[0][0])
                planned, attempt = self.waiting[0]
                before = self.clock()
                try:
                    # Longer each time: what was too short, or begun too late, has room then.
                    seconds = self.window_seconds(planned) * 4 ** min(attempt, 4)
                    result = self.skipped(planned) or pool.measure(planned, seconds)
                except Stopped:
                    break
                self.waiting.popleft()
                self.accept(journal, planned, attempt, result)
                self.taken_seconds.append(self.clock() - before)

    def summary(self) -> Summary:
        """Return what was done so far."""
        statuses = ("ok", "failed", "timeout", "contaminated")
        return Summary(
            dataset=str(self.storage.path),
            campaign=self.campaign.identity,
            platforms=tuple(map(self.campaign.platform, self.campaign.engine_names)),
            planned=len(self.plan),
            already=self.already,
            **{status: self.outcomes[status] for status in statuses},
            given_up=self.given_up,
            remaining=len(self.waiting),
            finished=not self.waiting,
            interrupted=self.stop.is_set(),
            elapsed_seconds=self.clock() - self.began,
            warnings=tuple(self.storage.warnings),
            disturbance_median_ratio=median(self.disturbances) if self.disturbances else None,
            disturbance_most_ratio=max(self.disturbances, default=None),
            error_median_ratio=median(self.errors) if self.errors else None,
        )

    def accept(
        self, journal: Journal, planned: PlannedWindow, attempt: int, result: WindowResult
    ) -> None:
        """Put a result on disk, count it, and say what happens to the window next."""
        journal.append(self.storage.rows(planned, attempt, result))
        self.outcomes[result.status] += 1
        if result.status == "ok":
            self.disturbances += [one.disturbance_ratio or 0.0 for one in result.members]
            self.errors += [one.runtime_error_ratio or 0.0 for one in result.members]
        if result.longest_repetition_seconds is not None:
            name = planned.set_name
            known = self.longest_seconds.get(name, 0.0)
            self.longest_seconds[name] = max(known, result.longest_repetition_seconds)
        if result.status == "contaminated":
            self._try_again(planned, attempt)
        elif result.status != "ok" and len(planned.members) == 1:
            self.broken[planned.engine, planned.members[0].name] = result.status

    def skipped(self, planned: PlannedWindow) -> WindowResult | None:
        """Return why a window need not be measured; None where it must be."""
        broken = {
            member.name: self.broken[planned.engine, member.name]
            for member in planned.members
            if (planned.engine, member.name) in self.broken
        }
        if len(planned.members) == 1 or not broken:
            return None
        why = ", ".join(f"{name} alone ended as {status}" for name, status in broken.items())
        skipped = MemberResult("failed", f"not started: {why}")
        return WindowResult(tuple(skipped for _ in planned.members), datetime.now(UTC), 0.0)

    def _try_again(self, planned: PlannedWindow, attempt: int) -> None:
        """To the end of the queue, so that what disturbs now has time to pass; or give up."""
        if attempt + 1 < self.options.attempts:
            self.waiting.append((planned, attempt + 1))
        else:
            self.given_up += 1

    def window_seconds(self, planned: PlannedWindow) -> float:
        """Return the campaign's window, or longer where a repetition is known to be long."""
        share = math.ceil(len(planned.members) / len(self.campaign.core_numbers))
        longest = self.longest_seconds.get(planned.set_name, 0.0)
        for member in planned.members:
            alone = self.longest_seconds.get(f"{planned.engine}/{member.name}", 0.0)
            longest = max(longest, share * alone)
        needed = _MARGIN * MINIMUM_REPETITIONS * longest
        return max(self.campaign.window_seconds, needed)

    def _left_seconds(self) -> float | None:
        budget = self.options.time_budget_seconds
        return None if budget is None else budget - (self.clock() - self.began)

    def has_time(self) -> bool:
        left = self._left_seconds()
        return left is None or left > self.window_seconds(self.waiting[0][0]) + _OVERHEAD_SECONDS

    def announce(self, planned: PlannedWindow) -> None:
        """Tell whoever watches which window comes next."""
        if self.progress is None:
            return
        taken = self.taken_seconds
        each = (
            sum(taken) / len(taken) if taken else self.window_seconds(planned) + _OVERHEAD_SECONDS
        )
        left = self._left_seconds()
        expected = each * len(self.waiting)
        self.progress(
            CampaignProgress(
                done=len(self.plan) - len(self.waiting),
                total=len(self.plan),
                rejected=self.outcomes["contaminated"],
                elapsed_seconds=self.clock() - self.began,
                remaining_seconds=expected if left is None else max(0.0, min(expected, left)),
                doing=planned.set_name,
            )
        )
