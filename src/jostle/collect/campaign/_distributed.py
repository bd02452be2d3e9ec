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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jostle._base.dask_cluster import PATIENCE_SECONDS, connected
from jostle._base.version import VERSION
from jostle.collect.campaign._campaign import PlannedWindow
from jostle.collect.campaign._campaign_run import Session
from jostle.collect.campaign._campaign_storage import Storage
from jostle.collect.campaign._campaign_summary import (
    CampaignProgress,
    FleetInterrupted,
    FleetSummary,
    MeasureOptions,
    interrupts,
)
from jostle.collect.campaign._journal import Journal
from jostle.collect.campaign._worker import Order, WorkerReport, describe, measure_window, pack
from jostle.collect.kernels._engines import reason_of
from jostle.collect.window._assess import WindowResult
from jostle.collect.window._job_window import has_jobs
from jostle.errors import JostleError

_LOOK_EVERY_SECONDS = 0.05
_SAME = "Install the same Jostle there as here."


@dataclass(frozen=True)
class FleetOptions:
    """Options of a campaign over many machines.

    keep_apart: machines that are alike are platforms of their own, named after their workers.

    patience_seconds: how long a worker may be silent beyond its window's time before the window is given to
    another, and how long the scheduler may take to answer at first. absence_seconds: how long to wait for a
    worker that could do what remains.
    """

    keep_apart: bool = False
    patience_seconds: float = PATIENCE_SECONDS
    absence_seconds: float = 60.0


def measure_fleet(
    scheduler: Any,
    dataset: str | Path,
    settings: Mapping[str, Any] | None = None,
    options: MeasureOptions | None = None,
    *,
    fleet: FleetOptions | None = None,
    progress: Callable[[CampaignProgress], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> FleetSummary:
    """Measure a campaign on every machine of a cluster, into a dataset on this one.

    scheduler: the address of a Dask scheduler (`tcp://…`), or a client. settings: keyword arguments
    of Campaign. options, progress: as in measure(); commands are counted on this machine, which then
    needs them too. Raises MissingExtra, NotPermitted where no scheduler answers, and
    FleetInterrupted on Ctrl-C after all is written.
    """
    options, fleet = options or MeasureOptions(), fleet or FleetOptions()
    stop = threading.Event()
    with ExitStack() as stack:
        client = stack.enter_context(connected(scheduler, fleet.patience_seconds))
        packed = {**pack(settings or {}), "keep_apart": fleet.keep_apart}
        work = _Fleet(client, Path(dataset), packed, options, fleet, progress, clock)
        stack.enter_context(interrupts(stop))
        stack.enter_context(work.journals)
        work.run(stop)
        summary = work.summary(stop.is_set())
    if stop.is_set():
        raise FleetInterrupted(summary)
    return summary


@dataclass
class _MachineKind:
    """A kind of machine: its campaign's session and journal, and when it last had a worker."""

    session: Session
    journal: Journal
    seen: float


@dataclass
class _Worker:
    """kind: None until it has reported what it is."""

    address: str
    name: str
    kind: _MachineKind | None = None
    task: _Task | None = None
    refused: bool = False


@dataclass
class _Task:
    """Task of a worker. planned: None for its description."""

    future: Any
    deadline: float
    planned: PlannedWindow | None = None
    attempt: int = 0


@dataclass(eq=False)
class _Fleet:
    client: Any
    dataset: Path
    packed: Mapping[str, Any]
    options: MeasureOptions
    fleet: FleetOptions
    progress: Callable[[CampaignProgress], None] | None
    clock: Callable[[], float]
    journals: ExitStack = field(default_factory=ExitStack)
    workers: dict[str, _Worker] = field(default_factory=dict)
    kinds: dict[str, _MachineKind] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lost: int = 0

    def __post_init__(self) -> None:
        self.began = self.seen = self.clock()
        # What concerns a worker: another budget must not cost it what it knows of its cores.
        self.worker_options = MeasureOptions(
            timeout_seconds=self.options.timeout_seconds,
            most_disturbed_ratio=self.options.most_disturbed_ratio,
        )

    def run(self, stop: threading.Event) -> None:
        """Hand out windows until nothing waits, time is up, nobody is left who could go on, or stopped."""
        while not stop.is_set():
            self._look_around()
            for worker in list(self.workers.values()):
                self._look_at(worker)
            for worker in self.workers.values():
                if worker.task is None and not worker.refused:
                    self._employ(worker)
            if self._is_over():
                break
            time.sleep(_LOOK_EVERY_SECONDS)
        for worker in self.workers.values():
            if worker.task is not None:
                self._give_up(worker)
        for kind in self.kinds.values():
            kind.journal.flush()

    def summary(self, interrupted: bool) -> FleetSummary:
        """Return what was done so far."""
        return FleetSummary(
            tuple(kind.session.summary() for kind in self.kinds.values()),
            tuple(self.names),
            self.lost,
            tuple(self.refused),
            interrupted,
        )

    def _look_around(self) -> None:
        """Find out which workers have come and which have gone."""
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
        if worker.kind is not None:
            worker.kind.seen = self.clock()
        status = task.future.status
        if status == "pending":
            if self.clock() > task.deadline:
                self._give_up(worker)
                # It must report what it is before it is trusted with a window again.
                worker.kind = None
            return
        if status == "finished":
            self._collect(worker, task)
            return
        from distributed import KilledWorker

        error = task.future.exception() if status == "error" else None
        if isinstance(error, JostleError):
            self._refuse(worker, str(error))
        elif error is not None and not isinstance(error, KilledWorker):
            self._refuse(worker, f"it cannot take part: {reason_of(error)}. {_SAME}")
        self._give_up(worker)

    def _collect(self, worker: _Worker, task: _Task) -> None:
        """Fetch the result of a task that has ended, and check that it is one."""
        from distributed import KilledWorker

        try:
            result = task.future.result(
                self.fleet.patience_seconds + self.options.repetition_timeout_seconds
            )
        except (TimeoutError, CancelledError, KilledWorker):
            # It died between finishing and sending: the scheduler would wait for its return.
            self._give_up(worker)
            worker.kind = None
            return
        if not isinstance(result, WorkerReport if task.planned is None else WindowResult):
            self._refuse(worker, f"it answers with {type(result).__name__}. {_SAME}")
            self._give_up(worker)
            return
        worker.task = None
        self._accept(worker, task, result)

    def _accept(self, worker: _Worker, task: _Task, result: WorkerReport | WindowResult) -> None:
        """Learn what a worker is, or keep the window that it measured."""
        if isinstance(result, WorkerReport):
            if (has := getattr(result, "version", "another")) != VERSION:
                self._refuse(worker, f"it has Jostle {has}, here is {VERSION}. {_SAME}")
                return
            worker.kind = self._kind_of(result)
            if worker.name not in self.names:
                self.names.append(worker.name)
        elif worker.kind is not None and task.planned is not None:
            kind = worker.kind
            kind.session.accept(kind.journal, task.planned, task.attempt, result)
            if not kind.session.waiting and not self._in_flight(kind):
                kind.journal.flush()

    def _refuse(self, worker: _Worker, why: str) -> None:
        worker.refused = True
        self.refused.append(f"{worker.name}: {why}")

    def _employ(self, worker: _Worker) -> None:
        """Let it report what it is, or measure the next window of its kind."""
        if worker.kind is None:
            # It may have to build and try all engines first.
            budget = self.fleet.patience_seconds + 120
            worker.task = self._submitted(worker, budget, describe)
            return
        kind, session = worker.kind, worker.kind.session
        while session.waiting and session.has_time():
            planned, attempt = session.waiting.popleft()
            if (skipped := session.skipped(planned)) is not None:
                session.accept(kind.journal, planned, attempt, skipped)
                continue
            seconds = session.window_seconds(planned)
            order = Order(planned.key, seconds, self.worker_options)
            longest = (
                seconds + 2 * self.options.repetition_timeout_seconds + self.fleet.patience_seconds
            )
            if has_jobs(planned.members):
                longest += 2 * self.options.job_timeout_seconds
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
        """Put a worker's window back, before all others; what the worker may still send is not taken."""
        task, worker.task = worker.task, None
        if task is None:
            return
        task.future.cancel()
        if task.planned is not None and worker.kind is not None:
            self.lost += 1
            worker.kind.session.waiting.appendleft((task.planned, task.attempt))

    def _kind_of(self, report: WorkerReport) -> _MachineKind:
        campaign = report.campaign
        if campaign.identity not in self.kinds:
            storage = Storage(self.dataset, campaign)
            session = Session(campaign, storage, self.options, self.progress, self.clock)
            session.began = self.began
            session.load()
            if session.waiting:
                storage.write_features(report.platforms)
            journal = storage.journal(self.clock)
            self.journals.enter_context(journal)
            self.kinds[campaign.identity] = _MachineKind(session, journal, self.clock())
        return self.kinds[campaign.identity]

    def _in_flight(self, kind: _MachineKind) -> bool:
        return any(w.kind is kind and w.task is not None for w in self.workers.values())

    def _is_over(self) -> bool:
        if any(worker.task is not None for worker in self.workers.values()):
            return False
        now = self.clock()
        budget = self.options.time_budget_seconds
        if budget is not None and now - self.began >= budget:
            return True
        if not self.kinds:
            refused = self.workers and all(worker.refused for worker in self.workers.values())
            return bool(refused) or now - self.seen > self.fleet.absence_seconds
        return all(
            not kind.session.waiting
            or not kind.session.has_time()
            or now - kind.seen > self.fleet.absence_seconds
            for kind in self.kinds.values()
        )
