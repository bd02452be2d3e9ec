"""Everything that the operations of one running service share."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from typing import Any, TypeVar

from jostle.errors import JostleError
from jostle.server._serve_settings import ServeSettings
from jostle.server.asking._search_process import Worker
from jostle.server.http._callers import Callers
from jostle.server.http._metrics import Metrics
from jostle.server.http._problems import HttpProblem
from jostle.server.state._archive import as_runs
from jostle.server.state._live_fleet import LiveFleet
from jostle.server.state._live_learning import DriftsNow, Learning, learn_apart
from jostle.server.state._live_placements import LivePlaces
from jostle.server.state._served_model import ModelFolder, Served
from jostle.server.state._state_store import Store

_LOG = logging.getLogger("jostle.server")
_T = TypeVar("_T")
MOST_WAITING = 64  # questions in the queue of a thread
CLOSE_SECONDS = 2.0
AGAIN_SECONDS = 1.0


def steady_clock() -> Callable[[], float]:
    """Return seconds since 1970 by the clock of the system as it is now: no later step of it ends a
    placement."""

    def since_boot() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    begun = time.time() - since_boot()
    return lambda: begun + since_boot()


class Queue:
    """A thread that answers questions one after the other, and refuses too many."""

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=f"jostle-{name}")
        self.open: set[Future[Any]] = set()

    async def ask(self, act: Callable[[], _T], seconds: float) -> _T:
        """Run `act` in the thread pool, and return its result. Raises HttpProblem if it takes too long or too
        many wait."""
        if len(self.open) >= MOST_WAITING:
            raise HttpProblem(
                503, "too many questions wait. Try again in a moment.", Retry_After="1"
            )
        running = self._pool.submit(act)
        self.open.add(running)
        running.add_done_callback(self.open.discard)
        try:
            # Python 3.11's wait_for takes no notice of being cancelled as the answer comes.
            async with asyncio.timeout(seconds):
                return await asyncio.wrap_future(running)
        except TimeoutError:
            raise HttpProblem(503, f"no answer within {seconds:g} s.", Retry_After="1") from None

    def close(self) -> None:
        """Begin nothing that still waits; what is under way goes on."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Serving:
    """Parts of a running service. folder: the model. store: what changes. places: the fleet. clock: seconds
    since 1970."""

    def __init__(self, settings: ServeSettings, clock: Callable[[], float]) -> None:
        self.settings, self.clock = settings, clock
        self.callers = Callers(settings.keys, settings.most_per_second, time.monotonic)
        self.folder = ModelFolder(settings.model)
        self.folder.look()
        self.store = Store(settings.state_file(), clock)
        self.fleet = LiveFleet(settings.fleet, self.store)
        self.places = LivePlaces(self.fleet, self.store)
        self.drifts = DriftsNow(self.folder, self.store, settings.confidence)
        self._not_followed: str | None = None
        self.learning = Learning(self.folder, self.store, settings.learn)
        self.metrics = Metrics()
        self.reading = Queue("reading")
        self.answers = Queue("answers")
        self.placing = Queue("placing")
        self.writing = Queue("writing")
        self.probing = Queue("probing")
        self.is_stuck = False
        self.failed = Counter[str]()  # how often what goes on beside the answers began again

    @property
    def served(self) -> Served:
        """The model that answers. Raises HttpProblem while there is none."""
        if self.folder.served is None:
            raise HttpProblem(503, f"no model is served: {self.folder.trouble}", Retry_After="5")
        return self.folder.served

    def why_not_ready(self) -> str | None:
        """Say why the service should get no requests now; None if it should."""
        served = self.folder.served
        if served is None:
            return f"no model is served: {self.folder.trouble}"
        return None if served.is_calibrated else "the model has no calibration runs, so no bounds"

    async def keep(self, name: str, go_on: Callable[[], Awaitable[None]]) -> None:
        """Begin again what goes on beside the answers whenever it fails."""
        while True:
            try:
                return await go_on()
            except Exception:
                _LOG.exception("%s failed, and begins again", name)
                self.failed[name] += 1
                self.metrics.failed.labels(name).inc()
                await asyncio.sleep(AGAIN_SECONDS)

    def warm(self) -> None:
        """Load what the first observed run would wait for."""
        run = {"workload": "a", "platform": "a", "corunners": [], "runtime_seconds": 1.0}
        as_runs([{"id": "a", "run": {**run, "measured_at": "1970-01-01T00:00:00Z"}}])
        self.follow()
        gc.freeze()  # what is there by now is not searched for garbage each time that a large request is read

    async def watch(self, seconds: float = 0.5) -> None:
        """Take new models as they come, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(seconds)
            before = self.folder.trouble
            if await loop.run_in_executor(None, self.folder.look):
                _LOG.info("now serving model %s", self.served.version)
            if self.folder.trouble and self.folder.trouble != before:
                _LOG.warning("the model that lies there now is not served: %s", self.folder.trouble)
            with suppress(HttpProblem):  # others ask, too: a moment later
                while await self.write(self.follow):
                    pass

    def follow(self) -> bool:
        """Let the model's answers follow what the observed runs tell, in the thread that writes; says whether
        there are more of them. What hinders it goes to the log once."""
        trouble, more = None, False
        try:
            more = self.drifts.follow()
        except JostleError as error:
            trouble = str(error)
            if trouble != self._not_followed:
                _LOG.warning("answers do not follow what drifts: %s", trouble)
        self._not_followed = trouble
        return more

    async def learn(self, seconds: float = 1.0) -> None:
        """Learn observed runs as they come, in a process of its own; what hinders it is logged once."""
        settings, worker = self.settings, Worker(gives_way=True)
        state = settings.state_file()
        try:
            while True:
                await asyncio.sleep(seconds)
                try:
                    if not await asyncio.to_thread(self.learning.is_due):
                        continue
                    given = settings.model, state, settings.learn, self.clock()
                    if await worker.do(None, learn_apart, *given):
                        _LOG.info("observed runs were learned")
                    trouble = None
                except BrokenProcessPool:
                    trouble = "the process that learns was ended"
                except JostleError as error:
                    trouble = str(error)
                if trouble and trouble != self.learning.trouble:
                    _LOG.warning("observed runs are not learned: %s", trouble)
                self.learning.trouble = trouble
                self.learning.wait()
                worker.close()  # its memory is free until the next time
        finally:
            worker.close()

    async def ask_places(self, act: Callable[[LivePlaces, Served], _T]) -> _T:
        """Ask about the fleet, in the thread that it belongs to."""
        served = self.served
        return await self.placing.ask(lambda: act(self.places, served), self.settings.most_seconds)

    async def write(self, act: Callable[[], _T]) -> _T:
        """Run `act` in the thread that writes: its changes are on the disk before the answer."""
        return await self.writing.ask(act, self.settings.most_seconds)

    def headers(self, label: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return the headers that name the model behind an answer. label: of a model other than the present
        one."""
        if label is None and self.folder.served is not None:
            label = self.folder.served.label
        names = {"Jostle-Model-Version": "version", "Jostle-Data-Version": "data_version"}
        return {} if label is None else {key: str(label[name]) for key, name in names.items()}

    def close(self) -> None:
        """Wait a moment for what threads are at. A question that waits gets no answer any more, and a change
        that is not on the disk is not made."""
        queues = self.reading, self.answers, self.placing, self.writing, self.probing
        for queue in queues:
            queue.close()
        under_way: set[Future[Any]] = set().union(*(queue.open for queue in queues))
        self.is_stuck = bool(wait(under_way, CLOSE_SECONDS).not_done)
        if not self.is_stuck:
            self.store.close()

    def refresh_metrics(self) -> None:
        """Set the gauges that are looked up only when somebody asks."""
        m, served = self.metrics, self.folder.served
        m.model.clear()
        if served is not None:
            m.model.labels(served.version, served.data_version).set(1)
        m.raise_to("swaps", self.folder.changes)
        m.raise_to("failures", self.folder.failures)
        m.placements.set(len(self.fleet.placed))
        m.nodes.set(len(self.fleet.nodes))
        m.drifts.set(0 if served is None else served.drifts)
        with suppress(JostleError):  # the rest does without the database
            _, bounded, inside = self.store.seen_coverage()
            m.bounded.set(bounded)
            m.coverage.set(inside / bounded if bounded else float("nan"))
