"""Long searches in a process of their own: ended where it takes too long, it disturbs no other answer."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

from jostle._base.operation_names import load_verb
from jostle.errors import NotPermitted
from jostle.placement import Fleet, Placement, Requests, SetBounds, Standard
from jostle.server.state._served_model import Served

_START_SECONDS = 20.0
# Niceness of what can wait: some 3% of a processor that answers want, so that it still comes to an end.
GIVES_WAY = 15
_model: Any = None  # of the process that searches


@dataclass(frozen=True)
class ApartQuery:
    """A question for the process that searches. verb: its name."""

    verb: str
    question: Any
    requests: Requests
    fleet: Fleet
    standard: Standard

    def answer(self) -> dict[str, Any]:
        """Answer the question in this process. Returns the document."""
        placement = Placement(self.fleet, SetBounds(_model, self.standard))
        verb = load_verb("placement", self.verb)
        return placement.ask(verb, self.requests, self.question).to_document()


class Worker:
    """A process of its own, made when first needed and ended by its parent, or with it. gives_way: whether it
    has little of a processor that others want."""

    def __init__(self, *, gives_way: bool = False) -> None:
        self.gives_way = gives_way
        self._pool: ProcessPoolExecutor | None = None

    async def do(self, seconds: float | None, act: Callable[..., Any], *given: Any) -> Any:
        """Run `act` in the other process, and return its result. Raises what it raises, TimeoutError,
        BrokenProcessPool."""
        if self._pool is None:
            spawn = multiprocessing.get_context("spawn")
            more: dict[str, Any] = {"initializer": _begin, "initargs": (self.gives_way,)}
            self._pool = ProcessPoolExecutor(1, mp_context=spawn, **more)
        # Python 3.11's wait_for takes no notice of being cancelled as the answer comes.
        async with asyncio.timeout(seconds):
            return await asyncio.get_running_loop().run_in_executor(self._pool, act, *given)

    def close(self) -> None:
        """End the process."""
        pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)


class Apart:
    """A process that answers long questions, which wait for each other."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._worker = Worker()
        self._knows: tuple[str, int] | None = None

    async def ask(self, query: ApartQuery, served: Served, seconds: float) -> dict[str, Any]:
        """Ask the other process for the answer's document.

        Raises what the operation raises, NotPermitted if it takes longer than `seconds`.
        """
        why = NotPermitted(
            f"no answer within {seconds:g} s", fix="Ask for fewer at once, or again."
        )
        try:
            async with asyncio.timeout(seconds):
                await self._lock.acquire()
        except TimeoutError:
            raise why from None
        try:
            if self._knows != served.key:
                await self._worker.do(_START_SECONDS, _know, served.model)
                self._knows = served.key
            return await self._worker.do(seconds, query.answer)
        except (TimeoutError, BrokenProcessPool, asyncio.CancelledError) as error:
            self.close()  # it takes too long, has ended, or nobody waits any more
            if isinstance(error, asyncio.CancelledError):
                raise
            raise why from None
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process."""
        self._knows = None
        self._worker.close()


def _begin(gives_way: bool) -> None:
    """It is ended by its parent, or with it."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    tasks = Path("/proc/self/task")  # BLAS has begun some threads
    for thread in tasks.iterdir() if gives_way and tasks.is_dir() else ():
        os.setpriority(os.PRIO_PROCESS, int(thread.name), GIVES_WAY)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=lambda: (parent.join(), os._exit(0)), daemon=True).start()


def _know(model: Any) -> None:
    global _model
    _model = model
