"""A campaign over many machines: its windows on the workers of a Dask cluster.

Dask carries orders and results and knows who is there; which window is measured where, and what
happens when a worker is lost, is decided here. Workers that find the same platforms (machines that
are alike) share one plan; every other kind has its own. A worker measures one window at a time. Its
result is sent back, and is on disk here before it counts. A window whose worker has gone, or does
not answer in time, goes to another worker of its kind or waits for one; what comes later from the
first is not taken, so that no window is there twice.
"""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jostle._cluster import PATIENCE_SECONDS, connected
from jostle.errors import JostleError
from jostle.measure.campaign._campaign import PlannedWindow
from jostle.measure.campaign._journal import Journal
from jostle.measure.campaign._session import Options, Progress, Session, Summary, interrupts
from jostle.measure.campaign._storage import Storage
from jostle.measure.campaign._worker import Described, Order, describe, measure_window, pack
from jostle.measure.window._estimate import Tolerance

_LOOK_EVERY_SECONDS = 0.05
# So long a kind of machine may be absent before what waits for it is left for another time.
_ABSENCE_SECONDS = 60.0


@dataclass(frozen=True)
class FleetSummary:
    """campaigns: one summary for each kind of machine. workers: all that ever took part, by name.

    lost: windows that had to be given to another worker. refused: why workers could not take part.
    """

    campaigns: tuple[Summary, ...]
    workers: tuple[str, ...]
    lost: int
    refused: tuple[str, ...]
    interrupted: bool

    @property
    def finished(self) -> bool:
        """Whether there was a worker and nothing remains."""
        return bool(self.campaigns) and all(one.finished for one in self.campaigns)

    def to_json(self) -> dict[str, Any]:
        """A JSON document, schema measure-fleet/v1."""
        return {"schema": "measure-fleet/v1", "finished": self.finished, **asdict(self)}


def measure_fleet(
    scheduler: Any,
    dataset: str | Path,
    settings: Mapping[str, Any] | None = None,
    *,
    keep_apart: bool = False,
    native_mix: bool = False,
    time_budget_seconds: float | None = None,
    attempts: int = 3,
    timeout_seconds: float = 10.0,
    patience_seconds: float = PATIENCE_SECONDS,
    absence_seconds: float = _ABSENCE_SECONDS,
    tolerance: Tolerance | None = None,
    progress: Callable[[Progress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FleetSummary:
    """Measure a campaign on every machine of a cluster, into a dataset on this one.

    scheduler: the address of a Dask scheduler (`tcp://…`), or a client. settings: keyword arguments
    of Campaign. keep_apart: machines that are alike are platforms of their own, named after their
    workers. native_mix: count the instructions of command lines, with valgrind on this machine, which
    needs the commands too. patience_seconds: how long a worker may be silent beyond its window's time
    before the window is given to another, and how long the scheduler may take to answer at first.
    absence_seconds: how long to wait for a worker that could do what remains. The rest as in
    measure(). Raises MissingExtra, NotPermitted where no scheduler answers, and FleetInterrupted on
    Ctrl-C after all is written.
    """
    options = Options(time_budget_seconds, attempts, timeout_seconds, tolerance or Tolerance())
    stop = threading.Event()
    with ExitStack() as stack:
        client = stack.enter_context(connected(scheduler, patience_seconds))
        packed = {**pack(settings or {}), "keep_apart": keep_apart}
        fleet = _Fleet(client, Path(dataset), packed, options, progress, clock, stack)
        fleet.patience_seconds, fleet.absence_seconds = patience_seconds, absence_seconds
        fleet.native_mix = native_mix
        stack.enter_context(interrupts(stop))
        fleet.run(stop)
        summary = fleet.summary(stop.is_set())
    if stop.is_set():
        raise FleetInterrupted(summary)
    return summary


class FleetInterrupted(KeyboardInterrupt):
    """Ctrl-C, after everything measured has been written; `summary` says what was done."""

    def __init__(self, summary: FleetSummary) -> None:
        super().__init__("interrupted; the same command goes on from here")
        self.summary = summary


@dataclass
class _Group:
    """A kind of machine: its campaign's session and journal, and when it last had a worker."""

    session: Session
    journal: Journal
    seen: float


@dataclass
class _Worker:
    """group: None until it has said what it is."""

    address: str
    name: str
    group: _Group | None = None
    task: _Task | None = None
    refused: bool = False


@dataclass
class _Task:
    """What a worker was asked. planned: None for its description."""

    future: Any
    deadline: float
    planned: PlannedWindow | None = None
    attempt: int = 0


class _Fleet:
    patience_seconds = PATIENCE_SECONDS
    absence_seconds = _ABSENCE_SECONDS
    native_mix = False

    def __init__(
        self,
        client: Any,
        dataset: Path,
        packed: Mapping[str, Any],
        options: Options,
        progress: Callable[[Progress], None] | None,
        clock: Callable[[], float],
        stack: ExitStack,
    ) -> None:
        self.client, self.dataset, self.packed = client, dataset, packed
        self.options, self.progress, self.clock, self.stack = options, progress, clock, stack
        self.began = self.seen = clock()
        self.workers: dict[str, _Worker] = {}
        self.groups: dict[str, _Group] = {}
        self.names: list[str] = []
        self.refused: list[str] = []
        self.lost = 0

    def run(self, stop: threading.Event) -> None:
        """Until nothing waits, time is up, nobody is left who could go on, or stopped."""
        while not stop.is_set():
            self._look_around()
            for worker in list(self.workers.values()):
                self._look_at(worker)
            for worker in self.workers.values():
                if worker.task is None and not worker.refused:
                    self._ask(worker)
            if self._is_over():
                break
            time.sleep(_LOOK_EVERY_SECONDS)
        for worker in self.workers.values():
            if worker.task is not None:
                self._give_up(worker)
        for group in self.groups.values():
            group.journal.flush()

    def summary(self, interrupted: bool) -> FleetSummary:
        """What was done so far."""
        return FleetSummary(
            tuple(group.session.summary() for group in self.groups.values()),
            tuple(self.names),
            self.lost,
            tuple(self.refused),
            interrupted,
        )

    def _look_around(self) -> None:
        """Who has come and who has gone."""
        there = self.client.scheduler_info(n_workers=-1)["workers"]
        for address in [address for address in self.workers if address not in there]:
            self._give_up(self.workers.pop(address))
        for address, facts in there.items():
            if address not in self.workers:
                name = re.sub(r"[^\w.]+", "-", str(facts.get("name") or address)).strip("-")
                self.workers[address] = _Worker(address, name)
        if self.workers:
            self.seen = self.clock()

    def _look_at(self, worker: _Worker) -> None:
        """Take what it has sent, or notice that it will not."""
        task = worker.task
        if task is None:
            return
        if worker.group is not None:
            worker.group.seen = self.clock()
        status = task.future.status
        if status == "pending":
            if self.clock() > task.deadline:
                self._give_up(worker)
                # It is asked who it is before it is trusted with a window again.
                worker.group = None
            return
        if status != "finished":
            error = task.future.exception() if status == "error" else None
            if isinstance(error, JostleError):
                worker.refused = True
                self.refused.append(f"{worker.name}: {error}")
            self._give_up(worker)
            return
        from distributed import KilledWorker

        try:
            result = task.future.result(self.patience_seconds + self.options.timeout_seconds)
        except (TimeoutError, CancelledError, KilledWorker):
            # It died between finishing and sending: the scheduler would wait for its return.
            self._give_up(worker)
            worker.group = None
            return
        worker.task = None
        if task.planned is None:
            worker.group = self._group(result)
            if worker.name not in self.names:
                self.names.append(worker.name)
        elif worker.group is not None:
            group = worker.group
            group.session.accept(group.journal, task.planned, task.attempt, result)
            if not group.session.waiting and not self._in_flight(group):
                group.journal.flush()

    def _ask(self, worker: _Worker) -> None:
        """Who it is, or for the next window of its kind."""
        if worker.group is None:
            budget = self.patience_seconds + 120  # it may have to build and try all engines first
            worker.task = self._submitted(worker, budget, describe)
            return
        group, session = worker.group, worker.group.session
        while session.waiting and session.has_time():
            planned, attempt = session.waiting.popleft()
            if (skipped := session.skipped(planned)) is not None:
                session.accept(group.journal, planned, attempt, skipped)
                continue
            seconds = session.window_seconds(planned)
            order = Order(
                planned.key, seconds, self.options.timeout_seconds, self.options.tolerance
            )
            longest = seconds + 2 * self.options.timeout_seconds + self.patience_seconds
            session.announce(planned)
            worker.task = self._submitted(worker, longest, measure_window, order)
            worker.task.planned, worker.task.attempt = planned, attempt
            return

    def _submitted(
        self, worker: _Worker, seconds: float, function: Callable[..., Any], *arguments: Any
    ) -> _Task:
        future = self.client.submit(
            function,
            self.packed,
            worker.name,
            *arguments,
            key=f"jostle-{uuid.uuid4().hex}",
            workers=[worker.address],
            allow_other_workers=False,
            pure=False,
            retries=0,
        )
        return _Task(future, self.clock() + seconds)

    def _give_up(self, worker: _Worker) -> None:
        """Its window waits again, before all others; what it may still send is not taken."""
        task, worker.task = worker.task, None
        if task is None:
            return
        task.future.cancel()
        if task.planned is not None and worker.group is not None:
            self.lost += 1
            worker.group.session.waiting.appendleft((task.planned, task.attempt))

    def _group(self, found: Described) -> _Group:
        campaign = found.campaign
        if campaign.identity not in self.groups:
            storage = Storage(self.dataset, campaign, self.native_mix)
            session = Session(campaign, storage, self.options, self.progress, self.clock)
            session.began = self.began
            session.load()
            if session.waiting:
                storage.write_features(found.platforms)
            journal = storage.journal(self.clock, session.judged_again)
            self.stack.enter_context(journal)
            self.groups[campaign.identity] = _Group(session, journal, self.clock())
        return self.groups[campaign.identity]

    def _in_flight(self, group: _Group) -> bool:
        return any(w.group is group and w.task is not None for w in self.workers.values())

    def _is_over(self) -> bool:
        if any(worker.task is not None for worker in self.workers.values()):
            return False
        now = self.clock()
        budget = self.options.time_budget_seconds
        if budget is not None and now - self.began >= budget:
            return True
        if not self.groups:
            refused = self.workers and all(worker.refused for worker in self.workers.values())
            return bool(refused) or now - self.seen > self.absence_seconds
        return all(
            not group.session.waiting
            or not group.session.has_time()
            or now - group.seen > self.absence_seconds
            for group in self.groups.values()
        )
